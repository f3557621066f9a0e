/**
 * Sends the events of runs to a sink. The log is the buffer: an event is sent after it is durable,
 * and a cursor stores the last event that the sink has. So events that could not be sent are sent
 * later, by this process or another. An event may be sent twice; receivers recognize it by its id.
 *
 * Refused transitions are not in a log. They wait in a spool of bounded size. When it overflows,
 * the oldest are dropped, and the sink receives their number: TELEMETRY_DROPPED.
 */
import { RunNotFound } from '../../core/errors.ts'
import type { Logger, Timer } from '../../core/ports.ts'
import type { RunEvent } from '../../core/run/events.ts'
import type { Environment } from '../../environment/system.ts'
import { PathRefused, RunLogDamaged } from '../journal/errors.ts'
import type { Journal, RunFailureRecord, RunReader } from '../journal/journal.ts'
import type { RefusedEvent, RunObserver } from '../run-log.ts'
import { TelemetryState } from './state.ts'

/** An event of a log, or an event that is in no log and has no `seq`. */
export interface TelemetryEvent {
  readonly event_id: string
  readonly run_id: string
  readonly seq?: number
  readonly type: string
  readonly ts: string
  readonly trace_id: string
  readonly span_id: string
  readonly actor: string
  readonly data: object
}

/** Receives telemetry. */
export interface TelemetrySink {
  /** The name of its cursors. Must stay the same over restarts. */
  readonly name: string
  /** Accepts all events or none. If it throws, the events are sent again. */
  send(events: readonly TelemetryEvent[], signal: AbortSignal): Promise<void>
}

export interface TelemetryParts {
  readonly journal: Journal
  readonly sink: TelemetrySink
  /** The folder of cursors and spool. */
  readonly folder: string
  readonly environment: Environment
  readonly logger: Logger
}

/** Errors of one run, which sending again does not remove. */
const UNREADABLE = [RunLogDamaged, PathRefused, RunNotFound]

const BATCH_MAX = 500
const BACK_OFF_MIN_MS = 500
const BACK_OFF_MAX_MS = 60_000
const CLOSE_MS = 5000

export class Telemetry implements RunObserver {
  readonly #parts: TelemetryParts
  readonly #state: TelemetryState
  readonly #stop = new AbortController()
  readonly #dirty = new Set<string>()
  #spooling: Promise<void> = Promise.resolve()
  #sending: Promise<void> | undefined
  #timer: Timer | undefined
  #failures = 0
  #isClosed = false

  constructor(parts: TelemetryParts) {
    this.#parts = parts
    this.#state = new TelemetryState(parts.folder, parts.sink.name, parts.environment)
  }

