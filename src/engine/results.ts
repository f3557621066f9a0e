/**
 * Waiting for jobs to come out. A worker of the same process tells at once. For those of others the
 * store is asked: by one look for all who wait, when the store hints that something was written,
 * and otherwise less and less often.
 *
 *   somebody begins to wait   at the next turn of the event loop, together with all of that turn
 *   a hint of the store       at once; the more looks find nothing, the longer after the last one
 *   no hint                   after 10 ms, then twice as long each time, up to half a second
 *
 * A look never follows sooner than ten times as long as the last one took, so that waiting costs
 * the store and this process a tenth of their time at most, however many wait.
 */
import { JobNotFound } from '../core/errors.ts'
import type { Job } from '../core/job/job.ts'
import type { Timer } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/store.ts'
import { ResultTimeout } from './errors.ts'
import { Pace } from './worker/pace.ts'

const ASK_MIN_MS = 10
const ASK_MAX_MS = 500
/** Hints that come for nothing lead to a look this often at most. */
const HINT_MAX_MS = 50
/** For how many jobs the store is asked at once. */
const ASK_BATCH = 500
/** A look took so long; the next one comes so many times later at least. */
const REST = 10

interface Waiter {
  /** Whether the transaction has ended in which the job was enqueued, if it was in one. */
  readonly hasEnded: HasEnded | undefined
  readonly resolve: (job: Job) => void
  readonly reject: (error: unknown) => void
}

/** Tells whether a transaction has ended. */
export type HasEnded = () => Promise<boolean>

/** How somebody waits. */
interface WaitOptions {
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  readonly hasEnded?: HasEnded | undefined
}

/** Everybody who waits for a job in this process. */
export class Results {
  readonly #store: Store
  readonly #environment: Environment
  readonly #isSettled: (job: Job) => boolean
  readonly #waiters = new Map<string, Set<Waiter>>()
  readonly #pace = new Pace(HINT_MAX_MS)
  #unsubscribe: (() => void) | undefined
  #timer: { readonly at: number; readonly timer: Timer } | undefined
  #isAsking = false
  /** Something happened while the store was asked. */
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
   * The job once it has come out. Rejects when the time is up, when the signal is aborted, and with
   * `JobNotFound` if there is no such job, or none any more. A job of a transaction is waited for
   * until that has ended.
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

  /** A worker of this process has reported a job. */
  tell(job: Job): void {
    const waiters = this.#waiters.get(job.id)
    if (waiters === undefined || !this.#isSettled(job)) return
    for (const { resolve } of waiters) resolve(job)
  }

  /** Nobody will be told any more. */
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

  /** Nobody waits: neither timers nor hints are needed. */
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

  /** Asks after so long, unless that is done earlier already, and not before the rest is over. */
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
      // An outage is waited out; a store that was closed will never answer again.
      if ((error as { code?: string }).code === 'E_STORE_CLOSED') this.close(error)
    }
    const now = clock.now()
    this.#isAsking = false
    // The clock counts whole milliseconds: what seems to have taken one may have taken none.
    this.#restUntil = now + Math.max(0, now - start - 1) * REST
    this.#pace.looked(now, found > 0)
    this.#askIn(this.#isHinted ? this.#pace.delay(now) : this.#pauseMs)
    this.#pauseMs = Math.min(this.#pauseMs * 2, ASK_MAX_MS)
  }

  /** Tells those whose jobs have come out; how many jobs that were. */
  async #look(ids: readonly string[]): Promise<number> {
    let found = 0
    for (let from = 0; from < ids.length; from += ASK_BATCH) {
      const jobs = await this.#store.getMany(ids.slice(from, from + ASK_BATCH))
      const settled = jobs.filter((job) => this.#isSettled(job))
      for (const job of settled) this.tell(job)
      found += settled.length
      const there = new Set(jobs.map(({ id }) => id))
      for (const id of ids.slice(from, from + ASK_BATCH)) {
        if (!there.has(id)) await this.#lookForAbsent(id)
      }
    }
    return found
  }

  /** Rejects for a job that is not there, unless its transaction is still open. */
  async #lookForAbsent(id: string): Promise<void> {
    const lost: Waiter[] = []
    for (const waiter of this.#waiters.get(id) ?? []) {
      if (waiter.hasEnded === undefined || (await waiter.hasEnded())) lost.push(waiter)
    }
    if (lost.length === 0) return
    // Its transaction may have committed since the look. A damaged job is there, and throws.
    const job = await this.#store.get(id).catch((error: { code?: string }) => {
      if (error.code === 'E_JOB_DAMAGED') return 'damaged'
      throw error
    })
    if (job === undefined) for (const { reject } of lost) reject(new JobNotFound(id))
  }
}
