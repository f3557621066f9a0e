import { stamp } from '../../environment/times.ts'
import { NOTICE, NOTICES_MAX } from '../../stores/notices.ts'
import type { Finding } from '../finding.ts'
import type { StoreCheck } from './check.ts'

const RECEIVE = 'pawl work --jobs FILE --notify-url URL'

/** Jobs with `notify` write notices also if no process delivers them. */
export const noticesAreReceived: StoreCheck = {
  name: 'notices-are-received',
  promise: 'P10',
  says: 'Every notice of a job that ended or was parked is delivered in time.',
  look: async ({ store, now, thresholds }) => {
    const notices = await store.examination.undeliveredNotices(now - thresholds.dueMs)
    const { overdue, since, parked } = notices
    const findings: Omit<Finding, 'check'>[] = []
    const found = (what: string, advice: string) =>
      findings.push({
        ...{ promise: 'P10', severity: 'warning', subject: 'notices', what, advice },
        evidence: { ...notices },
      })
    if (overdue > 0 && since !== null) {
      found(
        `${counted(overdue)} overdue since ${stamp(since)}: no process delivers them`,
        `Give a worker a receiver: ${RECEIVE}`,
      )
    }
    if (parked > 0) {
      const retry = 'pawl effect retry --notices --state parked --reason …'
      found(`${counted(parked)} parked`, `Start a receiver (${RECEIVE}), then: ${retry}`)
    }
    return findings
  },
}

function counted(count: number): string {
  if (count >= NOTICES_MAX) return `${NOTICES_MAX} notices or more are`
  return count === 1 ? '1 notice is' : `${count} notices are`
}

/** Notices are effects, but only this check reports them. */
export function isNotice({ name }: { readonly name: string }): boolean {
  return name === NOTICE
}
