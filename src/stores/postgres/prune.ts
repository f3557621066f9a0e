/**
 * Retention removes whole ended jobs, oldest first: the rows, then their facts and effects, in one
 * transaction that also leaves a record of what was removed (how many, which range, and a hash over
 * the removed lines). By that record the doctor tells retention from vandalism.
 *
 * With an archive the lines are handed over before anything is removed. A crash in between archives
 * them a second time, and never removes what was not archived.
 */
import { LANES } from '../../core/job/lanes.ts'
import { linesOf, recordOf, type Sheaf } from '../archive.ts'
import type { FactRow } from '../rows.ts'
import { TX } from './apply.ts'
import { type Session, statement } from './connect.ts'
import { arrayOf } from './rows-at-once.ts'
import { holdSeals, noteRemovals } from './seals.ts'

const SELECT_ENDED = statement(
  (s) => `
  SELECT id, seq, queue, state FROM ${s}.jobs
  WHERE lane = ${LANES.ended} AND ended_at < $1 ORDER BY ended_at, id LIMIT $2`,
)

const SELECT_FACTS = statement(
  (s) => `SELECT * FROM ${s}.ledger WHERE job = ANY ($1::uuid[]) ORDER BY job, seq`,
)

/** Collects up to `limit` jobs that ended before a time. */
export async function harvest(
  session: Session,
  endedBefore: number,
  limit: number,
): Promise<Sheaf[]> {
  type Ended = Omit<Sheaf, 'lines' | 'places'>
  type Row = FactRow & { job: string; tx: number; payload: string | null }
  const jobs = await session.query<Ended>(SELECT_ENDED, [endedBefore, limit])
  const rows = new Map(jobs.map(({ id }) => [id, [] as Row[]]))
  for (const row of await session.query<Row>(SELECT_FACTS, [arrayOf([...rows.keys()])])) {
    rows.get(row.job)?.push(row)
  }
  const sheaves = jobs.map((job) => {
    const own = rows.get(job.id) ?? []
    const lines = linesOf(job.id, own)
    return { ...job, lines, places: own.map(({ tx }) => tx) }
  })
  // One without facts was removed by another process in between, and one that cannot be read is
  // kept for the doctor: there is nothing to archive.
  return sheaves.filter((sheaf) => sheaf.lines.length > 0)
}

/** What another process is removing is left to it. */
const LOCK = statement(
  (s) => `
  SELECT jobs.id FROM ${s}.jobs
  JOIN unnest($1::uuid[], $2::int[]) AS sheaf (id, seq)
    ON sheaf.id = jobs.id AND jobs.id = ANY ($1::uuid[]) AND sheaf.seq = jobs.seq
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
  INSERT INTO ${s}.pruned (at, jobs, facts, first_id, last_id, ended_before, sha256, archived)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING number, ${TX} AS tx`,
)

/**
 * Removes what was collected and leaves a record of it. A job that others have removed, or that has
 * changed since it was collected, was not archived as it is, and is left alone.
 */
export async function removeHarvest(
  session: Session,
  now: number,
  sheaves: readonly Sheaf[],
  endedBefore: number,
  archived: boolean,
): Promise<number> {
  await holdSeals(session)
  const rows = await session.query<{ id: string }>(LOCK, [
    arrayOf(sheaves.map(({ id }) => id)),
    arrayOf(sheaves.map(({ seq }) => seq)),
  ])
  const locked = new Set(rows.map(({ id }) => id))
  const removed = sheaves.filter(({ id }) => locked.has(id))
  const [first, ...others] = removed
  if (first === undefined) return 0
  for (const removal of REMOVALS) await session.query(removal, [arrayOf([...locked])])
  await session.query(UNCOUNT, [
    arrayOf(removed.map(({ queue }) => queue)),
    arrayOf(removed.map(({ state }) => state)),
  ])
  const values = [now, ...recordOf([first, ...others], endedBefore), archived ? 1 : 0]
  const [record] = await session.query<{ number: number; tx: number }>(RECORD, values)
  if (record === undefined) return 0
  await noteRemovals(session, record.number, sheaves, removed)
  session.wrote = { tx: record.tx }
  return removed.length
}
