/** What operations work with: the connection of the writer, inside its transaction. */
import type { StatementMachines } from '../../statement-machines.ts'
import type { Scope } from '../../verbs/operations.ts'
import type { FileClock } from '../clock.ts'
import type { Connection } from '../connect.ts'

/** A transaction of this store. */
export interface At extends Scope {
  readonly connection: Connection
  readonly clock: FileClock
  readonly machines: StatementMachines
}
