/**
 * A fast path: takes leases. Equals `decideClaim` in `src/core/job/decide-attempt.ts`, without
 * reading the jobs first. Every lifecycle has one ready and one held state, and the lane says which
 * jobs may go from one to the other now. So it is decided in SQL, for many jobs at once.
 * `test/contract/store/claim.ts` ("facts of a claim") compares its facts with those of the decider.
 */

import { FACT_CODES } from '../../core/job/facts.ts'
import type { CurrentExecution, Job } from '../../core/job/job.ts'
import { LANES } from '../../core/job/lanes.ts'
import { orderAt as orderTime } from '../../core/job/priority.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import {
  CLAIM_COLUMNS,
  claimedRow,
  namesOf,
  orderAt,
  RARE_COLUMNS,
  unpackClaimed,
} from '../columns.ts'
import { contextOf, ENGINE } from '../contract/requester.ts'
import type { ClaimRequest, Held } from '../contract/store.ts'
import { readRow } from '../damage.ts'
import { JobDamaged } from '../errors.ts'
import { endOf, followRoute, type Route } from '../machines.ts'
import type { Value } from '../rows.ts'
import { Changes } from '../verbs/changes.ts'
import type { GrantedJob } from '../verbs/claim-limited.ts'
import { writeChanges } from './apply.ts'
import type { Connection } from './connect.ts'
import type { NumberedRow, Shared } from './context.ts'

/**
 * What may be claimed from one queue, by index alone: priority, due time, then age. `?2` has the
 * ready state of each lifecycle that this process knows: a job in any other state is never taken,
 * whatever its lane is. The lane says that its time has come by the clock of the process that
 * promoted it, so this clock is checked as well.
 */
export const claimable = (columns: string, now: string) => `
  SELECT ${columns} FROM pawl_jobs
  WHERE lane = ${LANES.ready} AND queue = ?1 AND run_at <= ${now}
    AND state = ?2 ->> CAST(machine AS TEXT)
    AND (?3 IS NULL OR type IN (SELECT value FROM json_each(?3)))
  ORDER BY priority, ${orderAt()}, rid LIMIT ?4`

/**
 * The columns of a taken job that the claim does not determine. As one text for each row, because
 * the drivers need several times longer for so many columns than for one.
 */
const UNKNOWN = `json_array(${namesOf([...CLAIM_COLUMNS, ...RARE_COLUMNS])}, rid)`
/**
 * The input is the payload of the creation, or of the last fact that replaced it. The attempt of a
 * job does not start if the deadline of the job has passed.
 */
const take = (more: string, from: string, which: string) => `
  UPDATE pawl_jobs SET
    lane = ${LANES.held}, state = ?10 ->> CAST(machine AS TEXT),
    seq = seq + 1, attempt = attempt + 1, status = CASE WHEN deadline_at <= ?9 THEN 'L' ELSE ?5 END,
    claim = ?6, worker = ?7, lease_until = ?8, updated_at = ?9, started_at = ?9,
    reason = NULL, progress = NULL${more}
  ${from} WHERE ${which}
  RETURNING ${UNKNOWN} AS row, (
    SELECT payload FROM pawl_ledger
    WHERE job = rid AND kind IN (${FACT_CODES.create}, ${FACT_CODES.replace})
      AND payload IS NOT NULL
    ORDER BY pawl_ledger.seq DESC LIMIT 1
  ) AS input`

const TAKE = take('', '', `rid IN (${claimable('rid', '?9')}) AND limit_key IS NULL`)
/** Jobs that were granted, each with the gates that it counts in. */
const GRANTED = `
  FROM (SELECT value ->> 0 AS granted, value ->> 1 AS own FROM json_each(?1))`
const TAKE_GRANTED = take(
  ', slots = own',
  GRANTED,
  `rid = granted AND lane IN (${LANES.ready}, ${LANES.blocked})`,
)

/**
 * The facts of the jobs that were just taken. They are found by their lease in the index of held
 * jobs; the claim distinguishes them from others of the same millisecond.
 */
const RECORD = `
  INSERT INTO pawl_ledger (job, seq, kind, at, path, actor, attempt, statuses, claim, worker,
    lease_until)
  SELECT rid, seq, ${FACT_CODES.claim}, ?1, ?2 ->> CAST(machine AS TEXT), 'worker', attempt,
    CASE status WHEN 'L' THEN 'L' ELSE ?3 END, claim, worker, lease_until
  FROM pawl_jobs WHERE lane = ${LANES.held} AND lease_until = ?4 AND claim = ?5 ORDER BY rid`

