import { unreadSignals } from '../../core/job/wait-promise.ts'
import type { JobCheck } from './check.ts'
import { signalFacts } from './facts-keep-promises.ts'

const SHOWN = 5

/** A signal that no wait received before the job ended is lost for the job, but not hidden. */
export const signalsAreRead: JobCheck = {
  ...signalFacts,
  look: (examined, context) => {
    const { id, facts, lane } = examined
    const unread = lane === 'ended' ? unreadSignals(facts) : []
    const names = [...new Set(unread.map(({ signal }) => signal?.name))].slice(0, SHOWN)
    const many = unread.length === 1 ? '1 signal was' : `${unread.length} signals were`
    const what = `it ended, and ${many} not received: ${names.join(', ')}`
    const evidence = { facts: unread.map(({ seq }) => seq).slice(0, SHOWN) }
    const advice = `pawl job show ${id}`
    return [
      ...signalFacts.look(examined, context),
      ...(unread.length > 0 ? [{ what, severity: 'notice', evidence, advice } as const] : []),
    ]
  },
}
