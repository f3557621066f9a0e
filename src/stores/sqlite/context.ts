/** What the verbs of this store share. */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { JobNotFound, LifecycleUnknown, type PawlError, StaleFence } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Environment } from '../../environment/system.ts'
import { readRow, unknownMachine } from '../damage.ts'
import { JobDamaged } from '../errors.ts'
import { endOf, type Route } from '../machines.ts'
import type { JobRow } from '../rows.ts'
import type { Held } from '../store.ts'
import type { FileClock } from './clock.ts'
import type { Connection } from './connect.ts'
import { refreshMachines, type SqliteMachines } from './machines.ts'

/** The parts of an open store. */
export interface Shared {
  readonly environment: Environment
  /** The time of the file. */
  readonly clock: FileClock
  readonly machines: SqliteMachines
  /** How large and how deep an input, result or effect may be. */
  readonly payloadBounds: JsonBounds
}

/** A job as it was read, with the handle of its row and the lifecycle that decides on it. */
export interface Read {
  readonly rid: number
  readonly job: Job
  readonly lifecycle: Lifecycle
  /** The job follows an earlier version: what is decided on it migrates it first. */
  readonly route?: Route
  /** How many retries wait in its queue; read only for commands that may add one. */
  readonly retriesAhead?: number
}

const SELECT_JOB = 'SELECT * FROM pawl_jobs WHERE id = ?'

/** Reads a job, or says why this process cannot decide on it. */
export function readJob(shared: Shared, connection: Connection, id: string): Read | PawlError {
  const row = connection.get<NumberedRow>(SELECT_JOB, id)
  if (row === undefined) return new JobNotFound(id)
  const read = toRead(shared, row)
  if (read !== undefined) return read
  // Another process may have registered its lifecycle since.
  refreshMachines(connection, shared.machines)
  return toRead(shared, row) ?? unknownLifecycle(shared, row)
}

/**
 * Reads a job that only needs to be finished, which every process may do that delivered its last
 * effect: a version that this process does not have is read from its stored definition.
 */
export function readDelivered(
  shared: Shared,
  connection: Connection,
  id: string,
): Read | PawlError {
  const read = readJob(shared, connection, id)
  if (!(read instanceof LifecycleUnknown)) return read
  const row = connection.get<NumberedRow>(SELECT_JOB, id) as NumberedRow
  const lifecycle = shared.machines.storedAt(row.machine)
  if (lifecycle === undefined) return read
  const job = readRow(row, lifecycle, row.rid)
  return job instanceof JobDamaged ? job : { rid: row.rid, job, lifecycle }
}

/** Rule G9: the job is left alone, and the caller is told which version it follows. */
function unknownLifecycle({ machines }: Shared, job: NumberedRow): PawlError {
  const row = machines.rows.find(({ id }) => id === job.machine)
  if (row === undefined) return unknownMachine(job, job.rid)
  return new LifecycleUnknown(row.name, row.version)
}

/** The row of a job, with its number. */
export interface NumberedRow extends JobRow {
  readonly rid: number
}

/** A row as a job, if this process knows its lifecycle or can migrate it; or why it is none. */
export function toRead({ machines }: Shared, row: NumberedRow): Read | JobDamaged | undefined {
  const { rid, machine } = row
  const lifecycle = machines.byId.get(machine)
  const route = machines.routes.get(machine)
  const own = lifecycle ?? route?.before
  if (own === undefined) return undefined
  const job = readRow(row, own, rid)
  if (job instanceof JobDamaged) return job
  if (lifecycle !== undefined) return { rid, job, lifecycle }
  return route && { rid, job, lifecycle: endOf(route).lifecycle, route }
}

/** The same for a verb that cannot go on with a damaged row: throws `JobDamaged`. */
export function toSound(shared: Shared, row: NumberedRow): Read | undefined {
  const read = toRead(shared, row)
  if (read instanceof JobDamaged) throw read
  return read
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
  const read = shared.machines.byId.has(row.machine) ? toRead(shared, row) : undefined
  if (read !== undefined) return read
  // Whoever lost the job to a newer release must learn that it is lost, and not what it follows.
  const isLost = row.claim !== job.execution?.claim || row.attempt !== job.attempt
  return isLost ? new StaleFence(job.id, 'claim') : unknownLifecycle(shared, row)
}
