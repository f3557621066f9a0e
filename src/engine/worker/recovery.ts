/**
 * The worker's Recovery state: maintenance for all jobs of the store, done by any worker. It makes
 * the jobs of schedules, promotes due jobs, sets damaged jobs aside, recovers expired leases, ends
 * jobs that wait past their deadline or exceeded the `maxWait` of their queue, and releases jobs
 * that waited for the end of others (`singleton`, flows, invoked jobs). Each is done in bounded
 * batches.
 */
import type { Environment } from '../../environment/system.ts'
import type { Store } from '../../stores/contract/store.ts'
import { wakeAll } from '../flows/wake-store.ts'
import { ticksOf } from '../schedules/cron.ts'

const RECOVER_BATCH = 100
/** The largest number of batches in a row. */
const BATCHES_MAX = 100
const PROMOTE_BATCH = 1000
const FIRE_BATCH = 100
/** When to look again if another worker deals with the schedules that are due. */
const FIRE_AGAIN_MS = 50
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
  /** When jobs were last promoted, by the time of the store. */
  #promotedAt = Number.NEGATIVE_INFINITY
  /** When a schedule has to be looked at next, as it was known at the last look. */
  #tickAt = Number.NEGATIVE_INFINITY

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

  /** Whether a job or a schedule is due, as far as the worker knows. */
  get isUrgent(): boolean {
    return this.#now() >= Math.min(this.#dueAt, this.#tickAt)
  }

  /** Returns how long there is nothing to do. */
  async untilNext(): Promise<number> {
    const due = (await this.#store.nextDue()) ?? Number.POSITIVE_INFINITY
    this.#dueAt = this.#now() + due - this.#store.now()
    // What the last promotion has passed over is locked, or for another process to decide on. The
    // worker would look at it without a pause.
    const dueAt = due <= this.#promotedAt ? Number.POSITIVE_INFINITY : this.#dueAt
    return Math.min(dueAt, this.#tickAt, this.#at) - this.#now()
  }

  /** Returns the trigger by which the worker's state machine leaves Recovery. */
  async run(): Promise<'recovered' | 'recovery-skipped'> {
    const store = this.#store
    if (this.isDue || this.#now() >= this.#tickAt) await this.#fire()
    if (this.#now() >= this.#dueAt || (this.isDue && (await this.#isAnyDue()))) {
      this.#promotedAt = store.now()
      await untilShort(PROMOTE_BATCH, (limit) => store.promote(limit))
    }
    this.#dueAt = Number.POSITIVE_INFINITY
    if (!this.isDue) return 'recovery-skipped'
    // The process that ends a job wakes what waits for it; this is for one that died in between.
    await wakeAll(store.flows, BATCHES_MAX)
    this.#at = this.#now() + this.#everyMs
    if (this.#now() >= this.#isolateAt) {
      this.#isolateAt = this.#now() + ISOLATE_MS
      await store.isolate()
    }
    await untilShort(RECOVER_BATCH, async (limit) => (await store.recover(limit)).length)
    await untilShort(RECOVER_BATCH, async (limit) => (await store.shed(limit)).length)
    await untilShort(RECOVER_BATCH, async (limit) => (await store.admissions.tend(limit)).seen)
    return 'recovered'
  }

  /**
   * Whether a job or a limit has to be looked at. One statement that locks nothing, where a
   * promotion of nothing is a transaction that writes; `test/stores/idle-cost.test.ts` counts both.
   */
  async #isAnyDue(): Promise<boolean> {
    const due = await this.#store.nextDue()
    return due !== undefined && due <= this.#store.now()
  }

  /**
   * Makes the jobs of ticks that are due. Without schedules this is one look, each time that the
   * worker looks for expired leases.
   */
  async #fire(): Promise<void> {
    const { schedules } = this.#store
    let idle = 0
    for (let batch = 0; batch < BATCHES_MAX; batch++) {
      const next = (await schedules.nextLook()) ?? Number.POSITIVE_INFINITY
      const waitMs = next - this.#store.now()
      this.#tickAt = this.#now() + Math.max(waitMs, FIRE_AGAIN_MS)
      if (waitMs > 0) return
      const { records, more } = await schedules.fire(FIRE_BATCH, ticksOf)
      // Nothing was due but a look at ticks that wait, or another worker has the lock.
      if (records.length === 0 && !more && idle++ > 0) return
    }
  }

  #now(): number {
    return this.#environment.clock.now()
  }
}

/** Repeats a batch operation until it processes less than a full batch. */
async function untilShort(
  limit: number,
  doBatch: (limit: number) => Promise<number>,
): Promise<void> {
  for (let batch = 0; batch < BATCHES_MAX; batch++) if ((await doBatch(limit)) < limit) return
}
