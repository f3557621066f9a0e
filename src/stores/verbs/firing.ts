/**
 * One schedule while its ticks are dealt with, in memory. The verb in `fire.ts` reads rows and open
 * jobs, calls `settle` and `plan`, makes the jobs of all schedules by one operation, and
 * then asks each schedule for its records and its row.
 */
import { CommandInvalid, type PawlError } from '../../core/errors.ts'
import {
  type BufferedTick,
  encodeBuffer,
  type ScheduleRules,
} from '../../core/schedule/definition.ts'
import { jitterOf } from '../../core/schedule/jitter.ts'
import { tickKey } from '../../core/schedule/keys.ts'
import { BUFFER_MAX, chooseOverlap } from '../../core/schedule/overlap.ts'
import { type DueTick, LATE_MS, missedUntil, planTicks } from '../../core/schedule/plan.ts'
import type { TickSource } from '../../core/schedule/ticks.ts'
import { ENGINE } from '../contract/requester.ts'
import type { TickResult } from '../contract/schedules.ts'
import type { Enqueued, EnqueueItem, Requester } from '../contract/store.ts'
import { KeyTaken } from '../errors.ts'
import { authorOf, type NewRecord, type ReadSchedule, type ScheduleRow } from '../schedule-rows.ts'
import type { Tx } from './operations.ts'

/** How many ticks of one schedule may be made jobs in one transaction. */
const TICKS_MAX = 100
/**
 * How soon a schedule is looked at again while ticks wait for the end of a job: after a tenth of
 * the time that the first of them has waited, within these bounds.
 */
const BUFFER_LOOK_MS = { min: 1000, max: 30_000 }
/** How long a tick of a backfill counts as waiting: its time says nothing about that. */
const BACKFILL_MS = 50_000
/** How many jobs a schedule keeps in view if it does not look at them. */
const OPEN_MAX = 100

/** An open job, as a store reports it. */
export interface JobStatus {
  readonly id: string
  /** Whether it has neither ended nor been parked. */
  readonly isOpen: boolean
  readonly hasFailed: boolean
}

/** A tick whose job is made in this transaction. */
interface Made {
  readonly tick: number
  readonly previous: number | null
  readonly result: TickResult
  readonly item: EnqueueItem
}

/** A schedule in one transaction. */
export class ScheduleFiring {
  readonly row: ScheduleRow
  readonly rules: ScheduleRules
  readonly #now: number
  readonly #ticks: TickSource
  readonly #made: Made[] = []
  readonly #records: NewRecord[] = []
  #open: string[]
  #buffer: BufferedTick[]
  #cursor: number
  #next: number | null
  #lastTick: number | null
  #lastJob: string | null
  #pausedBy: string | undefined

  constructor(
    row: ScheduleRow,
    { rules, buffer, open }: ReadSchedule,
    ticks: TickSource,
    now: number,
  ) {
    this.row = row
    this.rules = rules
    this.#ticks = ticks
    this.#now = now
    this.#open = [...open]
    this.#buffer = [...buffer]
    this.#cursor = row.cursor_at
    this.#next = row.next_at
    this.#lastTick = row.last_tick
    this.#lastJob = row.last_job
  }

  /** Whether decisions depend on the jobs that were open. */
  get looksAtJobs(): boolean {
    const { overlap, pauseOnFailure } = this.rules
    return overlap !== 'allowAll' || pauseOnFailure || this.#buffer.length > 0
  }

  get open(): readonly string[] {
    return this.#open
  }

  get items(): EnqueueItem[] {
    return this.#made.map(({ item }) => item)
  }

  get isPaused(): boolean {
    return this.#pausedBy !== undefined || this.row.paused_at !== null
  }

