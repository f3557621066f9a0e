/**
 * Handlers that ignore their abort signal. Their attempts are reported, and the fence rejects what
 * they still write. But they still occupy a slot, memory and connections. So they are counted. A
 * handler that still runs five seconds after its attempt was over is reported by an event, and
 * again at doubling intervals. At each event the policy decides:
 *
 *   hold      its slot stays occupied until it ends
 *   replace   an additional slot is opened, and closed when the handler ends; there are at most as
 *             many additional slots as the worker's concurrency
 *   exit      the worker stops, and `worker.ended` rejects with `WorkerStuck`
 */
import type { Job } from '../../core/job/job.ts'
import type { Timer } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import type { StuckEvent } from '../watching/events.ts'
import type { Slots } from './slots.ts'

/** What to do about a handler that ignores its abort signal. */
export type StuckAction = 'hold' | 'replace' | 'exit'

/** An action, or a function that decides at each event. */
export type StuckPolicy = StuckAction | ((stuck: StuckEvent) => StuckAction)

/** How long a handler may run on after its attempt is over, before the first event. */
const PATIENCE_MS = 5000
/** The longest interval between two events about a handler. */
const REMIND_MAX_MS = 600_000

export interface StuckParts {
  readonly worker: string
  readonly environment: Environment
  readonly slots: Slots
  /** The largest number of additional slots. */
  readonly replacementsMax: number
  readonly policy: StuckPolicy
  readonly observe: (event: StuckEvent) => void
  readonly onError: (error: unknown) => void
  readonly onExit: (event: StuckEvent) => void
  /** Called when a slot becomes free. */
  readonly onFree: () => void
}

interface Entry {
  readonly slot: number
  readonly job: Job
  readonly since: number
  timer?: Timer
  isReported: boolean
  isReplaced: boolean
}

/** The handlers of one worker that still run although their attempts are over. */
export class StuckHandlers {
  readonly #parts: StuckParts
  readonly #entries = new Set<Entry>()
  #isClosed = false

  constructor(parts: StuckParts) {
    this.#parts = parts
  }

  get count(): number {
    return this.#entries.size
  }

  /** Adds a handler that runs in its slot until `ended` resolves. */
  add(slot: number, job: Job, ended: Promise<void>): void {
    const since = this.#parts.environment.clock.now()
    const entry: Entry = { slot, job, since, isReported: false, isReplaced: false }
    this.#entries.add(entry)
    this.#remind(entry, PATIENCE_MS)
    void ended.then(() => this.#end(entry))
  }

  /** Stops the events. */
  close(): void {
    this.#isClosed = true
    for (const { timer } of this.#entries) timer?.cancel()
  }

  #remind(entry: Entry, delayMs: number): void {
    if (this.#isClosed) return
    entry.timer = this.#parts.environment.timers.after(delayMs, () => {
      this.#judge(entry)
      this.#remind(entry, Math.min(delayMs * 2, REMIND_MAX_MS))
    })
  }

  #judge(entry: Entry): void {
    const { slots, replacementsMax, observe, onExit, onFree } = this.#parts
    entry.isReported = true
    const event = this.#eventOf('stuck', entry)
    observe(event)
    const action = this.#decide(event)
    if (action === 'exit') onExit(event)
    if (action !== 'replace' || entry.isReplaced) return
    if ([...this.#entries].filter(({ isReplaced }) => isReplaced).length >= replacementsMax) return
    entry.isReplaced = true
    slots.open()
    onFree()
  }

  /** If the policy throws, the slot stays occupied. */
  #decide(event: StuckEvent): StuckAction {
    const { policy, onError } = this.#parts
    if (typeof policy !== 'function') return policy
    try {
      return policy(event)
    } catch (error) {
      onError(error)
      return 'hold'
    }
  }

  #end(entry: Entry): void {
    const { slots, observe, onFree } = this.#parts
    entry.timer?.cancel()
    this.#entries.delete(entry)
    if (entry.isReplaced) slots.close(entry.slot)
    else slots.release(entry.slot)
    if (entry.isReported) observe(this.#eventOf('unstuck', entry))
    onFree()
  }

  #eventOf(type: StuckEvent['type'], { job, since }: Entry): StuckEvent {
    const { worker, environment } = this.#parts
    return { type, worker, job, forMs: environment.clock.now() - since, stuck: this.count }
  }
}
