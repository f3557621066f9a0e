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
import { type Session, statement } from './connect.ts'
import { type PostgresMachines, refreshMachines } from './machines.ts'
import { arrayOf } from './rows-at-once.ts'

/** The parts of an open store. */
export interface Shared {
  readonly environment: Environment
  readonly machines: PostgresMachines
  /** How large and how deep an input, result or effect may be. */
  readonly payloadBounds: JsonBounds
}

/** A job as it was read and locked. What is decided on it becomes its present state. */
export interface Read {
  job: Job
  /** The version that decides. */
  readonly lifecycle: Lifecycle
  /** The job follows an earlier version: what is decided on it migrates it first. */
  route?: Route | undefined
  readonly cancelAskedAt: number | null
  /** How many retries wait in its queue; read only for commands that may add one. */
  retriesAhead?: number
}

/** The row of a job, with the wish to cancel it. */
export type LockedRow = JobRow & { readonly cancel_asked_at: number | null }

/** Several rows are locked only in the order of their ids, so that nobody waits in a circle. */
const LOCK = statement(
  (s) => `SELECT * FROM ${s}.jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE`,
)

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a text could be held at all; the database refuses to compare others. */
export function isStorable(text: string): boolean {
  return !/\p{Surrogate}|\0/u.test(text)
}

/** Whether a text can be an id at all; the database would not even compare others. */
export function isUuid(id: unknown): id is string {
  return typeof id === 'string' && UUID.test(id)
}

/** Locks jobs by their ids; those that this process can decide on. */
export async function lockJobs(
  shared: Shared,
  session: Session,
  ids: readonly string[],
): Promise<Map<string, Read>> {
  const { reads } = await lockAll(shared, session, ids)
  return reads
}

/**
 * Locks jobs that only need to be finished, which every process may do that delivered their last
 * effects: a version that this process does not have is read from its stored definition.
 */
export async function lockDelivered(
  shared: Shared,
  session: Session,
  ids: readonly string[],
): Promise<Map<string, Read>> {
  const { reads } = await lockAll(shared, session, ids, toDelivered)
  return reads
}

/** The same, and for every other job that there is why this process cannot decide on it. */
export async function lockAll(
  shared: Shared,
  session: Session,
  ids: readonly string[],
  read: typeof toRead = toRead,
): Promise<{ reads: Map<string, Read>; unknown: Map<string, PawlError> }> {
  const rows = await session.query<LockedRow>(LOCK, [arrayOf(ids.filter(isUuid))])
  // Another process may have registered a lifecycle since.
  const isNew = rows.some((row) => read(shared, row) === undefined)
  if (isNew) await refreshMachines(session, shared.machines)
  const reads = new Map<string, Read>()
  const unknown = new Map<string, PawlError>()
  for (const row of rows) {
    const found = read(shared, row)
    if (found instanceof JobDamaged) unknown.set(row.id, found)
    else if (found !== undefined) reads.set(row.id, found)
    else unknown.set(row.id, unknownLifecycle(shared, row))
  }
  return { reads, unknown }
}

/** Rule G9: the job is left alone, and the caller is told which version it follows. */
function unknownLifecycle({ machines }: Shared, job: LockedRow): PawlError {
  const row = machines.rows.find(({ id }) => id === job.machine)
  if (row === undefined) return unknownMachine(job, job.id)
  return new LifecycleUnknown(row.name, row.version)
}

/**
 * Locks what callers hold, and answers for each the job as it is now, or why there is none. All
 * jobs of one claim have the same fence, so a handle must also belong to its job.
 */
export async function lockHeld(
  shared: Shared,
  session: Session,
  held: readonly Held[],
): Promise<(Read | PawlError)[]> {
  const ids = held.map(({ ref }) => ref).filter(isUuid)
  const rows = await session.query<LockedRow>(LOCK, [arrayOf(ids)])
  const byId = new Map(rows.map((row) => [row.id, { row, read: toRead(shared, row) }]))
  return held.map(({ ref, job }) => {
    const found = ref === job.id ? byId.get(ref) : undefined
    if (found === undefined) return new JobNotFound(job.id)
    const { row, read } = found
    if (read instanceof JobDamaged) return read
    if (read !== undefined && read.route === undefined) return read
    // Whoever lost the job to a newer release must learn that it is lost, and not what it follows.
    const isLost = row.claim !== job.execution?.claim || row.attempt !== job.attempt
    return isLost ? new StaleFence(job.id, 'claim') : unknownLifecycle(shared, row)
  })
}

/** A row as a job, if this process knows its lifecycle or can migrate it; or why it is none. */
export function toRead({ machines }: Shared, row: LockedRow): Read | JobDamaged | undefined {
  const { machine, cancel_asked_at: cancelAskedAt } = row
  const lifecycle = machines.byId.get(machine)
  const route = machines.routes.get(machine)
  const own = lifecycle ?? route?.before
  if (own === undefined) return undefined
  const job = readRow(row, own)
  if (job instanceof JobDamaged) return job
  if (lifecycle !== undefined) return { job, lifecycle, cancelAskedAt }
  return route && { job, lifecycle: endOf(route).lifecycle, route, cancelAskedAt }
}

function toDelivered(shared: Shared, row: LockedRow): Read | JobDamaged | undefined {
  const read = toRead(shared, row)
  if (read !== undefined) return read
  const lifecycle = shared.machines.storedAt(row.machine)
  if (lifecycle === undefined) return undefined
  const job = readRow(row, lifecycle)
  return job instanceof JobDamaged ? job : { job, lifecycle, cancelAskedAt: row.cancel_asked_at }
}

/** The same for a verb that cannot go on with a damaged row: throws `JobDamaged`. */
export function toSound(shared: Shared, row: LockedRow): Read | undefined {
  const read = toRead(shared, row)
  if (read instanceof JobDamaged) throw read
  return read
}
