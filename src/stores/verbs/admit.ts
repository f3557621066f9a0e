/**
 * Accepts jobs whose type has `rateLimit`, `debounce` or `singleton`. The rows of their keys are
 * locked first, in one order, so that enqueues of one key come one after the other. Jobs are locked
 * after them, and only those that change. Nothing locks a row of admission after a job, so no
 * circle is possible.
 *
 * An enqueue that repeats the key of an existing job (P12) is answered as ever and counts nothing.
 */
import {
  type Admission,
  debouncedUntil,
  decideRate,
  decideSingleton,
  isFresh,
  isLive,
  readCounts,
  type SeenJob,
  writeCounts,
} from '../../core/admission.ts'
import { PawlError } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import { laneOf } from '../../core/job/lanes.ts'
import { DELAY_MAX_MS } from '../../core/retry.ts'
import { type Accepted, Acceptor } from '../accept.ts'
import {
  ADMISSION_KINDS,
  type AdmissionKind,
  type AdmissionName,
  type AdmissionRow,
  type Tended,
} from '../contract/admissions.ts'
import { ENGINE } from '../contract/requester.ts'
import type { Enqueued, Requester } from '../contract/store.ts'
import { RateLimited } from '../errors.ts'
import { cancel } from './apply-command.ts'
import { Changes } from './changes.ts'
import type { Tx, Verb } from './operations.ts'
import type { Read } from './reading.ts'

/** The operations of these verbs. */
export interface AdmissionOperations {
  /** Those of these jobs whose key belongs to a job, or to a removed one. */
  withTakenKeys(jobs: readonly Accepted[]): ReadonlySet<Accepted>
  /** Locks rows in the order of their names, and inserts those that are missing. */
  lockAdmissions(names: readonly AdmissionName[]): readonly AdmissionRow[]
  saveAdmissions(rows: readonly AdmissionRow[]): void
  removeAdmissions(names: readonly AdmissionName[]): void
  /** Jobs as they are, without locking them. */
  peekJobs(ids: readonly string[]): ReadonlyMap<string, Read>
  /** Writes one accepted job, or answers for its key or id. */
  addJob(job: Accepted): Enqueued
  /** Locks rows at which it is time to look; those that others lock are left out. */
  lockDueAdmissions(limit: number): readonly AdmissionRow[]
  hasDueAdmissions(): boolean
  admissionsAfter(after: AdmissionName | undefined, limit: number): readonly AdmissionRow[]
  /** The row in which a job waits. */
  admissionOfNext(jobId: string): AdmissionRow | undefined
}

/** The admission of an accepted job that has one. */
function admissionOf({ offer }: Accepted): Admission {
  return offer.item.admission ?? {}
}

/** A job that waits for another one is due at this time at the latest. */
const WAIT_MAX_MS = DELAY_MAX_MS
/** How often workers look at a row in which a job waits, and at other rows. */
const NEXT_LOOK_MS = 250
const LOOK_MS = 60_000

/** Accepts jobs, one after the other. With `redo` an earlier try may have been committed. */
export function* admit(tx: Tx, jobs: readonly Accepted[], redo: boolean): Verb<Enqueued[]> {
  const taken = yield* tx.withTakenKeys(jobs)
  const names = jobs.filter((one) => !taken.has(one)).flatMap(namesOf)
  const rows = yield* tx.lockAdmissions(inOrder(names))
  yield* lockChanging(tx, rows)
  const admitting = new Admitting(tx, rows)
  const own = redo ? yield* tx.peekJobs(jobs.map(({ job }) => job.id)) : undefined
  const answers: Enqueued[] = []
  for (const one of jobs) {
    const written = own?.get(one.job.id)
    if (written !== undefined) answers.push({ kind: 'created', job: written.job })
    else if (taken.has(one)) answers.push(yield* tx.addJob(one))
    else answers.push(yield* admitting.admit(one))
  }
  yield* tx.saveAdmissions(admitting.changed)
  return answers
}

/** Jobs that may change are locked in the order of their ids, as every verb locks jobs. */
function* lockChanging(tx: Tx, rows: readonly AdmissionRow[]): Verb<void> {
  if (rows.length < 2) return
  const ids = rows.flatMap(({ job, next }) => [job, next].filter((id): id is string => id !== null))
  const fresh = [...(yield* tx.peekJobs(ids)).values()].filter((read) =>
    isFresh(seenOf(read, tx.now)),
  )
  if (fresh.length > 1) yield* tx.lockJobs(fresh.map(({ job }) => job.id))
}

function namesOf(one: Accepted): AdmissionName[] {
  const { type } = one.job
  const rules = Object.entries(admissionOf(one)) as [AdmissionKind, { key: string }][]
  return rules.map(([kind, { key }]) => ({ type, kind: ADMISSION_KINDS[kind], key }))
}

function textOf({ type, kind, key }: AdmissionName): string {
  return `${type}\0${kind}\0${key}`
}

