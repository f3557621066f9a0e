/**
 * Finds rows that cannot be read or trusted at the heads of the lanes that are worked on, and sets
 * them aside; `../damage.ts` has the rules. Looking is bounded and by index.
 */
import { FACT_CODES } from '../../core/job/facts.ts'
import { DAMAGED } from '../../core/job/isolate.ts'
import { LANES } from '../../core/job/lanes.ts'
import { distrust, isolated, isolationOf, type PlacedRow } from '../damage.ts'
import type { JobDamaged } from '../errors.ts'
import { cutLease, effectBounds } from '../far-times.ts'
import type { FactRow } from '../rows.ts'
import type { Isolated } from '../store.ts'
import { LOCK_JOB, overwrite, TX } from './apply.ts'
import { type Session, statement } from './connect.ts'
import type { Shared } from './context.ts'
import { dossier } from './examine.ts'
import { pendingTypes } from './outbox.ts'
import { arrayOf } from './rows-at-once.ts'

/** How many rows of one lane are looked at. */
const LANE_ROWS = 200
/** How many queues are looked at, and how many rows of each. */
const QUEUES_MAX = 100
const QUEUE_ROWS = 10

const placed = (s: string) => `
  SELECT jobs.*, (
    SELECT fact.seq FROM ${s}.ledger AS fact WHERE fact.job = jobs.id
    ORDER BY fact.seq DESC LIMIT 1) AS ledger_seq
  FROM ${s}.jobs`
/** From the beginning of an index: a condition on its first column, which every row meets. */
const LEAST = '-9223372036854775807'
const SELECT_WAITING = statement(
  (s) => `
  ${placed(s)} WHERE lane = ${LANES.waiting}
    AND run_at >= ${LEAST} ORDER BY run_at, id LIMIT ${LANE_ROWS}`,
)
const SELECT_HELD = statement(
  (s) => `
  ${placed(s)} WHERE lane = ${LANES.held} AND lease_until >= ${LEAST}
  ORDER BY lease_until, id LIMIT ${LANE_ROWS}`,
)
/** A lease that is too long stands at the other end. */
const SELECT_ENDLESS = statement(
  (s) => `
  ${placed(s)} WHERE lane = ${LANES.held} AND lease_until >= ${LEAST}
  ORDER BY lease_until DESC, id DESC LIMIT ${QUEUE_ROWS}`,
)
const SELECT_READY = statement(
  (s) => `
  WITH RECURSIVE heads (name) AS (
    (SELECT queue FROM ${s}.jobs WHERE lane = ${LANES.ready} ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
      SELECT queue FROM ${s}.jobs WHERE lane = ${LANES.ready} AND queue > heads.name
        ORDER BY queue LIMIT 1)
    FROM heads WHERE heads.name IS NOT NULL
  )
  SELECT first.* FROM (
    SELECT name FROM heads WHERE name IS NOT NULL LIMIT ${QUEUES_MAX}
  ) AS wanted CROSS JOIN LATERAL (
    ${placed(s)} WHERE lane = ${LANES.ready} AND queue = wanted.name
    ORDER BY priority, run_at, id LIMIT ${QUEUE_ROWS}
  ) AS first`,
)
const SELECT_ONE = statement((s) => `${placed(s)} WHERE jobs.id = $1`)

/** The damaged rows among the next ones of each lane. */
export async function findDamage(
  shared: Shared,
  session: Session,
  now: number,
): Promise<JobDamaged[]> {
  const rows = [
    ...(await session.query<PlacedRow>(SELECT_READY)),
    ...(await session.query<PlacedRow>(SELECT_WAITING)),
    ...(await session.query<PlacedRow>(SELECT_HELD)),
    ...(await session.query<PlacedRow>(SELECT_ENDLESS)),
  ]
  return rows.flatMap((row) => distrustRow(shared, row, now) ?? [])
}

function distrustRow({ machines }: Shared, row: PlacedRow, now: number): JobDamaged | undefined {
  const lifecycle = machines.at(row.machine)
  return lifecycle && distrust(row, lifecycle, row.id, now)
}

const SET_LANE = statement(
  (s) => `
  UPDATE ${s}.jobs SET
    lane = CASE WHEN outcome IS NULL
      THEN ${LANES.parked} ELSE ${LANES.ended} END, lease_until = NULL,
    blocked_reason = '${DAMAGED}',
    ended_at = CASE WHEN outcome IS NOT NULL THEN coalesce(ended_at, $1) END,
    seq = greatest(seq, 1), attempt = greatest(attempt, 0), failures = greatest(failures, 0),
    crashes = greatest(crashes, 0), releases = greatest(releases, 0)
  WHERE id = $2 RETURNING ${TX} AS tx`,
)

