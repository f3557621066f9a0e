/**
 * How jobs are claimed: by one statement if they have no limits, else in a transaction that locks
 * their gates (`../verbs/claim-limited.ts`). The statement says whether it passed over jobs with
 * limits, so claims of other jobs cost nothing more.
 */
import type { Clock } from '../../core/ports.ts'
import type { ClaimRequest, Held } from '../contract/store.ts'
import { countSlots } from '../gate-rows.ts'
import { claimLimited, type LimitedClaim } from '../verbs/claim-limited.ts'
import { type Claimed, claim, recall, type Ticket } from './claim.ts'
import type { OwnSession } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { perform } from './operations.ts'
import type { Runner } from './runner.ts'
import { SHARE_LIMITS } from './statements/limits.ts'

/** How often a claim looks for further jobs after it found some that are blocked. */
const ROUNDS_MAX = 20

/** What it needs from the store. */
interface Ways {
  readonly shared: Shared
  readonly clock: Clock
  readonly runner: Runner
}

/** Claims jobs with and without limits. */
export class Claiming {
  readonly #ways: Ways
  /** The next claim does without the statement, because the last one passed over jobs. */
  #isLimited = false
  /** Jobs waited for the slots that the last reports freed. */
  #isContended = false

  constructor(ways: Ways) {
    this.#ways = ways
  }

  /** Whether the next claim does without the statement for jobs without limits. */
  get isLimited(): boolean {
    return this.#isLimited
  }

  /** Whether reports of jobs with limits and the next claim are likely to fit together. */
  get isFused(): boolean {
    return this.#isLimited && !this.#isContended
  }

  async claim(ticket: Ticket, request: ClaimRequest): Promise<Held[]> {
    if (this.#isLimited) return this.complete(request, { held: [], limited: true })
    const { shared, runner } = this.#ways
    const first = await runner.atOnce(async (session, redo): Promise<Claimed> => {
      const taken = redo ? await recall(shared, session, ticket, request) : []
      if (taken.length > 0) return { held: taken, limited: false }
      return claim(shared, session, ticket, request)
    })
    return this.complete(request, first)
  }

  /** Adds jobs with limits to those that a statement has taken. */
  async complete(request: ClaimRequest, { held, limited }: Claimed): Promise<Held[]> {
    const all = [...held]
    if (!limited) return all
    if (all.length >= request.limit) {
      // The statement leaves out queues with limits of their own: jobs of other queues that keep
      // coming must not keep theirs waiting, so the next claim looks at all of them.
      this.#isLimited = true
      return all
    }
    all.push(...(await this.#claimRounds({ ...request, limit: request.limit - all.length })))
    this.#isLimited = held.length === 0 && all.some(hasLimits)
    return all
  }

  /**
   * Claims in the transaction that has just written reports, with the slots that they freed. Must
   * be the last part of that transaction, which began with `SHARE_LIMITS`.
   */
  claimWith(session: OwnSession, slots: readonly string[], request: ClaimRequest) {
    const { shared, clock } = this.#ways
    const claimId = shared.environment.ids.next()
    const at = atOf(shared, session, clock.now())
    return perform(at, (tx) => claimLimited(tx, claimId, request, countSlots(slots)))
  }

  /** Goes on after `claimWith`. */
  async completeWith(request: ClaimRequest, claimed: LimitedClaim): Promise<Held[]> {
    const { held, more, isContended = false } = claimed
    const limit = request.limit - held.length
    const all = [...held, ...(more ? await this.#claimRounds({ ...request, limit }) : [])]
    this.#isContended = isContended
    this.#isLimited = all.some(hasLimits)
    return all
  }

  /** Notes whether jobs waited for slots that reports freed in a transaction of their own. */
  noteFreed(areAwaited: boolean): void {
    this.#isContended = areAwaited
  }

  async #claimRounds(request: ClaimRequest): Promise<Held[]> {
    const all: Held[] = []
    for (let round = 0; round < ROUNDS_MAX && all.length < request.limit; round++) {
      const limit = request.limit - all.length
      const { held, more } = await this.#claimOnce({ ...request, limit })
      all.push(...held)
      if (!more) break
    }
    return all
  }

  #claimOnce(request: ClaimRequest) {
    const { shared, clock, runner } = this.#ways
    const claimId = shared.environment.ids.next()
    const now = clock.now()
    const work = (session: OwnSession) =>
      perform(atOf(shared, session, now), (tx) => claimLimited(tx, claimId, request))
    return runner.transact('claim', work, { begin: SHARE_LIMITS })
  }
}

function hasLimits({ slots, job }: Held): boolean {
  return (slots ?? job.limitKey) !== null
}
