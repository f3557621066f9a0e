/** What the doctor reads from a SQLite file: every row of a job at one moment, and counts. */

import { FACT_CODES } from '../../../core/job/facts.ts'
import type {
  CounterDrift,
  Duplicate,
  RawEffect,
  RawFact,
  RawJob,
  Scan,
  StoredJob,
} from '../../contract/examination.ts'
import type { Ref } from '../../contract/store.ts'
import { USABLE } from '../../machines.ts'
import { idInMark } from '../../rows.ts'
import { assemble, FACTS_MAX, isCut, type Owned } from '../../stored-jobs.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'
import { missingRows } from './seals.ts'

/** Results and payloads of steps may be large, and are not needed here. */
const INPUT = `CASE WHEN kind IN (${FACT_CODES.create}, ${FACT_CODES.replace}) THEN payload END`
const SELECT_JOBS = `
  SELECT *, rid AS job, rid AS handle FROM pawl_jobs WHERE rid > ? ORDER BY rid LIMIT ?`
const SELECT_JOB = 'SELECT *, rid AS job, rid AS handle FROM pawl_jobs WHERE rid = ?'
const SELECT_FACTS = `
  SELECT job, seq, kind, version, at, path, actor, attempt, statuses, claim, worker, lease_until,
    data, ${INPUT} AS payload, creates, pos AS handle
  FROM pawl_ledger
  WHERE job > ? AND job <= ? ORDER BY job, seq, pos LIMIT ?`
const SELECT_EFFECTS = `
  SELECT job, type, name, n, state, tries, run_at, claim, error, mark, eid AS handle
  FROM pawl_outbox
  WHERE job > ? AND job <= ? ORDER BY job, name, n LIMIT ?`
const SELECT_MACHINES = `SELECT id, name, version FROM pawl_machines WHERE ${USABLE}`

type NumberedJob = Owned<RawJob, number>

/** The next jobs by number, and facts and effects of numbers in between that no job has. */
function storedJobs(connection: Connection, after: Ref | undefined, limit: number): StoredJob[] {
  return asOfOneMoment(connection, () => {
    const from = Number(after ?? Number.MIN_SAFE_INTEGER)
    const jobs = connection.all<NumberedJob>(SELECT_JOBS, from, limit)
    const last = jobs.length < limit ? undefined : jobs[jobs.length - 1]?.job
    const to = last ?? Number.MAX_SAFE_INTEGER
    const page = readBetween(connection, from, to, jobs, FACTS_MAX)
    return page.map((one) => (isCut(one) ? (stored(connection, one.ref) ?? one) : one))
  })
}

/** Nothing was written, so it is rolled back: no transaction is left open if something fails. */
function asOfOneMoment<T>({ database }: Connection, read: () => T): T {
  database.exec('BEGIN')
  try {
    return read()
  } finally {
    if (database.isTransaction) database.exec('ROLLBACK')
  }
}

/** Everything of one number. */
export function stored(connection: Connection, ref: Ref): StoredJob | undefined {
  const jobs = connection.all<NumberedJob>(SELECT_JOB, ref)
  const rid = Number(ref)
  return readBetween(connection, rid - 1, rid, jobs, Number.MAX_SAFE_INTEGER)[0]
}

const SELECT_NUMBER = 'SELECT rid FROM pawl_jobs WHERE id = ?'

/** Everything of the job with this id. */
function storedJobOf(connection: Connection, id: string): StoredJob | undefined {
  return asOfOneMoment(connection, () => {
    const row = connection.get<{ rid: number }>(SELECT_NUMBER, id)
    return row && stored(connection, row.rid)
  })
}

function readBetween(
  connection: Connection,
  from: number,
  to: number,
  jobs: readonly NumberedJob[],
  max: number,
): StoredJob[] {
  const machines = connection.all<{ id: number; name: string; version: number }>(SELECT_MACHINES)
  return assemble({
    jobs,
    facts: connection.all<Owned<RawFact, number>>(SELECT_FACTS, from, to, max).map(withId),
    effects: connection.all<Owned<RawEffect, number>>(SELECT_EFFECTS, from, to, max),
    machines: new Map(machines.map(({ id, name, version }) => [id, { name, version }])),
    max,
  })
}

/** Changed in place: a copy of every row would double the cost. */
function withId<T extends { creates: string | null }>(fact: T): T {
  if (fact.creates !== null) fact.creates = idInMark(fact.creates)
  return fact
}

const DUPLICATE_IDS = `
  SELECT id FROM pawl_jobs GROUP BY id HAVING count(*) > 1 LIMIT ?`
const DUPLICATE_KEYS = `
  SELECT id, type, key FROM pawl_jobs WHERE (type, key) IN (
    SELECT type, key FROM pawl_jobs WHERE key IS NOT NULL GROUP BY type, key HAVING count(*) > 1
  ) ORDER BY type, key, rid LIMIT ?`

/** Ids and keys that several jobs have. */
function duplicates(connection: Connection, limit: number): Duplicate[] {
  return [
    ...connection.all<Duplicate>(DUPLICATE_IDS, limit),
    ...connection.all<Duplicate>(DUPLICATE_KEYS, limit),
  ]
}

const COUNTERS = `
  SELECT queue, state, sum(counted) AS counted, sum(actual) AS actual FROM (
    SELECT queue, state, jobs AS counted, 0 AS actual FROM pawl_ended_counts
    UNION ALL
    SELECT queue, state, 0, count(*) FROM pawl_jobs WHERE outcome IS NOT NULL GROUP BY queue, state
  ) GROUP BY queue, state HAVING sum(counted) <> sum(actual)`

const UNKNOWN_STATES = `
  SELECT DISTINCT state FROM pawl_jobs LEFT JOIN pawl_machines ON pawl_machines.id = machine
  WHERE definition IS NULL OR NOT json_valid(definition) OR NOT EXISTS (
    SELECT 1 FROM json_each(definition, '$.states') WHERE json_each.key = state
  ) LIMIT 10`
const NEGATIVE = `
  SELECT count(*) AS jobs FROM pawl_jobs
  WHERE min(attempt, failures, crashes, releases) < 0`

/** Counts values that Pawl never writes. */
function scan(connection: Connection): Scan {
  return {
    duplicates: connection.all(DUPLICATE_IDS, 1000).length,
    unknownStates: connection.all<{ state: string }>(UNKNOWN_STATES).map(({ state }) => state),
    negativeAttempts: connection.get<{ jobs: number }>(NEGATIVE)?.jobs ?? 0,
  }
}

/** What SQLite reports about its own file. */
function storage(connection: Connection): string[] {
  const rows = connection.all<{ integrity_check: string }>('PRAGMA integrity_check(100)')
  return rows.map((row) => row.integrity_check).filter((line) => line !== 'ok')
}

export const EXAMINE = {
  missingRows: ({ connection }: At) => missingRows(connection),
  scan: ({ connection }: At) => scan(connection),
  storage: ({ connection }: At) => storage(connection),
  storedJobs: ({ connection }: At, after: Ref | undefined, limit: number) =>
    storedJobs(connection, after, limit),
  storedJobOf: ({ connection }: At, id: string) => storedJobOf(connection, id),
  storedJob: ({ connection }: At, ref: Ref) => stored(connection, ref),
  duplicates: ({ connection }: At, limit: number) => duplicates(connection, limit),
  counters: ({ connection }: At) => connection.all<CounterDrift>(COUNTERS),
}
