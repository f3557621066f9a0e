/**
 * A worker: the loop of the worker-loop requirements (R3) around the store. The states are those of
 * its machine (`slots.ts`); comments in the code name the state that each part belongs to.
 *
 *   running.ts   the running attempts, with their slots and leases
 *   reports.ts   the reports that the store has not recorded yet
 *   drain.ts     how a worker stops
 *
 * One call (`settle`) sends the reports of finished jobs and claims the next ones. So a busy worker
 * mostly needs one round trip for all jobs that finish in one turn of the event loop. The worker
 * claims only as many jobs as it has free slots, so it rarely has to release one.
 *
 * No error of the store or of a handler ends the loop. An unexpected error leads to ErrorWait and
 * then to Connecting. Finished attempts keep their slots until they are reported.
 */

import type { Timer } from '../../core/ports.ts'
import { ERROR_WAIT_MS } from '../../core/worker.ts'
import { VERSION } from '../../environment/version.ts'
import type { ClaimRequest, Held, Settlement } from '../../stores/contract/store.ts'
import { isOutage, StoreUnsafe } from '../../stores/errors.ts'
import { WorkerStuck } from '../errors.ts'
import { Nudge } from '../nudge.ts'
import { zoneDataVersion } from '../schedules/cron.ts'
import { drain } from './drain.ts'
import { Pace } from './pace.ts'
import type { WorkerParts } from './parts.ts'
import { Recovery } from './recovery.ts'
import { Reports } from './reports.ts'
import { beatOf, RunningAttempts } from './running.ts'
import { SilentHandlers } from './silence.ts'
import { Slots, type WorkerState } from './slots.ts'

const IDLE_MIN_MS = 20
/** The longest delay after a hint if earlier hints led to nothing. */
const HINT_MAX_MS = 5
const WORKER_ROW_MS = 5000
/** A change of the reported state is written at most this often: short jobs change it often. */
const STATE_CHANGE_MS = 1000
/** How long handlers may run on after their abort if `stop` is called a second time. */
const HURRY_MS = 200

/** A running worker. */
export class JobWorker implements AsyncDisposable {
  readonly #parts: WorkerParts
  readonly #slots: Slots
  readonly #running: RunningAttempts
  readonly #reports: Reports
  readonly #silent: SilentHandlers
  readonly #nudge: Nudge
  readonly #pace = new Pace(HINT_MAX_MS)
  readonly #recovery: Recovery
  #hint: Timer | undefined
  readonly #unsubscribe: () => void
  readonly #stopped: Promise<void>
  /**
   * Resolves when the worker has stopped. Rejects with `WorkerStuck` if a handler ignored its abort
   * signal and `onStuck` is 'exit', and with `StoreUnsafe` if the process must not use the store
   * any longer.
   */
  readonly ended: Promise<void>
  #endedBy: WorkerStuck | StoreUnsafe | undefined
  #isStopping = false
  #idleMs = IDLE_MIN_MS
  #rowAt = 0
  #row = ''