/** Queues with ready jobs, found by skipping through the index from one to the next. */
export const READY_QUEUES = `
  WITH RECURSIVE ready(queue) AS (
    SELECT min(queue) FROM pawl_jobs WHERE lane = ${LANES.ready}
    UNION ALL
    SELECT (SELECT min(queue) FROM pawl_jobs WHERE lane = ${LANES.ready} AND queue > ready.queue)
    FROM ready WHERE ready.queue IS NOT NULL
  )
  SELECT queue FROM ready WHERE queue IS NOT NULL`

/** Jobs of queues whose groups take turns are behind their groups. */
const HAS_READY = `
  SELECT 1 WHERE EXISTS (SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.ready})
    OR EXISTS (SELECT 1 FROM pawl_groups)`

/** Whether any job is ready. */
export function hasReady(connection: Connection): boolean {
  return connection.get(HAS_READY) !== undefined
}

/** Whether a queue of the request that has a limit of its own, or rotates, has jobs to claim. */
const SELECT_BEHIND_LIMIT = `
  SELECT 1 FROM pawl_queues AS own
  WHERE (own.gated = 1 OR own.rotates = 1) AND own.paused_at IS NULL
    AND (?1 IS NULL OR own.name IN (SELECT value FROM json_each(?1)))
    AND (EXISTS (SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.ready} AND queue = own.name)
      OR EXISTS (SELECT 1 FROM pawl_groups WHERE queue = own.name))
  LIMIT 1`

export function hasReadyBehindLimit(connection: Connection, { queues }: ClaimRequest): boolean {
  const names = queues === undefined ? null : JSON.stringify(queues)
  return connection.get(SELECT_BEHIND_LIMIT, names) !== undefined
}

/** Queues that are paused, or have a limit: see `../verbs/claim-limited.ts`. */
const SELECT_CLOSED = `
  SELECT name FROM pawl_queues WHERE paused_at IS NOT NULL OR gated = 1 OR rotates = 1`

/**
 * Takes up to `limit` jobs without limits, queue by queue in the order asked for. It looks at that
 * many in the order of claims and passes over those with limits.
 */
export function claim(
  shared: Shared,
  connection: Connection,
  now: number,
  request: ClaimRequest,
): Held[] {
  const closed = new Set(connection.all<{ name: string }>(SELECT_CLOSED).map(({ name }) => name))
  const open = (request.queues ?? readyQueues(connection)).filter((queue) => !closed.has(queue))
  const shares =
    request.queues === undefined ? shareOut(shared, connection, now, open, request) : null
  const held: Held[] = []
  for (const queue of open) {
    const limit = shares?.get(queue) ?? (shares === null ? request.limit - held.length : 0)
    if (limit > 0) held.push(...claimFrom(shared, connection, now, queue, request, limit))
  }
  return shares === null ? held : held.sort(byTurn)
}

/** The first jobs of one queue, for comparing them with those of others. */
const LOOK = claimable(`priority, ${orderAt()} AS orderAt, rid`, '?5')

/** The rows that a claim would take, to find out why it fails. */
export function candidates(
  { machines }: Pick<Shared, 'machines'>,
  connection: Connection,
  now: number,
  { queues, types, limit }: ClaimRequest,
): number[] {
  const known = types === undefined ? null : JSON.stringify(types)
  return (queues ?? readyQueues(connection)).flatMap((queue) =>
    connection
      .all<{ rid: number }>(LOOK, queue, machines.readyStates, known, limit, now)
      .map(({ rid }) => rid),
  )
}

/** How many jobs to take from each queue, so that priority and time decide over all of them. */
function shareOut(
  { machines }: Shared,
  connection: Connection,
  now: number,
  queues: readonly string[],
  { types, limit }: ClaimRequest,
): Map<string, number> {
  if (queues.length === 1) return new Map(queues.map((queue) => [queue, limit]))
  const known = types === undefined ? null : JSON.stringify(types)
  type Look = Pick<NumberedRow, 'priority' | 'rid'> & { readonly orderAt: number }
  const first = queues
    .flatMap((queue) =>
      connection
        .all<Look>(LOOK, queue, machines.readyStates, known, limit, now)
        .map((row) => ({ ...row, queue })),
    )
    .sort((a, b) => a.priority - b.priority || a.orderAt - b.orderAt || a.rid - b.rid)
  const shares = new Map<string, number>()
  for (const { queue } of first.slice(0, limit)) shares.set(queue, (shares.get(queue) ?? 0) + 1)
  return shares
}

function byTurn(a: Held, b: Held): number {
  return compare(a.job, b.job) || (a.ref as number) - (b.ref as number)
}

