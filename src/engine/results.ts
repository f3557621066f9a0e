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
  readonly resolve: (job: Job) => void
  readonly reject: (error: unknown) => void
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

  /** The job once it has come out; rejects when the time is up, or the signal is aborted. */
  async wait(
    id: string,
    { timeoutMs, signal }: { timeoutMs?: number | undefined; signal?: AbortSignal | undefined },
  ): Promise<Job> {
    signal?.throwIfAborted()
    const { timers } = this.#environment
    let limit: Timer | undefined
    let onAbort: (() => void) | undefined
    let waiter: Waiter | undefined
    try {
      return await new Promise<Job>((resolve, reject) => {
        waiter = { resolve, reject }
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
    }
    return found
  }
}
