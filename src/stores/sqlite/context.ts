/** What the verbs of this store share. */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { JobNotFound, type PawlError } from '../../core/errors.ts'
import type { Environment } from '../../environment/system.ts'
import type { Held } from '../contract/store.ts'
import type { StatementMachines } from '../statement-machines.ts'
import { asHeld, heldFault, type LockedRow, type Read, toRead } from '../verbs/reading.ts'
import type { FileClock } from './clock.ts'
import type { Connection } from './connect.ts'
import type { At } from './statements/at.ts'

/** The parts of an open store. */
export interface Shared {
  readonly environment: Environment
  /** The time of the file. */
  readonly clock: FileClock
  readonly machines: StatementMachines
  /** How large and how deep an input, result or effect may be. */
  readonly payloadBounds: JsonBounds
}

/** The row of a job, with its number. */
export type NumberedRow = LockedRow & { readonly rid: number }

const SELECT_HELD = 'SELECT * FROM pawl_jobs WHERE rid = ?'

/**
 * The job that a caller holds, as it is now, or why there is none. All jobs of one claim have the
 * same fence, so a handle must also belong to its job.
 */
export function readHeld(
  shared: Shared,
  connection: Connection,
  { ref, job }: Held,
): Read | PawlError {
  const row = connection.get<NumberedRow>(SELECT_HELD, ref)
  if (row === undefined || row.id !== job.id) return new JobNotFound(job.id)
  const { machines } = shared
  const read = machines.byId.has(row.machine) ? toRead(machines, row, row.rid) : undefined
  if (read !== undefined) return asHeld(read, job)
  return heldFault(machines, row, row.rid, job)
}

/** A transaction in which verbs run. */
export function atOf(
  { environment, clock, machines }: Pick<Shared, 'environment' | 'clock' | 'machines'>,
  connection: Connection,
  now: number,
): At {
  return { environment, clock, machines, connection, now }
}
