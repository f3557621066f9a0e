/**
 * Waits for the outcomes of jobs. A worker of the same process reports its jobs directly. For jobs
 * of other processes one query asks the store about all awaited jobs:
 *
 *   a wait begins           at the next turn of the event loop, together with others of that turn
 *   the store sends a hint  at once; if queries find nothing, the delay after a query grows
 *   no hint                 after 10 ms, then after twice as long each time, up to 500 ms
 *
 * The pause after a query is at least ten times as long as the query took. So waiting uses at most
 * a tenth of the time of the store and of this process, for any number of waits.
 */
import { JobNotFound } from '../core/errors.ts'
import type { Job } from '../core/job/job.ts'
import type { Timer } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/contract/store.ts'
import { ResultTimeout } from './errors.ts'
import { Pace } from './worker/pace.ts'

const ASK_MIN_MS = 10
const ASK_MAX_MS = 500
/** The longest delay after a hint if earlier hints led to nothing. */
const HINT_MAX_MS = 50
/** How many jobs one query asks for. */
const ASK_BATCH = 500
/** The pause after a query, as a multiple of the time that it took. */
const REST = 10

interface Waiter {
  /** For a job enqueued in a transaction: whether that transaction has ended. */
  readonly hasEnded: HasEnded | undefined
  readonly resolve: (job: Job) => void
  readonly reject: (error: unknown) => void
}

/** Returns whether a transaction has ended. */
export type HasEnded = () => Promise<boolean>

interface WaitOptions {
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  readonly hasEnded?: HasEnded | undefined
}

/** All waits of this process. */
export class Results {
  readonly #store: Store
  readonly #environment: Environment
  readonly #isSettled: (job: Job) => boolean
  readonly #waiters = new Map<string, Set<Waiter>>()
  readonly #pace = new Pace(HINT_MAX_MS)
  #unsubscribe: (() => void) | undefined
  #timer: { readonly at: number; readonly timer: Timer } | undefined
  #isAsking = false
  /** A hint arrived during the query. */
  #isHinted = false
  #pauseMs = ASK_MIN_MS
  #restUntil = Number.NEGATIVE_INFINITY
  #isJoinDeferred = false

  constructor(store: Store, environment: Environment, isSettled: (job: Job) => boolean) {
    this.#store = store
    this.#environment = environment
    this.#isSettled = isSettled
  }

  /**
   * Returns the job when its outcome is known. Rejects when the time is over or the signal is
   * aborted, and with `JobNotFound` if the job does not exist. If the job was enqueued in a
   * transaction, that is decided only after the transaction has ended.
   */
  async wait(id: string, { timeoutMs, signal, hasEnded }: WaitOptions): Promise<Job> {
    signal?.throwIfAborted()
    const { timers } = this.#environment
    let limit: Timer | undefined
    let onAbort: (() => void) | undefined
    let waiter: Waiter | undefined
    try {
      return await new Promise<Job>((resolve, reject) => {
        waiter = { hasEnded, resolve, reject }
        this.#add(id, waiter)
        if (timeoutMs !== undefined) {
          limit = timers.after(timeoutMs, () => reject(new ResultTimeout(id, timeoutMs)))
        }
        onAbort = () => reject(signal?.reason)
        signal?.addEventListener('abort', onAbort, { once: true })
      })
    } finally {
      limit?.cancel()
      if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort)
      if (waiter !== undefined) this.#remove(id, waiter)
    }
  }

  /** Resolves the waits for a job that a worker of this process has reported. */
  resolve(job: Job): void {
    const waiters = this.#waiters.get(job.id)
    if (waiters === undefined || !this.#isSettled(job)) return
    for (const { resolve } of waiters) resolve(job)
  }

  /** Rejects all waits. */
  close(error: unknown): void {
    this.#rest()
    for (const waiters of this.#waiters.values()) {
      for (const { reject } of waiters) reject(error)
    }
  }

  #add(id: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(id) ?? new Set()
    this.#waiters.set(id, waiters.add(waiter))
    this.#unsubscribe ??= this.#store.onWake(() => this.#takeHint())
    this.#pauseMs = ASK_MIN_MS
    if (this.#isJoinDeferred) return
    this.#isJoinDeferred = true
    this.#environment.timers.defer(() => {
      this.#isJoinDeferred = false
      this.#askIn(0)
    })
  }

  #remove(id: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(id)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#waiters.delete(id)
    if (this.#waiters.size === 0) this.#rest()
  }

  /** Stops the timer and the subscription; to be called when there are no waits. */
  #rest(): void {
    this.#timer?.timer.cancel()
    this.#timer = undefined
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  #takeHint(): void {
    if (this.#isAsking) this.#isHinted = true
    else this.#askIn(this.#pace.delay(this.#environment.clock.now()))
  }

  /** Schedules a query unless an earlier one is scheduled; never before the pause is over. */
  #askIn(delayMs: number): void {
    if (this.#waiters.size === 0 || this.#isAsking) {
      this.#isHinted ||= this.#isAsking
      return
    }
    const now = this.#environment.clock.now()
    const at = Math.max(now + delayMs, this.#restUntil)
    if (this.#timer !== undefined && this.#timer.at <= at) return
    this.#timer?.timer.cancel()
    this.#timer = undefined
    if (at <= now) return void this.#ask()
    const timer = this.#environment.timers.after(at - now, () => void this.#ask())
    this.#timer = { at, timer }
  }

  async #ask(): Promise<void> {
    const { clock } = this.#environment
    this.#timer = undefined
    this.#isAsking = true
    this.#isHinted = false
    const start = clock.now()
    let found = 0
    try {
      found = await this.#look([...this.#waiters.keys()])
    } catch (error) {
      // During an outage the next query is tried later. A closed store never answers again.
      if ((error as { code?: string }).code === 'E_STORE_CLOSED') this.close(error)
    }
    const now = clock.now()
    this.#isAsking = false
    // The clock has whole milliseconds: a difference of one may be almost zero.
    this.#restUntil = now + Math.max(0, now - start - 1) * REST
    this.#pace.looked(now, found > 0)
    this.#askIn(this.#isHinted ? this.#pace.delay(now) : this.#pauseMs)
    this.#pauseMs = Math.min(this.#pauseMs * 2, ASK_MAX_MS)
  }

  /** Resolves the waits whose jobs have an outcome; returns the number of these jobs. */
  async #look(ids: readonly string[]): Promise<number> {
    let found = 0
    for (let from = 0; from < ids.length; from += ASK_BATCH) {
      const jobs = await this.#store.getMany(ids.slice(from, from + ASK_BATCH))
      const settled = jobs.filter((job) => this.#isSettled(job))
      for (const job of settled) this.resolve(job)
      found += settled.length
      const there = new Set(jobs.map(({ id }) => id))
      for (const id of ids.slice(from, from + ASK_BATCH)) {
        if (!there.has(id)) await this.#lookForAbsent(id)
      }
    }
    return found
  }

  /** Rejects the waits for a missing job, unless its transaction is still open. */
  async #lookForAbsent(id: string): Promise<void> {
    const lost: Waiter[] = []
    for (const waiter of this.#waiters.get(id) ?? []) {
      if (waiter.hasEnded === undefined || (await waiter.hasEnded())) lost.push(waiter)
    }
    if (lost.length === 0) return
    // The transaction may have committed since the query. A damaged job exists; reading it throws.
    const job = await this.#store.get(id).catch((error: { code?: string }) => {
      if (error.code === 'E_JOB_DAMAGED') return 'damaged'
      throw error
    })
    if (job === undefined) for (const { reject } of lost) reject(new JobNotFound(id))
  }
}
