/**
 * The dispatcher delivers the effects that commits have declared. It looks for them as soon as a
 * worker of this process has committed, when the store reports a write, and at intervals. It claims
 * only effects that it has functions for, and at most as many as it has free slots.
 *
 * Each effect is held under a lease that is longer than any delivery may take, so the lease is
 * never renewed. It is 1.5 times the longest time-out of all effects, and at least two seconds
 * longer than that time-out. If the process dies, the lease expires and another dispatcher delivers
 * the effect again under the same key. The same happens if a delivery succeeds and cannot be
 * recorded: effects are delivered at least once. Reports that could not be recorded while the store
 * was unavailable are kept in memory and sent again.
 *
 * Exceptions of the store or of a function never end the loop. After an exception of the store the
 * dispatcher waits as long as a worker does (`ERROR_WAIT_MS`).
 */

import type { Redact } from '../../core/thrown.ts'
import { ERROR_WAIT_MS } from '../../core/worker.ts'
import type { Environment } from '../../environment/system.ts'
import type { EffectReport, HeldEffect, Store } from '../../stores/contract/store.ts'
import type { JobDefinition } from '../define-job.ts'
import { Nudge } from '../nudge.ts'
import type { Tracer } from '../tracing/tracer.ts'
import type { PawlEvent } from '../watching/events.ts'
import { RunningDelivery } from './delivery.ts'

export interface DispatcherParts {
  /** The id of the worker that it belongs to; events carry it. */
  readonly worker: string
  readonly store: Pick<Store, 'claimEffects' | 'settleEffects' | 'onWake' | 'now'>
  readonly environment: Environment
  /** Job types by name. Those without effects are ignored. */
  readonly jobs: ReadonlyMap<string, Pick<JobDefinition, 'name' | 'effects'>>
  readonly concurrency: number
  /** The longest wait between two claims if no wake-up arrives. */
  readonly pollMaxMs: number
  readonly observe: (event: PawlEvent) => void
  readonly redact?: Redact | undefined
  /** Makes spans; absent without tracing. */
  readonly tracer?: Tracer | undefined
}

const IDLE_MIN_MS = 20
/**
 * Bounds of the delay after a hint. The store sends a hint for every write, mostly unrelated ones.
 */
const HINT_MIN_MS = 5
const HINT_MAX_MS = 250
const LEASE_MARGIN_MS = 2000
/** How long a stopping dispatcher tries to record finished deliveries. */
const GIVE_UP_MS = 10_000

export class Dispatcher {
  readonly #parts: DispatcherParts
  readonly #types: readonly string[]
  readonly #leaseMs: number
  readonly #running = new Set<RunningDelivery>()
  /** Reports that the store has not recorded yet. Their deliveries still occupy slots. */
  #finished: { readonly delivery: RunningDelivery; readonly report: EffectReport }[] = []
  readonly #nudge: Nudge
  readonly #unsubscribe: () => void
  readonly #ended: Promise<void>
  #isHintArmed = false
  #hintMs = HINT_MIN_MS
  #askedAt = 0
  #idleMs = IDLE_MIN_MS
  /** When the next retry of a failed effect is due, in the store's time. */
  #dueAt = Number.POSITIVE_INFINITY
  /** Whether this process has committed effects since the last claim. */
  #isOwed = false
  #stopAt: number | undefined

  constructor(parts: DispatcherParts) {
    this.#parts = parts
    const known = [...parts.jobs.values()].filter(({ effects }) => effects.size > 0)
    const timeouts = known.flatMap(({ effects }) => [...effects.values()])
    this.#types = known.map(({ name }) => name)
    const longest = Math.max(...timeouts.map(({ timeoutMs }) => timeoutMs))
    this.#leaseMs = Math.round(longest + Math.max(LEASE_MARGIN_MS, longest / 2))
    this.#nudge = new Nudge(parts.environment.timers)
    this.#unsubscribe = parts.store.onWake(() => this.#hint())
    this.#ended = this.#run()
  }

  /** How many functions still run although their deliveries have been reported. */
  get stuck(): number {
    return [...this.#running].filter(({ isStuck }) => isStuck).length
  }

  /** To be called after a commit of this process that may have declared effects. */
  wake(): void {
    this.#isOwed = true
    this.#nudge.now()
  }

  /**
   * Claims no more effects, except those that this process has just committed. Waits for running
   * deliveries until `until`, then aborts them, releases the unfinished ones and ends.
   */
  async stop(until: number): Promise<void> {
    this.#stopAt = Math.min(until, this.#stopAt ?? until)
    this.#unsubscribe()
    const left = Math.max(0, this.#stopAt - this.#now())
    const timer = this.#parts.environment.timers.after(left, () => {
      for (const delivery of this.#running) delivery.stop()
    })
    this.#nudge.now()
    await this.#ended
    timer.cancel()
  }

  async #run(): Promise<void> {
    while (!this.#isDone()) {
      try {
        await this.#record()
        await this.#sleep(await this.#take())
      } catch (error) {
        this.#parts.observe({ type: 'error', worker: this.#parts.worker, error })
        await this.#nudge.wait(ERROR_WAIT_MS, { onlyIf: () => this.#stopAt !== undefined })
      }
    }
  }

