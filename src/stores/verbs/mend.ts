/**
 * Carries out what the doctor decides about one job. Triggers guard facts and ended jobs, also from
 * the doctor. A guard is lifted for the statement that needs it, inside the transaction, so that no
 * other transaction sees the table without it.
 *
 * On PostgreSQL lifting a guard waits for every transaction that writes to the table. With the row
 * of a job locked, that wait could become a deadlock. So the row is unlocked, the tables are
 * locked, and the job is read and decided on again.
 */
import { LifecycleUnknown } from '../../core/errors.ts'
import { LANES } from '../../core/job/lanes.ts'
import { strictGroupOf } from '../../core/limits/keys.ts'
import { columnsOf } from '../columns.ts'
import type {
  Aside,
  Handle,
  Mended,
  Mending,
  RawJob,
  RepairAuthor,
  StoredJob,
} from '../contract/examination.ts'
import type { Ref } from '../contract/store.ts'
import { slotsOf } from '../held-slots.ts'
import type { Value } from '../rows.ts'
import { makeDue } from './isolate.ts'
import type { Guard, GuardedTable, Tx, Verb } from './operations.ts'

type Decide = (stored: StoredJob, now: number) => Mending | undefined

/** What was seen, what was decided on it, and what follows from that for each table. */
interface Plan {
  readonly seen: StoredJob
  readonly mending: Mending
  /** The row that is written over; `undefined` if one is inserted. */
  readonly target: RawJob | undefined
  readonly columns: Readonly<Record<string, Value>>
  readonly guarded: {
    readonly removedJobs: boolean
    readonly removedFacts: boolean
    readonly target: boolean
  }
}

/** Shows a job to `decide`, and carries out what it returns. */
export function* mend(
  tx: Tx,
  ref: Ref,
  decide: Decide,
  by: RepairAuthor,
): Verb<Mending | undefined> {
  let plan = yield* makePlan(tx, ref, decide)
  const tables = plan === undefined ? [] : guardedTables(plan)
  if (tables.length > 0 && (yield* tx.lockTables(tables))) plan = yield* makePlan(tx, ref, decide)
  if (plan === undefined) return undefined
  yield* carryOut(tx, ref, plan, by)
  yield* tx.freeSlots(freedBy(plan), groupsIn(plan))
  return plan.mending
}

/** Locks everything of a job that can change, and has it decided on. */
function* makePlan(tx: Tx, ref: Ref, decide: Decide): Verb<Plan | undefined> {
  const seen = yield* tx.lockStored(ref)
  const mending = seen && decide(seen, tx.now)
  if (seen === undefined || mending === undefined) return undefined
  const { row, twins } = seen
  const rows = row === null ? [] : [row, ...twins]
  const removed = new Set(handlesOf(mending, 'jobs'))
  const left = rows.filter(({ handle }) => !removed.has(handle))
  const target = mending.after === undefined ? undefined : left[0]
  const columns = mending.after === undefined ? {} : mendedColumns(tx, mending.after, target)
  return {
    seen,
    mending,
    target,
    columns,
    guarded: {
      removedJobs: rows.some(({ handle, lane }) => removed.has(handle) && lane !== LANES.ended),
      removedFacts: left.length > 0 && handlesOf(mending, 'ledger').length > 0,
      target: target?.outcome === 'succeeded' && !isNote(target, columns),
    },
  }
}

function mendedColumns(
  { machines }: Tx,
  { lifecycle, job, lane, leaseUntil }: Mended,
  target: RawJob | undefined,
) {
  const machine = machines.numberOf(lifecycle)
  if (machine === undefined) throw new LifecycleUnknown(lifecycle.name, lifecycle.version)
  const columns = columnsOf({ job, machine, lane: LANES[lane], leaseUntil })
  const slots = lane === 'held' ? slotsOf(job, target?.slots ?? null) : null
  return { ...columns, slots }
}

/** The slots of rows that are removed, or are held no longer. */
function freedBy({ seen: { row, twins }, mending, target }: Plan): (string | null)[] {
  const rows = row === null ? [] : [row, ...twins]
  const removed = new Set(handlesOf(mending, 'jobs'))
  const isReleased = mending.after !== undefined && mending.after.lane !== 'held'
  return rows
    .filter((one) => removed.has(one.handle) || (one === target && isReleased))
    .map(({ slots }) => slots)
}

/** The strict groups of the job: their first job may be another one now. */
function groupsIn({ seen: { row, twins }, mending }: Plan): string[] {
  const rows = row === null ? [] : [row, ...twins]
  const keys = [...rows.map((one) => one.limit_key), mending.after?.job.limitKey ?? null]
  return keys.flatMap((key) => strictGroupOf(key)?.gate ?? [])
}

function handlesOf({ aside }: Mending, origin: Aside['origin']): Handle[] {
  return aside.filter((one) => one.origin === origin).map(({ handle }) => handle)
}

/** Whether a succeeded job only gets the number of a further fact, which its guard allows. */
function isNote(row: RawJob, columns: Plan['columns']): boolean {
  const same = Object.entries(columns).every(
    ([name, value]) =>
      name === 'seq' || name === 'updated_at' || row[name as keyof RawJob] === value,
  )
  return same && columns.seq === row.seq + 1
}

function guardedTables({ guarded }: Plan): GuardedTable[] {
  return [
    ...(guarded.removedJobs || guarded.target ? (['jobs'] as const) : []),
    ...(guarded.removedFacts ? (['ledger'] as const) : []),
  ]
}

/** Removes jobs first: facts can be removed without lifting a guard when their job is gone. */
function* carryOut(tx: Tx, ref: Ref, plan: Plan, by: RepairAuthor): Verb<void> {
  const { guarded, mending, seen, target, columns } = plan
  const { after, parked = [], due = [], why } = mending
  const jobId = after?.job.id ?? seen.row?.id ?? null
  const aside = (origin: Aside['origin']) => {
    return tx.moveAside(origin, handlesOf(mending, origin), { ref, jobId, why, by })
  }
  yield* without(tx, guarded.removedJobs && 'live_jobs_are_not_deleted', () => aside('jobs'))
  yield* aside('outbox')
  if (parked.length > 0) yield* tx.parkEffects(parked, why)
  yield* makeDue(tx, due.map(Number))
  yield* without(tx, guarded.removedFacts && 'ledger_is_never_deleted', () => aside('ledger'))
  if (after === undefined) return
  yield* without(tx, guarded.target && 'succeeded_is_final', () =>
    tx.writeMended(ref, target, columns, after.fact),
  )
}

/** Runs one operation while a guard is lifted. */
function* without(tx: Tx, guard: Guard | false, work: () => ReturnType<Tx['write']>): Verb<void> {
  const lifted = guard === false ? undefined : yield* tx.liftGuard(guard)
  yield* work()
  if (guard !== false && lifted !== undefined) yield* tx.restoreGuard(guard, lifted)
}
