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
import type { EndedCount } from '../../verbs/changes.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'

/** A job that has not ended may still read how the jobs ended that it has waited for. */
export const IS_FREE = `(links IS NULL OR (links & ${LINKS.awaited}) = 0 OR NOT EXISTS (
    SELECT 1 FROM pawl_links AS link JOIN pawl_jobs AS own ON own.id = link.waiter
    WHERE link.awaited = pawl_jobs.id AND own.outcome IS NULL))`

const SELECT_ENDED = `
  SELECT rid AS ref, id, seq, queue, state, flow, links FROM pawl_jobs
  WHERE lane = ${LANES.ended} AND ended_at < ? AND ${IS_FREE} ORDER BY ended_at, rid LIMIT ?`

const LISTED = '(SELECT value FROM json_each(?))'

const SELECT_FACTS = `
  SELECT *, pos AS position FROM pawl_ledger WHERE job IN ${LISTED} ORDER BY job, seq`

/** A list is cheaper than a statement for each job. */
const SELECT_LEFT = `
  SELECT rid, seq FROM pawl_jobs WHERE rid IN ${LISTED} AND lane = ${LANES.ended} AND ${IS_FREE}`

const REMOVALS = [
  `DELETE FROM pawl_jobs WHERE rid IN ${LISTED}`,
  `DELETE FROM pawl_ledger WHERE job IN ${LISTED}`,
  `DELETE FROM pawl_outbox WHERE job IN ${LISTED}`,
]

/** What refers to jobs that were removed. A flow is removed with its last job. */
const UNLINK = [
  'DELETE FROM pawl_links WHERE awaited IN (SELECT value FROM json_each(?))',
  'DELETE FROM pawl_links WHERE waiter IN (SELECT value FROM json_each(?))',
]
const REMOVE_FLOWS = `
  DELETE FROM pawl_flows WHERE id IN (SELECT value FROM json_each(?))
    AND NOT EXISTS (SELECT 1 FROM pawl_jobs WHERE pawl_jobs.flow = pawl_flows.id)`

const INSERT_PRUNED = `
  INSERT INTO pawl_pruned
    (at, jobs, facts, first_id, last_id, ended_before, sha256, archived, keys, operator, note)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const UNCOUNT = 'UPDATE pawl_ended_counts SET jobs = jobs - ? WHERE queue = ? AND state = ?'

export const PRUNE = {
  endedJobs: ({ connection }: At, endedBefore: number, limit: number) =>
    connection.all<EndedJob>(SELECT_ENDED, endedBefore, limit),
  factsOf({ connection }: At, jobs: readonly EndedJob[]) {
    const facts = new Map<Ref, ArchivedFact[]>(jobs.map(({ ref }) => [ref, []]))
    const rows = connection.all<ArchivedFact & { job: number }>(SELECT_FACTS, listOf(jobs))
    for (const row of rows) facts.get(row.job)?.push(row)
    return facts
  },
  removeJobs({ connection }: At, jobs: readonly PrunedJob[]) {
    const left = connection.all<{ rid: Ref; seq: number }>(SELECT_LEFT, listOf(jobs))
    const seqs = new Map(left.map(({ rid, seq }) => [rid, seq]))
    const removed = jobs.filter(({ ref, seq }) => seqs.get(ref) === seq)
    const list = listOf(removed)
    for (const removal of REMOVALS) connection.run(removal, list)
    unlink(connection, removed.filter(isLinked))
    for (const { queue, state, jobs } of countsOf(removed)) {
      connection.run(UNCOUNT, jobs, queue, state)
    }
    return removed
  },
  recordPruned({ connection, now }: At, record: PrunedRecord) {
    return Number(connection.sql(INSERT_PRUNED).run(now, ...record).lastInsertRowid)
  },
}

function unlink(connection: Connection, removed: readonly EndedJob[]): void {
  if (removed.length === 0) return
  const ids = JSON.stringify(removed.map(({ id }) => id))
  for (const removal of UNLINK) connection.run(removal, ids)
  connection.run(REMOVE_FLOWS, JSON.stringify(removed.flatMap(({ flow }) => flow ?? [])))
}

function listOf(jobs: readonly EndedJob[]): string {
  return JSON.stringify(jobs.map(({ ref }) => ref))
}

/** How many of these jobs ended in each queue and state. */
function countsOf(jobs: readonly EndedJob[]): Iterable<EndedCount> {
  const counts = new Map<string, EndedCount>()
  for (const { queue, state } of jobs) {
    const key = `${state}\0${queue}`
    counts.set(key, { queue, state, jobs: (counts.get(key)?.jobs ?? 0) + 1 })
  }
  return counts.values()
}
