/** Reports and retries of effects. */

import type { EffectReport } from '../../contract/store.ts'
import { STATE_AFTER } from '../../effects.ts'
import { NOTICE } from '../../notices.ts'
import type { DueEffect } from '../../verbs/operations.ts'
import type { Read } from '../../verbs/reading.ts'
import { TX } from '../apply.ts'
import { statement } from '../connect.ts'
import { isStorable, isUuid } from '../context.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'
import { idsOf } from './jobs.ts'

const OPEN_EFFECTS = statement(
  (s) => `
  SELECT DISTINCT job FROM ${s}.outbox
  WHERE job = ANY ($1::uuid[]) AND state <> 'delivered' AND name <> '${NOTICE}'`,
)

const REPORT = statement(
  (s) => `
  UPDATE ${s}.outbox SET
    state = report.state, run_at = report.run_at, error = report.error,
    tries = outbox.tries - report.untried, claim = NULL
  FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::int[])
    AS report (eid, claim, state, run_at, error, untried)
  WHERE outbox.eid = report.eid AND outbox.eid = ANY ($1::bigint[])
    AND outbox.claim = report.claim
  RETURNING report.eid || ' ' || report.claim AS hold, ${TX} AS tx`,
)

/** The effect of a report, under the claim of its reporter. */
function holdOf({ effect }: EffectReport): string {
  return `${effect.ref} ${effect.claim}`
}

const RESET_EFFECTS = statement(
  (s) => `
  UPDATE ${s}.outbox SET state = 'pending', tries = 0, error = NULL,
    run_at = CASE WHEN claim IS NOT NULL AND run_at > $1 THEN run_at ELSE $1 END
  WHERE job = ANY ($2::uuid[]) AND state <> 'delivered' AND name <> '${NOTICE}'`,
)

const RETRY = statement(
  (s) => `
  UPDATE ${s}.outbox SET state = 'pending', tries = 0, error = NULL, claim = NULL, run_at = $1
  FROM unnest($2::uuid[], $3::text[], $4::int[]) AS asked (job, name, n)
  WHERE outbox.job = asked.job AND outbox.job = ANY ($2::uuid[])
    AND outbox.name = asked.name AND outbox.n = asked.n AND outbox.state <> 'delivered'
    AND (outbox.claim IS NULL OR outbox.run_at <= $1)
    AND (outbox.state = 'parked' OR outbox.run_at > $1 OR outbox.tries > 0)
  RETURNING outbox.job, outbox.name, outbox.n`,
)

export const EFFECTS = {
  async openEffects({ session }: At, reads: readonly Read[]) {
    const rows = await session.query<{ job: string }>(OPEN_EFFECTS, [idsOf(reads)])
    return new Set(rows.map(({ job }) => job))
  },
  async resetEffects({ session, now }: At, reads: readonly Read[]) {
    if (reads.length > 0) await session.query(RESET_EFFECTS, [now, idsOf(reads)])
  },
  recordReports,
  async makeEffectsDue({ session, now }: At, effects: readonly DueEffect[]) {
    // The driver refuses texts that the database cannot hold.
    const asked = effects.filter(({ key }) => isStorable(key.name))
    type Due = { job: string; name: string; n: number }
    const rows = await session.query<Due>(RETRY, [
      now,
      arrayOf(asked.map(({ key }) => key.jobId)),
      arrayOf(asked.map(({ key }) => key.name)),
      arrayOf(asked.map(({ key }) => key.n)),
    ])
    const due = new Set(rows.map(({ job, name, n }) => `${job}/${n}/${name}`))
    // If an effect is named twice, the first counts.
    return effects.map(({ key }) => due.delete(`${key.jobId}/${key.n}/${key.name}`))
  },
}

async function recordReports(
  { session, now }: At,
  reports: readonly EffectReport[],
): Promise<boolean[]> {
  // The first of several reports under one claim counts. Those of earlier claims do not hide it.
  const first = new Map<string, EffectReport>()
  for (const report of reports) {
    const { ref, claim } = report.effect
    const isSound = Number.isSafeInteger(ref) && isUuid(claim)
    if (isSound && !first.has(holdOf(report))) first.set(holdOf(report), report)
  }
  const given = [...first.values()]
  const rows = await session.query<{ hold: string; tx: number }>(REPORT, [
    arrayOf(given.map(({ effect }) => effect.ref)),
    arrayOf(given.map(({ effect }) => effect.claim)),
    arrayOf(given.map(({ kind }) => STATE_AFTER[kind])),
    arrayOf(given.map((report) => ('runAt' in report ? report.runAt : now))),
    arrayOf(given.map((report) => (report.kind === 'delivered' ? null : report.error))),
    arrayOf(given.map(({ kind }) => (kind === 'released' ? 1 : 0))),
  ])
  if (rows[0] !== undefined) session.wrote = { tx: rows[0].tx }
  const done = new Set(rows.map(({ hold }) => hold))
  return reports.map(
    (report) => first.get(holdOf(report)) === report && done.delete(holdOf(report)),
  )
}
