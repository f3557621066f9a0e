/** Facts of signals and waits on SQLite. */
import { FACT_CODES } from '../../../core/job/facts.ts'
import type { WaitFactRow } from '../../verbs/wait-tables.ts'
import type { At } from './at.ts'

// Sorted by the process: SQLite would copy the rows with their payloads to sort them.
const SELECT = `
  SELECT pawl_ledger.*, pawl_jobs.id AS job_id
  FROM json_each(?) AS asked
  CROSS JOIN pawl_jobs ON pawl_jobs.id = asked.value
  CROSS JOIN pawl_ledger ON pawl_ledger.job = pawl_jobs.rid
  WHERE kind IN (${FACT_CODES.signal}, ${FACT_CODES.receive}, ${FACT_CODES.wait})`

export const WAITS = {
  waitFacts: ({ connection }: At, ids: readonly string[]) =>
    [...connection.all<WaitFactRow>(SELECT, JSON.stringify(ids))].sort((a, b) => a.seq - b.seq),
}
