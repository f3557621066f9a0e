/** Reports and retries of effects. */

import type { EffectReport } from '../../contract/store.ts'
import { STATE_AFTER } from '../../effects.ts'
import { NOTICE } from '../../notices.ts'
import type { DueEffect } from '../../verbs/operations.ts'
import type { Read } from '../../verbs/reading.ts'
import type { At } from './at.ts'

const OPEN_EFFECTS = `
  SELECT 1 FROM pawl_outbox
  WHERE job = ? AND state <> 'delivered' AND name <> '${NOTICE}' LIMIT 1`

const REPORT = `
  UPDATE pawl_outbox SET state = ?, run_at = ?, error = ?, tries = tries - ?, claim = NULL
  WHERE eid = ? AND claim = ? AND state = 'pending'`

const RESET_EFFECTS = `
  UPDATE pawl_outbox SET state = 'pending', tries = 0, error = NULL,
    run_at = CASE WHEN claim IS NOT NULL AND run_at > ?1 THEN run_at ELSE ?1 END
  WHERE job = ?2 AND state <> 'delivered' AND name <> '${NOTICE}'`

const RETRY = `
  UPDATE pawl_outbox SET state = 'pending', tries = 0, error = NULL, claim = NULL, run_at = ?1
  WHERE job = ?2 AND name = ?3 AND n = ?4 AND state <> 'delivered'
    AND (claim IS NULL OR run_at <= ?1) AND (state = 'parked' OR run_at > ?1 OR tries > 0)`

export const EFFECTS = {
  openEffects({ connection }: At, reads: readonly Read[]) {
    const open = reads.filter(({ ref }) => connection.get(OPEN_EFFECTS, ref) !== undefined)
    return new Set(open.map(({ job }) => job.id))
  },
  resetEffects({ connection, now }: At, reads: readonly Read[]) {
    for (const { ref } of reads) connection.run(RESET_EFFECTS, now, ref)
  },
  recordReports({ connection, now }: At, reports: readonly EffectReport[]) {
    return reports.map((report) => {
      const { effect, kind } = report
      const runAt = 'runAt' in report ? report.runAt : now
      const error = kind === 'delivered' ? null : report.error
      const untried = kind === 'released' ? 1 : 0
      const { ref, claim } = effect
      return connection.run(REPORT, STATE_AFTER[kind], runAt, error, untried, ref, claim) > 0
    })
  },
  makeEffectsDue({ connection, now }: At, effects: readonly DueEffect[]) {
    return effects.map(({ read, key }) => connection.run(RETRY, now, read.ref, key.name, key.n) > 0)
  },
}
