/** Ended jobs, and how they are removed. */
import { LANES } from '../../../core/job/lanes.ts'
import { LINKS } from '../../../core/job/links.ts'
import {
  type ArchivedFact,
  type EndedJob,
  isLinked,
  type PrunedJob,
  type PrunedRecord,
} from '../../archive.ts'
import type { Ref } from '../../contract/store.ts'
import { TX } from '../apply.ts'
import { type Session, statement } from '../connect.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

/**
 * A job that has not ended may still read how the jobs ended that it has waited for. Two scalar
 * subqueries: for a join, the planner might read all jobs.
 */
export const isFree = (s: string): string =>
  `(jobs.links IS NULL OR (jobs.links & ${LINKS.awaited}) = 0 OR (
    SELECT true FROM ${s}.links AS link
    WHERE link.awaited = jobs.id
      AND (SELECT own.outcome IS NULL FROM ${s}.jobs AS own WHERE own.id = link.waiter)
    LIMIT 1) IS NULL)`

const SELECT_ENDED = statement(
  (s) => `
  SELECT id AS ref, id, seq, queue, state, flow, links FROM ${s}.jobs
  WHERE lane = ${LANES.ended} AND ended_at < $1 AND ${isFree(s)} ORDER BY ended_at, id LIMIT $2`,
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
  WHERE jobs.outcome IS NOT NULL AND ${isFree(s)}
  ORDER BY jobs.id FOR UPDATE OF jobs SKIP LOCKED`,
)

const remove = (table: string, column: string) =>
  statement((s) => `DELETE FROM ${s}.${table} WHERE ${column} = ANY ($1::uuid[])`)
const REMOVALS = [remove('jobs', 'id'), remove('ledger', 'job'), remove('outbox', 'job')]

/** What refers to jobs that were removed. A flow is removed with its last job. */
const UNLINK = [remove('links', 'awaited'), remove('links', 'waiter')]
const REMOVE_FLOWS = statement(
  (s) => `
  DELETE FROM ${s}.flows WHERE id = ANY ($1::uuid[])
    AND NOT EXISTS (SELECT 1 FROM ${s}.jobs WHERE jobs.flow = flows.id)`,
)

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

async function unlink(session: Session, removed: readonly EndedJob[]): Promise<void> {
  if (removed.length === 0) return
  const ids = arrayOf(removed.map(({ id }) => id))
  for (const removal of UNLINK) await session.query(removal, [ids])
  await session.query(REMOVE_FLOWS, [arrayOf(removed.flatMap(({ flow }) => flow ?? []))])
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
  await unlink(session, removed.filter(isLinked))
  await session.query(UNCOUNT, [
    arrayOf(removed.map(({ queue }) => queue)),
    arrayOf(removed.map(({ state }) => state)),
  ])
  return removed
}
