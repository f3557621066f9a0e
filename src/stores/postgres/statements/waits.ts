/** Facts of signals and waits on PostgreSQL. */
import { FACT_CODES } from '../../../core/job/facts.ts'
import type { WaitFactRow } from '../../verbs/wait-tables.ts'
import { statement } from '../connect.ts'
import { isUuid } from '../context.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

const SELECT = statement(
  (s) => `
  SELECT *, job AS job_id FROM ${s}.ledger
  WHERE job = ANY ($1::uuid[])
    AND kind IN (${FACT_CODES.signal}, ${FACT_CODES.receive}, ${FACT_CODES.wait})
  ORDER BY job, seq`,
)

export const WAITS = {
  waitFacts: ({ session }: At, ids: readonly string[]) =>
    session.query<WaitFactRow>(SELECT, [arrayOf(ids.filter(isUuid))]),
}
