/**
 * The time by which all workers judge leases and due times: the database's. It is asked for now and
 * then and carried on by the clock of this process in between, which runs steadily even where it is
 * wrong. So a machine whose clock is off by minutes is no different from the others.
 */
import type { Clock } from '../../core/ports.ts'
import type { Patience } from './busy.ts'
import { type Database, statement } from './connect.ts'

const SELECT_TIME = statement(
  () => 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
)

const STALE_MS = 5000
const SLOW_MS = 500

/** The database's time. */
export class DatabaseClock implements Clock {
  readonly #database: Database
  readonly #local: Clock
  #offset = 0
  #isSet = false
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(database: Database, local: Clock) {
    this.#database = database
    this.#local = local
  }

  now(): number {
    return this.#local.now() + this.#offset
  }

  /** Asks again if the last answer is old; nobody waits for it. */
  refresh(): void {
    if (this.#local.now() - this.#askedAt > STALE_MS) this.ask().catch(() => {})
  }

  /** Asks the database, and takes the answer for that of the middle of the wait. */
  async ask(patience?: Patience): Promise<void> {
    this.#askedAt = this.#local.now()
    await this.#database.atOnce(async (session) => {
      const start = this.#local.now()
      const [row] = await session.query<{ now: number }>(SELECT_TIME)
      const end = this.#local.now()
      // An answer that was long on its way says little of the present.
      if (row === undefined || (this.#isSet && end - start > SLOW_MS)) return
      this.#offset = Math.round(row.now - (start + end) / 2)
      this.#isSet = true
    }, patience)
  }
}
