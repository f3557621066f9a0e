/**
 * A worker: document 003's loop around the store. The states are those of its machine (`slots.ts`),
 * and each is real: what the code does is what the worker is said to be doing.
 *
 * Reports of finished jobs and the claim of the next ones are one call (`settle`): a busy worker
 * mostly makes one round trip for as many jobs as finish in one turn of the event loop. Nothing is
 * fetched ahead of a free slot, so nothing has to be given back when a slot is slow.
 *
 * Nothing that the store or a handler does ends the loop. Whatever is not expected leads to
 * ErrorWait and from there back to Connecting; what was finished meanwhile stays with its slot
 * until it can be reported.
 */
import { Committed, StaleFence } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import type { Timer } from '../../core/ports.ts'
import { ERROR_WAIT_MS } from '../../core/worker.ts'
import { isLasting, isOutage, StoreUnsafe } from '../../stores/errors.ts'
import type { Answer, Beat, ClaimRequest, Held, Ref, Settlement } from '../../stores/store.ts'
import type { JobDefinition } from '../define-job.ts'
import { HeartbeatFailed, WorkerStuck } from '../errors.ts'
import { Nudge } from '../nudge.ts'
import { Attempt, type Report } from './attempt.ts'
import type { HeartbeatHost } from './heartbeat.ts'
import { Pace } from './pace.ts'
import type { WorkerParts } from './parts.ts'
import { Recovery } from './recovery.ts'
import { SilentHandlers } from './silence.ts'
import { Slots, type WorkerState } from './slots.ts'
import { StuckHandlers } from './stuck.ts'

const IDLE_MIN_MS = 20
/** Hints that come for nothing make an idle worker look this often at most. */
const HINT_MAX_MS = 5
const WORKER_ROW_MS = 5000
/** How long a stopping worker tries to report what it has given back. */
const GIVE_UP_MS = 15_000
/** The same while the store says that trying again will not help. */
const LASTING_GIVE_UP_MS = 1000
/** How long handlers have to end after their abort if `stop` is called again. */
const HURRY_MS = 200
const LASTING_RETRY_MS = 250

interface Running {
  readonly slot: number
  readonly attempt: Attempt
  /** It is clear what came of it. */
  isOver?: true
}

interface WaitingReport {
  readonly running: Running
  readonly settlement: Settlement
  /** It stands for one that was refused. */
  readonly isFallback?: true
}

/** A running worker. */
export class JobWorker implements AsyncDisposable {
  readonly #parts: WorkerParts
  readonly #slots: Slots
  readonly #running = new Map<Ref, Running>()
  /** Reports that the store has not taken yet; at most one for each slot. */
  #reports: WaitingReport[] = []
  /** Handlers that go on although their attempts are over. */
  readonly #stuck: StuckHandlers
  readonly #silent: SilentHandlers
  readonly #heartbeats: HeartbeatHost
  readonly #nudge: Nudge
  readonly #pace = new Pace(HINT_MAX_MS)
  readonly #recovery: Recovery
  #hint: Timer | undefined
  readonly #unsubscribe: () => void
  readonly #stopped: Promise<void>
  /**
   * Resolves when the worker has stopped. Rejects with `WorkerStuck` if a handler ignored its abort
   * and `onStuck` is 'exit', with `StoreUnsafe` if its process must not use the store any longer.
   */
  readonly ended: Promise<void>
  #endedBy: WorkerStuck | StoreUnsafe | undefined
  #isStopping = false
  #idleMs = IDLE_MIN_MS
  #rowAt = 0
  #row = ''