  /** Open jobs that have to be cancelled before ticks are planned. */
  get toCancel(): readonly string[] {
    const isDue = this.#next !== null && this.#next <= this.#now
    // A process without the lifecycle cannot cancel them, so a tick that waits asks again.
    const isWanted = (isDue || this.#buffer.length > 0) && !this.isPaused
    return this.rules.overlap === 'cancelOther' && isWanted ? this.#open : []
  }

  /** Takes note of jobs that are no longer open; pauses the schedule if one has failed. */
  settle(statuses: ReadonlyMap<string, JobStatus>): void {
    const failed = this.#open.find((id) => statuses.get(id)?.hasFailed)
    this.#open = this.#open.filter((id) => statuses.get(id)?.isOpen)
    if (failed === undefined || !this.rules.pauseOnFailure || this.isPaused) return
    this.#pausedBy = failed
    const note = `job ${failed} has failed`
    const record = { at: this.#now, schedule: this.row.name, action: 'pause', job: failed } as const
    this.#records.push({ ...record, actor: 'engine', note, reason: 'failed' })
  }

  /** Takes note of jobs that were cancelled at once. */
  closed(ids: ReadonlySet<string>): void {
    this.#open = this.#open.filter((id) => !ids.has(id))
  }

  /** Plans the ticks up to now, and those that waited. */
  plan(tx: Tx): void {
    if (this.isPaused) return
    this.#drain(tx)
    const { catchUp, overlap } = this.rules
    const { parts, cursor, next } = planTicks(this.#ticks, {
      cursor: this.#cursor,
      previous: this.#lastTick,
      now: this.#now,
      catchUp,
      limit: TICKS_MAX,
    })
    const due = parts.filter((part): part is DueTick => part.kind === 'due')
    for (const part of parts) {
      if (part.kind === 'missed') this.miss(part.tick, part.lastTick, part.ticks, 'late')
      // Of several ticks, the last one would cancel the jobs of the others.
      else if (overlap === 'cancelOther' && part !== due.at(-1)) this.#skip(part, 'replaced')
      else this.#meet(tx, part)
    }
    this.#cursor = cursor
    this.#next = next ?? null
    if (due.length > 0) this.#lastTick = due.at(-1)?.tick ?? null
  }

  /** Makes the jobs of ticks that waited, if no job is open. */
  #drain(tx: Tx): void {
    const makes = this.rules.overlap === 'allowAll' && !this.#hasBackfill() ? TICKS_MAX : 1
    for (let i = 0; i < makes && this.#buffer.length > 0; i++) {
      if (makes === 1 && this.#open.length > 0) return
      const [first] = this.#buffer.splice(0, 1) as [BufferedTick]
      const isLate = this.#now - first.tick > LATE_MS
      const result = first.isBackfill ? 'backfilled' : isLate ? 'late' : 'fired'
      this.make(tx, first.tick, first.previous, result, ENGINE)
    }
  }

  #hasBackfill(): boolean {
    return this.#buffer.some(({ isBackfill }) => isBackfill)
  }

  #meet(tx: Tx, part: DueTick): void {
    const { tick, previous, isLate } = part
    const choice = chooseOverlap(this.rules.overlap, this.#open.length, this.#buffer.length)
    if (choice.kind === 'make') {
      this.make(tx, tick, previous, isLate ? 'late' : 'fired', ENGINE)
    } else if (choice.kind === 'skip') {
      this.#skip(part, choice.reason)
    } else {
      // The holders of open jobs were asked to cancel them; the tick waits for that.
      const replaced = choice.kind === 'cancel' ? this.#buffer.splice(0) : []
      for (const one of replaced)
        this.#skip(one, one.isBackfill ? ofBackfill('replaced') : 'replaced')
      this.wait({ tick, previous, isBackfill: false })
    }
  }

  /** Lets a tick wait until no job is open. */
  wait(tick: BufferedTick): void {
    this.#buffer.push(tick)
  }

  /** Makes a job for a tick. */
  make(
    tx: Tx,
    tick: number,
    previous: number | null,
    result: TickResult,
    requester: Requester,
  ): void {
    const { rules, row } = this
    const jobId = tx.environment.ids.next()
    const runAt = tick + jitterOf(row.name, tick, rules.jitterMs)
    const key = tickKey(row.name, tick)
    const item = itemOf(tx, rules, row.input, { jobId, key, ...(rules.jitterMs > 0 && { runAt }) })
    this.#made.push({ tick, previous, result, item })
    this.#records.push(this.#record(result, tick, { job: jobId, previous }, requester))
    this.#open.push(jobId)
  }

