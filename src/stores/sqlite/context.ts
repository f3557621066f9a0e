/** What the verbs of this store share. */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { JobNotFound, LifecycleUnknown, type PawlError } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Environment } from '../../environment/system.ts'
import { type JobRow, toJob } from '../rows.ts'
import type { Held } from '../store.ts'
import type { FileClock } from './clock.ts'
import type { Connection } from './connect.ts'
import type { Machines } from './machines.ts'

/** The parts of an open store. */
export interface Shared {
  readonly environment: Environment
  /** The time of the file. */
  readonly clock: FileClock
  readonly machines: Machines
  /** How large and how deep an input, result or effect may be. */
  readonly payloadBounds: JsonBounds
}

/** A job as it was read, with the handle of its row and its lifecycle. */
export interface Read {
  readonly rid: number
  readonly job: Job
  readonly lifecycle: Lifecycle
}

const SELECT_JOB = 'SELECT * FROM pawl_jobs WHERE id = ?'

/** Reads a job whose lifecycle this process knows; else nothing. */
export function readJob(shared: Shared, connection: Connection, id: string): Read | undefined {
  const row = connection.get<NumberedRow>(SELECT_JOB, id)
  return row === undefined ? undefined : toRead(shared, row)
}

/** The row of a job, with its number. */
export interface NumberedRow extends JobRow {
  readonly rid: number
}

/** A row as a job, if this process knows its lifecycle. */
export function toRead({ machines }: Shared, row: NumberedRow): Read | undefined {
  const lifecycle = machines.byId.get(row.machine)
  return lifecycle && { rid: row.rid, job: toJob(row, lifecycle), lifecycle }
}

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
  return toRead(shared, row) ?? new LifecycleUnknown(job.lifecycle, job.lifecycleVersion)
}
