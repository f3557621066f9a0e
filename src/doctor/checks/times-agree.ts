import { span } from '../../core/format.ts'
import { STEP_MS } from '../../core/time-base.ts'
import { stamp } from '../../environment/times.ts'
import type { TimeStatus } from '../../stores/store-time.ts'
import type { Finding } from '../finding.ts'
import type { StoreCheck } from './check.ts'

/** How long a change of the file time is reported. */
const NOTICED_MS = 24 * 60 * 60 * 1000

/** Compares the file time of a SQLite file with the wall clock of this process. */
export const timesAgree: StoreCheck = {
  name: 'times-agree',
  promise: 'P11',
  says: 'The time of a SQLite file is the wall time of the machine.',
  look: async ({ store, now }) => {
    const status = store.timeStatus?.()
    return status === undefined ? [] : compare(status, now)
  },
}

function compare(status: TimeStatus, now: number): Omit<Finding, 'check'>[] {
  const { aheadMs, leftMs, last } = status
  const about = {
    promise: 'P11',
    subject: 'the time of the file',
    evidence: { ...status },
  } as const
  const by = span(Math.abs(aheadMs))
  if (Math.abs(aheadMs - leftMs) > STEP_MS) {
    const what = `it is ${by} ${aheadMs > 0 ? 'ahead of' : 'behind'} the wall clock of this process`
    const advice =
      'Compare the clocks of the processes that use the file. If all agree with each other, ' +
      'restart one of the workers: it then follows the wall clock.'
    return [{ ...about, severity: 'warning', what, advice }]
  }
  if (leftMs > STEP_MS) {
    const what = `it is ${by} ahead of the wall clock, and runs slower until they agree`
    return [{ ...about, severity: 'notice', what }]
  }
  if (last.reason === 'repaired' && now - last.at <= NOTICED_MS) {
    const what = `its newest base was damaged and was replaced at ${stamp(last.at)}`
    return [{ ...about, severity: 'notice', what }]
  }
  if (last.reason !== 'forward' || now - last.at > NOTICED_MS) return []
  const what = `it was moved forward by ${span(last.movedMs)} to wall time at ${stamp(last.at)}`
  return [{ ...about, severity: 'notice', what }]
}
