/**
 * The worker's Recovery: what is done for all jobs, by whichever worker gets to it. Promotes what
 * is due, sets damaged jobs aside, takes back expired leases, ends what waited too long in its
 * queue. Each in bounded batches.
 */
import type { Environment } from '../../environment/system.ts'
import type { Store } from '../../stores/store.ts'
import { untilShort } from './batches.ts'

const RECOVER_BATCH = 100
const PROMOTE_BATCH = 1000
/** Verbs that meet damage set it aside at once; this finds what none of them meets. */
const ISOLATE_MS = 5000

/** When recovery is due, and what it does. */
export class Recovery {
  readonly #store: Store
  readonly #environment: Environment
  readonly #everyMs: number
  #at = 0
  #isolateAt = 0
  /** When the next job that waits for its time is due, as far as is known. */
  #dueAt = Number.POSITIVE_INFINITY

  constructor(store: Store, environment: Environment, everyMs: number) {
    this.#store = store
    this.#environment = environment
    this.#everyMs = everyMs
  }

  /** When expired leases are looked for again. */
  get at(): number {
    return this.#at
  }

  get isDue(): boolean {
    return this.#now() >= this.#at
  }

  /** How long there is nothing to do here. */
  async untilNext(): Promise<number> {
    const due = (await this.#store.nextDue()) ?? Number.POSITIVE_INFINITY
    this.#dueAt = this.#now() + due - this.#store.now()
    return Math.min(this.#dueAt, this.#at) - this.#now()
  }

  /** Says by which edge of the worker machine Recovery ends. */
  async run(): Promise<'recovered' | 'recovery-skipped'> {
    const store = this.#store
    if (this.#now() >= Math.min(this.#dueAt, this.#at)) {
      await untilShort(PROMOTE_BATCH, (limit) => store.promote(limit))
    }
    this.#dueAt = Number.POSITIVE_INFINITY
    if (!this.isDue) return 'recovery-skipped'
    this.#at = this.#now() + this.#everyMs
    if (this.#now() >= this.#isolateAt) {
      this.#isolateAt = this.#now() + ISOLATE_MS
      await store.isolate()
    }
    await untilShort(RECOVER_BATCH, async (limit) => (await store.recover(limit)).length)
    await untilShort(RECOVER_BATCH, async (limit) => (await store.shed(limit)).length)
    return 'recovered'
  }

  #now(): number {
    return this.#environment.clock.now()
  }
}
