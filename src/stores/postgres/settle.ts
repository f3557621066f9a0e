/**
 * Applies what attempts report.
 *
 * `writeSuccesses` and `writeSteps` are fast paths. They equal `decideCommit`, without effects,
 * notice and waiters, and `decideStep` in `src/core/job/decide-attempt.ts`. The job must not have
 * changed since its holder read it: the decision is made on the job that the holder has, and the
 * statement finds the row only if it is the same. A batch of successes is one statement with the
 * next claim, and a batch of steps is one statement: one round trip, one transaction.
 * `test/contract/store/fast-paths.ts` compares their facts with those of the decider.
 *
 * `settle` handles all other reports: it locks the rows, decides on them and writes everything in
 * one transaction. It runs first, so that a batch that fails half-way has claimed nothing.
 */

import { CommandInvalid, PawlError } from '../../core/errors.ts'
import { decide } from '../../core/job/decide.ts'
import { evolve } from '../../core/job/evolve.ts'
import { FACT_CODES, type Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { LANES } from '../../core/job/lanes.ts'
import { LINKS } from '../../core/job/links.ts'
import { contextOf, workerIn } from '../contract/requester.ts'
import { findPayloadFault } from '../contract/requests.ts'
import type { Answer, ClaimRequest, Ref, Settled, Settlement } from '../contract/store.ts'
import { factData, factPath, factStatuses } from '../rows.ts'
import { Changes } from '../verbs/changes.ts'
import { mayRetry } from '../waiting-retries.ts'
import { positionOf, TX, writeChanges } from './apply.ts'
import {
  CLAIM_PARAMETERS,
  CLAIMED_COLUMNS,
  type Claimed,
  claim,
  claimedIn,
  claimValues,
  isForMany,
  passedOver,
  type TakenRow,
  type Ticket,
  take,
  taken,
} from './claim.ts'
import { type Session, type Statement, statement } from './connect.ts'
import { isStorable, isUuid, lockHeld, type Shared } from './context.ts'
import { writeProgress } from './heartbeat.ts'
import { findStep, findSteps, stepKey } from './query.ts'
import {
  arraysOf,
  type Column,
  type Shaped,
  shapedArrays,
  unnest,
  unnestShaped,
} from './rows-at-once.ts'
import { findWaitingRetries } from './statements/retries.ts'

/** A success or the result of a step, decided on the job that its holder has. */
export interface Plain {
  readonly settlement: Settlement
  readonly before: Job
  readonly after: Job
  readonly fact: Fact
  readonly payload: string | null
}

const SUCCESS: Shaped<Plain> = {
  own: [
    ['id', 'uuid', ({ before }) => before.id],
    ['payload', 'text', ({ payload }) => payload],
    ['queue_ms', 'bigint', ({ fact }) => fact.timing?.queueMs ?? 0],
    ['duration_ms', 'bigint', ({ fact }) => fact.timing?.durationMs ?? 0],
  ],
  shape: [
    ['before', 'bigint', ({ before }) => before.seq],
    ['attempt', 'bigint', ({ before }) => before.attempt],
    ['claim', 'uuid', ({ before }) => before.execution?.claim ?? null],
    ['lease_until', 'bigint', ({ before }) => before.execution?.leaseUntil ?? null],
    ['state', 'text', ({ after }) => after.state],
    ['path', 'text', ({ fact }) => factPath(fact)],
    ['statuses', 'text', ({ fact }) => factStatuses(fact)],
    // Without the times of the attempt, which differ from job to job: see `withTiming`.
    ['data', 'text', ({ fact: { timing: _, ...rest } }) => factData(rest)],
  ],
  // Of one claim and one lifecycle, without usage or span.
  isAlike: (a, b) =>
    a.before.seq === b.before.seq &&
    a.before.attempt === b.before.attempt &&
    a.before.execution?.claim === b.before.execution?.claim &&
    a.before.execution?.leaseUntil === b.before.execution?.leaseUntil &&
    a.before.lifecycle === b.before.lifecycle &&
    a.before.lifecycleVersion === b.before.lifecycleVersion &&
    a.fact.usage === undefined &&
    b.fact.usage === undefined &&
    a.fact.spanId === undefined &&
    b.fact.spanId === undefined,
}

/** The same for jobs that count in gates: under the slots that their holder knows, too. */
const LIMITED_SUCCESS: Shaped<Plain> = {
  ...SUCCESS,
  own: [...SUCCESS.own, ['slots', 'text', ({ settlement }) => settlement.held.slots ?? null]],
}

/**
 * The data of a success as `factData` writes it. The times are added by the statement, so that what
 * the jobs of a batch have in common is sent once.
 */
const withTiming = `left(data, -1) || ',"timing":{"queueMs":' || queue_ms || ',"durationMs":'
      || duration_ms || '}}'`

/**
 * Not `jobs.slots IS NULL`: without statistics the planner expects that of one row in 200, so it
 * joins by a nested loop, which compares each row of a batch with each. It expects a CASE of every
 * second row, and then merges by id. `test/stores/postgres-plans.test.ts` looks at the plan.
 */
const HAS_NO_SLOTS = 'CASE WHEN jobs.slots IS NULL THEN true ELSE false END'

/**
 * Under the whole fence and the lease. The WHERE clause must not mention `lane`: the generic plan
 * would then use the wrong index.
 */
const succeed = (s: string, first: number, limited = false) => `
  item AS MATERIALIZED (${unnestShaped(limited ? LIMITED_SUCCESS : SUCCESS, first + 1)}),
  done AS (
    UPDATE ${s}.jobs SET
      lane = ${LANES.ended}, state = item.state, seq = jobs.seq + 1, status = 'D',
        lease_until = NULL,
      updated_at = $${first}, ended_at = $${first}, outcome = 'succeeded', reason = NULL,
      place = greatest(jobs.place, ${positionOf(s)}), error = NULL, stalled = 0,
      cancel_asked_at = NULL, slots = NULL
    FROM item
    WHERE jobs.id = item.id AND jobs.id = ANY ($${first + 1}::uuid[]) AND jobs.seq = item.before
      AND jobs.attempt = item.attempt AND jobs.claim = item.claim
      AND jobs.lease_until = item.lease_until
      AND ${limited ? 'jobs.slots = item.slots' : HAS_NO_SLOTS}
    RETURNING jobs.id, jobs.queue, jobs.state, jobs.seq, jobs.attempt, jobs.claim, jobs.place,
      item.lease_until, item.path, item.statuses, item.data, item.queue_ms, item.duration_ms,
      item.payload
  ),
  ended AS (
    INSERT INTO ${s}.ledger
      (tx, job, seq, kind, at, path, actor, attempt, statuses, claim, lease_until, data, payload)
    SELECT place, id, seq, ${FACT_CODES.commit}, $${first}, path, 'worker', attempt, statuses,
      claim, lease_until, ${withTiming}, payload
    FROM done
  ),
  counted AS (
    INSERT INTO ${s}.ended_counts (queue, state, jobs)
    SELECT queue, state, count(*) FROM done GROUP BY queue, state
  )`

const STEP: readonly Column<Plain>[] = [
  ['id', 'uuid', ({ before }) => before.id],
  ['before', 'int', ({ before }) => before.seq],
  ['attempt', 'int', ({ before }) => before.attempt],
  ['claim', 'uuid', ({ before }) => before.execution?.claim ?? null],
  ['path', 'text', ({ fact }) => factPath(fact)],
  ['data', 'text', ({ fact }) => factData(fact)],
  ['payload', 'text', ({ payload }) => payload],
  ['name', 'text', ({ fact }) => fact.step?.name ?? null],
  ['n', 'text', ({ fact }) => String(fact.step?.n)],
]

/**
 * If the number of the last fact and the claim are the same, the job is the same except for its
 * lease, which heartbeats may have extended. No indexed column changes.
 */
const REMEMBER = statement(
  (s) => `
  WITH done AS (
    UPDATE ${s}.jobs SET
      seq = jobs.seq + 1, updated_at = $1, place = greatest(jobs.place, ${positionOf(s)})
    FROM ${unnest(STEP, 2, 'item')}
    WHERE jobs.id = item.id AND jobs.id = ANY ($2::uuid[]) AND jobs.seq = item.before
      AND jobs.attempt = item.attempt AND jobs.claim = item.claim AND jobs.lease_until > $1
      AND ${findStep(s, 'item')} IS NULL
    RETURNING jobs.id, jobs.seq, jobs.place, jobs.lease_until, item.path, item.data, item.payload
  ),
  noted AS (
    INSERT INTO ${s}.ledger (tx, job, seq, kind, at, path, actor, data, payload)
    SELECT place, id, seq, ${FACT_CODES.step}, $1, path, 'worker', data, payload FROM done
  )
  SELECT id, lease_until FROM done`,
)

const SELECT_TX = statement(() => `SELECT ${TX} AS tx`)

const SETTLE = statement((s) => `WITH ${succeed(s, 1)} SELECT id FROM done`)
const SETTLE_LIMITED = statement(
  (s) => `WITH ${succeed(s, 1, true)} SELECT id, seq, place, ${TX} AS tx FROM done`,
)

/**
 * One row returns the ids that were done, as a text in the column of the input; the others are
 * claims.
 */
const fused = (many: boolean): Statement =>
  statement((s) => {
    const empty = Array(CLAIMED_COLUMNS - 1).fill('NULL')
    const done = "(SELECT string_agg(id::text, ',') FROM done)"
    return `WITH ${many ? 'RECURSIVE' : ''} ${succeed(s, CLAIM_PARAMETERS + 1)}, ${take(s, many)}
      ${taken(s)} UNION ALL
      SELECT ${[...empty, done].join(', ')} UNION ALL ${passedOver(s)}`
  })

const SETTLE_AND_CLAIM_ONE = fused(false)
const SETTLE_AND_CLAIM_MANY = fused(true)

/**
 * Decides settlements on the jobs that their holders have, each at its index; `undefined` for those
 * that are not plain, or not of the kind of the first plain one. Several settlements of one job go
 * through `settle`, which keeps their order.
 */
export function decidePlain(
  shared: Shared,
  now: number,
  settlements: readonly Settlement[],
): (Plain | undefined)[] {
  const counts = new Map<Ref, number>()
  for (const { held } of settlements) counts.set(held.ref, (counts.get(held.ref) ?? 0) + 1)
  let kind: Settlement['command']['kind'] | undefined
  return settlements.map((settlement) => {
    if (counts.get(settlement.held.ref) !== 1) return undefined
    if (kind !== undefined && settlement.command.kind !== kind) return undefined
    const plain = decideOne(shared, now, settlement)
    if (plain !== undefined) kind = settlement.command.kind
    return plain
  })
}

/** Whether these plain settlements, which are of one kind, are steps. */
export function areSteps([first]: readonly Plain[]): boolean {
  return first?.fact.step !== undefined
}

function decideOne(shared: Shared, now: number, settlement: Settlement): Plain | undefined {
  const { command, payload, progress } = settlement
  const { ref, job } = settlement.held
  const lifecycle = shared.machines.find(job.lifecycle, job.lifecycleVersion)
  if (lifecycle === undefined || !canBePlain(job, command)) return undefined
  if (progress !== undefined) return undefined
  const isSound = ref === job.id && isUuid(job.id) && isUuid(job.execution?.claim)
  if (!isSound || payloadFault(shared, payload) !== undefined) return undefined
  const context = contextOf(shared.environment, workerIn(settlement.trace), now)
  const decision = decide(lifecycle, job, command, context)
  if (decision.kind !== 'fact') return undefined
  const { fact } = decision
  const after = evolve(job, fact)
  if (command.kind === 'commit' && after.outcome !== 'succeeded') return undefined
  return { settlement, before: job, after, fact, payload: payload ?? null }
}

function canBePlain({ policy, links }: Job, command: Settlement['command']): boolean {
  if (command.kind === 'step') return isStorable(command.name)
  // The end of an awaited job concerns others.
  if (links & LINKS.awaited) return false
  return command.kind === 'commit' && !command.effects && !policy?.notify
}

/** Writes successes by one statement, with the next claim; returns the jobs that were written. */
export async function writeSuccesses(
  shared: Shared,
  session: Session,
  ticket: Ticket,
  successes: readonly Plain[],
  next: ClaimRequest | undefined,
): Promise<Written> {
  const values = [ticket.now, ...shapedArrays(SUCCESS, ordered(successes))]
  if (next === undefined) {
    const rows = await session.query<{ id: string }>(SETTLE, values)
    return { done: ofThese(successes, new Set(rows.map(({ id }) => id))), claimed: NOTHING }
  }
  const text = isForMany(next) ? SETTLE_AND_CLAIM_MANY : SETTLE_AND_CLAIM_ONE
  const rows = await session.query<TakenRow>(text, [
    ...claimValues(shared, ticket, next),
    ...values,
  ])
  const report = rows.find(({ id, rare }) => id === null && rare === null)?.input ?? ''
  return {
    done: ofThese(successes, new Set(report.split(','))),
    claimed: claimedIn(shared, ticket, next, rows),
  }
}

/** What was written, and what was claimed with it. */
export interface Written {
  readonly done: ReadonlyMap<Ref, Job>
  readonly claimed: Claimed
}

/** Nothing was claimed, because nothing was asked for. */
export const NOTHING: Claimed = { held: [], limited: false }

/** Whether a plain settlement frees slots, which needs a transaction. */
export function freesSlots({ settlement: { held, command } }: Plain): boolean {
  return held.slots !== undefined && command.kind === 'commit'
}

/** What was written of successes of jobs that count in gates. */
export interface WrittenLimited {
  readonly done: ReadonlyMap<Ref, Job>
  /** The slots of these jobs, which have to be freed by the same transaction. */
  readonly slots: readonly string[]
}

/** Writes successes of jobs that count in gates; inside a transaction, which frees their slots. */
export async function writeLimited(
  session: Session,
  { now }: Ticket,
  successes: readonly Plain[],
): Promise<WrittenLimited> {
  type Row = { id: string; seq: number; place: number; tx: number }
  const values = [now, ...shapedArrays(LIMITED_SUCCESS, ordered(successes))]
  const rows = await session.query<Row>(SETTLE_LIMITED, values)
  const done = ofThese(successes, new Set(rows.map(({ id }) => id)))
  const [first] = rows
  if (first !== undefined) {
    const { id: job, seq, place: position, tx } = first
    session.wrote = { tx, fact: { job, seq, position } }
  }
  const freed = successes.filter(({ after }) => done.has(after.id))
  return { done, slots: freed.flatMap(({ settlement }) => settlement.held.slots ?? []) }
}

function ofThese(successes: readonly Plain[], ids: ReadonlySet<string>): Map<Ref, Job> {
  const done = successes.filter(({ after }) => ids.has(after.id))
  return new Map(done.map(({ after }) => [after.id, after]))
}

/** Writes results of steps by one statement; returns the jobs that were written. */
export async function writeSteps(
  session: Session,
  now: number,
  steps: readonly Plain[],
): Promise<ReadonlyMap<Ref, Job>> {
  const values = [now, ...arraysOf(STEP, ordered(steps))]
  const rows = await session.query<{ id: string; lease_until: number }>(REMEMBER, values)
  const leases = new Map(rows.map(({ id, lease_until }) => [id, lease_until]))
  const done = steps.flatMap(({ after }): [Ref, Job][] => {
    const leaseUntil = leases.get(after.id)
    if (leaseUntil === undefined || after.execution === null) return []
    return [[after.id, { ...after, execution: { ...after.execution, leaseUntil } }]]
  })
  return new Map(done)
}

/** Rows are locked in the order of their ids everywhere, so that no deadlock is possible. */
function ordered(plain: readonly Plain[]): Plain[] {
  return plain.toSorted((a, b) => (a.before.id < b.before.id ? -1 : 1))
}

/** Settles any reports; must be called inside a transaction. */
export async function settle(
  shared: Shared,
  session: Session,
  ticket: Ticket,
  settlements: readonly Settlement[],
  next: ClaimRequest | undefined,
): Promise<{ answers: Settled['answers']; claimed: Claimed }> {
  const { now } = ticket
  const reads = await lockHeld(
    shared,
    session,
    settlements.map(({ held }) => held),
  )
  const known = await findSteps(session, stepsOf(settlements))
  const retries = settlements.some(({ command }) => mayRetry(command))
    ? await findWaitingRetries(session, now)
    : undefined
  const changes = new Changes({ environment: shared.environment, now })
  const answers = settlements.map((settlement, i): Answer => {
    const read = reads[i]
    if (read === undefined || read instanceof PawlError) {
      return { kind: 'rejected', error: read as PawlError }
    }
    const { command, payload, progress } = settlement
    const worker = workerIn(settlement.trace)
    const error =
      payloadFault(shared, payload) ?? payloadFault(shared, progress) ?? effectsFault(command)
    if (error !== undefined) return { kind: 'rejected', error }
    if (command.kind !== 'step') {
      if (mayRetry(command)) read.retriesAhead = retries?.next(read.job.queue) ?? 0
      return changes.answer(read, command, worker, payload)
    }
    const key = stepKey(read.job.id, command.name, command.n)
    const asked = known.has(key) ? { ...command, known: true as const } : command
    const answered = changes.answer(read, asked, worker, payload)
    if (answered.kind === 'done') known.add(key)
    return answered
  })
  await writeProgress(session, progressOf(settlements, answers))
  await writeChanges(session, changes)
  if (next === undefined) return { answers, claimed: NOTHING }
  const claimed = await claim(shared, session, ticket, next)
  if (changes.isEmpty && claimed.held.length > 0) {
    const [row] = await session.query<{ tx: number }>(SELECT_TX)
    if (row !== undefined) session.wrote = { tx: row.tx }
  }
  return { answers, claimed }
}

/** The last progress of attempts whose report is accepted. */
function progressOf(settlements: readonly Settlement[], answers: readonly Answer[]) {
  return settlements.flatMap(({ held, progress }, i) =>
    progress !== undefined && answers[i]?.kind === 'done' ? [{ id: held.job.id, progress }] : [],
  )
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
