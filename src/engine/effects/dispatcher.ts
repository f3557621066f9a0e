/**
 * The dispatcher delivers the effects that commits have declared: of this process at once, of all
 * others as soon as a hint of the store or its own clock tells. It takes only effects of kinds of
 * job that it has functions for, and no more than it can deliver now.
 *
 * An effect is held under a lease that is longer than any delivery may take, so it need not be
 * renewed: half as long again as the longest time-out of all its effects, and at least two seconds
 * longer. A dispatcher that dies lets it run out, and any other delivers the effect again, under
 * the same key. So it is where a delivery was made and could not be recorded: an effect is
 * delivered at least once. What was finished while the store was away stays here until it can be
 * recorded.
 *
 * Nothing that the store or a function does ends the loop; outages are waited out as a worker does.
 */
import { ERROR_WAIT_MS } from '../../core/worker.ts'
import type { Environment } from '../../environment/system.ts'
import type { EffectReport, HeldEffect, Store } from '../../stores/store.ts'
import type { JobDefinition } from '../define-job.ts'
import { Nudge } from '../nudge.ts'
import type { PawlEvent } from '../watching/events.ts'
import { RunningDelivery } from './delivery.ts'

/** What a dispatcher is made of. */
export interface DispatcherParts {
  /** The worker that it stands beside. */
  readonly worker: string
  readonly store: Pick<Store, 'claimEffects' | 'settleEffects' | 'onWake' | 'now'>
  readonly environment: Environment
  /** The kinds of job by name; those without effects do not matter here. */
  readonly jobs: ReadonlyMap<string, Pick<JobDefinition, 'name' | 'effects'>>
  readonly concurrency: number
  /** The longest sleep of an idle dispatcher that nobody wakes. */
  readonly pollMaxMs: number
  readonly observe: (event: PawlEvent) => void
}

const IDLE_MIN_MS = 20
/** Hints of the store come with every commit of anybody, and most are about something else. */
const HINT_MIN_MS = 5
const HINT_MAX_MS = 250
const LEASE_MARGIN_MS = 2000
/** How long a stopping dispatcher tries to record what it has delivered. */
const GIVE_UP_MS = 10_000

/** A running dispatcher. */
export class Dispatcher {
  readonly #parts: DispatcherParts
  readonly #types: readonly string[]
  readonly #leaseMs: number
  readonly #running = new Set<RunningDelivery>()
  /** What the store has not recorded yet; its deliveries still have their places. */
  #finished: { readonly delivery: RunningDelivery; readonly report: EffectReport }[] = []
  readonly #nudge: Nudge
  readonly #unsubscribe: () => void
  readonly #ended: Promise<void>
  #isHintArmed = false
  #hintMs = HINT_MIN_MS
  #askedAt = 0
  #idleMs = IDLE_MIN_MS
  /** When an effect that failed here is due again, by the time of the store. */
  #dueAt = Number.POSITIVE_INFINITY
  /** This process has committed effects since it last looked. */
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

  /** How many functions go on although their deliveries were given up. */
  get stuck(): number {
    return [...this.#running].filter(({ isStuck }) => isStuck).length
  }

  /** A commit of this process has declared effects. */
  wake(): void {
    this.#isOwed = true
    this.#nudge.now()
  }

  /**
   * Takes nothing new but what this process has just committed, waits for what is being delivered
   * until a time, then tells it to stop, gives back what has not finished, and ends.
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

  /** Nothing is left to do, or the time to do it is over. */
  #isDone(): boolean {
    if (this.#stopAt === undefined) return false
    const isIdle = !this.#isOwed && this.#running.size === this.stuck && !this.#finished.length
    return isIdle || this.#now() >= this.#stopAt + GIVE_UP_MS
  }

  /** Records what was delivered, and what was not. */
  async #record(): Promise<void> {
    const finished = this.#finished
    if (finished.length === 0) return
    this.#finished = []
    let answers: readonly boolean[]
    try {
      answers = await this.#parts.store.settleEffects(finished.map(({ report }) => report))
    } catch (error) {
      // The claim proves that nobody else has taken them since, so it can be said again.
      this.#finished = [...finished, ...this.#finished]
      throw error
    }
    for (const [i, { delivery, report }] of finished.entries()) {
      this.#tell(report, answers[i] === true)
      void delivery.ended.then(() => this.#free(delivery))
    }
  }

  #free(delivery: RunningDelivery): void {
    this.#running.delete(delivery)
    this.#nudge.now()
  }

  /** Takes as many effects as can be delivered now; whether there may be more. */
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
    const { jobs, environment, store } = this.#parts
    const definition = jobs.get(effect.jobType)?.effects.get(effect.name)
    const now = () => store.now()
    const delivery = new RunningDelivery(effect, definition, { environment, now })
    this.#running.add(delivery)
    // It was on its way while the time to deliver ran out.
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
    // One turn, so that what finishes together is recorded together.
    await new Promise<void>((turn) => environment.timers.defer(turn))
  }

  /** Somebody has written something: worth a look, but not at each of a thousand commits. */
  #hint(): void {
    if (this.#isHintArmed) return
    this.#isHintArmed = true
    const left = this.#askedAt + this.#hintMs - this.#now()
    // A clock that was set must not put the hint off.
    const delayMs = Math.min(this.#hintMs, Math.max(0, left))
    this.#parts.environment.timers.after(delayMs, () => {
      this.#isHintArmed = false
      this.#nudge.now()
    })
  }

  #tell(report: EffectReport, isRecorded: boolean): void {
    const { key, jobId, jobType, name, tries } = report.effect
    const fields = {
      result: isRecorded ? report.kind : ('lost' as const),
      ...{ key, jobId, jobType, name, tries },
      ...(report.kind !== 'delivered' && { error: report.error }),
    }
    this.#parts.observe({ type: 'effect', worker: this.#parts.worker, ...fields })
  }

  #now(): number {
    return this.#parts.environment.clock.now()
  }
}
