/** What the verbs of this store share. */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { JobNotFound, LifecycleUnknown, type PawlError } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Environment } from '../../environment/system.ts'
import { type JobRow, toJob } from '../rows.ts'
import type { Held } from '../store.ts'
import { type Session, statement } from './connect.ts'
import type { Machines } from './machines.ts'
import { arrayOf } from './rows-at-once.ts'

/** The parts of an open store. */
export interface Shared {
  readonly environment: Environment
  readonly machines: Machines
  /** How large and how deep an input, result or effect may be. */
  readonly payloadBounds: JsonBounds
}

/** A job as it was read and locked. What is decided on it becomes its present state. */
export interface Read {
  job: Job
  readonly lifecycle: Lifecycle
  readonly cancelAskedAt: number | null
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

/** Locks jobs whose lifecycles this process knows, by their ids. */
export async function lockJobs(
  shared: Shared,
  session: Session,
  ids: readonly string[],
): Promise<Map<string, Read>> {
  const rows = await session.query<LockedRow>(LOCK, [arrayOf(ids.filter(isUuid))])
  const reads = rows.map((row) => toRead(shared, row)).filter((read) => read !== undefined)
  return new Map(reads.map((read) => [read.job.id, read]))
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
  const byId = new Map(rows.map((row) => [row.id, { read: toRead(shared, row) }]))
  return held.map(({ ref, job }) => {
    const found = ref === job.id ? byId.get(ref) : undefined
    if (found === undefined) return new JobNotFound(job.id)
    return found.read ?? new LifecycleUnknown(job.lifecycle, job.lifecycleVersion)
  })
}

/** A row as a job, if this process knows its lifecycle. */
export function toRead({ machines }: Shared, row: LockedRow): Read | undefined {
  const lifecycle = machines.byId.get(row.machine)
  if (lifecycle === undefined) return undefined
  return { job: toJob(row, lifecycle), lifecycle, cancelAskedAt: row.cancel_asked_at }
}
