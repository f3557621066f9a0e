/**
 * The worker's Recovery state: maintenance for all jobs of the store, done by any worker. It
 * promotes due jobs, sets damaged jobs aside, recovers expired leases, and ends jobs that exceeded
 * the `maxWait` of their queue. Each is done in bounded batches.
 */
import type { Environment } from '../../environment/system.ts'
import type { Store } from '../../stores/store.ts'
import { untilShort } from './batches.ts'

const RECOVER_BATCH = 100
const PROMOTE_BATCH = 1000
/** Verbs set aside damaged jobs that they read. This finds the jobs that no verb reads. */
const ISOLATE_MS = 5000

export class Recovery {
  readonly #store: Store
  readonly #environment: Environment
  readonly #everyMs: number
  #at = 0
  #isolateAt = 0
  /** When the next waiting job is due, if known. */
  #dueAt = Number.POSITIVE_INFINITY

  constructor(store: Store, environment: Environment, everyMs: number) {
    this.#store = store
    this.#environment = environment
    this.#everyMs = everyMs
  }

  /** When the worker looks for expired leases again. */
  get at(): number {
    return this.#at
  }

  get isDue(): boolean {
    return this.#now() >= this.#at
  }

  /** Returns how long there is nothing to do. */
  async untilNext(): Promise<number> {
    const due = (await this.#store.nextDue()) ?? Number.POSITIVE_INFINITY
    this.#dueAt = this.#now() + due - this.#store.now()
    return Math.min(this.#dueAt, this.#at) - this.#now()
  }

  /** Returns the trigger by which the worker's state machine leaves Recovery. */
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