  /** Whether there is nothing left to do, or the time for it is over. */
  #isDone(): boolean {
    if (this.#stopAt === undefined) return false
    const isIdle = !this.#isOwed && this.#running.size === this.stuck && !this.#finished.length
    return isIdle || this.#now() >= this.#stopAt + GIVE_UP_MS
  }

  /** Sends the finished reports to the store. */
  async #record(): Promise<void> {
    const finished = this.#finished
    if (finished.length === 0) return
    this.#finished = []
    let answers: readonly boolean[]
    try {
      answers = await this.#parts.store.settleEffects(finished.map(({ report }) => report))
    } catch (error) {
      // The reports carry the claim, so the store ignores them if another process has claimed
      // since. Sending them again is safe.
      this.#finished = [...finished, ...this.#finished]
      throw error
    }
    for (const [i, { delivery, report }] of finished.entries()) {
      this.#emit(delivery, report, answers[i] === true)
      void delivery.ended.then(() => this.#free(delivery))
    }
  }

  #free(delivery: RunningDelivery): void {
    this.#running.delete(delivery)
    this.#nudge.now()
  }

  /** Claims effects for the free slots. Returns whether there may be more. */
  async #take(): Promise<boolean> {
    const { store, concurrency } = this.#parts
    const limit = concurrency - this.#running.size
    const isWanted = this.#stopAt === undefined || (this.#isOwed && this.#now() < this.#stopAt)
    if (!isWanted) this.#isOwed = false
    if (limit <= 0 || !isWanted) return false
    this.#isOwed = false
    this.#askedAt = this.#now()
    const request = { types: this.#types, limit, leaseMs: this.#leaseMs }
    const effects = await store.claimEffects(request)
    if (store.now() >= this.#dueAt) this.#dueAt = Number.POSITIVE_INFINITY
    for (const effect of effects) this.#start(effect)
    const isEmpty = effects.length === 0
    this.#idleMs = isEmpty ? Math.min(this.#idleMs * 2, this.#parts.pollMaxMs) : IDLE_MIN_MS
    this.#hintMs = isEmpty ? Math.min(this.#hintMs * 2, HINT_MAX_MS) : HINT_MIN_MS
    return effects.length === limit
  }

  #start(effect: HeldEffect): void {
    const { jobs, environment, store, redact, tracer } = this.#parts
    const definition = jobs.get(effect.jobType)?.effects.get(effect.name)
    const now = () => store.now()
    const delivery = new RunningDelivery(effect, definition, { environment, now, redact, tracer })
    this.#running.add(delivery)
    // The time to deliver ran out while the claim was under way.
    if (this.#stopAt !== undefined && this.#now() >= this.#stopAt) delivery.stop()
    void delivery.report.then((report) => {
      this.#finished.push({ delivery, report })
      if (report.kind === 'retry') this.#dueAt = Math.min(this.#dueAt, report.runAt)
      this.#nudge.now()
    })
  }

  async #sleep(isMore: boolean): Promise<void> {
    const { environment, store } = this.#parts
    if (this.#isDone()) return
    if (!isMore && this.#finished.length === 0) {
      const jittered = this.#idleMs * (0.5 + environment.random.next() / 2)
      await this.#nudge.wait(Math.max(1, Math.min(jittered, this.#dueAt - store.now())))
    }
    // Waits for one turn, so that deliveries that finish together are recorded in one call.
    await new Promise<void>((turn) => environment.timers.defer(turn))
  }

  /** Schedules a claim after a write of any process; many hints in a row lead to one claim. */
  #hint(): void {
    if (this.#isHintArmed) return
    this.#isHintArmed = true
    const left = this.#askedAt + this.#hintMs - this.#now()
    // If the wall clock was set back, the delay must not grow.
    const delayMs = Math.min(this.#hintMs, Math.max(0, left))
    this.#parts.environment.timers.after(delayMs, () => {
      this.#isHintArmed = false
      this.#nudge.now()
    })
  }

  #emit({ failure }: RunningDelivery, report: EffectReport, isRecorded: boolean): void {
    const { key, jobId, jobType, name, tries } = report.effect
    const fields = {
      result: isRecorded ? report.kind : ('lost' as const),
      ...{ key, jobId, jobType, name, tries },
      ...(report.kind !== 'delivered' && { error: report.error }),
      retryAt: isRecorded && 'runAt' in report ? report.runAt : null,
      ...failure,
    }
    this.#parts.observe({ type: 'effect', worker: this.#parts.worker, ...fields })
  }

  #now(): number {
    return this.#parts.environment.clock.now()
  }
}
