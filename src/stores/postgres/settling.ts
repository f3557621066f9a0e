/**
 * How claims and reports are run: by one statement if they are plain, else in a transaction that
 * locks the jobs (see `settle.ts`).
 */
import type { Clock } from '../../core/ports.ts'
import { isStep } from '../contract/requests.ts'
import type * as contract from '../contract/store.ts'
import { isDamage, settleEach } from '../damage.ts'
import type { Patience } from './busy.ts'
import {
  type Claimed,
  migrateTaken,
  needsMigration,
  newTicket,
  recall,
  type Ticket,
} from './claim.ts'
import type { Claiming } from './claiming.ts'
import type { OwnSession } from './connect.ts'
import type { Shared } from './context.ts'
import type { Carried, Runner } from './runner.ts'
import {
  areSteps,
  decidePlain,
  freesSlots,
  NOTHING,
  type Plain,
  settle,
  writeLimited,
  writeSteps,
  writeSuccesses,
} from './settle.ts'
import { freeSlots } from './statements/gates.ts'
import { SHARE_LIMITS } from './statements/limits.ts'

/** What it needs from the store. */
interface Ways {
  readonly shared: Shared
  readonly clock: Clock
  readonly runner: Runner
  /** Something may have become ready. */
  signal(): void
  claim(request: contract.ClaimRequest): Promise<contract.Held[]>
  readonly claiming: Claiming
  /** Sets aside jobs that a claim took and that cannot be read. */
  setAside(damaged: Ticket['damaged']): Promise<void>
}

/** What was answered, and what was claimed by the same statement or transaction. */
interface Handled {
  readonly answers: readonly contract.Answer[]
  readonly claimed: Claimed
}

function settlementOf({ settlement }: Plain): contract.Settlement {
  return settlement
}

/** Applies reports, with the next claim. */
export class Settling {
  readonly #ways: Ways

  constructor(ways: Ways) {
    this.#ways = ways
  }

  /** The claimed jobs, each at a version of its lifecycle that this process has. */
  async migrated(taken: readonly contract.Held[]): Promise<contract.Held[]> {
    const { shared, clock, runner } = this.#ways
    if (!taken.some(needsMigration(shared))) return [...taken]
    return runner.transact('claim', (session) => migrateTaken(shared, session, clock.now(), taken))
  }