/** Each name once, in the order in which all callers lock them. */
function inOrder(names: readonly AdmissionName[]): AdmissionName[] {
  const byText = new Map(names.map((name) => [textOf(name), name]))
  return [...byText.keys()].sort().map((text) => byText.get(text) as AdmissionName)
}

/** The rows of one call. */
class Admitting {
  readonly #tx: Tx
  readonly #rows: Map<string, AdmissionRow>
  readonly #changed = new Set<string>()

  constructor(tx: Tx, rows: readonly AdmissionRow[]) {
    this.#tx = tx
    this.#rows = new Map(rows.map((row) => [textOf(row), row]))
  }

  /** The rows that differ from what was read. */
  get changed(): AdmissionRow[] {
    return [...this.#changed].map((text) => this.#rows.get(text) as AdmissionRow)
  }

  *admit(one: Accepted): Verb<Enqueued> {
    const { debounce, singleton } = admissionOf(one)
    if (debounce !== undefined) return yield* this.#debounce(one, debounce)
    if (singleton !== undefined) return yield* this.#singleton(one, singleton.mode)
    return yield* this.#create(one)
  }

  #row({ job: { type } }: Accepted, kind: AdmissionKind, key: string): AdmissionRow {
    return this.#rows.get(textOf({ type, kind: ADMISSION_KINDS[kind], key })) as AdmissionRow
  }

