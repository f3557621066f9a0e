/**
 * The time by which all workers check leases and due times: the database's. This process reads it
 * every few seconds and in between adds what its own clock has measured since, so a machine whose
 * clock is wrong by minutes works like any other.
 *
 * An answer that took t milliseconds only says that the offset lies in an interval of that length.
 * The offset in use is kept while it lies in the interval, and else moved to the nearest end, so a
 * slow answer does not make the time jump. `now` does not go backwards, except if the database's
 * time is more than a second behind it: then the database has another time, after a step of its
 * clock or a failover. Without this, a job could be due in the future of the process that has just
 * enqueued it.
 */
import type { Clock } from '../../core/ports.ts'
import type { Patience } from './busy.ts'
import { type Database, statement } from './connect.ts'

const SELECT_TIME = statement(
  () => 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
)

const STALE_MS = 5000
const SLOW_MS = 500
/** The database rounds to milliseconds, and so does the local clock. */
const ROUNDING_MS = 1
/** If the database's time is behind by at most this, `now` stops until it is reached. */
const STANDSTILL_MAX_MS = 1000

/** The database's time. */
export class DatabaseClock implements Clock {
  readonly #database: Database
  readonly #local: Clock
  #offset = 0
  #isSet = false
  #askedAt = Number.NEGATIVE_INFINITY
  #latest = Number.NEGATIVE_INFINITY

  constructor(database: Database, local: Clock) {
    this.#database = database
    this.#local = local
  }

  now(): number {
    const now = this.#local.now() + this.#offset
    const behind = this.#latest - now
    if (behind <= 0 || behind > STANDSTILL_MAX_MS) this.#latest = now
    return this.#latest
  }

  /** Asks again if the last answer is old; does not wait for the answer. */
  refresh(): void {
    if (this.#local.now() - this.#askedAt > STALE_MS) this.ask().catch(() => {})
  }

  /** Asks the database, and corrects the offset by its answer. */
  async ask(patience?: Patience): Promise<void> {
    this.#askedAt = this.#local.now()
    await this.#database.atOnce(async (session) => {
      const start = this.#local.now()
      const [row] = await session.query<{ now: number }>(SELECT_TIME)
      const end = this.#local.now()
      // A slow answer says little. The first one is taken in any case.
      if (row === undefined || (this.#isSet && end - start > SLOW_MS)) return
      const [low, high] = [row.now - end - ROUNDING_MS, row.now - start + ROUNDING_MS]
      const offset = this.#isSet ? this.#offset : (low + high) / 2
      this.#offset = Math.round(Math.min(Math.max(offset, low), high))
      this.#isSet = true
    }, patience)
  }
}