/** Sets one job aside, if it is still damaged; must be called inside a transaction. */
export async function setAside(
  shared: Shared,
  session: Session,
  now: number,
  id: string,
): Promise<Isolated[]> {
  await session.query(LOCK_JOB, [id])
  await cutLeaseOf(session, now, id)
  const [row] = await session.query<PlacedRow>(SELECT_ONE, [id])
  const damage = row && distrustRow(shared, row, now)
  if (row === undefined || damage === undefined) return []
  return setOneAside(shared, session, now, row, damage.why)
}

const SELECT_CLAIM = statement(
  (s) => `
  SELECT at, lease_until FROM ${s}.ledger
  WHERE job = $1 AND kind = ${FACT_CODES.claim} ORDER BY seq DESC LIMIT 1`,
)
const CUT_LEASE = statement(
  (s) => `
  UPDATE ${s}.jobs SET lease_until = $1 WHERE id = $2 AND lane = 3 RETURNING ${TX} AS tx`,
)

/** A lease that would never end gets the length that the claim granted. */
async function cutLeaseOf(session: Session, now: number, id: string): Promise<void> {
  const [row] = await session.query<PlacedRow>(SELECT_ONE, [id])
  type Claim = Pick<FactRow, 'at' | 'lease_until'>
  const [claim] = await session.query<Claim>(SELECT_CLAIM, [id])
  const until = row && cutLease(row, claim, now)
  if (until === undefined) return
  const [changed] = await session.query<{ tx: number }>(CUT_LEASE, [until, id])
  if (changed !== undefined) session.wrote = { tx: changed.tx }
}

const far = (s: string) => `
  SELECT far.eid FROM wanted CROSS JOIN LATERAL (
    SELECT eid FROM ${s}.outbox
    WHERE state = 'pending' AND type = wanted.type AND run_at > $2
      AND (claim IS NOT NULL OR run_at > $3)
    ORDER BY run_at DESC LIMIT ${QUEUE_ROWS}
  ) AS far`
const SELECT_FAR = statement((s) => `WITH ${pendingTypes(s)} ${far(s)}`)

/** Pending effects that would never become due; the furthest of each type. */
export async function findFarEffects(session: Session, now: number): Promise<number[]> {
  const { claimedMax, otherMax } = effectBounds(now)
  const rows = await session.query<{ eid: number }>(SELECT_FAR, [null, claimedMax, otherMax])
  return rows.map(({ eid }) => eid)
}

const SET_DUE = statement(
  (s) => `
  UPDATE ${s}.outbox SET run_at = CASE WHEN claim IS NULL THEN $1::bigint ELSE $2 END
  WHERE eid = ANY (ARRAY (
    SELECT eid FROM ${s}.outbox
    WHERE eid = ANY ($3::bigint[]) AND state = 'pending' AND run_at > $4
    FOR UPDATE SKIP LOCKED)) RETURNING ${TX} AS tx`,
)

/** Makes them due. */
export async function setDue(
  session: Session,
  now: number,
  eids: readonly number[],
): Promise<void> {
  const { claimedUntil, claimedMax } = effectBounds(now)
  const values = [now, claimedUntil, arrayOf(eids), claimedMax]
  const [changed] = await session.query<{ tx: number }>(SET_DUE, values)
  if (changed !== undefined) session.wrote = { tx: changed.tx }
}

/** Sets aside a job that is held, although its row can be trusted. */
export async function setHeldAside(
  shared: Shared,
  session: Session,
  now: number,
  id: string,
  why: string,
): Promise<Isolated[]> {
  await session.query(LOCK_JOB, [id])
  const [row] = await session.query<PlacedRow>(SELECT_ONE, [id])
  return row?.lane === LANES.held ? setOneAside(shared, session, now, row, why) : []
}

async function setOneAside(
  { machines }: Shared,
  session: Session,
  now: number,
  row: PlacedRow,
  why: string,
): Promise<Isolated[]> {
  const { id } = row
  const find = (name: string, version: number) =>
    machines.at(machines.numberOf({ name, version }) ?? -1)
  const seen = await dossier(session, id)
  if (seen === undefined) return []
  const isolation = isolationOf(seen, find, now, why)
  const { before, fact } = isolation
  const lifecycle = before && find(before.lifecycle, before.lifecycleVersion)
  if (lifecycle && fact) {
    await overwrite(session, lifecycle, row.seq, before, fact)
  } else {
    const [changed] = await session.query<{ tx: number }>(SET_LANE, [now, id])
    if (changed !== undefined) session.wrote = { tx: changed.tx }
  }
  return [isolated(id, row, isolation)]
}
