/**
 * Takes leases. Claiming needs no rule of a lifecycle: every one has exactly one ready and one held
 * state, and the lane says which jobs may go from the one to the other now. So it is decided in
 * SQL, for many jobs at once, and the contract's tests compare its facts with those of the decider.
 */

import { FACT_CODES } from '../../core/job/facts.ts'
import type { CurrentExecution, Job } from '../../core/job/job.ts'
import { LANES } from '../../core/job/lanes.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { contextOf, ENGINE } from '../asker.ts'
import { CLAIM_COLUMNS, claimedRow, namesOf, RARE_COLUMNS, unpackClaimed } from '../columns.ts'
import { readRow } from '../damage.ts'
import { JobDamaged } from '../errors.ts'
import { endOf, followRoute, type Route } from '../machines.ts'
import type { Value } from '../rows.ts'
import type { ClaimRequest, Held } from '../store.ts'
import { Changes } from '../verbs/changes.ts'
import { writeChanges } from './apply.ts'
import type { Connection } from './connect.ts'
import type { NumberedRow, Shared } from './context.ts'

/**
 * What may be claimed from one queue, by index alone: priority, due time, then age. `?2` has the
 * ready state of each lifecycle that this process knows: a job in any other state is never taken,
 * whatever its lane says. The lane says
 * that its time has come, but by the clock of whoever promoted it; so this clock is asked as well.
 */
const claimable = (columns: string, now: string) => `
  SELECT ${columns} FROM pawl_jobs
  WHERE lane = ${LANES.ready} AND queue = ?1 AND run_at <= ${now}
    AND state = ?2 ->> CAST(machine AS TEXT)
    AND (?3 IS NULL OR type IN (SELECT value FROM json_each(?3)))
  ORDER BY priority, run_at, rid LIMIT ?4`

/**
 * What a claim cannot know of a job that it took. As one text for each row, because the drivers
 * take several times longer to hand over so many columns than to hand over one.
 */
const UNKNOWN = `json_array(${namesOf([...CLAIM_COLUMNS, ...RARE_COLUMNS])}, rid)`
/** The input stands beside the creation, or beside the last fact that replaced it. */
const TAKE = `
  UPDATE pawl_jobs SET
    lane = ${LANES.held}, state = ?10 ->> CAST(machine AS TEXT),
    seq = seq + 1, attempt = attempt + 1, status = ?5, claim = ?6, worker = ?7, lease_until = ?8,
    updated_at = ?9, started_at = ?9, reason = NULL, progress = NULL
  WHERE rid IN (${claimable('rid', '?9')})
  RETURNING ${UNKNOWN} AS row, (
    SELECT payload FROM pawl_ledger
    WHERE job = rid AND kind IN (${FACT_CODES.create}, ${FACT_CODES.replace})
      AND payload IS NOT NULL
    ORDER BY pawl_ledger.seq DESC LIMIT 1
  ) AS input`

/**
 * The facts of what was just taken, found by its lease in the index of held jobs and told from
 * others of the same millisecond by its claim.
 */
const RECORD = `
  INSERT INTO pawl_ledger (job, seq, kind, at, path, actor, attempt, statuses, claim, worker,
    lease_until)
  SELECT rid, seq, ${FACT_CODES.claim}, ?1, ?2 ->> CAST(machine AS TEXT), 'worker', attempt, ?3,
    claim, worker, lease_until
  FROM pawl_jobs WHERE lane = ${LANES.held} AND lease_until = ?4 AND claim = ?5 ORDER BY rid`

/** Queues with something ready, found by skipping through the index from one to the next. */
const READY_QUEUES = `
  WITH RECURSIVE ready(queue) AS (
    SELECT min(queue) FROM pawl_jobs WHERE lane = ${LANES.ready}
    UNION ALL
    SELECT (SELECT min(queue) FROM pawl_jobs WHERE lane = ${LANES.ready} AND queue > ready.queue)
    FROM ready WHERE ready.queue IS NOT NULL
  )
  SELECT queue FROM ready WHERE queue IS NOT NULL`

