/**
 * The attempts that run in a worker, with the slot that each occupies and the lease that each
 * holds. A lease is renewed from its claim until the store has the attempt's report.
 */
import type { Beat, Held, Ref } from '../../stores/contract/store.ts'
import type { JobDefinition } from '../define-job.ts'
import { HeartbeatFailed } from '../errors.ts'
import { scheduleOf } from '../schedules/schedule-context.ts'
import { AttemptTrace } from '../tracing/attempt-trace.ts'
import type { Tracer } from '../tracing/tracer.ts'
import { Attempt } from './attempt.ts'
import type { AttemptParts } from './attempt-parts.ts'
import type { HeartbeatHost } from './heartbeat.ts'
import type { WorkerParts } from './parts.ts'
import type { Report } from './report.ts'
import type { Slots } from './slots.ts'
import { StuckHandlers, type StuckParts } from './stuck.ts'

export interface Running {
  readonly slot: number
  readonly attempt: Attempt
  /** Its outcome is known. */
  isOver?: true
}

/** How the worker reacts to an attempt. */
export interface RunningEvents {
  readonly onFinished: (running: Running, report: Report) => void
  readonly onError: (error: unknown) => void
  /** A handler ignored its abort signal, and the policy is 'exit'. */
  readonly onExit: StuckParts['onExit']
  /** The slot of a stuck handler is free again. */
  readonly onFree: () => void
  /** Leases can be renewed from now on. */
  readonly onReady: () => void
}

/** All attempts of one worker. */
export class RunningAttempts {
  readonly #parts: WorkerParts
  readonly #slots: Slots
  readonly #events: RunningEvents
  readonly #byRef = new Map<Ref, Running>()
  /** Handlers that still run although their attempts are over. */
  readonly #stuck: StuckHandlers
  readonly #heartbeats: HeartbeatHost
  readonly #attemptParts: AttemptParts

