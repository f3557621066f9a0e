/**
 * Finds rows that cannot be read or trusted at the heads of the lanes that are worked on, and sets
 * them aside; `../damage.ts` has the rules. Looking is bounded, by index, and needs no write lock.
 */

import { FACT_CODES } from '../../core/job/facts.ts'
import { DAMAGED } from '../../core/job/isolate.ts'
import { LANES } from '../../core/job/lanes.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { distrust, isolated, isolationOf, type PlacedRow } from '../damage.ts'
import type { JobDamaged } from '../errors.ts'
import { cutLease, effectBounds } from '../far-times.ts'
import type { FactRow } from '../rows.ts'
import type { Isolated } from '../store.ts'
import { overwrite } from './apply.ts'
import type { Connection } from './connect.ts'
import type { NumberedRow, Shared } from './context.ts'
import { dossier } from './examine.ts'
import { pendingTypes } from './outbox.ts'

type Placed = NumberedRow & PlacedRow

/** How many rows of one lane are looked at. */
const LANE_ROWS = 200
/** How many queues are looked at, and how many rows of each at least. */
const QUEUES_MAX = 100
const QUEUE_ROWS_MIN = 10

const PLACED = `
  SELECT *, (SELECT max(seq) FROM pawl_ledger WHERE job = rid) AS ledger_seq FROM pawl_jobs`
/** From the beginning of an index: a condition on its first column, which every row meets. */
const LEAST = '-9223372036854775807'
const SELECT_WAITING = `
  ${PLACED} WHERE lane = ${LANES.waiting}
    AND run_at >= ${LEAST} ORDER BY run_at, rid LIMIT ${LANE_ROWS}`
const SELECT_HELD = `
  ${PLACED} WHERE lane = ${LANES.held} AND lease_until >= ${LEAST}
  ORDER BY lease_until, rid LIMIT ${LANE_ROWS}`
/** A lease that is too long stands at the other end. */
const SELECT_ENDLESS = `
  ${PLACED} WHERE lane = ${LANES.held} AND lease_until >= ${LEAST}
  ORDER BY lease_until DESC, rid DESC LIMIT ${QUEUE_ROWS_MIN}`
const SELECT_READY = `
  ${PLACED} WHERE lane = ${LANES.ready} AND queue = ? ORDER BY priority, run_at, rid LIMIT ?`
const SELECT_ONE = `${PLACED} WHERE rid = ?`
const READY_QUEUES = `
  WITH RECURSIVE ready(queue) AS (
    SELECT min(queue) FROM pawl_jobs WHERE lane = ${LANES.ready}
    UNION ALL
    SELECT (SELECT min(queue) FROM pawl_jobs WHERE lane = ${LANES.ready} AND queue > ready.queue)
    FROM ready WHERE ready.queue IS NOT NULL
  )
  SELECT queue FROM ready WHERE queue IS NOT NULL LIMIT ${QUEUES_MAX}`

/** The damaged rows among the next ones of each lane. */
export function findDamage(shared: Shared, connection: Connection, now: number): JobDamaged[] {
  const queues = connection.all<{ queue: string }>(READY_QUEUES)
  const share = Math.max(QUEUE_ROWS_MIN, Math.floor(LANE_ROWS / Math.max(1, queues.length)))
  const rows = [
    ...queues.flatMap(({ queue }) => connection.all<Placed>(SELECT_READY, queue, share)),
    ...connection.all<Placed>(SELECT_WAITING),
    ...connection.all<Placed>(SELECT_HELD),
    ...connection.all<Placed>(SELECT_ENDLESS),
  ]
  return rows.flatMap((row) => distrustRow(shared, row, now) ?? [])
}

function distrustRow({ machines }: Shared, row: Placed, now: number): JobDamaged | undefined {
  const lifecycle: Lifecycle | undefined = machines.at(row.machine)
  return lifecycle && distrust(row, lifecycle, row.rid, now)
}