  /** Sends the events that earlier processes could not send. */
  async start(): Promise<void> {
    for (const runId of await this.#parts.journal.list()) this.#dirty.add(runId)
    this.#wake()
  }

  recorded(events: readonly RunEvent[]): void {
    for (const { run_id } of events) this.#dirty.add(run_id)
    this.#wake()
  }

  refused(event: RefusedEvent): void {
    const { logger } = this.#parts
    this.#spooling = this.#spooling
      .then(() => this.#state.add(event))
      .catch((error) => {
        const fields = { event: 'telemetry.spool_failed', error: String(error) }
        logger.error(fields, 'A refused transition could not be stored for telemetry')
      })
      .then(() => this.#wake())
  }

  /** Sends what it can within five seconds. The next process sends the rest. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    const { timers } = this.#parts.environment
    const timer = timers.after(CLOSE_MS, () => this.#stop.abort(new Error('telemetry was closed')))
    await this.#spooling
    await this.#sending
    if (this.#dirty.size > 0 && this.#failures === 0) await this.#send()
    timer.cancel()
    this.#stop.abort()
  }

  #wake(): void {
    if (this.#isClosed || this.#sending !== undefined || this.#timer !== undefined) return
    this.#sending = this.#send().finally(() => {
      this.#sending = undefined
      if (this.#isClosed || (this.#failures === 0 && this.#dirty.size === 0)) return
      const { timers, random } = this.#parts.environment
      const most = Math.min(BACK_OFF_MIN_MS * 2 ** Math.max(0, this.#failures - 1), BACK_OFF_MAX_MS)
      const delay = this.#failures === 0 ? 0 : most * (0.5 + random.next() / 2)
      this.#timer = timers.after(delay, () => {
        this.#timer = undefined
        this.#wake()
      })
    })
  }

  /** Sends everything that waits. Never throws. */
  async #send(): Promise<void> {
    try {
      for (const runId of [...this.#dirty].sort()) {
        this.#dirty.delete(runId)
        try {
          await this.#sendRun(runId)
        } catch (error) {
          if (UNREADABLE.some((Unreadable) => error instanceof Unreadable)) {
            this.#skip(runId, error)
            continue
          }
          this.#dirty.add(runId)
          throw error
        }
      }
      await this.#sendSpool()
      this.#failures = 0
    } catch (error) {
      this.#failures++
      const { logger, sink } = this.#parts
      const fields = { event: 'telemetry.failed', sink: sink.name, error: String(error) }
      // Only the first failure in a row is a warning.
      logger[this.#failures === 1 ? 'warn' : 'debug'](fields, 'Telemetry waits for its sink')
    }
  }

  async #sendRun(runId: string): Promise<void> {
    const { journal } = this.#parts
    const reader = await journal.read(runId)
    const failure = await reader.failure()
    await this.#sendEvents(reader, failure && failure.damage.line - 1)
    if (failure !== undefined) await this.#sendFailure(runId, failure)
  }

  async #sendEvents(reader: RunReader, to?: number): Promise<void> {
    const { sink } = this.#parts
    const { runId } = reader
    const from = (await this.#state.cursorOf(runId)) + 1
    let batch: RunEvent[] = []
    const flush = async () => {
      if (batch.length === 0) return
      await sink.send(batch, this.#stop.signal)
      await this.#state.advance(runId, (batch[batch.length - 1] as RunEvent).seq)
      batch = []
    }
    for await (const event of reader.events({ from, ...(to !== undefined && { to }) })) {
      batch.push(event)
      if (batch.length >= BATCH_MAX) await flush()
    }
    await flush()
  }

  /**
   * Sends the recorded failure of a damaged log once. Its events have the numbers of the damaged
   * events, which the sink may have received, so they have their own cursor.
   */
  async #sendFailure(runId: string, { id, events }: RunFailureRecord): Promise<void> {
    const cursor = `${runId} failed`
    const known = Number.parseInt(id.slice(0, 12), 16)
    if ((await this.#state.cursorOf(cursor)) === known) return
    await this.#parts.sink.send(events, this.#stop.signal)
    await this.#state.advance(cursor, known)
  }

  /** Skips an unreadable run until it has new events, so that other runs are sent. */
  #skip(runId: string, error: unknown): void {
    const { logger } = this.#parts
    const fields = { event: 'telemetry.run_unreadable', run_id: runId, error: String(error) }
    logger.warn(fields, 'A run cannot be read. Its events are not sent to telemetry.')
  }

  async #sendSpool(): Promise<void> {
    const { sink, environment } = this.#parts
    const spool = await this.#state.spooled()
    const { events, dropped } = spool
    if (events.length === 0 && dropped === 0) return
    const sent: TelemetryEvent[] = events.map((event) => ({ ...event, event_id: idOf(event) }))
    if (dropped > 0) {
      const ts = new Date(environment.clock.now()).toISOString()
      const event_id = environment.ids.next()
      const noRun = { run_id: '-', trace_id: '-', span_id: '-', actor: 'telemetry' }
      sent.unshift({ ...noRun, event_id, ts, type: 'TELEMETRY_DROPPED', data: { dropped } })
    }
    await sink.send(sent, this.#stop.signal)
    await this.#state.sent(spool)
  }
}

/** Returns the same id for the same refusal, however often it is sent. */
function idOf({ run_id, span_id, ts, data }: RefusedEvent): string {
  return `${run_id}/${span_id}/${ts}/${data.from_state}/${data.to_state}`
}
