/**
 * The ways that claims and reports take through the database: by one statement if they are plain,
 * else in a transaction that locks what they are about (see `settle.ts`).
 */
import type { Clock } from '../../core/ports.ts'
import { isDamage, settleEach } from '../damage.ts'
import { isStep } from '../requests.ts'
import type * as contract from '../store.ts'
import type { Patience } from './busy.ts'
import { migrateTaken, needsMigration, newTicket, recall, type Ticket } from './claim.ts'
import type { OwnSession } from './connect.ts'
import type { Shared } from './context.ts'
import type { Carried, Runner } from './runner.ts'
import { areSteps, decidePlain, type Plain, settle, writeSteps, writeSuccesses } from './settle.ts'

/** What the store lends. */
interface Ways {
  readonly shared: Shared
  readonly clock: Clock
  readonly runner: Runner
  /** Something may have become ready. */
  signal(): void
  claim(request: contract.ClaimRequest): Promise<contract.Held[]>
  /** Keeps from everybody what a claim took and cannot be read. */
  setAside(damaged: Ticket['damaged']): Promise<void>
}

/** Applies reports, with the next claim. */
export class Settling {
  readonly #ways: Ways

  constructor(ways: Ways) {
    this.#ways = ways
  }

  /** What was claimed, each job by a version of its lifecycle that this process has. */
  async migrated(taken: readonly contract.Held[]): Promise<contract.Held[]> {
    const { shared, clock, runner } = this.#ways
    if (!taken.some(needsMigration(shared))) return [...taken]
    return runner.transact('claim', (session) => migrateTaken(shared, session, clock.now(), taken))
  }

  /** Reports and claims at once. What keeps a claim from being made must not lose a report. */
  async settle(
    settlements: readonly contract.Settlement[],
    next: contract.ClaimRequest | undefined,
  ): Promise<contract.Settled> {
    const { shared, clock } = this.#ways
    const ticket = newTicket(shared, clock.now())
    try {
      const settled = await this.#settleWith(settlements, ticket, next)
      await this.#ways.setAside(ticket.damaged)
      return settled
    } catch (error) {
      if (!isDamage(error)) throw error
      const answers = await settleEach(settlements, async (one) => {
        const again = newTicket(shared, clock.now())
        return (await this.#settleWith([one], again, undefined)).answers
      })
      return { answers, claimed: next === undefined ? [] : await this.#ways.claim(next) }
    }
  }

  /** Most of it by one statement, where most of it is plain; the rest goes the general way. */
  async #settleWith(
    settlements: readonly contract.Settlement[],
    ticket: Ticket,
    next: contract.ClaimRequest | undefined,
  ): Promise<contract.Settled> {
    const { shared } = this.#ways
    const patience = this.#ways.runner.patience()
    shared.environment.crashPoint?.('settle.begun')
    const decided = decidePlain(shared, ticket.now, settlements)
    const plain = decided.filter((one) => one !== undefined)
    // Two transactions for so few would be slower than one. And whoever reports a step goes on with
    // its job, so that hardly anybody claims with it.
    const areFew = plain.length * 2 < settlements.length
    if (areFew || (next !== undefined && areSteps(plain))) {
      return this.#settleLocked(settlements, ticket, { patience }, next)
    }
    const rest = settlements.filter((_, i) => decided[i] === undefined)
    const general =
      rest.length === 0 ? { answers: [] } : await this.#settleLocked(rest, ticket, { patience })
    const quick = await this.#settlePlain(plain, ticket, patience, next)
    const [ofRest, ofPlain] = [general.answers.values(), quick.answers.values()]
    const take = (answers: Iterator<contract.Answer>) => answers.next().value as contract.Answer
    return {
      claimed: quick.claimed,
      answers: decided.map((one) => take(one === undefined ? ofRest : ofPlain)),
    }
  }

  /** By one statement; what is not as its holder knew it goes the general way. */
  async #settlePlain(
    plain: readonly Plain[],
    ticket: Ticket,
    patience: Patience,
    next: contract.ClaimRequest | undefined,
  ): Promise<contract.Settled> {
    const { shared } = this.#ways
    let redone = false
    const carried = { patience, isUnsure: () => redone }
    const { done, claimed } = await this.#ways.runner.atOnce(async (session, redo) => {
      redone ||= redo
      if (areSteps(plain)) {
        return { done: await writeSteps(session, ticket.now, plain), claimed: [] }
      }
      const taken = redo && next ? await recall(shared, session, ticket, next) : []
      const wanted = taken.length > 0 ? undefined : next
      const written = await writeSuccesses(shared, session, ticket, plain, wanted)
      return taken.length > 0 ? { done: written.done, claimed: taken } : written
    }, carried)
    shared.environment.crashPoint?.('settle.committed')
    const late = plain.filter(({ before }) => !done.has(before.id))
    const again = late.map(({ settlement }) => settlement)
    const { answers } =
      late.length === 0 ? { answers: [] } : await this.#settleLocked(again, ticket, carried)
    const others = new Map(late.map(({ before }, i) => [before.id, answers[i]]))
    return {
      claimed,
      answers: plain.map(({ after, fact }) => {
        const other = others.get(after.id)
        // A success that is there already although its answer was lost is this one. Of a step an
        // earlier attempt may have been the first, so that its holder has to look.
        if (other === undefined || (redone && !areSteps(plain) && other.kind === 'same')) {
          return { kind: 'done', job: done.get(after.id) ?? after, fact }
        }
        return other
      }),
    }
  }

  async #settleLocked(
    settlements: readonly contract.Settlement[],
    ticket: Ticket,
    carried: Carried,
    next?: contract.ClaimRequest,
  ): Promise<contract.Settled> {
    const { shared, runner } = this.#ways
    const work = (session: OwnSession) => settle(shared, session, ticket, settlements, next)
    const settled = await runner.transact('settle', work, carried)
    if (!settlements.every(isStep)) this.#ways.signal()
    return settled
  }
}