/** Whether anything at all is ready. */
export function hasReady(connection: Connection): boolean {
  return connection.get(`SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.ready} LIMIT 1`) !== undefined
}

/** Takes up to `limit` jobs, queue by queue in the order asked for. */
export function claim(
  shared: Shared,
  connection: Connection,
  now: number,
  request: ClaimRequest,
): Held[] {
  const paused = new Set(
    connection
      .all<{ name: string }>('SELECT name FROM pawl_queues WHERE paused_at IS NOT NULL')
      .map(({ name }) => name),
  )
  const open = (request.queues ?? readyQueues(connection)).filter((queue) => !paused.has(queue))
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
const LOOK = claimable('priority, run_at, rid', '?5')

/** The rows that a claim would take, for whoever asks why it cannot. */
export function candidates(
  { machines }: Shared,
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

/** How many jobs each queue gives, so that over all of them priority and time decide. */
function shareOut(
  { machines }: Shared,
  connection: Connection,
  now: number,
  queues: readonly string[],
  { types, limit }: ClaimRequest,
): Map<string, number> {
  if (queues.length === 1) return new Map(queues.map((queue) => [queue, limit]))
  const known = types === undefined ? null : JSON.stringify(types)
  type Look = Pick<NumberedRow, 'priority' | 'rid'> & { readonly run_at: number }
  const first = queues
    .flatMap((queue) =>
      connection
        .all<Look>(LOOK, queue, machines.readyStates, known, limit, now)
        .map((row) => ({ ...row, queue })),
    )
    .sort((a, b) => a.priority - b.priority || a.run_at - b.run_at || a.rid - b.rid)
  const shares = new Map<string, number>()
  for (const { queue } of first.slice(0, limit)) shares.set(queue, (shares.get(queue) ?? 0) + 1)
  return shares
}

function byTurn(a: Held, b: Held): number {
  return compare(a.job, b.job) || (a.ref as number) - (b.ref as number)
}

function readyQueues(connection: Connection): string[] {
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
  const statuses = request.start ? 'LI' : 'L'
  const claimId = environment.ids.next()
  const leaseUntil = now + request.leaseMs
  const taken = connection.all<{ readonly row: string; readonly input: string | null }>(
    TAKE,
    queue,
    machines.readyStates,
    request.types === undefined ? null : JSON.stringify(request.types),
    limit,
    statuses.slice(-1),
    claimId,
    request.worker,
    leaseUntil,
    now,
    machines.heldStates,
  )
  if (taken.length === 0) return []
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
    // Nothing of this claim is written then; the store sets the row aside and claims again.
    if (job instanceof JobDamaged) throw job
    const one = { ref: rid, job, input: input ?? 'null' }
    const route = machines.routes.get(machine)
    return route === undefined ? one : migrateTaken(shared, connection, now, route, one)
  })
  // The order of RETURNING is not defined.
  return held.sort(byTurn)
}

/**
 * A job of an earlier version is claimed by the one statement as it is, and migrated under its new
 * lease in the same transaction. So claims of jobs that need no migration cost nothing more, and
 * the order of claims does not depend on versions.
 */
function migrateTaken(
  { environment }: Shared,
  connection: Connection,
  now: number,
  route: Route,
  { ref, job, input }: Held,
): Held {
  const fence = { attempt: job.attempt, claim: (job.execution as CurrentExecution).claim }
  const migrated = followRoute(route, job, contextOf(environment, ENGINE, now), fence)
  // A route is taken only if its mappings fit: every one has a target for the held state.
  if ('kind' in migrated) throw migrated.error
  const changes = new Changes({ environment, now })
  const { lifecycle } = endOf(route)
  changes.migrate({ ref, job, lifecycle, route, cancelAskedAt: null }, route, migrated)
  writeChanges(connection, changes)
  return { ref, job: migrated.job, input, migrated: migrated.facts }
}

/** The order of claims. */
function compare(a: Job, b: Job): number {
  return a.priority - b.priority || (a.runAt as number) - (b.runAt as number)
}