  /** Reports and claims at once. If the claim fails, no report is lost. */
  async settle(
    settlements: readonly contract.Settlement[],
    next: contract.ClaimRequest | undefined,
  ): Promise<contract.Settled> {
    const { shared, clock } = this.#ways
    const ticket = newTicket(shared, clock.now())
    try {
      const { claiming } = this.#ways
      const together = await this.#settleFused(settlements, ticket, next)
      if (together !== undefined) return together
      // Jobs with limits are claimed by a transaction of their own, after their gates were freed.
      const fused = claiming.isLimited ? undefined : next
      const { answers, claimed } = await this.#settleWith(settlements, ticket, fused)
      await this.#ways.setAside(ticket.damaged)
      if (next === undefined) return { answers, claimed: [] }
      const first = fused === undefined ? { held: [], limited: true } : claimed
      return { answers, claimed: await this.#completed(next, first) }
    } catch (error) {
      if (!isDamage(error)) throw error
      const answers = await settleEach(settlements, async (one) => {
        const again = newTicket(shared, clock.now())
        return (await this.#settleWith([one], again, undefined)).answers
      })
      return { answers, claimed: next === undefined ? [] : await this.#ways.claim(next) }
    }
  }

  /**
   * One transaction for successes of jobs with limits and the next claim, if there is nothing else
   * to report; `undefined` if there is.
   */
  async #settleFused(
    settlements: readonly contract.Settlement[],
    ticket: Ticket,
    next: contract.ClaimRequest | undefined,
  ): Promise<contract.Settled | undefined> {
    const { shared, runner, claiming } = this.#ways
    if (next === undefined || !claiming.isFused) return undefined
    const decided = decidePlain(shared, ticket.now, settlements)
    const plain = decided.filter((one) => one !== undefined)
    if (plain.length !== settlements.length || !plain.every(freesSlots)) return undefined
    if (plain.length === 0) return undefined
    const patience = runner.patience()
    shared.environment.crashPoint?.('settle.begun')
    const work = async (session: OwnSession) => {
      const { done, slots } = await writeLimited(session, ticket, plain)
      return { done, claimed: await claiming.claimWith(session, slots, next) }
    }
    const { done, claimed } = await runner.transact('settle', work, {
      patience,
      begin: SHARE_LIMITS,
    })
    const answers = await this.#answersTo(plain, done, ticket, patience)
    try {
      return { answers, claimed: await claiming.completeWith(next, claimed) }
    } catch {
      // The reports are recorded already, so a claim that fails must not look like their failure.
      return { answers, claimed: [...claimed.held] }
    }
  }

  /** The reports are recorded already, so a claim that fails must not look like their failure. */
  async #completed(next: contract.ClaimRequest, claimed: Claimed): Promise<contract.Held[]> {
    const { claiming } = this.#ways
    if (!claimed.limited) return claimed.held
    try {
      return await claiming.complete(next, claimed)
    } catch {
      return claimed.held
    }
  }

  /**
   * If most settlements are plain, writes those by one statement; the rest goes through `settle`.
   */
  async #settleWith(
    settlements: readonly contract.Settlement[],
    ticket: Ticket,
    next: contract.ClaimRequest | undefined,
  ): Promise<Handled> {
    const { shared } = this.#ways
    const patience = this.#ways.runner.patience()
    shared.environment.crashPoint?.('settle.begun')
    const decided = decidePlain(shared, ticket.now, settlements)
    const plain = decided.filter((one) => one !== undefined)
    // Two transactions for so few would be slower than one. A worker that reports a step goes on
    // with its job, so steps rarely come with a claim.
    const areFew = plain.length * 2 < settlements.length
    if (areFew || (next !== undefined && areSteps(plain))) {
      return this.#settleLocked(settlements, ticket, { patience }, next)
    }
    const limited = plain.filter(freesSlots)
    if (plain.length === settlements.length && limited.length === 0) {
      return this.#settlePlain(plain, ticket, patience, next)
    }
    const answers = new Map<contract.Settlement, contract.Answer>()
    const note = (asked: readonly contract.Settlement[], given: readonly contract.Answer[]) => {
      for (const [i, one] of asked.entries()) answers.set(one, given[i] as contract.Answer)
    }
    const rest = settlements.filter((_, i) => decided[i] === undefined)
    if (rest.length > 0) note(rest, (await this.#settleLocked(rest, ticket, { patience })).answers)
    if (limited.length > 0) {
      note(limited.map(settlementOf), await this.#settleLimited(limited, ticket, patience))
    }
    const others = limited.length === 0 ? plain : plain.filter((one) => !freesSlots(one))
    // The slots are free, so a claim that counts them comes next.
    const isLast = others.length === 0 && limited.length > 0
    const quick = isLast
      ? { answers: [], claimed: { held: [], limited: next !== undefined } }
      : await this.#settlePlain(others, ticket, patience, next)
    note(others.map(settlementOf), quick.answers)
    return {
      claimed: quick.claimed,
      answers: settlements.map((one) => answers.get(one) as contract.Answer),
    }
  }

  /** By one statement, and then their gates. */
  async #settleLimited(
    plain: readonly Plain[],
    ticket: Ticket,
    patience: Patience,
  ): Promise<contract.Answer[]> {
    const { runner, claiming } = this.#ways
    const work = async (session: OwnSession) => {
      const { done, slots } = await writeLimited(session, ticket, plain)
      return { done, areAwaited: await freeSlots(session, ticket.now, slots) }
    }
    const { done, areAwaited } = await runner.transact('settle', work, { patience })
    claiming.noteFreed(areAwaited)
    return this.#answersTo(plain, done, ticket, patience)
  }

  /** Those whose row has changed go through `settle`. */
  async #answersTo(
    plain: readonly Plain[],
    done: ReadonlyMap<contract.Ref, unknown>,
    ticket: Ticket,
    patience: Patience,
  ): Promise<contract.Answer[]> {
    const late = plain.filter(({ before }) => !done.has(before.id)).map(settlementOf)
    const { answers } =
      late.length === 0 ? { answers: [] } : await this.#settleLocked(late, ticket, { patience })
    const others = new Map(late.map((one, i) => [one, answers[i] as contract.Answer]))
    if (done.size > 0) this.#ways.signal()
    return plain.map(({ settlement, after, fact }) => {
      return others.get(settlement) ?? { kind: 'done', job: after, fact }
    })
  }

  /** By one statement; settlements whose row has changed go through `settle`. */
  async #settlePlain(
    plain: readonly Plain[],
    ticket: Ticket,
    patience: Patience,
    next: contract.ClaimRequest | undefined,
  ): Promise<Handled> {
    const { shared } = this.#ways
    let redone = false
    const carried = { patience, isUnsure: () => redone }
    const { done, claimed } = await this.#ways.runner.atOnce(async (session, redo) => {
      redone ||= redo
      if (areSteps(plain)) {
        return { done: await writeSteps(session, ticket.now, plain), claimed: NOTHING }
      }
      const taken = redo && next ? await recall(shared, session, ticket, next) : []
      const wanted = taken.length > 0 ? undefined : next
      const written = await writeSuccesses(shared, session, ticket, plain, wanted)
      return taken.length > 0
        ? { done: written.done, claimed: { held: taken, limited: false } }
        : written
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
        // A success that is found although its answer was lost is this one. A step may have been
        // finished first by an earlier attempt, so its holder has to read it.
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
  ): Promise<Handled> {
    const { shared, runner } = this.#ways
    const work = (session: OwnSession) => settle(shared, session, ticket, settlements, next)
    const settled = await runner.transact('settle', work, carried)
    if (!settlements.every(isStep)) this.#ways.signal()
    return settled
  }
}
