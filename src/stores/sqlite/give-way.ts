/**
 * Precedence of heartbeats over the functions of commits. A function may hold the file for a third
 * of its lease, and processes that wait for the file get it in no order. Several functions in a row
 * could keep a heartbeat from the file until its lease has ended. So before a function runs, and
 * with the lock held, the store looks for a lease that would end before the function must. If there
 * is one, it releases the lock for a moment, in which a waiting heartbeat tries more than once.
 *
 * A commit does not wait if it would lose its own lease. Waiting longer does not help if the holder
 * of a lease has died: a process waits once for the leases that it saw. Leases shorter than a
 * function may take cannot be protected; each new one costs a moment, and no commit waits more than
 * a few times.
 */
import { LANES } from '../../core/job/lanes.ts'
import type { Environment } from '../../environment/system.ts'
import { boundOf } from '../commit-function.ts'
import type { Held } from '../contract/store.ts'
import { BOUND_MS } from '../transaction-function.ts'
import { PAUSE_MAX_MS, typed } from './busy.ts'
import type { Connection } from './connect.ts'

/** A process that waits for the file tries at least twice in this time. */
const GAP_MS = 2 * PAUSE_MAX_MS
/** What should be left of a lease after the function, for its heartbeat to come through. */
const MARGIN_MAX_MS = 2 * GAP_MS
const WAITS_MAX = 3

const SELECT_URGENT = `
  SELECT 1 FROM pawl_jobs
  WHERE lane = ${LANES.held} AND lease_until > ? AND lease_until <= ? LIMIT 1`
const SELECT_OWN = 'SELECT 1 FROM pawl_jobs WHERE rid = ? AND lease_until > ?'

type Look = (connection: Connection, now: number) => boolean

/** The functions of the commits of one store. */
export class GivingWay {
  readonly #environment: Environment
  /** No function begins before. */
  #pausedUntil = 0
  /** Leases that end not later have been waited for. */
  #waitedFor = 0

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /**
   * Takes the file for a function; `held` is the job that it commits, if it is a commit. `take`
   * receives a check that says, with the lock held, whether others come first: then it releases the
   * lock and is called again.
   */
  async run<T>(held: Held | undefined, take: (look: Look) => Promise<T | undefined>): Promise<T> {
    for (let waits = 0; ; waits++) {
      let waitMs = 0
      const done = await take((connection, now) => {
        if (waits < WAITS_MAX) waitMs = typed(() => this.#msToWait(connection, now, held))
        return waitMs > 0
      })
      if (done !== undefined) return done
      await new Promise<void>((resume) => this.#environment.timers.after(waitMs, resume))
    }
  }

  #msToWait(connection: Connection, now: number, held: Held | undefined): number {
    // If the clock was set back, the pause could last for hours.
    const pause = Math.min(this.#pausedUntil - now, GAP_MS)
    const end = now + spanOf(held)
    const since = Math.max(now, this.#waitedFor)
    if (pause <= 0 && connection.get(SELECT_URGENT, since, end) === undefined) return 0
    const ownEnd = now + 2 * GAP_MS
    if (held && connection.get(SELECT_OWN, held.ref, ownEnd) === undefined) return 0
    if (pause > 0) return pause
    this.#waitedFor = end
    this.#pausedUntil = now + GAP_MS
    return GAP_MS
  }
}

/**
 * How long a lease must last so that the function of a holder does not endanger it. Half a lease at
 * most, so that a holder that renews in time is never affected.
 */
function spanOf(held: Held | undefined): number {
  const boundMs = held === undefined ? BOUND_MS : boundOf(held)
  return boundMs + Math.min(MARGIN_MAX_MS, Math.floor(boundMs / 2))
}
