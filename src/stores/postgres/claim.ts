/**
 * A fast path: takes leases. Equals `decideClaim` in `src/core/job/decide-attempt.ts`, without
 * reading the jobs first. Every lifecycle has one ready and one held state, and the lane says which
 * jobs may go from one to the other now. So it is decided in SQL, for many jobs at once.
 * `test/contract/store/claim.ts` ("facts of a claim") compares its facts with those of the decider.
 *
 * The text is a part of a statement, so that settling and claiming can be one (see `settle.ts`).
 */

import { FACT_CODES } from '../../core/job/facts.ts'
import { LANES } from '../../core/job/lanes.ts'
import { orderAt as orderTime } from '../../core/job/priority.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Gate } from '../../core/limits/gates.ts'
import {
  CLAIM_COLUMNS,
  type CommonRow,
  claimedRow,
  type JobColumn,
  NOTHING_RARE,
  namesOf,
  orderAt,
  RARE_COLUMNS,
  type RareRow,
} from '../columns.ts'
import { contextOf, ENGINE } from '../contract/requester.ts'
import type { ClaimRequest, Held } from '../contract/store.ts'
import { readJob } from '../damage.ts'
import { JobDamaged } from '../errors.ts'
import { followRoute } from '../machines.ts'
import { toJob, type Value } from '../rows.ts'
import { Changes } from '../verbs/changes.ts'
import type { GrantedJob } from '../verbs/claim-limited.ts'
import { positionOf, TX, writeChanges } from './apply.ts'
import { type Session, type Statement, statement } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { arrayOf } from './rows-at-once.ts'
import { gateArrays, wroteGates } from './statements/gates.ts'
import { JOBS } from './statements/jobs.ts'

/** How many parameters a claim has; those of another part of the statement come after them. */
export const CLAIM_PARAMETERS = 12

/**
 * What may be claimed now from a queue, by index alone: priority, due time, then age. `$2` has the
 * ready state of each lifecycle that this process knows: a job in any other state is never taken,
 * whatever its lane is.
 */
const claimable = (s: string, queue: string) => `
  SELECT id, priority, run_at, ahead_ms, limit_key FROM ${s}.jobs
  WHERE lane = ${LANES.ready} AND queue = ${queue} AND run_at <= $1
    AND state = ($2::text[])[machine]
    AND ($3::text[] IS NULL OR type = ANY ($3::text[]))
    AND NOT EXISTS (
      SELECT 1 FROM ${s}.queues
      WHERE name = ${queue} AND (paused_at IS NOT NULL OR gated = 1 OR rotates = 1))
  ORDER BY priority, ${orderAt()}, id LIMIT $4 FOR UPDATE SKIP LOCKED`

/** The first jobs of one queue. */
const pickFromOne = (s: string) => claimable(s, '($5::text[])[1]')

/**
 * The first jobs of several queues: in the order of the given queues or, if none are given, of all
 * queues with ready jobs, as if they were one.
 */
const pickFromMany = (s: string) => `
  SELECT first.id, first.limit_key FROM (
    SELECT name, place FROM unnest($5::text[]) WITH ORDINALITY AS asked (name, place)
    UNION ALL
    SELECT name, 0 FROM ready WHERE $5::text[] IS NULL AND name IS NOT NULL
  ) AS wanted CROSS JOIN LATERAL (${claimable(s, 'wanted.name')}) AS first
  ORDER BY wanted.place, first.priority, ${orderAt('first.')}, first.id LIMIT $4`

/** Queues with ready jobs, found by skipping through the index from one to the next. */
export const readyQueues = (s: string, asked = '$5') => `
  ready (name) AS (
    (SELECT queue FROM ${s}.jobs WHERE lane = ${LANES.ready} AND ${asked}::text[] IS NULL
      ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
      SELECT queue FROM ${s}.jobs WHERE lane = ${LANES.ready} AND queue > ready.name
        ORDER BY queue LIMIT 1)
    FROM ready WHERE ready.name IS NOT NULL
  )`

const COMMON = namesOf(CLAIM_COLUMNS)
const rareBy = (text: (column: JobColumn) => string, separator: string) =>
  RARE_COLUMNS.map(text).join(separator)

/** Columns that are empty in most jobs: null if all of them are, else all as one JSON text. */
const RARE = `CASE WHEN ${rareBy(isAbsent, ' AND ')} THEN NULL
  ELSE json_build_object(${rareBy(({ name }) => `'${name}', ${name}`, ', ')})::text END AS rare`