  #skip({ tick, previous }: Pick<DueTick, 'tick' | 'previous'>, reason: string): void {
    const [job] = this.#open
    const blocked = job !== undefined && { job }
    this.#records.push(this.#record('skipped', tick, { previous, reason, ...blocked }, ENGINE))
  }

  /** Records ticks for which no job is made. */
  miss(tick: number, lastTick: number, ticks: number, reason: string): void {
    const range = ticks > 1 && { lastTick, ticks }
    this.#records.push({ ...this.#record('missed', tick, { reason }, ENGINE), ...range })
    this.#lastTick = lastTick
  }

  /** Records all ticks up to now as missed, and counts from now. */
  missRest(reason: string): void {
    const rest = missedUntil(this.#ticks, this.#cursor, this.#now)
    if (rest !== undefined) this.miss(rest.tick, rest.lastTick, rest.ticks, reason)
    this.#cursor = Math.max(this.#cursor, this.#now)
    this.#next = this.#ticks.next(this.#cursor) ?? null
  }

  isWaiting(tick: number): boolean {
    return this.#buffer.some((one) => one.tick === tick)
  }

  /** Why so many ticks cannot wait; `undefined` if they can, or need not wait. */
  roomFault(ticks: number, overlap: 'bufferAll' | 'allowAll'): CommandInvalid | undefined {
    if (overlap === 'allowAll' || this.#buffer.length + ticks <= BUFFER_MAX) return undefined
    return new CommandInvalid('to', `must not be so late: more than ${BUFFER_MAX} ticks would wait`)
  }

  /** Records the ticks that wait as missed. */
  dropBuffer(reason: string): void {
    for (const { tick, previous, isBackfill } of this.#buffer) {
      const why = isBackfill ? ofBackfill(reason) : reason
      this.#records.push(this.#record('missed', tick, { previous, reason: why }, ENGINE))
    }
    this.#buffer = []
  }

  #record(
    action: TickResult,
    tick: number,
    { job, previous, reason }: { job?: string; previous?: number | null; reason?: string },
    requester: Requester,
  ): NewRecord {
    return {
      at: this.#now,
      schedule: this.row.name,
      action,
      ...authorOf(requester),
      tick,
      ...(previous != null && { previous }),
      ...(job !== undefined && { job }),
      ...(reason !== undefined && { reason }),
    }
  }

  /**
   * Takes note of how the store answered for each item. If a job was refused, its tick and those
   * that were skipped because of it are missed.
   */
  answered(answers: readonly Enqueued[]): void {
    for (const [i, { item, tick }] of this.#made.entries()) {
      const { jobId } = item.command
      const answer = answers[i] as Enqueued
      const id = idOf(answer)
      if (id === jobId) this.#lastJob = id
      else if (id !== undefined) this.#replace(jobId, { job: id, reason: 'existing' })
      else this.#refuse(jobId, tick, (answer as { readonly error: PawlError }).error.code)
      this.#open = this.#open.flatMap((one) => (one === jobId ? (id ?? []) : one))
    }
  }

  #replace(jobId: string, by: Pick<NewRecord, 'job' | 'reason'>): void {
    for (const [i, record] of this.#records.entries()) {
      if (record.job !== jobId) continue
      const own = record.action === 'skipped' ? { job: by.job as string } : by
      this.#records[i] = { ...record, ...own }
    }
  }

  #refuse(jobId: string, tick: number, reason: string): void {
    for (const [i, record] of this.#records.entries()) {
      if (record.job !== jobId) continue
      const { job: _, ...rest } = record
      const own = record.tick === tick ? reason : `after ${reason}`
      const why = record.action === 'backfilled' ? ofBackfill(own) : own
      this.#records[i] = { ...rest, action: 'missed', reason: why }
    }
  }

  get records(): readonly NewRecord[] {
    return this.#records
  }

  /** Whether a later look has more ticks to deal with at once. */
  get hasMore(): boolean {
    return !this.isPaused && this.#next !== null && this.#next <= this.#now
  }

  /** The row after this transaction. */
  after(): ScheduleRow {
    const paused = this.#pausedBy !== undefined && {
      paused_at: this.#now,
      paused_by: 'engine',
      pause_note: `job ${this.#pausedBy} has failed`,
    }
    return {
      ...this.row,
      cursor_at: this.#cursor,
      next_at: this.#next,
      look_at: this.isPaused ? null : this.#lookAt(),
      buffer: encodeBuffer(this.#buffer),
      open_jobs: JSON.stringify(this.looksAtJobs ? this.#open : this.#open.slice(-OPEN_MAX)),
      last_tick: this.#lastTick,
      last_job: this.#lastJob,
      ...paused,
    }
  }

  #lookAt(): number | null {
    const [first] = this.#buffer
    if (first === undefined) return this.#next
    const { min, max } = BUFFER_LOOK_MS
    const waitedMs = first.isBackfill ? BACKFILL_MS : this.#now - first.tick
    const soon = this.#now + Math.min(max, Math.max(min, Math.floor(waitedMs / 10)))
    return this.#next === null ? soon : Math.min(this.#next, soon)
  }
}

/** A tick that an operator wanted to make up for has another record, of when it came. */
function ofBackfill(reason: string): string {
  return `backfill ${reason}`
}

/** The id of the job that a tick has; `undefined` if it was refused. */
function idOf(answer: Enqueued): string | undefined {
  if (answer.kind === 'removed') return answer.removed.id
  if (answer.kind !== 'rejected') return answer.job.id
  return answer.error instanceof KeyTaken ? String(answer.error.details.jobId) : undefined
}

/** The item of a job of a schedule. The store has its lifecycle, also if this process has not. */
export function itemOf(
  { machines }: Pick<Tx, 'machines'>,
  { job, admission }: ScheduleRules,
  input: string,
  own: { readonly jobId: string; readonly key: string; readonly runAt?: number },
): EnqueueItem {
  const { lifecycle, lifecycleVersion, ...attributes } = job
  return {
    lifecycle: machines.stored(lifecycle, lifecycleVersion).lifecycle,
    input,
    ...(admission !== undefined && { admission }),
    command: { ...attributes, ...own },
  }
}
