/** What operations work with: a session, inside a transaction. */
import type { StatementMachines } from '../../statement-machines.ts'
import type { Scope } from '../../verbs/operations.ts'
import type { Session } from '../connect.ts'

/** A transaction of this store. */
export interface At extends Scope {
  readonly session: Session
  readonly machines: StatementMachines
  /** The name of the schema, quoted. */
  readonly schema: string
}