  constructor(parts: WorkerParts) {
    this.#parts = parts
    const { environment, settings, store, observe } = parts
    const worker = settings.id
    this.#slots = new Slots(settings.concurrency, (move) =>
      observe({ type: 'state', worker, ...move }),
    )
    this.#nudge = new Nudge(environment.timers)
    this.#recovery = new Recovery(store, environment, settings.recoverMs)
    this.#stuck = this.#watchStuck()
    const { stallWarningMs } = settings
    this.#silent = new SilentHandlers({ worker, stallWarningMs, observe, now: () => store.now() })
    this.#heartbeats = parts.heartbeats({
      onLost: (beat) => this.#lose(this.#findRunning(beat)),
      onCancel: (beat) => this.#findRunning(beat)?.attempt.cancel(),
      onError: (error) => this.#noteError(new HeartbeatFailed(error)),
    })
    const unsubscribe = [store.onWake(() => this.#takeHint()), this.#hearTroubles()]
    this.#unsubscribe = () => {
      for (const stop of unsubscribe) stop()
    }
    this.#stopped = this.#run()
    this.ended = this.#stopped.then(() => {
      parts.onStopped()
      if (this.#endedBy !== undefined) throw this.#endedBy
    })
  }

  get id(): string {
    return this.#parts.settings.id
  }

  /** Where each slot is. */
  get states(): readonly WorkerState[] {
    return this.#slots.states
  }

  /** How many handlers go on although their attempts were given up. */
  get stuck(): number {
    return this.#stuck.count
  }

  /** How many jobs are being worked on. */
  get running(): number {
    return this.#running.size
  }

  /**
   * Takes nothing new, waits for what runs, tells it to stop when the time is up, gives back what
   * is not finished, and ends. Called again, it aborts what runs and releases it a moment later,
   * also if a handler ignores its abort.
   */
  async stop(): Promise<void> {
    if (this.#isStopping) {
      this.#giveBack(HURRY_MS)
      void this.#parts.dispatcher?.stop(this.#now())
    }
    this.#isStopping = true
    this.#nudge.now()
    await this.#stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #run(): Promise<void> {
    this.#slots.moveShared('run')
    while (!this.#isStopping) {
      try {
        await this.#loop()
      } catch (error) {
        this.#noteError(error)
        // Whether the store is there again is found out by telling it of this worker.
        this.#rowAt = 0
        const isAway = this.#slots.shared === 'Connecting' && isOutage(error)
        this.#slots.moveShared(isAway ? 'connection-failed' : 'exception')
        await this.#nudge.wait(ERROR_WAIT_MS, { onlyIf: () => this.#isStopping })
        if (!this.#isStopping) this.#slots.moveShared('retry-sleep-done')
      }
    }
    await this.#drain()
  }

  /** From Connecting until there is nothing to do, or until the worker is to stop. */
  async #loop(): Promise<void> {
    // Connecting
    await this.#reportRow()
    this.#slots.moveShared('connected')
    // Recovery
    this.#slots.moveShared(await this.#recovery.run())
    // Polling
    while (!this.#isStopping) {
      const found = await this.#poll()
      this.#pace.looked(this.#now(), found > 0)
      if (this.#recovery.isDue) {
        this.#slots.moveShared('recovery-due')
        this.#slots.moveShared(await this.#recovery.run())
        // A worker that is never idle must be known to be alive as well.
        await this.#reportRow()
      }
      if (found > 0) this.#idleMs = IDLE_MIN_MS
      else if (this.#slots.free > 0 && this.#reports.length === 0) return this.#idle()
      if (this.#slots.free === 0) await this.#nudge.wait(this.#recovery.at - this.#now())
      // One turn, so that what finishes together is reported together.
      await new Promise<void>((turn) => this.#parts.environment.timers.defer(turn))
    }
  }

  async #idle(): Promise<void> {
    const { environment, settings } = this.#parts
    this.#slots.moveShared('no-task-found')
    // Backoff
    this.#idleMs = Math.min(this.#idleMs * 2, settings.pollMaxMs)
    const jittered = this.#idleMs * (0.5 + environment.random.next() / 2)
    const until = await this.#recovery.untilNext()
    this.#slots.moveShared('interval-set')
    // Idle
    await this.#nudge.wait(Math.max(1, Math.min(jittered, until)))
    if (!this.#isStopping) this.#slots.moveShared('sleep-done')
  }

  /** Reports what is finished and claims for the slots that are free; how many were claimed. */
  async #poll(): Promise<number> {
    const { store } = this.#parts
    const reports = this.#reports
    const limit = this.#isStopping ? 0 : this.#slots.free + this.#freedBy(reports)
    const request = limit > 0 ? this.#request(limit) : undefined
    if (reports.length === 0 && request === undefined) return 0
    if (reports.length === 0) return this.#claim(request as ClaimRequest)
    this.#reports = []
    const settlements = reports.map(({ settlement }) => settlement)
    const { answers, claimed } = await store.settle(settlements, request).catch((error) => {
      // What could not be reported is reported again; the fence makes that safe.
      this.#reports = [...reports, ...this.#reports]
      throw error
    })
    this.#parts.environment.crashPoint?.('worker.reported')
    this.#untrack(reports.map(({ running }) => running))
    for (const [i, report] of reports.entries()) this.#reported(report, answers[i])
    // A slot that was counted on may be taken after all: its report was refused.
    const room = this.#slots.free
    const started = this.#start(claimed.slice(0, room))
    await this.#returnUnstarted(claimed.slice(room))
    return started
  }

  /** Claiming lasts from the store's word that something is ready until it has the lease. */
  async #claim(request: ClaimRequest): Promise<number> {
    const { store } = this.#parts
    const onFound = () => this.#slots.find()
    try {
      const started = this.#start(await store.claim({ ...request, onFound }))
      this.#slots.miss('claim-lost')
      return started
    } catch (error) {
      this.#slots.miss('exception')
      throw error
    }
  }

  /** Gives back what there is no slot for. */
  async #returnUnstarted(unstarted: readonly Held[]): Promise<void> {
    if (unstarted.length === 0) return
    const release = (held: Held): Settlement => {
      return { held, command: { kind: 'release', fence: beatOf(held).fence } }
    }
    await this.#parts.store.settle(unstarted.map(release))
  }

  /** A slot whose handler goes on is not free, though its attempt is over. */
  #freedBy(reports: readonly { readonly running: Running }[]): number {
    return reports.filter(({ running }) => !running.attempt.isStuck).length
  }

  #request(limit: number): ClaimRequest {
    const { settings, jobs } = this.#parts
    return {
      worker: settings.id,
      limit,
      leaseMs: settings.leaseMs,
      start: true,
      types: [...jobs.keys()],
      ...(settings.queues !== undefined && { queues: settings.queues }),
    }
  }

  #start(claimed: readonly Held[]): number {
    const { jobs, environment, bounds, store, logger, observe } = this.#parts
    // Before any handler runs: it may keep this thread busy for longer than its lease.
    if (claimed.length > 0) {
      environment.crashPoint?.('worker.claimed')
      this.#heartbeats.track(claimed.map(beatOf))
    }
    for (const held of claimed) {
      observe({ type: 'started', worker: this.id, job: held.job })
      const attempt = new Attempt(held, jobs.get(held.job.type) as JobDefinition, {
        environment,
        bounds,
        store,
        now: () => store.now(),
        onProgress: (text) => this.#heartbeats.progress(held.ref, text),
        logger,
      })
      const running: Running = { slot: this.#slots.take(), attempt }
      // Whoever held this job here before has lost it, though no heartbeat may have said so yet.
      this.#lose(this.#running.get(held.ref))
      this.#running.set(held.ref, running)
      void attempt.report.then((report) => this.#finish(running, report))
    }
    return claimed.length
  }

  /** It is clear what came of an attempt; most of it is yet to be told to the store. */
  #finish(running: Running, report: Report): void {
    if (report.kind === 'lost' && !running.isOver) this.#tellLost(running)
    running.isOver = true
    const isCommit = report.kind === 'settle' && report.settlement.command.kind === 'commit'
    const isOk = isCommit || report.kind === 'committed'
    this.#slots.moveOne(running.slot, isOk ? 'execution-ok' : 'execution-error')
    if (report.kind === 'settle') {
      this.#reports.push({ running, settlement: report.settlement })
    } else {
      this.#untrack([running])
      if (report.kind === 'committed') this.#tellReported(report.job)
      this.#release(running)
    }
    this.#nudge.now()
  }

  #reported({ running, isFallback }: WaitingReport, answer: Answer | undefined): void {
    if (answer?.kind === 'rejected') {
      const { error } = answer
      const isOver = error instanceof StaleFence || error instanceof Committed
      if (!isOver && !isFallback) {
        // Whatever was wrong with it would be wrong the next time, too.
        const settlement = running.attempt.refusedBy(error)
        this.#reports.push({ running, settlement, isFallback: true })
        this.#heartbeats.track([beatOf(running.attempt.held)])
        return
      }
      if (error instanceof StaleFence) this.#tellLost(running)
    } else if (answer !== undefined) {
      this.#tellReported(answer.job)
    }
    this.#release(running)
  }

  /** The job is no longer ours; its slot is free once its handler has ended. */
  #release(running: Running): void {
    const { attempt, slot } = running
    if (this.#isCurrent(running)) this.#running.delete(attempt.held.ref)
    if (!attempt.isStuck) {
      this.#slots.release(slot)
      return
    }
    this.#stuck.add(slot, attempt.held.job, attempt.ended)
  }

  #watchStuck(): StuckHandlers {
    const { environment, settings, observe } = this.#parts
    return new StuckHandlers({
      worker: settings.id,
      environment,
      slots: this.#slots,
      replacementsMax: settings.concurrency,
      policy: settings.onStuck,
      observe,
      onError: (error) => this.#noteError(error),
      onExit: ({ job, forMs }) => this.#end(new WorkerStuck(this.id, job.id, forMs)),
      onFree: () => this.#nudge.now(),
    })
  }

  /** The leases of these attempts need no renewal; one that a later attempt has goes on. */
  #untrack(ended: readonly Running[]): void {
    const current = ended.filter((running) => this.#isCurrent(running))
    this.#heartbeats.untrack(current.map(({ attempt }) => attempt.held.ref))
  }

  /** Whether no later attempt at the same job runs here. */
  #isCurrent(running: Running): boolean {
    return this.#running.get(running.attempt.held.ref) === running
  }

  /** The attempt that has this very lease. */
  #findRunning({ ref, fence }: Beat): Running | undefined {
    const running = this.#running.get(ref)
    return running?.attempt.fence.claim === fence.claim ? running : undefined
  }

  /** What came of an attempt that is over is reported all the same, and its fence then decides. */
  #lose(running: Running | undefined): void {
    if (running === undefined || running.isOver) return
    running.isOver = true
    this.#tellLost(running)
    running.attempt.loseLease()
  }

  #tellLost({ attempt }: Running): void {
    const { job } = attempt.held
    this.#parts.observe({ type: 'lost', worker: this.id, job })
  }

  #tellReported(job: Job): void {
    this.#parts.observe({ type: 'reported', worker: this.id, job })
  }

  /** Something may be ready. Where every slot is taken, that is found out when one is free. */
  #takeHint(): void {
    if (this.#hint !== undefined || this.#slots.free === 0) return
    const delay = this.#pace.delay(this.#now())
    const follow = () => {
      this.#hint = undefined
      this.#nudge.now()
    }
    if (delay <= 0) follow()
    else this.#hint = this.#parts.environment.timers.after(delay, follow)
  }

  async #reportRow(): Promise<void> {
    const { store, settings, jobs } = this.#parts
    const state = this.#slots.shared
    if (this.#now() < this.#rowAt && this.#row === state) return
    const { concurrency, queues } = settings
    const types = [...jobs.keys()]
    const silent = this.#silent.look(Array.from(this.#running.values(), ({ attempt }) => attempt))
    const counts = { running: this.running, stuck: this.stuck }
    const info = { concurrency, queues, types, ...counts, ...(silent.length > 0 && { silent }) }
    await store.reportWorker({ id: settings.id, state, info: JSON.stringify(info) })
    this.#rowAt = this.#now() + WORKER_ROW_MS
    this.#row = state
  }

  #now(): number {
    return this.#parts.environment.clock.now()
  }

  /** While the database is away, verbs try again in silence; whoever watches is told of it. */
  #hearTroubles(): () => void {
    const stop = this.#parts.store.onTrouble?.((trouble) => {
      if (trouble.kind === 'away') this.#noteError(trouble.error)
    })
    return stop ?? (() => {})
  }

  #noteError(error: unknown): void {
    this.#parts.observe({ type: 'error', worker: this.id, error })
    if (error instanceof StoreUnsafe) this.#end(error)
  }

  #end(error: WorkerStuck | StoreUnsafe): void {
    this.#endedBy ??= error
    if (!this.#isStopping) void this.stop()
  }

  #giveBack(graceMs?: number): void {
    for (const { attempt } of this.#running.values()) attempt.giveBack(graceMs)
  }

  /** Draining: nothing new; what runs is waited for, then told to stop, then given back. */
  async #drain(): Promise<void> {
    const { environment, settings, store } = this.#parts
    this.#slots.moveShared('drain')
    this.#unsubscribe()
    this.#hint?.cancel()
    const timer = environment.timers.after(settings.drainMs, () => this.#giveBack())
    // Past this, whatever the store could not be told is for others to recover.
    let end = this.#now() + settings.drainMs + GIVE_UP_MS
    while (this.#running.size > 0 && this.#now() < end) {
      if (this.#reports.length === 0) await this.#nudge.wait(ERROR_WAIT_MS)
      try {
        await this.#poll()
      } catch (error) {
        this.#noteError(error)
        // Nobody makes room on a full disk while this process ends; whoever stops it waits.
        const mayEnd = isLasting(error) && [...this.#running.values()].every(({ isOver }) => isOver)
        if (mayEnd) end = Math.min(end, this.#now() + LASTING_GIVE_UP_MS)
        const wait = mayEnd ? LASTING_RETRY_MS : ERROR_WAIT_MS
        await this.#nudge.wait(Math.min(wait, end - this.#now()), { onlyIf: () => false })
      }
    }
    timer.cancel()
    // What these jobs have committed is delivered in what is left of the time.
    await this.#parts.dispatcher?.stop(end - GIVE_UP_MS)
    this.#stuck.close()
    await this.#heartbeats.close()
    await store.removeWorker(settings.id).catch((error: unknown) => this.#noteError(error))
    this.#slots.moveShared('drained')
  }
}

function beatOf({ ref, job }: Held): Beat {
  return { ref, fence: { attempt: job.attempt, claim: job.execution?.claim ?? '' } }
}