function isAbsent({ name, absent }: JobColumn): string {
  return absent === null ? `${name} IS NULL` : `${name} = ${absent}`
}

const UNKNOWN = `${COMMON}, ${RARE}`

/** How many columns a claimed job has, for statements that also return something else. */
export const CLAIMED_COLUMNS = CLAIM_COLUMNS.length + 2

/**
 * The parts of a statement that take jobs: `WITH ${take(…)} ${TAKEN}`. The rows are chosen by an
 * array of ids and not by a join: the generic plan of a join is far slower. The attempt of a job
 * does not start if the deadline of the job has passed.
 */
export const take = (s: string, many: boolean) => `
  ${many ? `${readyQueues(s)}, ` : ''}
  pick AS (${many ? pickFromMany(s) : pickFromOne(s)}),
  ${took(s, 6, { which: 'id = ANY (ARRAY (SELECT id FROM pick WHERE limit_key IS NULL))' })}`

/** What else a claim writes, from where, and into which jobs. */
interface Took {
  readonly more?: string
  readonly from?: string
  readonly which: string
}

/** Writes leases; the parameters of the claim begin with the number `p`, and `$1` is the time. */
const took = (s: string, p: number, { more = '', from = '', which }: Took) => `
  took AS (
    UPDATE ${s}.jobs SET
      lane = ${LANES.held}, state = ($${p}::text[])[machine], seq = seq + 1, attempt = attempt + 1,
        status = CASE WHEN deadline_at <= $1 THEN 'L' ELSE $${p + 1} END,
      claim = $${p + 2}, worker = $${p + 3}, lease_until = $${p + 4}, updated_at = $1,
      started_at = $1, reason = NULL,
      progress = NULL, place = greatest(place, ${positionOf(s)})${more}
    ${from} WHERE ${which}
    RETURNING ${UNKNOWN}, place, status
  ),
  noted AS (
    INSERT INTO ${s}.ledger
      (tx, job, seq, kind, at, path, actor, attempt, statuses, claim, worker, lease_until)
    SELECT place, id, seq, ${FACT_CODES.claim}, $1, ($${p + 5}::text[])[machine], 'worker', attempt,
      CASE status WHEN 'L' THEN 'L' ELSE $${p + 6} END, $${p + 2}, $${p + 3}, $${p + 4}
    FROM took
  )`

const GRANTED = {
  more: ', slots = granted_slots',
  from: 'FROM unnest($2::uuid[], $3::text[]) AS item (granted_id, granted_slots)',
  which: 'id = granted_id AND id = ANY ($2::uuid[])',
}

/** Jobs that were locked and may start, each with the gates that it counts in. */
const TAKE_GRANTED = statement(
  (s) => `
  WITH ${took(s, 4, GRANTED)}, ${wroteGates(s, 11)}
  SELECT ${TX} AS tx, taken.* FROM (${taken(s, ', took.place AS position')}) AS taken`,
)

/** Writes leases for jobs that were locked in this transaction, and the gates that change. */
export async function takeGranted(
  shared: Pick<Shared, 'machines' | 'environment'>,
  session: Session,
  now: number,
  jobs: readonly GrantedJob[],
  claimId: string,
  request: ClaimRequest,
  gates: readonly Gate[],
): Promise<Held[]> {
  const ticket: Ticket = { now, claimId, damaged: [] }
  const given = claimValues(shared, ticket, request).slice(5)
  const ids = arrayOf(jobs.map(({ ref }) => ref))
  const slotsOf = arrayOf(jobs.map(({ slots }) => slots))
  const values = [now, ids, slotsOf, ...given, ...gateArrays(gates, now)]
  type Row = TakenRow & { readonly tx: number; readonly position: number }
  const rows = await session.query<Row>(TAKE_GRANTED, values)
  const slots = new Map(jobs.map((job) => [job.ref, job.slots]))
  const held = toHeld(shared, ticket, request, rows)
  // The claim is rolled back; the store sets the row aside and claims again.
  if (ticket.damaged[0] !== undefined) throw ticket.damaged[0]
  const [first] = rows
  if (first !== undefined) {
    const { tx, id: job, seq, position } = first
    session.wrote = { tx, fact: { job, seq, position } }
  }
  return held.map((one) => {
    const own = slots.get(one.ref)
    return own ? { ...one, slots: own } : one
  })
}