export function readyQueues(connection: Connection): string[] {
  return connection.all<{ queue: string }>(READY_QUEUES).map(({ queue }) => queue)
}

function claimFrom(
  shared: Shared,
  connection: Connection,
  now: number,
  queue: string,
  request: ClaimRequest,
  limit: number,
): Held[] {
  const { machines, environment } = shared
  const claimId = environment.ids.next()
  const known = request.types === undefined ? null : JSON.stringify(request.types)
  const taken = connection.all<TakenRow>(
    TAKE,
    queue,
    machines.readyStates,
    known,
    limit,
    ...givenValues(machines, now, claimId, request),
  )
  return toHeld(shared, connection, now, claimId, request, taken)
}

/** Writes leases for jobs that may start, each with the gates that it counts in. */
export function takeGranted(
  shared: Pick<Shared, 'machines' | 'environment'>,
  connection: Connection,
  now: number,
  jobs: readonly GrantedJob[],
  claimId: string,
  request: ClaimRequest,
): Held[] {
  const given = givenValues(shared.machines, now, claimId, request)
  const list = JSON.stringify(jobs.map(({ ref, slots }) => [ref, slots]))
  const taken = connection.all<TakenRow>(TAKE_GRANTED, list, null, null, null, ...given)
  const slots = new Map(jobs.map((job) => [job.ref, job.slots]))
  return toHeld(shared, connection, now, claimId, request, taken).map((held) => {
    const own = slots.get(held.ref)
    return own ? { ...held, slots: own } : held
  })
}

interface TakenRow {
  readonly row: string
  readonly input: string | null
}

/** What a claim writes into every row, as the parameters ?5 to ?10. */
function givenValues(
  { heldStates }: Shared['machines'],
  now: number,
  claimId: string,
  { worker, leaseMs, start }: ClaimRequest,
): Value[] {
  return [start ? 'I' : 'L', claimId, worker, now + leaseMs, now, heldStates]
}

/** Records the facts of jobs that were taken, and returns them in the order of claims. */
function toHeld(
  shared: Pick<Shared, 'machines' | 'environment'>,
  connection: Connection,
  now: number,
  claimId: string,
  request: ClaimRequest,
  taken: readonly TakenRow[],
): Held[] {
  if (taken.length === 0) return []
  const { machines } = shared
  const statuses = request.start ? 'LI' : 'L'
  const leaseUntil = now + request.leaseMs
  connection.run(RECORD, now, machines.claimPaths, statuses, leaseUntil, claimId)
  const given = {
    status: statuses.slice(-1),
    claim: claimId,
    worker: request.worker,
    leaseUntil,
    now,
  }
  const held = taken.flatMap(({ row: text, input }): Held | [] => {
    const values = JSON.parse(text) as Value[]
    const rid = values.pop() as number
    const read = unpackClaimed(values)
    const { machine } = read
    const lifecycle = machines.at(machine) as Lifecycle
    const job = readRow(claimedRow(read, read, given, lifecycle.held), lifecycle, rid)
    // The claim is rolled back; the store sets the row aside and claims again.
    if (job instanceof JobDamaged) throw job
    const one = { ref: rid, job, input: input ?? 'null' }
    const route = machines.routes.get(machine)
    return route === undefined ? one : migrateTaken(shared, connection, now, route, one)
  })
  // The order of RETURNING is not defined.
  return held.sort(byTurn)
}

/**
 * A job of an earlier version is claimed by the same statement, and migrated under its new lease in
 * the same transaction. So claims of jobs that need no migration cost nothing more, and the order
 * of claims does not depend on versions.
 */
function migrateTaken(
  { environment }: Pick<Shared, 'environment'>,
  connection: Connection,
  now: number,
  route: Route,
  { ref, job, input }: Held,
): Held {
  const fence = { attempt: job.attempt, claim: (job.execution as CurrentExecution).claim }
  const migrated = followRoute(route, job, contextOf(environment, ENGINE, now), fence)
  // A route exists only if its mappings fit: every one has a target for the held state.
  if ('kind' in migrated) throw migrated.error
  const changes = new Changes({ environment, now })
  const { lifecycle } = endOf(route)
  changes.migrate({ ref, job, lifecycle, route, cancelAskedAt: null }, route, migrated)
  writeChanges(connection, changes)
  return { ref, job: migrated.job, input, migrated: migrated.facts }
}

/** The order of claims. */
function compare(a: Job, b: Job): number {
  return a.priority - b.priority || orderTime(a) - orderTime(b)
}
