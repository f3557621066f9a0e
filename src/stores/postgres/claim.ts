/**
 * Takes leases. Claiming needs no rule of a lifecycle: every one has exactly one ready and one held
 * state, and the lane says which jobs may go from the one to the other now. So it is decided in
 * SQL, for many jobs at once, and the contract's tests compare its facts with those of the decider.
 *
 * The text is a part of a statement, so that settling and claiming can be one (see `settle.ts`).
 */

import { FACT_CODES } from '../../core/job/facts.ts'
import { LANES } from '../../core/job/lanes.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { contextOf, ENGINE } from '../asker.ts'
import {
  CLAIM_COLUMNS,
  type CommonRow,
  claimedRow,
  type JobColumn,
  NOTHING_RARE,
  namesOf,
  RARE_COLUMNS,
  type RareRow,
} from '../columns.ts'
import { readJob } from '../damage.ts'
import { JobDamaged } from '../errors.ts'
import { followRoute } from '../machines.ts'
import { toJob, type Value } from '../rows.ts'
import type { ClaimRequest, Held } from '../store.ts'
import { Changes } from '../verbs/changes.ts'
import { placeOf, writeChanges } from './apply.ts'
import { type Session, type Statement, statement } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { arrayOf } from './rows-at-once.ts'
import { JOBS } from './statements/jobs.ts'

/** How many parameters a claim has; those of another part of the statement come after them. */
export const CLAIM_PARAMETERS = 12

/**
 * What may be claimed now from a queue, by index alone: priority, due time, then age. `$2` has the
 * ready state of each lifecycle that this process knows: a job in any other state is never taken,
 * whatever its lane says.
 */
const claimable = (s: string, queue: string) => `
  SELECT id, priority, run_at FROM ${s}.jobs
  WHERE lane = ${LANES.ready} AND queue = ${queue} AND run_at <= $1
    AND state = ($2::text[])[machine]
    AND ($3::text[] IS NULL OR type = ANY ($3::text[]))
    AND NOT EXISTS (
      SELECT 1 FROM ${s}.queues WHERE name = ${queue} AND paused_at IS NOT NULL)
  ORDER BY priority, run_at, id LIMIT $4 FOR UPDATE SKIP LOCKED`

/** The first jobs of one queue. */
const pickFromOne = (s: string) => claimable(s, '($5::text[])[1]')

/**
 * The first jobs of several queues: in the order of the queues as they were asked for or, where
 * none were, of all that have something ready, as if they were one.
 */
const pickFromMany = (s: string) => `
  SELECT first.id FROM (
    SELECT name, place FROM unnest($5::text[]) WITH ORDINALITY AS asked (name, place)
    UNION ALL
    SELECT name, 0 FROM ready WHERE $5::text[] IS NULL AND name IS NOT NULL
  ) AS wanted CROSS JOIN LATERAL (${claimable(s, 'wanted.name')}) AS first
  ORDER BY wanted.place, first.priority, first.run_at, first.id LIMIT $4`

