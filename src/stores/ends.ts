/**
 * How jobs turned out, in one word for all lifecycles. States and outcomes differ between
 * lifecycles. A job whose retries are exhausted ends as failed in `leased` and is parked in
 * `standard`. In `hardened`, a job in the state `failed` still waits for its retry. The four words
 * of the condition `outcome` mean the same everywhere:
 *
 *   succeeded   ended as succeeded
 *   failed      ended as failed, or parked because an attempt failed or all retries are used up
 *   cancelled   cancelled, whatever the lifecycle makes of it
 *   parked      waits for an operator for any reason, so it includes some failed jobs
 */
import { DAMAGED } from '../core/job/isolate.ts'
import { LANES } from '../core/job/lanes.ts'

export const OUTCOME_WORDS = ['succeeded', 'failed', 'cancelled', 'parked'] as const

/** A word of the condition `outcome`. */
export type OutcomeWord = (typeof OUTCOME_WORDS)[number]

/** Reasons of parked jobs that no attempt caused. */
const NOT_FAILED = ['parked', 'cancelled', 'forced', 'repaired', DAMAGED]
const list = NOT_FAILED.map((reason) => `'${reason}'`).join(', ')
const PARKED = `lane = ${LANES.parked}`
const FAILED_PARKED = `(${PARKED} AND error IS NOT NULL AND COALESCE(reason, '') NOT IN (${list}))`

/** Whether a job has failed, in SQL of both databases. */
export const HAS_FAILED = `((outcome = 'failed' AND COALESCE(reason, '') <> 'cancelled')
  OR ${FAILED_PARKED})`

/** The condition in SQL of both databases; its parameter is an `OutcomeWord`. */
export const OUTCOME_IS = `(CASE CAST(? AS TEXT)
  WHEN 'succeeded' THEN outcome = 'succeeded'
  WHEN 'parked' THEN ${PARKED}
  WHEN 'cancelled' THEN outcome = 'cancelled'
    OR ((outcome = 'failed' OR ${PARKED}) AND reason = 'cancelled')
  WHEN 'failed' THEN ${HAS_FAILED} END)`
