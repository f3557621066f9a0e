/** Ended jobs, and how they are removed. */
import { LANES } from '../../../core/job/lanes.ts'
import type { ArchivedFact, EndedJob, PrunedJob, PrunedRecord } from '../../archive.ts'
import { noteRemovals } from '../seals.ts'
import type { At } from './at.ts'

const SELECT_ENDED = `
  SELECT rid AS ref, id, seq, queue, state FROM pawl_jobs
  WHERE lane = ${LANES.ended} AND ended_at < ? ORDER BY ended_at, rid LIMIT ?`

const SELECT_FACTS = 'SELECT *, pos AS position FROM pawl_ledger WHERE job = ? ORDER BY seq'

const INSERT_PRUNED = `
  INSERT INTO pawl_pruned (at, jobs, facts, first_id, last_id, ended_before, sha256, archived)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

const UNCOUNT = 'UPDATE pawl_ended_counts SET jobs = jobs - 1 WHERE queue = ? AND state = ?'

const REMOVE = `DELETE FROM pawl_jobs WHERE rid = ? AND seq = ? AND lane = ${LANES.ended}`

export const PRUNE = {
  endedJobs: ({ connection }: At, endedBefore: number, limit: number) =>
    connection.all<EndedJob>(SELECT_ENDED, endedBefore, limit),
  factsOf({ connection }: At, jobs: readonly EndedJob[]) {
    return new Map(jobs.map(({ ref }) => [ref, connection.all<ArchivedFact>(SELECT_FACTS, ref)]))
  },
  /** The write lock keeps them already. */
  holdSeals() {},
  removeJobs({ connection }: At, jobs: readonly PrunedJob[]) {
    return jobs.filter(({ ref, seq, queue, state }) => {
      if (connection.run(REMOVE, ref, seq) === 0) return false
      connection.run('DELETE FROM pawl_ledger WHERE job = ?', ref)
      connection.run('DELETE FROM pawl_outbox WHERE job = ?', ref)
      connection.run(UNCOUNT, queue, state)
      return true
    })
  },
  recordPruned({ connection, now }: At, record: PrunedRecord) {
    return Number(connection.sql(INSERT_PRUNED).run(now, ...record).lastInsertRowid)
  },
  noteRemovals(
    { connection }: At,
    record: number,
    collected: readonly PrunedJob[],
    removed: readonly PrunedJob[],
  ) {
    noteRemovals(connection, record, collected, removed)
  },
}