  /** Made by `pawl.work`. @internal */
  constructor(parts: WorkerParts) {
    this.#parts = parts
    const { environment, settings, store, observe } = parts
    const worker = settings.id
    this.#slots = new Slots(settings.concurrency, (move) =>
      observe({ type: 'state', worker, ...move }),
    )
    this.#nudge = new Nudge(environment.timers)
    this.#recovery = new Recovery(store, environment, settings.recoverMs)
    this.#running = new RunningAttempts(parts, this.#slots, {
      onFinished: (running, report) => {
        this.#reports.add(running, report)
        this.#nudge.now()
      },
      onError: (error) => this.#noteError(error),
      onExit: ({ job, forMs }) => this.#end(new WorkerStuck(worker, job.id, forMs)),
      onFree: () => this.#nudge.now(),
      onReady: () => this.#nudge.now(),
    })
    this.#reports = new Reports(parts, this.#slots, this.#running)
    const { stallWarningMs } = settings
    this.#silent = new SilentHandlers({ worker, stallWarningMs, observe, now: () => store.now() })
    const unsubscribe = [store.onWake(() => this.#takeHint()), this.#reportOutages()]
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

  /** The state of each slot. */
  get states(): readonly WorkerState[] {
    return this.#slots.states
  }

  /** How many handlers still run although their attempts are over. */
  get stuck(): number {
    return this.#running.stuck
  }

  /** How many attempts are running or not yet reported. */
  get running(): number {
    return this.#running.count
  }

  /**
   * Stops the worker: claims nothing more, waits for the handlers, aborts them after `drain`, and
   * releases unfinished jobs. A second call aborts the handlers at once and releases their jobs a
   * moment later, also if a handler ignores its abort signal.
   */
  async stop(): Promise<void> {
    if (this.#isStopping) {
      this.#running.releaseAll(HURRY_MS)
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
        // The next write of the worker's row shows whether the store can be reached again.
        this.#rowAt = 0
        const isAway = this.#slots.shared === 'Connecting' && isOutage(error)
        this.#slots.moveShared(isAway ? 'connection-failed' : 'exception')
        await this.#nudge.wait(ERROR_WAIT_MS, { onlyIf: () => this.#isStopping })
        if (!this.#isStopping) this.#slots.moveShared('retry-sleep-done')
      }
    }
    await this.#drain()
  }

  /** From Connecting until there is nothing to do, or until the worker has to stop. */
  async #loop(): Promise<void> {
    // Connecting
    await this.#reportRow()
    // A handler may block this thread at once, so the lease must be renewable before the claim.
    const mayGoOn = () => this.#running.isReady || this.#isStopping
    while (!mayGoOn()) await this.#nudge.wait(WORKER_ROW_MS, { onlyIf: mayGoOn })
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
        // A worker that is never idle must also show that it is alive.
        await this.#reportRow()
      }
      if (found > 0) this.#idleMs = IDLE_MIN_MS
      else if (this.#slots.free > 0 && this.#reports.count === 0) return this.#idle()
      if (this.#slots.free === 0) await this.#nudge.wait(this.#recovery.at - this.#now())
      // Waits for one turn, so that jobs that finish together are reported in one call.
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

  /** Sends reports and claims jobs for the free slots. Returns the number of claimed jobs. */
  async #poll(): Promise<number> {
    const limit = this.#slots.free + this.#reports.slotsFreed
    const request = limit > 0 ? this.#request(limit) : undefined
    if (this.#reports.count === 0) return request === undefined ? 0 : this.#claim(request)
    const claimed = await this.#reports.send(request)
    // If a report was rejected, fewer slots are free than expected.
    const room = this.#slots.free
    const started = this.#running.start(claimed.slice(0, room))
    await this.#returnUnstarted(claimed.slice(room))
    return started
  }

  /** The state Claiming begins when the store has found a ready job, and ends with its lease. */
  async #claim(request: ClaimRequest): Promise<number> {
    const { store } = this.#parts
    const onFound = () => this.#slots.find()
    try {
      const started = this.#running.start(await store.claim({ ...request, onFound }))
      this.#slots.miss('claim-lost')
      return started
    } catch (error) {
      this.#slots.miss('exception')
      throw error
    }
  }

  /** Releases jobs for which no slot is free. */
  async #returnUnstarted(unstarted: readonly Held[]): Promise<void> {
    if (unstarted.length === 0) return
    const release = (held: Held): Settlement => {
      return { held, command: { kind: 'release', fence: beatOf(held).fence } }
    }
    await this.#parts.store.settle(unstarted.map(release))
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

  /**
   * Claims again after a hint. If no slot is free, the next claim follows when one becomes free.
   */
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

  /**
   * Writes the row by which others see this worker. The loop writes it between two sleeps, so the
   * state of the loop would always be Connecting. The row has the state that describes the worker.
   */
  async #reportRow(): Promise<void> {
    const { store, settings, jobs, declared } = this.#parts
    const state = this.#visibleState()
    const wait = this.#row === state ? 0 : WORKER_ROW_MS - STATE_CHANGE_MS
    if (this.#row !== '' && this.#now() < this.#rowAt - wait) return
    const { concurrency, queues } = settings
    const types = [...jobs.keys()]
    const silent = this.#silent.look(this.#running.attempts)
    const counts = { running: this.running, stuck: this.stuck }
    const { renewal, renewalAdvice, schedules } = this.#parts
    const made = { version: VERSION, zoneData: zoneDataVersion(), schedules }
    const own = { ...made, concurrency, queues, types, renewal, renewalAdvice, ...counts }
    const info = { ...own, ...(silent.length > 0 && { silent }) }
    const report = { id: settings.id, state, info: JSON.stringify(info) }
    // The first report also declares what this worker runs.
    await store.reportWorker(this.#row === '' ? { ...report, declared } : report)
    this.#rowAt = this.#now() + WORKER_ROW_MS
    this.#row = state
  }

  #visibleState(): WorkerState {
    if (this.#slots.shared === 'Draining') return 'Draining'
    return this.running > 0 ? 'Processing' : 'Idle'
  }

  #now(): number {
    return this.#parts.environment.clock.now()
  }

  /** The store retries during an outage without an error; this reports the outage. */
  #reportOutages(): () => void {
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

  /** See `drain.ts`. */
  async #drain(): Promise<void> {
    this.#slots.moveShared('drain')
    this.#unsubscribe()
    this.#hint?.cancel()
    // The state changes only once, so this write does not have to wait.
    this.#rowAt = 0
    await drain({
      reportRow: () => this.#reportRow(),
      parts: this.#parts,
      running: this.#running,
      reports: this.#reports,
      nudge: this.#nudge,
      noteError: (error) => this.#noteError(error),
    })
    this.#slots.moveShared('drained')
  }
}
