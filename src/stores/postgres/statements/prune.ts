/** Ended jobs, and how they are removed. */
import { LANES } from '../../../core/job/lanes.ts'
import type { ArchivedFact, EndedJob, PrunedJob, PrunedRecord } from '../../archive.ts'
import type { Ref } from '../../contract/store.ts'
import { TX } from '../apply.ts'
import { statement } from '../connect.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

const SELECT_ENDED = statement(
  (s) => `
  SELECT id AS ref, id, seq, queue, state FROM ${s}.jobs
  WHERE lane = ${LANES.ended} AND ended_at < $1 ORDER BY ended_at, id LIMIT $2`,
)

const SELECT_FACTS = statement(
  (s) => `
  SELECT *, tx AS position FROM ${s}.ledger WHERE job = ANY ($1::uuid[]) ORDER BY job, seq`,
)

/** Jobs that another process is removing are left to it. */
const LOCK = statement(
  (s) => `
  SELECT jobs.id FROM ${s}.jobs
  JOIN unnest($1::uuid[], $2::int[]) AS pruned (id, seq)
    ON pruned.id = jobs.id AND jobs.id = ANY ($1::uuid[]) AND pruned.seq = jobs.seq
  WHERE jobs.outcome IS NOT NULL ORDER BY jobs.id FOR UPDATE OF jobs SKIP LOCKED`,
)

const remove = (table: string, column: string) =>
  statement((s) => `DELETE FROM ${s}.${table} WHERE ${column} = ANY ($1::uuid[])`)
const REMOVALS = [remove('jobs', 'id'), remove('ledger', 'job'), remove('outbox', 'job')]

const UNCOUNT = statement(
  (s) => `
  INSERT INTO ${s}.ended_counts (queue, state, jobs)
  SELECT queue, state, -count(*) FROM unnest($1::text[], $2::text[]) AS gone (queue, state)
  GROUP BY queue, state`,
)

const RECORD = statement(
  (s) => `
  INSERT INTO ${s}.pruned
    (at, jobs, facts, first_id, last_id, ended_before, sha256, archived, keys, operator, note)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING number, ${TX} AS tx`,
)

export const PRUNE = {
  endedJobs: ({ session }: At, endedBefore: number, limit: number) =>
    session.query<EndedJob>(SELECT_ENDED, [endedBefore, limit]),
  async factsOf({ session }: At, jobs: readonly EndedJob[]) {
    type Row = ArchivedFact & { readonly job: string }
    const facts = new Map<Ref, Row[]>(jobs.map(({ id }) => [id, []]))
    const ids = arrayOf(jobs.map(({ id }) => id))
    for (const row of await session.query<Row>(SELECT_FACTS, [ids])) facts.get(row.job)?.push(row)
    return facts
  },
  removeJobs,
  async recordPruned({ session, now }: At, record: PrunedRecord) {
    const rows = await session.query<{ number: number; tx: number }>(RECORD, [now, ...record])
    const [written] = rows as [{ number: number; tx: number }]
    session.wrote = { tx: written.tx }
    return written.number
  },
}

async function removeJobs({ session }: At, jobs: readonly PrunedJob[]): Promise<PrunedJob[]> {
  const rows = await session.query<{ id: string }>(LOCK, [
    arrayOf(jobs.map(({ id }) => id)),
    arrayOf(jobs.map(({ seq }) => seq)),
  ])
  const locked = new Set(rows.map(({ id }) => id))
  const removed = jobs.filter(({ id }) => locked.has(id))
  if (removed.length === 0) return []
  for (const removal of REMOVALS) await session.query(removal, [arrayOf([...locked])])
  await session.query(UNCOUNT, [
    arrayOf(removed.map(({ queue }) => queue)),
    arrayOf(removed.map(({ state }) => state)),
  ])
  return removed
}