/** Queues with something ready, found by skipping through the index from one to the next. */
const readyQueues = (s: string) => `
  ready (name) AS (
    (SELECT queue FROM ${s}.jobs WHERE lane = ${LANES.ready} AND $5::text[] IS NULL
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

/** What most jobs have not: null if a job has none of it, and else all of it as one JSON. */
const RARE = `CASE WHEN ${rareBy(isAbsent, ' AND ')} THEN NULL
  ELSE json_build_object(${rareBy(({ name }) => `'${name}', ${name}`, ', ')})::text END AS rare`

function isAbsent({ name, absent }: JobColumn): string {
  return absent === null ? `${name} IS NULL` : `${name} = ${absent}`
}

const UNKNOWN = `${COMMON}, ${RARE}`

/** How many columns a claimed job has, for statements that also answer something else. */
export const CLAIMED_COLUMNS = CLAIM_COLUMNS.length + 2

/**
 * The parts of a statement that take jobs: `WITH ${take(…)} ${TAKEN}`. The rows are chosen by an
 * array of ids and not by a join, for which the plan that serves all values is far slower.
 */
export const take = (s: string, many: boolean) => `
  ${many ? `${readyQueues(s)}, ` : ''}
  pick AS (${many ? pickFromMany(s) : pickFromOne(s)}),
  took AS (
    UPDATE ${s}.jobs SET
      lane = ${LANES.held}, state = ($6::text[])[machine], seq = seq + 1, attempt = attempt + 1,
        status = $7,
      claim = $8, worker = $9, lease_until = $10, updated_at = $1, started_at = $1, reason = NULL,
      progress = NULL, place = greatest(place, ${placeOf(s)})
    WHERE id = ANY (ARRAY (SELECT id FROM pick))
    RETURNING ${UNKNOWN}, place
  ),
  noted AS (
    INSERT INTO ${s}.ledger
      (tx, job, seq, kind, at, path, actor, attempt, statuses, claim, worker, lease_until)
    SELECT place, id, seq, ${FACT_CODES.claim}, $1, ($11::text[])[machine], 'worker', attempt,
      $12, $8, $9, $10
    FROM took
  )`

/**
 * The input stands beside the creation, or beside the last fact that replaced it; which a job that
 * was created and then claimed cannot have.
 */
export const taken = (s: string) => `
  SELECT ${COMMON}, rare, coalesce(
    CASE WHEN took.seq > 2 THEN (SELECT payload FROM ${s}.ledger AS fact
      WHERE fact.job = took.id AND fact.kind = ${FACT_CODES.replace}
      ORDER BY fact.seq DESC LIMIT 1) END,
    created.payload
  ) AS input FROM took LEFT JOIN (
    SELECT job, payload FROM ${s}.ledger WHERE job = ANY (ARRAY (SELECT id FROM took)) AND seq = 1
  ) AS created ON created.job = took.id`

const statementOf = (many: boolean): Statement =>
  statement((s) => `WITH ${many ? 'RECURSIVE' : ''} ${take(s, many)} ${taken(s)}`)

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

/** The jobs that a claim would take, for whoever asks why it cannot. */
export async function candidates(
  shared: Shared,
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
  { machines }: Shared,
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

/** Takes up to `limit` jobs. */
export async function claim(
  shared: Shared,
  session: Session,
  ticket: Ticket,
  request: ClaimRequest,
): Promise<Held[]> {
  const text = isForMany(request) ? CLAIM_MANY : CLAIM_ONE
  const rows = await session.query<TakenRow>(text, claimValues(shared, ticket, request))
  return toHeld(shared, ticket, request, rows)
}

/** By the index of leases, and told from others of the same millisecond by the claim. */
const RECALL = statement(
  (s) => `
  WITH took AS (
    SELECT ${UNKNOWN} FROM ${s}.jobs WHERE lane = ${LANES.held} AND lease_until = $1 AND claim = $2
  ) ${taken(s)}`,
)

/** What a claim took whose answer was lost. */
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
export function toHeld(
  { machines }: Shared,
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
  const places = new Map(queues.map((queue, place) => [queue, place]))
  const placeOf = ({ job }: Held) => places.get(job.queue) ?? 0
  return held.sort(
    (a, b) =>
      placeOf(a) - placeOf(b) ||
      a.job.priority - b.job.priority ||
      (a.job.runAt as number) - (b.job.runAt as number) ||
      compare(a.job.id, b.job.id),
  )
}

/**
 * A job of an earlier version is claimed by the one statement as it is, and then migrated under its
 * new lease. So claims of jobs that need no migration cost nothing more, and the order of claims
 * does not depend on versions. What was lost in between is left out; what a process that dies in
 * between leaves behind is migrated when its lease is recovered. Must be called inside a
 * transaction.
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
