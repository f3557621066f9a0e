/** What operations work with: a session, inside a transaction. */
import type { Moment } from '../../verbs/operations.ts'
import type { Session } from '../connect.ts'
import type { PostgresMachines } from '../machines.ts'

/** A transaction of this store. */
export interface At extends Moment {
  readonly session: Session
  readonly machines: PostgresMachines
}
