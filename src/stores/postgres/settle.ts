/**
 * Applies what attempts report.
 *
 * The commonest case by far is a plain success of a job that has not changed since it was claimed.
 * It is decided on what its holder has, and the statement proves that this is the present row,
 * lease and all. A batch of nothing else is one statement with the next claim: one round trip, one
 * transaction.
 *
 * Whatever is not so goes the general way: the rows are locked, the decisions made on them, and all
 * of it written, in one transaction with the next claim.
 */
import { CommandInvalid, PawlError } from '../../core/errors.ts'
import { decide } from '../../core/job/decide.ts'
import { evolve } from '../../core/job/evolve.ts'
import { FACT_CODES, type Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { contextOf, WORKER } from '../asker.ts'
import { findPayloadFault } from '../requests.ts'
import { factData, factPath, factStatuses } from '../rows.ts'
import type { Answer, ClaimRequest, Ref, Settled, Settlement } from '../store.ts'
import { answer } from './answer.ts'
import { Changes, placeOf, TX } from './apply.ts'
import {
  CLAIM_PARAMETERS,
  CLAIMED_COLUMNS,
  claim,
  claimValues,
  isForMany,
  type TakenRow,
  type Ticket,
  take,
  taken,
  toHeld,
} from './claim.ts'
import { type Session, type Statement, statement } from './connect.ts'
import { isUuid, lockHeld, type Shared } from './context.ts'
import { findSteps, stepKey } from './query.ts'
import { type Shaped, shapedArrays, unnestShaped } from './rows-at-once.ts'

/** A success as it was decided on what its holder has. */
export interface Success {
  readonly before: Job
  readonly after: Job
  readonly fact: Fact
  readonly payload: string | null
}

const SUCCESS: Shaped<Success> = {
  own: [
    ['id', 'uuid', ({ before }) => before.id],
    ['payload', 'text', ({ payload }) => payload],
  ],
  shape: [
    ['before', 'bigint', ({ before }) => before.seq],
    ['attempt', 'bigint', ({ before }) => before.attempt],
    ['claim', 'uuid', ({ before }) => before.execution?.claim ?? null],
    ['lease_until', 'bigint', ({ before }) => before.execution?.leaseUntil ?? null],
    ['state', 'text', ({ after }) => after.state],
    ['path', 'text', ({ fact }) => factPath(fact)],
    ['statuses', 'text', ({ fact }) => factStatuses(fact)],
    ['data', 'text', ({ fact }) => factData(fact)],
  ],
  // Of one claim and one lifecycle, with nothing said of its cost.
  isAlike: (a, b) =>
    a.before.seq === b.before.seq &&
    a.before.attempt === b.before.attempt &&
    a.before.execution?.claim === b.before.execution?.claim &&
    a.before.execution?.leaseUntil === b.before.execution?.leaseUntil &&
    a.before.lifecycle === b.before.lifecycle &&
    a.before.lifecycleVersion === b.before.lifecycleVersion &&
    a.fact.usage === undefined &&
    b.fact.usage === undefined,
}

/** Under the whole fence and the very lease, but by no lane: that would tempt the planner away. */
const succeed = (s: string, first: number) => `
  item AS MATERIALIZED (${unnestShaped(SUCCESS, first + 1)}),
  done AS (
    UPDATE ${s}.jobs SET
      lane = 5, state = item.state, seq = jobs.seq + 1, status = 'D', lease_until = NULL,
      updated_at = $${first}, ended_at = $${first}, outcome = 'succeeded', reason = NULL,
      place = greatest(jobs.place, ${placeOf(s)}), error = NULL, stalled = 0, cancel_asked_at = NULL
    FROM item
    WHERE jobs.id = item.id AND jobs.id = ANY ($${first + 1}::uuid[]) AND jobs.seq = item.before
      AND jobs.attempt = item.attempt AND jobs.claim = item.claim
      AND jobs.lease_until = item.lease_until
    RETURNING jobs.id, jobs.queue, jobs.state, jobs.seq, jobs.attempt, jobs.claim, jobs.place,
      item.lease_until, item.path, item.statuses, item.data, item.payload
  ),
  ended AS (
    INSERT INTO ${s}.ledger
      (tx, job, seq, kind, at, path, actor, attempt, statuses, claim, lease_until, data, payload)
    SELECT place, id, seq, ${FACT_CODES.commit}, $${first}, path, 'worker', attempt, statuses,
      claim, lease_until, data, payload
    FROM done
  ),
  counted AS (
    INSERT INTO ${s}.ended_counts (queue, state, jobs)
    SELECT queue, state, count(*) FROM done GROUP BY queue, state
  )`

const SELECT_TX = statement(() => `SELECT ${TX} AS tx`)

const SETTLE = statement((s) => `WITH ${succeed(s, 1)} SELECT id FROM done`)

/** One row answers which were done, as a text in the place of the input; the others are claims. */
const fused = (many: boolean): Statement =>
  statement((s) => {
    const empty = Array(CLAIMED_COLUMNS - 1).fill('NULL')
    const done = "(SELECT string_agg(id::text, ',') FROM done)"
    return `WITH ${many ? 'RECURSIVE' : ''} ${succeed(s, CLAIM_PARAMETERS + 1)}, ${take(s, many)}
      ${taken(s)} UNION ALL
      SELECT ${[...empty, done].join(', ')}`
  })

const SETTLE_AND_CLAIM_ONE = fused(false)
const SETTLE_AND_CLAIM_MANY = fused(true)

/** The successes that settlements are, as far as their holders can know; nothing if one is not. */
export function decideSuccesses(
  shared: Shared,
  now: number,
  settlements: readonly Settlement[],
): Success[] | undefined {
  const successes: Success[] = []
  const seen = new Set<string>()
  for (const settlement of settlements) {
    const success = decideSuccess(shared, now, settlement)
    if (success === undefined || seen.has(success.before.id)) return undefined
    seen.add(success.before.id)
    successes.push(success)
  }
  return successes
}

function decideSuccess(
  shared: Shared,
  now: number,
  { held, command, payload }: Settlement,
): Success | undefined {
  const { ref, job } = held
  const lifecycle = shared.machines.find(job.lifecycle, job.lifecycleVersion)
  if (command.kind !== 'commit' || command.effects || lifecycle === undefined) return undefined
  if (job.policy?.notify) return undefined
  const isSound = ref === job.id && isUuid(job.id) && isUuid(job.execution?.claim)
  if (!isSound || payloadFault(shared, payload) !== undefined) return undefined
  const decision = decide(lifecycle, job, command, contextOf(shared.environment, WORKER, now))
  if (decision.kind !== 'fact') return undefined
  const { fact } = decision
  const after = evolve(job, fact)
  if (after.outcome !== 'succeeded') return undefined
  return { before: job, after, fact, payload: payload ?? null }
}

/** Writes successes by one statement, with the next claim; answers which of them were done. */
export async function writeSuccesses(
  shared: Shared,
  session: Session,
  ticket: Ticket,
  successes: readonly Success[],
  next: ClaimRequest | undefined,
): Promise<{ done: ReadonlySet<Ref>; claimed: Settled['claimed'] }> {
  // Locked in this order, as everywhere, so that nobody waits in a circle.
  const ordered = successes.toSorted((a, b) => (a.before.id < b.before.id ? -1 : 1))
  const values = [ticket.now, ...shapedArrays(SUCCESS, ordered)]
  if (next === undefined) {
    const rows = await session.query<{ id: string }>(SETTLE, values)
    return { done: new Set(rows.map(({ id }) => id)), claimed: [] }
  }
  const text = isForMany(next) ? SETTLE_AND_CLAIM_MANY : SETTLE_AND_CLAIM_ONE
  const rows = await session.query<TakenRow>(text, [
    ...claimValues(shared, ticket, next),
    ...values,
  ])
  const claimed = rows.filter(({ id }) => id !== null)
  const report = rows.find(({ id }) => id === null)?.input ?? ''
  return {
    done: new Set(report.split(',')),
    claimed: toHeld(shared, ticket, next, claimed),
  }
}

/** The general way, for any settlements; must be called inside a transaction. */
export async function settle(
  shared: Shared,
  session: Session,
  ticket: Ticket,
  settlements: readonly Settlement[],
  next: ClaimRequest | undefined,
): Promise<Settled> {
  const { now } = ticket
  const reads = await lockHeld(
    shared,
    session,
    settlements.map(({ held }) => held),
  )
  const known = await findSteps(session, stepsOf(settlements))
  const changes = new Changes()
  const answers = settlements.map((settlement, i): Answer => {
    const read = reads[i]
    if (read === undefined || read instanceof PawlError) {
      return { kind: 'rejected', error: read as PawlError }
    }
    const { command, payload } = settlement
    const error = payloadFault(shared, payload) ?? effectsFault(command)
    if (error !== undefined) return { kind: 'rejected', error }
    if (command.kind !== 'step') {
      return answer(shared, changes, now, read, command, WORKER, payload)
    }
    const key = stepKey(read.job.id, command.name, command.n)
    const asked = known.has(key) ? { ...command, known: true as const } : command
    const answered = answer(shared, changes, now, read, asked, WORKER, payload)
    if (answered.kind === 'done') known.add(key)
    return answered
  })
  await changes.write(session)
  if (next === undefined) return { answers, claimed: [] }
  const claimed = await claim(shared, session, ticket, next)
  if (changes.isEmpty && claimed.length > 0) {
    const [row] = await session.query<{ tx: number }>(SELECT_TX)
    if (row !== undefined) session.wrote = { tx: row.tx }
  }
  return { answers, claimed }
}

function stepsOf(settlements: readonly Settlement[]) {
  return settlements.flatMap(({ held, command }) =>
    command.kind === 'step' ? [{ id: held.ref, name: command.name, n: command.n }] : [],
  )
}

function effectsFault(command: Settlement['command']): PawlError | undefined {
  // Only the function of a commit can put them into the outbox, from which they are delivered.
  return command.kind === 'commit' && command.effects
    ? new CommandInvalid('effects', 'must be declared through the tx of a commit')
    : undefined
}

function payloadFault({ payloadBounds }: Shared, payload: string | undefined) {
  return payload === undefined ? undefined : findPayloadFault('payload', payload, payloadBounds)
}
