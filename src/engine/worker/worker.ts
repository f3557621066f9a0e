/**
 * A worker: the loop of the worker-loop requirements (R3) around the store. The states are those of
 * its machine (`slots.ts`); comments in the code name the state that each part belongs to.
 *
 *   flights.ts   the calls that report and claim
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
import { isOutage, StoreUnsafe } from '../../stores/errors.ts'
import { WorkerStuck } from '../errors.ts'
import { Nudge } from '../nudge.ts'
import { zoneDataVersion } from '../schedules/cron.ts'
import { drain } from './drain.ts'
import { Flights } from './flights.ts'
import { Pace } from './pace.ts'
import type { WorkerParts } from './parts.ts'
import { Recovery } from './recovery.ts'
import { Reports } from './reports.ts'
import { RunningAttempts } from './running.ts'
import { SilentHandlers } from './silence.ts'
import { type SlotMove, Slots, type WorkerState } from './slots.ts'

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
  readonly #flights: Flights
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
  /** The store has said that there may be work, after the last look for due jobs. */
  #isHinted = false
  #idleMs = IDLE_MIN_MS
  #rowAt = 0
  #row = ''

  /** Made by `pawl.work`. @internal */
  constructor(parts: WorkerParts) {
    this.#parts = parts
    const { environment, settings, store, observe } = parts
    const worker = settings.id
    const onMove = (move: SlotMove) => observe({ type: 'state', worker, ...move })
    this.#slots = new Slots(settings.concurrency, parts.isHeard ? onMove : undefined)
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
    this.#flights = new Flights({
      worker: parts,
      slots: this.#slots,
      running: this.#running,
      reports: this.#reports,
      onLanded: (found) => {
        this.#pace.looked(this.#now(), found > 0)
        if (found > 0) this.#idleMs = IDLE_MIN_MS
        this.#nudge.now()
      },
    })
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
    // Connecting. The first row, and the first one after an error, show that the store is there.
    // All others are written by `#idle` and `#recover`: a found job must not wait for a row.
    if (this.#rowAt === 0) await this.#reportRow()
    // A handler may block this thread at once, so the lease must be renewable before the claim.
    const mayGoOn = () => this.#running.isReady || this.#isStopping
    while (!mayGoOn()) await this.#nudge.wait(WORKER_ROW_MS, { onlyIf: mayGoOn })
    this.#slots.moveShared('connected')
    // Recovery. A new job does not wait for the periodic part, which then follows the claim.
    const isSkipped = this.#isHinted && !this.#recovery.isUrgent
    this.#isHinted = false
    this.#slots.moveShared(isSkipped ? 'recovery-skipped' : await this.#recovery.run())
    // Polling
    this.#flights.expect()
    while (!this.#isStopping) {
      this.#flights.launch()
      if (this.#recovery.isDue) await this.#recover()
      else if (this.#flights.isIdle) return this.#idle()
      // Until a call or a handler has ended.
      else await this.#nudge.wait(this.#recovery.at - this.#now())
      if (this.#flights.hasFailed) await this.#flights.land()
      // Waits for one turn, so that jobs that finish together are reported in one call.
      await new Promise<void>((turn) => this.#parts.environment.timers.defer(turn))
    }
    await this.#flights.land()
  }

  /** Between two claims, because a worker that is never idle must recover leases too. */
  async #recover(): Promise<void> {
    await this.#flights.land()
    this.#slots.moveShared('recovery-due')
    this.#slots.moveShared(await this.#recovery.run())
    this.#flights.expect()
    // It must also show that it is alive.
    await this.#reportRow()
  }

  async #idle(): Promise<void> {
    const { environment, settings } = this.#parts
    this.#slots.moveShared('no-task-found')
    await this.#reportRow()
    // Backoff
    this.#idleMs = Math.min(this.#idleMs * 2, settings.pollMaxMs)
    const jittered = this.#idleMs * (0.5 + environment.random.next() / 2)
    const until = await this.#recovery.untilNext()
    this.#slots.moveShared('interval-set')
    // Idle
    await this.#nudge.wait(Math.max(1, Math.min(jittered, until)))
    if (!this.#isStopping) this.#slots.moveShared('sleep-done')
  }

  /**
   * Claims again after a hint. If no slot is free, the next claim follows when one becomes free.
   */
  #takeHint(): void {
    if (this.#hint !== undefined || this.#slots.free === 0) return
    const delay = this.#pace.delay(this.#now())
    const follow = () => {
      this.#hint = undefined
      this.#isHinted = true
      this.#flights.expect()
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