/**
 * The input is the payload of the creation, or of the last fact that replaced it. A job that was
 * only created and claimed has no such fact.
 */
export const taken = (s: string, more = '') => `
  SELECT ${COMMON}, rare, coalesce(
    CASE WHEN took.seq > 2 THEN (SELECT payload FROM ${s}.ledger AS fact
      WHERE fact.job = took.id AND fact.kind = ${FACT_CODES.replace}
      ORDER BY fact.seq DESC LIMIT 1) END,
    created.payload
  ) AS input${more} FROM took LEFT JOIN (
    SELECT job, payload FROM ${s}.ledger WHERE job = ANY (ARRAY (SELECT id FROM took)) AND seq = 1
  ) AS created ON created.job = took.id`

/**
 * A row that says that the claim passed over jobs: some have limits, or their queue has one. It has
 * no id, and this word in the column `rare`.
 */
const LIMITED = 'limited'
export const passedOver = (s: string) => `
  SELECT ${Array(CLAIMED_COLUMNS - 2)
    .fill('NULL')
    .join(', ')}, '${LIMITED}', NULL
  WHERE EXISTS (SELECT 1 FROM pick WHERE limit_key IS NOT NULL) OR EXISTS (
    SELECT 1 FROM ${s}.queues
    WHERE (gated = 1 OR rotates = 1) AND ($5::text[] IS NULL OR name = ANY ($5::text[])))`

const statementOf = (many: boolean): Statement =>
  statement(
    (s) => `
    WITH ${many ? 'RECURSIVE' : ''} ${take(s, many)} ${taken(s)} UNION ALL ${passedOver(s)}`,
  )

const CLAIM_ONE = statementOf(false)
const CLAIM_MANY = statementOf(true)

/** A row of what was taken. */
export interface TakenRow extends CommonRow {
  readonly rare: string | null
  readonly input: string | null
}

/** Whether a request is for exactly one queue, which has the simpler statement. */
export function isForMany({ queues }: ClaimRequest): boolean {
  return queues?.length !== 1
}

/** One call of a claim: when it was made, and the id that its leases have. */
export interface Ticket {
  readonly now: number
  readonly claimId: string
  /** Jobs that it took and whose rows cannot be read; the store sets them aside. */
  readonly damaged: JobDamaged[]
}

/** A ticket for a call that is made now. */
export function newTicket({ environment }: Shared, now: number): Ticket {
  return { now, claimId: environment.ids.next(), damaged: [] }
}

const CANDIDATES_ONE = statement((s) => `SELECT id FROM (${pickFromOne(s)}) AS pick`)
const CANDIDATES_MANY = statement(
  (s) => `WITH RECURSIVE ${readyQueues(s)} SELECT id FROM (${pickFromMany(s)}) AS pick`,
)

/** The jobs that a claim would take, to find out why it fails. */
export async function candidates(
  shared: Pick<Shared, 'machines'>,
  session: Session,
  now: number,
  request: ClaimRequest,
): Promise<string[]> {
  const text = isForMany(request) ? CANDIDATES_MANY : CANDIDATES_ONE
  const values = claimValues(shared, { now, claimId: '', damaged: [] }, request).slice(0, 5)
  const rows = await session.query<{ id: string }>(text, values)
  return rows.map(({ id }) => id)
}

/** The parameters of a claim. */
export function claimValues(
  { machines }: Pick<Shared, 'machines'>,
  { now, claimId }: Ticket,
  { worker, queues, types, limit, leaseMs, start }: ClaimRequest,
): Value[] {
  return [
    now,
    machines.readyStates,
    types === undefined ? null : arrayOf(types),
    limit,
    queues === undefined ? null : arrayOf(queues),
    machines.heldStates,
    start ? 'I' : 'L',
    claimId,
    worker,
    now + leaseMs,
    machines.claimPaths,
    start ? 'LI' : 'L',
  ]
}

/** What a claim took, and whether it passed over jobs that have limits. */
export interface Claimed {
  readonly held: Held[]
  readonly limited: boolean
}

/** Takes up to `limit` jobs without limits: those among the first ones in the order of claims. */
export async function claim(
  shared: Shared,
  session: Session,
  ticket: Ticket,
  request: ClaimRequest,
): Promise<Claimed> {
  const text = isForMany(request) ? CLAIM_MANY : CLAIM_ONE
  const rows = await session.query<TakenRow>(text, claimValues(shared, ticket, request))
  return claimedIn(shared, ticket, request, rows)
}