/** Sets aside those of these rows that are still damaged. */
export function setAside(
  shared: Shared,
  connection: Connection,
  now: number,
  rids: readonly number[],
): Isolated[] {
  return [...new Set(rids)].flatMap((rid) => {
    cutLeaseOf(connection, now, rid)
    const row = connection.get<Placed>(SELECT_ONE, rid)
    const damage = row && distrustRow(shared, row, now)
    return damage === undefined ? [] : setOneAside(shared, connection, now, rid, damage.why)
  })
}

const SELECT_CLAIM = `
  SELECT at, lease_until FROM pawl_ledger
  WHERE job = ? AND kind = ${FACT_CODES.claim} ORDER BY seq DESC LIMIT 1`
const CUT_LEASE = 'UPDATE pawl_jobs SET lease_until = ? WHERE rid = ? AND lane = 3'

/** A lease that would never end gets the length that the claim granted. */
function cutLeaseOf(connection: Connection, now: number, rid: number): void {
  const row = connection.get<Placed>(SELECT_ONE, rid)
  const claim = connection.get<Pick<FactRow, 'at' | 'lease_until'>>(SELECT_CLAIM, rid)
  const until = row && cutLease(row, claim, now)
  if (until !== undefined) connection.run(CUT_LEASE, until, rid)
}

const SELECT_FAR = `
  SELECT eid FROM pawl_outbox
  WHERE state = 'pending' AND type = ?1 AND run_at > ?2 AND (claim IS NOT NULL OR run_at > ?3)
  ORDER BY run_at DESC LIMIT ${QUEUE_ROWS_MIN}`

/** Pending effects that would never become due; the furthest of each type. */
export function findFarEffects(connection: Connection, now: number): number[] {
  const { claimedMax, otherMax } = effectBounds(now)
  return pendingTypes(connection).flatMap((type) =>
    connection.all<{ eid: number }>(SELECT_FAR, type, claimedMax, otherMax).map(({ eid }) => eid),
  )
}

const SET_DUE = `
  UPDATE pawl_outbox SET run_at = iif(claim IS NULL, ?1, ?2)
  WHERE eid = ?3 AND state = 'pending' AND run_at > ?4`

/** Makes them due. */
export function setDue(connection: Connection, now: number, eids: readonly number[]): void {
  const { claimedUntil, claimedMax } = effectBounds(now)
  for (const eid of eids) connection.run(SET_DUE, now, claimedUntil, eid, claimedMax)
}

/** Sets aside a job that is held, although its row can be trusted. */
export function setHeldAside(
  shared: Shared,
  connection: Connection,
  now: number,
  rid: number,
  why: string,
): Isolated[] {
  const row = connection.get<Placed>(SELECT_ONE, rid)
  return row?.lane === LANES.held ? setOneAside(shared, connection, now, rid, why) : []
}

const SET_LANE = `
  UPDATE pawl_jobs SET
    lane = iif(outcome IS NULL, ${LANES.parked}, ${LANES.ended}), lease_until = NULL,
      blocked_reason = '${DAMAGED}',
    ended_at = iif(outcome IS NULL, NULL, coalesce(ended_at, ?1)),
    seq = max(seq, 1), attempt = max(attempt, 0), failures = max(failures, 0),
    crashes = max(crashes, 0), releases = max(releases, 0)
  WHERE rid = ?2`

function setOneAside(
  { machines }: Shared,
  connection: Connection,
  now: number,
  rid: number,
  why: string,
): Isolated[] {
  const find = (name: string, version: number) =>
    machines.at(machines.numberOf({ name, version }) ?? -1)
  const seen = dossier(connection, rid)
  if (seen === undefined) return []
  const isolation = isolationOf(seen, find, now, why)
  const { before, fact } = isolation
  const lifecycle = before && find(before.lifecycle, before.lifecycleVersion)
  if (lifecycle && fact) overwrite(connection, lifecycle, rid, before, fact)
  else connection.run(SET_LANE, now, rid)
  return [isolated(before?.id ?? seen.row?.id ?? String(rid), seen.row, isolation)]
}
