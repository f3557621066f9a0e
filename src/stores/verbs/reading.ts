/** How a row becomes a job on which this process can decide, the same in every store. */
import { LifecycleUnknown, type PawlError, StaleFence } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Ref } from '../contract/store.ts'
import { readRow, unknownMachine } from '../damage.ts'
import { JobDamaged } from '../errors.ts'
import { endOf, type Machines, type Route } from '../machines.ts'
import type { JobRow } from '../rows.ts'
import type { Locked } from './operations.ts'

/** A job as it was read and locked. What is decided on it becomes its present state. */
export interface Read {
  /** The store's own handle of the row. */
  readonly ref: Ref
  job: Job
  /** The version that decides. */
  readonly lifecycle: Lifecycle
  /** The job follows an earlier version: what is decided on it migrates it first. */
  route?: Route | undefined
  readonly cancelAskedAt: number | null
  /** The gates that it counts in, if it is held. */
  readonly slots?: string | null
  /** How many retries wait in its queue; read only for commands that may add one. */
  retriesAhead?: number
}

/** The row of a job, with the request to cancel it and the gates that it counts in. */
export type LockedRow = JobRow & {
  readonly cancel_asked_at: number | null
  readonly slots: string | null
}

/** The job of a row, if this process knows its lifecycle or can migrate it; or why it has none. */
export function toRead(
  machines: Machines,
  row: LockedRow,
  ref: Ref,
): Read | JobDamaged | undefined {
  const { machine, cancel_asked_at: cancelAskedAt, slots } = row
  const lifecycle = machines.byId.get(machine)
  const route = machines.routes.get(machine)
  const own = lifecycle ?? route?.before
  if (own === undefined) return undefined
  const job = readRow(row, own, ref)
  if (job instanceof JobDamaged) return job
  if (lifecycle !== undefined) return { ref, job, lifecycle, cancelAskedAt, slots }
  return route && { ref, job, lifecycle: endOf(route).lifecycle, route, cancelAskedAt, slots }
}

/**
 * The job as it was read, with the deadline that its holder knows. A worker compares the deadline
 * of the row with the facts before it obeys it, so a damaged one must not end the job here.
 */
export function asHeld(read: Read | JobDamaged, { deadlineAt }: Job): Read | JobDamaged {
  if (read instanceof JobDamaged) return read
  if (read.job.deadlineAt !== deadlineAt) read.job = { ...read.job, deadlineAt }
  return read
}

/** Whether this process knows the version that a row follows, or can migrate it. */
export function isKnown({ byId, routes }: Machines, { machine }: LockedRow): boolean {
  return byId.has(machine) || routes.has(machine)
}

/** The same for a job that only needs to be finished: a stored definition is enough. */
export function toDelivered(
  machines: Machines,
  row: LockedRow,
  ref: Ref,
): Read | JobDamaged | undefined {
  const read = toRead(machines, row, ref)
  if (read !== undefined) return read
  const lifecycle = machines.storedAt(row.machine)
  if (lifecycle === undefined) return undefined
  const job = readRow(row, lifecycle, ref)
  return job instanceof JobDamaged
    ? job
    : { ref, job, lifecycle, cancelAskedAt: row.cancel_asked_at, slots: row.slots }
}

/** The same for a verb that cannot go on with a damaged row: throws `JobDamaged`. */
export function toSound(machines: Machines, row: LockedRow, ref: Ref): Read | undefined {
  const read = toRead(machines, row, ref)
  if (read instanceof JobDamaged) throw read
  return read
}

/** Rule G9: the job is left alone, and the error names the version that it follows. */
function unknownLifecycle(
  { rows }: Machines,
  job: Pick<JobRow, 'machine' | 'id'>,
  ref: Ref,
): PawlError {
  const row = rows.find(({ id }) => id === job.machine)
  if (row === undefined) return unknownMachine(job, ref)
  return new LifecycleUnknown(row.name, row.version)
}

/** Why a holder cannot go on with a job whose version this process does not have. */
export function heldFault(machines: Machines, row: LockedRow, ref: Ref, job: Job): PawlError {
  // A holder that lost the job to a newer release gets `StaleFence`, not the version of the job.
  const isLost = row.claim !== job.execution?.claim || row.attempt !== job.attempt
  return isLost ? new StaleFence(job.id, 'claim') : unknownLifecycle(machines, row, ref)
}

/** Rows that were locked, as jobs by their ids. */
export function toLocked(
  machines: Machines,
  rows: readonly { readonly row: LockedRow; readonly ref: Ref }[],
  read = toRead,
): Locked {
  const reads = new Map<string, Read>()
  const unknown = new Map<string, PawlError>()
  for (const { row, ref } of rows) {
    const found = read(machines, row, ref)
    if (found instanceof JobDamaged) unknown.set(row.id, found)
    else if (found !== undefined) reads.set(row.id, found)
    else unknown.set(row.id, unknownLifecycle(machines, row, ref))
  }
  return { reads, unknown }
}
