/**
 * Waiting for jobs to come out. A worker of the same process tells at once; for those of others the
 * store is asked, less and less often: every waiting job of a process together, so that a thousand
 * waiters are no more than as many reads.
 */
import type { Job } from '../core/job/job.ts'
import type { Timer } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { Store } from '../stores/store.ts'
import { ResultTimeout } from './errors.ts'

const ASK_MIN_MS = 10
const ASK_MAX_MS = 500

interface Waiter {
  readonly resolve: (job: Job) => void
  readonly reject: (error: unknown) => void
  askAt: number
  pauseMs: number
}

/** Everybody who waits for a job in this process. */
export class Results {
  readonly #store: Store
  readonly #environment: Environment
  readonly #isSettled: (job: Job) => boolean
  readonly #waiters = new Map<string, Set<Waiter>>()
  #timer: Timer | undefined

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
    const job = await this.#store.get(id)
    if (job !== undefined && this.#isSettled(job)) return job
    const { clock, timers } = this.#environment
    let limit: Timer | undefined
    let onAbort: (() => void) | undefined
    let waiter: Waiter | undefined
    try {
      return await new Promise<Job>((resolve, reject) => {
        waiter = { resolve, reject, askAt: clock.now() + ASK_MIN_MS, pauseMs: ASK_MIN_MS }
        const waiters = this.#waiters.get(id) ?? new Set()
        this.#waiters.set(id, waiters.add(waiter))
        if (timeoutMs !== undefined) {
          limit = timers.after(timeoutMs, () => reject(new ResultTimeout(id, timeoutMs)))
        }
        onAbort = () => reject(signal?.reason)
        signal?.addEventListener('abort', onAbort, { once: true })
        this.#arm()
      })
    } finally {
      limit?.cancel()
      if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort)
      if (waiter !== undefined) this.#remove(id, waiter)
    }
  }

  /** A worker of this process has reported a job. */
  tell(job: Job): void {
    if (!this.#waiters.has(job.id) || !this.#isSettled(job)) return
    for (const { resolve } of this.#waiters.get(job.id) ?? []) resolve(job)
  }

  /** Nobody will be told any more. */
  close(error: unknown): void {
    this.#timer?.cancel()
    for (const waiters of this.#waiters.values()) {
      for (const { reject } of waiters) reject(error)
    }
  }

  #remove(id: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(id)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#waiters.delete(id)
  }

  #arm(): void {
    if (this.#timer !== undefined) return
    const all = [...this.#waiters.values()].flatMap((waiters) => [...waiters])
    if (all.length === 0) return
    const at = Math.min(...all.map(({ askAt }) => askAt))
    const delay = Math.max(0, at - this.#environment.clock.now())
    this.#timer = this.#environment.timers.after(delay, () => void this.#ask())
  }

  async #ask(): Promise<void> {
    const now = this.#environment.clock.now()
    for (const [id, waiters] of [...this.#waiters]) {
      const due = [...waiters].filter(({ askAt }) => askAt <= now)
      if (due.length === 0) continue
      for (const waiter of due) {
        waiter.pauseMs = Math.min(waiter.pauseMs * 2, ASK_MAX_MS)
        waiter.askAt = now + waiter.pauseMs
      }
      try {
        const job = await this.#store.get(id)
        if (job !== undefined) this.tell(job)
      } catch (error) {
        // An outage is waited out; a store that was closed will never answer again.
        if ((error as { code?: string }).code === 'E_STORE_CLOSED') this.close(error)
      }
    }
    this.#timer = undefined
    this.#arm()
  }
}
