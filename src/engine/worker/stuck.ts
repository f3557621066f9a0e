/**
 * Handlers that ignore their abort. Their attempts are reported and over, whatever they still write
 * is refused; but they hold what they hold: a slot, memory, connections. So each is counted, and
 * one that has not ended five seconds later is told of, again and again at growing distances, and
 * every time a policy decides:
 *
 *   hold      its slot stays taken until it ends
 *   replace   a new slot is opened in its stead, and closed in exchange when it ends; there are at
 *             most as many of these as the worker has slots of its own
 *   exit      the worker stops as if it were asked to, and says that it ended because of this
 */
import type { Job } from '../../core/job/job.ts'
import type { Timer } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import type { StuckEvent } from '../watching/events.ts'
import type { Slots } from './slots.ts'

/** What to do about a handler that ignores its abort. */
export type StuckAction = 'hold' | 'replace' | 'exit'

/** What to do, or who says so each time. */
export type StuckPolicy = StuckAction | ((stuck: StuckEvent) => StuckAction)

/** A handler gets so long to end after its attempt was given up. */
const PATIENCE_MS = 5000
/** The longest time until a stuck handler is told of again. */
const REMIND_MAX_MS = 600_000

/** What the stuck handlers of a worker need of it. */
export interface StuckParts {
  readonly worker: string
  readonly environment: Environment
  readonly slots: Slots
  /** How many slots may be opened in the stead of others. */
  readonly replacementsMax: number
  readonly policy: StuckPolicy
  readonly observe: (event: StuckEvent) => void
  readonly onError: (error: unknown) => void
  readonly onExit: (event: StuckEvent) => void
  /** A slot is free. */
  readonly onFree: () => void
}

interface Entry {
  readonly slot: number
  readonly job: Job
  readonly since: number
  timer?: Timer
  wasTold: boolean
  isReplaced: boolean
}

/** The handlers of one worker that go on although their attempts are over. */
export class StuckHandlers {
  readonly #parts: StuckParts
  readonly #entries = new Set<Entry>()
  #isClosed = false

  constructor(parts: StuckParts) {
    this.#parts = parts
  }

  /** How many there are. */
  get count(): number {
    return this.#entries.size
  }

  /** A handler goes on in its slot until `ended`. */
  add(slot: number, job: Job, ended: Promise<void>): void {
    const since = this.#parts.environment.clock.now()
    const entry: Entry = { slot, job, since, wasTold: false, isReplaced: false }
    this.#entries.add(entry)
    this.#remind(entry, PATIENCE_MS)
    void ended.then(() => this.#end(entry))
  }

  /** Nobody is told any more. */
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
    entry.wasTold = true
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

  /** A policy that cannot say what to do changes nothing. */
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
    if (entry.wasTold) observe(this.#eventOf('unstuck', entry))
    onFree()
  }

  #eventOf(type: StuckEvent['type'], { job, since }: Entry): StuckEvent {
    const { worker, environment } = this.#parts
    return { type, worker, job, forMs: environment.clock.now() - since, stuck: this.count }
  }
}
