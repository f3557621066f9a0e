/** What operations work with: the connection of the writer, inside its transaction. */
import type { Moment } from '../../verbs/operations.ts'
import type { Connection } from '../connect.ts'
import type { SqliteMachines } from '../machines.ts'

/** A transaction of this store. */
export interface At extends Moment {
  readonly connection: Connection
  readonly machines: SqliteMachines
}
