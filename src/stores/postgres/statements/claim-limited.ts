/** Claims of jobs that have limits. */
import { LANES } from '../../../core/job/lanes.ts'
import type { Gate } from '../../../core/limits/gates.ts'
import { orderAt } from '../../columns.ts'
import type { ClaimRequest, Held } from '../../contract/store.ts'
import type {
  BlockedJob,
  BlockedKeys,
  GrantedJob,
  Look,
  OpenQueue,
  ReadyJob,
} from '../../verbs/claim-limited.ts'
import { readyQueues, takeGranted } from '../claim.ts'
import { statement } from '../connect.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

const SELECT_SETTINGS = statement(
  (s) => `
  WITH RECURSIVE ${readyQueues(s, '$1')}
  SELECT wanted.name AS queue, coalesce(queues.gated, 0) AS gated,
    coalesce(queues.rotates, 0) AS rotates FROM (
    SELECT name, place FROM unnest($1::text[]) WITH ORDINALITY AS asked (name, place)
    UNION ALL
    SELECT name, 0 FROM ready WHERE $1::text[] IS NULL AND name IS NOT NULL
    UNION
    SELECT name, 0 FROM ${s}.queues WHERE $1::text[] IS NULL AND rotates = 1
  ) AS wanted LEFT JOIN ${s}.queues ON queues.name = wanted.name
  WHERE queues.paused_at IS NULL ORDER BY wanted.place, wanted.name`,
)

const LOCK_READY = statement(
  (s) => `
  SELECT first.* FROM unnest($4::text[], $5::int[]) AS look (name, size) CROSS JOIN LATERAL (
    SELECT id AS ref, queue, priority, ${orderAt()} AS "orderAt", created_at AS "createdAt",
      limit_key AS "limitKey"
    FROM ${s}.jobs
    WHERE lane = ${LANES.ready} AND queue = look.name AND run_at <= $1
      AND state = ($2::text[])[machine]
      AND ($3::text[] IS NULL OR type = ANY ($3::text[]))
    ORDER BY priority, ${orderAt()}, id LIMIT look.size FOR UPDATE SKIP LOCKED
  ) AS first`,
)

const BLOCK = statement(
  (s) => `
  UPDATE ${s}.jobs SET lane = ${LANES.blocked}, blocked_on = item.gate
  FROM unnest($1::uuid[], $2::text[]) AS item (id, gate)
  WHERE jobs.id = item.id AND jobs.id = ANY ($1::uuid[])`,
)

/** Not ordered by the update: the rows are locked by the subquery, and others are left out. */
const SKIM = statement(
  (s) => `
  UPDATE ${s}.jobs SET lane = ${LANES.blocked}, blocked_on = item.gate
  FROM unnest($1::text[], $2::text[]) AS item (limit_key, gate)
  WHERE jobs.limit_key = item.limit_key AND jobs.id = ANY (ARRAY (
    SELECT ready.id FROM unnest($3::text[], $4::int[]) AS look (name, size) CROSS JOIN LATERAL (
      SELECT id FROM (
        SELECT id, limit_key FROM ${s}.jobs WHERE lane = ${LANES.ready} AND queue = look.name
        ORDER BY priority, ${orderAt()}, id LIMIT look.size FOR UPDATE SKIP LOCKED
      ) AS first WHERE first.limit_key = ANY ($1::text[])
    ) AS ready))`,
)

export const CLAIM_LIMITED = {
  async openQueues({ session }: At, { queues }: ClaimRequest) {
    const asked = queues === undefined ? null : arrayOf(queues)
    type Row = { readonly queue: string; readonly gated: number; readonly rotates: number }
    const rows = await session.query<Row>(SELECT_SETTINGS, [asked])
    return rows.map(({ queue, gated, rotates }): OpenQueue => {
      return { queue, gated: gated === 1, rotates: rotates === 1 }
    })
  },
  lockReady(
    { session, machines, now }: At,
    looks: readonly Look[],
    { types }: ClaimRequest,
  ): Promise<ReadyJob[]> {
    return session.query<ReadyJob>(LOCK_READY, [
      now,
      machines.readyStates,
      types === undefined ? null : arrayOf(types),
      arrayOf(looks.map(({ queue }) => queue)),
      arrayOf(looks.map(({ limit }) => limit)),
    ])
  },
  takeJobs(
    at: At,
    jobs: readonly GrantedJob[],
    claim: string,
    request: ClaimRequest,
    gates: readonly Gate[],
  ): Promise<Held[]> {
    return takeGranted(at, at.session, at.now, jobs, claim, request, gates)
  },
  async blockJobs({ session }: At, jobs: readonly BlockedJob[]) {
    const ids = arrayOf(jobs.map(({ ref }) => ref))
    await session.query(BLOCK, [ids, arrayOf(jobs.map(({ by }) => by))])
  },
  async skim({ session }: At, keys: readonly BlockedKeys[], looks: readonly Look[]) {
    if (keys.length === 0) return
    await session.query(SKIM, [
      arrayOf(keys.map(({ limitKey }) => limitKey)),
      arrayOf(keys.map(({ by }) => by)),
      arrayOf(looks.map(({ queue }) => queue)),
      arrayOf(looks.map(({ limit }) => limit)),
    ])
  },
}
