/** Rows that may be damaged, and how they are set aside; the rules are in `../../damage.ts`. */
import { FACT_CODES } from '../../../core/job/facts.ts'
import { DAMAGED } from '../../../core/job/isolate.ts'
import { LANES } from '../../../core/job/lanes.ts'
import { orderAt } from '../../columns.ts'
import type { ClaimRequest, Ref } from '../../contract/store.ts'
import type { PlacedRow } from '../../damage.ts'
import type { EffectBounds } from '../../far-times.ts'
import type { FactRow } from '../../rows.ts'
import type { Overwritten } from '../../verbs/operations.ts'
import { overwrite } from '../apply.ts'
import { candidates, READY_QUEUES } from '../claim.ts'
import type { NumberedRow } from '../context.ts'
import type { At } from './at.ts'
import { pendingTypes } from './outbox.ts'

type Placed = NumberedRow & PlacedRow

/** How many rows of one lane are read. */
const LANE_ROWS = 200
/** How many queues are read, and how many rows of each at least. */
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
/** A lease that is too long is at the other end of the index. */
const SELECT_ENDLESS = `
  ${PLACED} WHERE lane = ${LANES.held} AND lease_until >= ${LEAST}
  ORDER BY lease_until DESC, rid DESC LIMIT ${QUEUE_ROWS_MIN}`
const SELECT_READY = `
  ${PLACED} WHERE lane = ${LANES.ready} AND queue = ? ORDER BY priority, ${orderAt()}, rid LIMIT ?`
const SOME_QUEUES = `${READY_QUEUES} LIMIT ${QUEUES_MAX}`
const SELECT_ONE = `${PLACED} WHERE rid = ?`
const SELECT_CLAIM = `
  SELECT at, lease_until FROM pawl_ledger
  WHERE job = ? AND kind = ${FACT_CODES.claim} ORDER BY seq DESC LIMIT 1`
const CUT_LEASE = `
  UPDATE pawl_jobs SET lease_until = ? WHERE rid = ? AND lane = ${LANES.held}`

const SELECT_FAR = `
  SELECT eid FROM pawl_outbox
  WHERE state = 'pending' AND type = ?1 AND run_at > ?2 AND (claim IS NOT NULL OR run_at > ?3)
  ORDER BY run_at DESC LIMIT ${QUEUE_ROWS_MIN}`

const SET_DUE = `
  UPDATE pawl_outbox SET run_at = iif(claim IS NULL, ?1, ?2)
  WHERE eid = ?3 AND state = 'pending' AND run_at > ?4`

const SET_LANE = `
  UPDATE pawl_jobs SET
    lane = iif(outcome IS NULL, ${LANES.parked}, ${LANES.ended}), lease_until = NULL, slots = NULL,
      blocked_reason = '${DAMAGED}',
    ended_at = iif(outcome IS NULL, NULL, coalesce(ended_at, ?1)),
    seq = max(seq, 1), attempt = max(attempt, 0), failures = max(failures, 0),
    crashes = max(crashes, 0), releases = max(releases, 0)
  WHERE rid = ?2`

function toPlaced(row: Placed) {
  return { row, ref: row.rid }
}

export const ISOLATE = {
  nextOfLanes({ connection }: At) {
    const queues = connection.all<{ queue: string }>(SOME_QUEUES)
    const share = Math.max(QUEUE_ROWS_MIN, Math.floor(LANE_ROWS / Math.max(1, queues.length)))
    const rows = [
      ...queues.flatMap(({ queue }) => connection.all<Placed>(SELECT_READY, queue, share)),
      ...connection.all<Placed>(SELECT_WAITING),
      ...connection.all<Placed>(SELECT_HELD),
      ...connection.all<Placed>(SELECT_ENDLESS),
    ]
    return rows.map(toPlaced)
  },
  claimCandidates: (at: At, request: ClaimRequest) =>
    candidates(at, at.connection, at.now, request),
  lockPlaced({ connection }: At, ref: Ref) {
    const row = connection.get<Placed>(SELECT_ONE, ref)
    return row && toPlaced(row)
  },
  lastClaim: ({ connection }: At, ref: Ref) =>
    connection.get<Pick<FactRow, 'at' | 'lease_until'>>(SELECT_CLAIM, ref),
  setLease({ connection }: At, ref: Ref, until: number) {
    connection.run(CUT_LEASE, until, ref)
  },
  overwrite({ connection }: At, { ref, lifecycle, before, fact }: Overwritten) {
    overwrite(connection, lifecycle, Number(ref), before, fact)
  },
  parkRow({ connection, now }: At, ref: Ref) {
    connection.run(SET_LANE, now, ref)
  },
  farEffects({ connection }: At, { claimedMax, otherMax }: EffectBounds) {
    return pendingTypes(connection).flatMap((type) =>
      connection.all<{ eid: number }>(SELECT_FAR, type, claimedMax, otherMax).map(({ eid }) => eid),
    )
  },
  makeFarEffectsDue(
    { connection, now }: At,
    eids: readonly number[],
    { claimedUntil, claimedMax }: EffectBounds,
  ) {
    for (const eid of eids) connection.run(SET_DUE, now, claimedUntil, eid, claimedMax)
  },
}