/** What the rows of a claim say. */
export function claimedIn(
  shared: Shared,
  ticket: Ticket,
  request: ClaimRequest,
  rows: readonly TakenRow[],
): Claimed {
  const limited = rows.some(({ id, rare }) => id === null && rare === LIMITED)
  const taken = rows.filter(({ id }) => id !== null)
  return { held: toHeld(shared, ticket, request, taken), limited }
}

/** By the index of leases; the claim distinguishes them from others of the same millisecond. */
const RECALL = statement(
  (s) => `
  WITH took AS (
    SELECT ${UNKNOWN} FROM ${s}.jobs WHERE lane = ${LANES.held} AND lease_until = $1 AND claim = $2
  ) ${taken(s)}`,
)

/** The jobs of a claim whose answer was lost. */
export async function recall(
  shared: Shared,
  session: Session,
  ticket: Ticket,
  request: ClaimRequest,
): Promise<Held[]> {
  const values = [ticket.now + request.leaseMs, ticket.claimId]
  return toHeld(shared, ticket, request, await session.query<TakenRow>(RECALL, values))
}

/** The jobs that a claim took, in the order of claims; that of the rows is not defined. */
function toHeld(
  { machines }: Pick<Shared, 'machines'>,
  { now, claimId, damaged }: Ticket,
  { worker, leaseMs, start, queues = [] }: ClaimRequest,
  rows: readonly TakenRow[],
): Held[] {
  const status = start ? 'I' : 'L'
  const given = { status, claim: claimId, worker, leaseUntil: now + leaseMs, now }
  const held = rows.flatMap((row): Held[] => {
    const lifecycle = machines.at(row.machine) as Lifecycle
    const rare = row.rare === null ? NOTHING_RARE : (JSON.parse(row.rare) as RareRow)
    const make = () => toJob(claimedRow(row, rare, given, lifecycle.held), lifecycle)
    const job = readJob({ id: row.id, ...rare }, row.id, make)
    if (!(job instanceof JobDamaged)) return [{ ref: row.id, job, input: row.input ?? 'null' }]
    damaged.push(job)
    return []
  })
  const order = new Map(queues.map((queue, i) => [queue, i]))
  const orderOf = ({ job }: Held) => order.get(job.queue) ?? 0
  return held.sort(
    (a, b) =>
      orderOf(a) - orderOf(b) ||
      a.job.priority - b.job.priority ||
      orderTime(a.job) - orderTime(b.job) ||
      compare(a.job.id, b.job.id),
  )
}

/**
 * A job of an earlier version is claimed by the same statement, and then migrated under its new
 * lease. So claims of jobs that need no migration cost nothing more, and the order of claims does
 * not depend on versions. Jobs that were lost in between are left out. If the process dies in
 * between, they are migrated when their lease is recovered. Must be called inside a transaction.
 */
export async function migrateTaken(
  shared: Shared,
  session: Session,
  now: number,
  claimed: readonly Held[],
): Promise<Held[]> {
  const ids = claimed.filter(needsMigration(shared)).map(idOf)
  const { reads } = await JOBS.lockJobs(atOf(shared, session, now), ids)
  const changes = new Changes({ environment: shared.environment, now })
  const held = claimed.flatMap((one): Held | [] => {
    const read = reads.get(one.job.id)
    if (read?.route === undefined) return needsMigration(shared)(one) ? [] : one
    const { attempt, execution } = one.job
    const fence = { attempt, claim: execution?.claim ?? '' }
    const context = contextOf(shared.environment, ENGINE, now)
    const migrated = followRoute(read.route, read.job, context, fence)
    if ('kind' in migrated) return []
    changes.migrate(read, read.route, migrated)
    return { ...one, job: migrated.job, migrated: migrated.facts }
  })
  await writeChanges(session, changes)
  return held
}

/** Whether a claimed job still follows a version that this process does not have. */
export function needsMigration({ machines }: Shared): (held: Held) => boolean {
  if (machines.routes.size === 0) return () => false
  return ({ job }) => machines.find(job.lifecycle, job.lifecycleVersion) === undefined
}

function idOf({ job }: Held): string {
  return job.id
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