  constructor(parts: WorkerParts, slots: Slots, events: RunningEvents) {
    this.#parts = parts
    this.#slots = slots
    this.#events = events
    const { environment, settings, observe } = parts
    this.#stuck = new StuckHandlers({
      worker: settings.id,
      environment,
      slots,
      replacementsMax: settings.concurrency,
      policy: settings.onStuck,
      observe,
      onError: events.onError,
      onExit: events.onExit,
      onFree: events.onFree,
    })
    this.#heartbeats = parts.heartbeats({
      onLost: (beat) => this.#lose(this.#find(beat)),
      onCancel: (beat) => this.#find(beat)?.attempt.cancel(),
      onError: (error) => events.onError(new HeartbeatFailed(error)),
      onReady: events.onReady,
    })
    this.#attemptParts = this.#sharedParts()
  }

  /** What all attempts of the worker have in common. */
  #sharedParts(): AttemptParts {
    const { environment, bounds, store, logger, enqueue, observe, settings } = this.#parts
    const { redact, tokens } = this.#parts
    return {
      environment,
      bounds,
      store,
      now: () => store.now(),
      scheduleOf: (job) => scheduleOf(job, store),
      deadlineBy: async ({ id, seq }) => (await store.asOf(id, seq))?.deadlineAt ?? null,
      onProgress: ({ ref }, text) => this.#heartbeats.progress(ref, text),
      onLeftover: ({ job }, leftover) =>
        observe({ type: 'leftover', worker: settings.id, job, ...leftover }),
      ...(redact !== undefined && { redact }),
      ...(tokens !== undefined && { tokens }),
      logger,
      enqueue,
    }
  }

  /** Whether the leases of jobs can be renewed. */
  get isReady(): boolean {
    return this.#heartbeats.isReady
  }

  get count(): number {
    return this.#byRef.size
  }

  /** How many handlers still run although their attempts are over. */
  get stuck(): number {
    return this.#stuck.count
  }

  get attempts(): Attempt[] {
    return Array.from(this.#byRef.values(), ({ attempt }) => attempt)
  }

  /** Whether the outcome of every attempt is known; some may still have to be reported. */
  get areAllOver(): boolean {
    return [...this.#byRef.values()].every(({ isOver }) => isOver)
  }

  /** Starts a handler for each job; there must be a free slot for each. Returns their number. */
  start(claimed: readonly Held[]): number {
    const { jobs, environment, observe, settings, tracer, isHeard } = this.#parts
    // Renewal begins before any handler runs: a handler may block this thread beyond its lease.
    if (claimed.length > 0) {
      environment.crashPoint?.('worker.claimed')
      this.#heartbeats.track(claimed.map(beatOf))
    }
    for (const held of claimed) {
      if (isHeard) observe({ type: 'started', worker: settings.id, job: held.job })
      const definition = jobs.get(held.job.type) as JobDefinition
      const shared = this.#attemptParts
      const trace = tracer && traceOf(tracer, held, this.#parts)
      const attempt = new Attempt(held, definition, trace ? { ...shared, trace } : shared)
      const running: Running = { slot: this.#slots.take(), attempt }
      // An earlier attempt at this job has lost its lease, even if no heartbeat has said so yet.
      this.#lose(this.#byRef.get(held.ref))
      this.#byRef.set(held.ref, running)
      void attempt.report.then((report) => this.#events.onFinished(running, report))
    }
    return claimed.length
  }

  /**
   * Renews the lease of an attempt whose report was rejected, until its next report is recorded.
   */
  track({ attempt }: Running): void {
    this.#heartbeats.track([beatOf(attempt.held)])
  }

  /** Stops the renewal of their leases, except if a later attempt holds the same job. */
  untrack(ended: readonly Running[]): void {
    const current = ended.filter((running) => this.#isCurrent(running))
    this.#heartbeats.untrack(current.map(({ attempt }) => attempt.held.ref))
  }

  /** Removes an attempt. Its slot is free at once, or when its stuck handler has ended. */
  release(running: Running): void {
    const { attempt, slot } = running
    if (this.#isCurrent(running)) this.#byRef.delete(attempt.held.ref)
    if (!attempt.isStuck) this.#slots.release(slot)
    else this.#stuck.add(slot, attempt.held.job, attempt.ended)
  }

  /** Aborts every handler and releases its job, after the grace also if the handler still runs. */
  releaseAll(graceMs?: number): void {
    for (const { attempt } of this.#byRef.values()) attempt.release(graceMs)
  }

  /** Emits that the lease of an attempt was lost. */
  noteLost({ attempt }: Running): void {
    const { observe, settings } = this.#parts
    observe({ type: 'lost', worker: settings.id, job: attempt.held.job })
  }

  /** Stops the events about stuck handlers, and the renewal of leases. */
  async close(): Promise<void> {
    this.#stuck.close()
    await this.#heartbeats.close()
  }

  /** Whether no later attempt at the same job runs here. */
  #isCurrent(running: Running): boolean {
    return this.#byRef.get(running.attempt.held.ref) === running
  }

  /** The attempt with exactly this lease. */
  #find({ ref, fence }: Beat): Running | undefined {
    const running = this.#byRef.get(ref)
    return running?.attempt.fence.claim === fence.claim ? running : undefined
  }

  /** An attempt whose outcome is known is still reported; the fence decides whether it counts. */
  #lose(running: Running | undefined): void {
    if (running === undefined || running.isOver) return
    running.isOver = true
    this.noteLost(running)
    running.attempt.loseLease()
  }
}

function traceOf(tracer: Tracer, held: Held, { settings, redact }: WorkerParts): AttemptTrace {
  const failing = { type: held.job.type, ...(redact !== undefined && { redact }) }
  return new AttemptTrace(tracer, held, { worker: settings.id, failing })
}

/** The lease of a claimed job, as heartbeats identify it. */
export function beatOf({ ref, job }: Held): Beat {
  return { ref, fence: { attempt: job.attempt, claim: job.execution?.claim ?? '' } }
}