  #set(row: AdmissionRow, changes: Partial<AdmissionRow>): void {
    const text = textOf(row)
    this.#rows.set(text, { ...row, ...changes })
    this.#changed.add(text)
  }

  *#seen(id: string | null): Verb<SeenJob | undefined> {
    if (id === null) return undefined
    const read = (yield* this.#tx.peekJobs([id])).get(id)
    return read && seenOf(read, this.#tx.now)
  }

  /** Writes the job if the rate allows it. */
  *#create(one: Accepted): Verb<Enqueued> {
    const { rate } = admissionOf(one)
    if (rate === undefined) return yield* this.#tx.addJob(one)
    const row = this.#row(one, 'rate', rate.key)
    const decision = decideRate(readCounts(row.counts), rate, this.#tx.now)
    if (!decision.isFree) {
      const { limit, periodMs, key } = rate
      const of = { type: one.job.type, key, limit, periodMs }
      return { kind: 'rejected', error: new RateLimited(of, decision.retryAfterMs) }
    }
    const answer = yield* this.#tx.addJob(one)
    if (answer.kind === 'created') {
      const { counts, until } = decision
      this.#set(row, { job: answer.job.id, counts: writeCounts(counts), look_at: until })
    }
    return answer
  }

  *#debounce(one: Accepted, rule: NonNullable<Admission['debounce']>): Verb<Enqueued> {
    const { now } = this.#tx
    const row = this.#row(one, 'debounce', rule.key)
    const firstAt = row.first_at ?? now
    if (isFresh(yield* this.#seen(row.job))) {
      const runAt = debouncedUntil(rule, firstAt, now)
      const commands: Command[] = [{ kind: 'replace' }, { kind: 'reschedule', runAt }]
      const replaced = yield* this.#replace(one, row.job as string, commands)
      if (replaced !== undefined) return replaced
    }
    const runAt = debouncedUntil(rule, now, now)
    const answer = yield* this.#create(this.#later(one, runAt))
    if (answer.kind === 'created') {
      this.#set(row, { job: answer.job.id, first_at: now, look_at: runAt + LOOK_MS })
    }
    return answer
  }

  *#singleton(one: Accepted, mode: 'skip' | 'cancel' | 'latest'): Verb<Enqueued> {
    const { singleton } = admissionOf(one)
    let row = this.#row(one, 'singleton', singleton?.key ?? '')
    let job = yield* this.#seen(row.job)
    let next = yield* this.#seen(row.next)
    if (!isLive(job) && isLive(next)) {
      yield* release(this.#tx, next.job.id)
      this.#set(row, { job: row.next, next: null })
      row = this.#row(one, 'singleton', singleton?.key ?? '')
      job = yield* this.#seen(row.job)
      next = undefined
    }
    switch (decideSingleton(mode, job, next)) {
      case 'skip':
        return { kind: 'existing', job: (job as SeenJob).job }
      case 'replace job':
        return yield* this.#replaceOr(one, row, row.job as string)
      case 'replace next':
        return yield* this.#replaceOr(one, row, row.next as string)
      case 'create next':
        return yield* this.#createAs(one, row, 'next')
      case 'cancel':
        return yield* this.#createAs(one, row, yield* this.#stop(one, row))
      default:
        return yield* this.#createAs(one, row, 'job')
    }
  }

  /** If the job has started meanwhile, a new one waits for it. */
  *#replaceOr(one: Accepted, row: AdmissionRow, id: string): Verb<Enqueued> {
    const replaced = yield* this.#replace(one, id, [{ kind: 'replace' }])
    return replaced ?? (yield* this.#createAs(one, row, 'next'))
  }

  /** Asks the jobs of the row to stop. Returns what a new job then is. */
  *#stop({ offer }: Accepted, row: AdmissionRow): Verb<'job' | 'next'> {
    const ids = [row.next, row.job].filter((id): id is string => id !== null)
    yield* cancel(this.#tx, ids, offer.requester)
    return isLive(yield* this.#seen(row.job)) ? 'next' : 'job'
  }

  *#createAs(one: Accepted, row: AdmissionRow, which: 'job' | 'next'): Verb<Enqueued> {
    const { now } = this.#tx
    const isNext = which === 'next'
    const answer = yield* this.#create(isNext ? this.#later(one, now + WAIT_MAX_MS) : one)
    if (answer.kind !== 'created') return answer
    const { id } = answer.job
    const place = isNext ? { next: id } : { job: id, next: null }
    this.#set(row, { ...place, look_at: now + (isNext ? NEXT_LOOK_MS : LOOK_MS) })
    return answer
  }

  /** The same job, due at another time. It was accepted already, so it is accepted again. */
  #later(one: Accepted, runAt: number): Accepted {
    const { offer } = one
    const { environment, machines, now } = this.#tx
    const payloadBounds = { bytesMax: Number.MAX_SAFE_INTEGER, depthMax: Number.MAX_SAFE_INTEGER }
    const command = { ...offer.item.command, runAt }
    const item = { ...offer.item, command }
    const later = new Acceptor({ environment, machines, payloadBounds }, now)
    const accepted = later.accept({ ...offer, item })
    if (accepted instanceof PawlError) throw accepted
    return accepted
  }

  /** Writes the input of a new job to one that has not started; `undefined` if it has. */
  *#replace(one: Accepted, id: string, commands: readonly Command[]): Verb<Enqueued | undefined> {
    const { offer } = one
    const read = (yield* this.#tx.lockJobs([id])).reads.get(id)
    if (read === undefined || !isFresh(seenOf(read, this.#tx.now))) return undefined
    const changes = new Changes(this.#tx)
    const trial = { ...read }
    const tried = new Changes(this.#tx)
    for (const command of commands) {
      const answer = tried.answer(trial, command, offer.requester)
      if (answer.kind === 'rejected') return answer
    }
    for (const command of commands) {
      const payload = command.kind === 'replace' ? offer.item.input : null
      changes.answer(read, command, offer.requester, payload)
    }
    yield* this.#tx.write(changes)
    return { kind: 'replaced', job: read.job }
  }
}

function seenOf({ job, lifecycle }: Read, now: number): SeenJob {
  return { job, lane: laneOf(lifecycle, job, now) }
}

/** Makes a job due that waited for another one. Returns whether it had waited. */
function* release(tx: Tx, id: string, requester: Requester = ENGINE): Verb<boolean> {
  const read = (yield* tx.lockJobs([id])).reads.get(id)
  if (read === undefined) return false
  const changes = new Changes(tx)
  // The next millisecond: not every lifecycle has an edge for running at once.
  const answer = changes.answer(read, { kind: 'reschedule', runAt: tx.now + 1 }, requester)
  yield* tx.write(changes)
  return answer.kind === 'done'
}

/** Releases jobs whose predecessor has ended, and removes rows that have no effect any more. */
export function* tend(tx: Tx, limit: number): Verb<Tended> {
  const rows = yield* tx.lockDueAdmissions(limit)
  if (rows.length === 0) return { released: 0, removed: 0, seen: 0 }
  const ids = rows.flatMap(({ job, next }) => [job, next].filter((id): id is string => id !== null))
  const reads = yield* tx.peekJobs([...new Set(ids)])
  const seen = (id: string | null): SeenJob | undefined => {
    const read = id === null ? undefined : reads.get(id)
    return read && seenOf(read, tx.now)
  }
  const kept: AdmissionRow[] = []
  const removed: AdmissionRow[] = []
  let released = 0
  for (const row of rows) {
    const after = tended(row, seen(row.job), seen(row.next), tx.now)
    if (after === undefined) removed.push(row)
    else {
      kept.push(after)
      // In the order of ids, as all jobs are locked.
      if (row.next !== null && after.job === row.next) released++
    }
  }
  const ready = rows.flatMap(({ next }) => (kept.some(({ job }) => job === next) ? [next] : []))
  for (const id of ready.toSorted()) if (id !== null) yield* release(tx, id)
  yield* tx.saveAdmissions(kept)
  yield* tx.removeAdmissions(removed)
  return { released, removed: removed.length, seen: rows.length }
}

/** A row after a look; `undefined` if it has no effect any more. */
function tended(
  row: AdmissionRow,
  job: SeenJob | undefined,
  next: SeenJob | undefined,
  now: number,
): AdmissionRow | undefined {
  if (row.kind === ADMISSION_KINDS.rate) return undefined
  const later = now + LOOK_MS
  if (row.kind === ADMISSION_KINDS.debounce) {
    return isFresh(job) ? { ...row, look_at: later } : undefined
  }
  const waits = isLive(next)
  if (isLive(job)) {
    return { ...row, next: waits ? row.next : null, look_at: waits ? now + NEXT_LOOK_MS : later }
  }
  return waits ? { ...row, job: row.next, next: null, look_at: later } : undefined
}
