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
import { LOCK_JOB, overwrite, TX } from '../apply.ts'
import { candidates } from '../claim.ts'
import { type Session, type Statement, statement } from '../connect.ts'
import { isUuid } from '../context.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'
import { pendingTypes } from './outbox.ts'

/** How many rows of one lane are read. */
const LANE_ROWS = 200
/** How many queues are read, and how many rows of each. */
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
/** A lease that is too long is at the other end of the index. */
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
    ORDER BY priority, ${orderAt()}, id LIMIT ${QUEUE_ROWS}
  ) AS first`,
)
const SELECT_ONE = statement((s) => `${placed(s)} WHERE jobs.id = $1`)

const SET_LANE = statement(
  (s) => `
  UPDATE ${s}.jobs SET
    lane = CASE WHEN outcome IS NULL
      THEN ${LANES.parked} ELSE ${LANES.ended} END, lease_until = NULL, slots = NULL,
    blocked_reason = '${DAMAGED}',
    ended_at = CASE WHEN outcome IS NOT NULL THEN coalesce(ended_at, $1) END,
    seq = greatest(seq, 1), attempt = greatest(attempt, 0), failures = greatest(failures, 0),
    crashes = greatest(crashes, 0), releases = greatest(releases, 0)
  WHERE id = $2 RETURNING ${TX} AS tx`,
)

const SELECT_CLAIM = statement(
  (s) => `
  SELECT at, lease_until FROM ${s}.ledger
  WHERE job = $1 AND kind = ${FACT_CODES.claim} ORDER BY seq DESC LIMIT 1`,
)
const CUT_LEASE = statement(
  (s) => `
  UPDATE ${s}.jobs SET lease_until = $1 WHERE id = $2 AND lane = ${LANES.held}
  RETURNING ${TX} AS tx`,
)

const far = (s: string) => `
  SELECT far.eid FROM wanted CROSS JOIN LATERAL (
    SELECT eid FROM ${s}.outbox
    WHERE state = 'pending' AND type = wanted.type AND run_at > $2
      AND (claim IS NOT NULL OR run_at > $3)
    ORDER BY run_at DESC LIMIT ${QUEUE_ROWS}
  ) AS far`
const SELECT_FAR = statement((s) => `WITH ${pendingTypes(s)} ${far(s)}`)

const SET_DUE = statement(
  (s) => `
  UPDATE ${s}.outbox SET run_at = CASE WHEN claim IS NULL THEN $1::bigint ELSE $2 END
  WHERE eid = ANY (ARRAY (
    SELECT eid FROM ${s}.outbox
    WHERE eid = ANY ($3::bigint[]) AND state = 'pending' AND run_at > $4
    FOR UPDATE SKIP LOCKED)) RETURNING ${TX} AS tx`,
)

function toPlaced(row: PlacedRow) {
  return { row, ref: row.id }
}

/** Runs a statement that returns the number of its transaction, and keeps the number. */
async function write(
  session: Session,
  text: Statement,
  values: readonly (string | number | null)[],
): Promise<void> {
  const [written] = await session.query<{ tx: number }>(text, values)
  if (written !== undefined) session.wrote = { tx: written.tx }
}

export const ISOLATE = {
  async nextOfLanes({ session }: At) {
    const rows: PlacedRow[] = []
    for (const next of [SELECT_READY, SELECT_WAITING, SELECT_HELD, SELECT_ENDLESS]) {
      rows.push(...(await session.query<PlacedRow>(next)))
    }
    return rows.map(toPlaced)
  },
  claimCandidates: (at: At, request: ClaimRequest) => candidates(at, at.session, at.now, request),
  async lockPlaced({ session }: At, ref: Ref) {
    if (!isUuid(ref)) return undefined
    await session.query(LOCK_JOB, [ref])
    const [row] = await session.query<PlacedRow>(SELECT_ONE, [ref])
    return row && toPlaced(row)
  },
  async lastClaim({ session }: At, ref: Ref) {
    type Claim = Pick<FactRow, 'at' | 'lease_until'>
    const [claim] = await session.query<Claim>(SELECT_CLAIM, [ref])
    return claim
  },
  setLease: ({ session }: At, ref: Ref, until: number) => write(session, CUT_LEASE, [until, ref]),
  overwrite: ({ session }: At, { lifecycle, seq, before, fact }: Overwritten) =>
    overwrite(session, lifecycle, seq, before, fact),
  parkRow: ({ session, now }: At, ref: Ref) => write(session, SET_LANE, [now, ref]),
  async farEffects({ session }: At, { claimedMax, otherMax }: EffectBounds) {
    const rows = await session.query<{ eid: number }>(SELECT_FAR, [null, claimedMax, otherMax])
    return rows.map(({ eid }) => eid)
  },
  makeFarEffectsDue(
    { session, now }: At,
    eids: readonly number[],
    { claimedUntil, claimedMax }: EffectBounds,
  ) {
    return write(session, SET_DUE, [now, claimedUntil, arrayOf(eids), claimedMax])
  },
}
