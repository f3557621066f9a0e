/**
 * Reports signals that a job did not receive before it ended. The ledger has them in any case: the
 * fact of a signal without a fact that received it. Only jobs of types that declare signals are
 * looked at, so others pay nothing.
 */
import type { Job } from '../../core/job/job.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { AnyJob } from '../job-types.ts'
import type { PawlEvent, UnreadSignal } from './events.ts'

type Observe = (event: PawlEvent) => void

/** Returns an observer that also emits `unread`. A read that fails is left to the doctor. */
export function observeUnread(
  observe: Observe,
  { waits }: Pick<Store, 'waits'>,
  jobs: ReadonlyMap<string, AnyJob>,
): Observe {
  return (event) => {
    observe(event)
    if (event.type !== 'moved' || event.job.outcome === null) return
    const { job, worker } = event
    if ((jobs.get(job.type)?.signals.length ?? 0) === 0) return
    unreadOf(waits, job).then(
      (signals) => {
        if (signals.length > 0) observe({ type: 'unread', worker, job, signals })
      },
      () => {},
    )
  }
}

async function unreadOf(waits: Store['waits'], { id }: Job): Promise<UnreadSignal[]> {
  const { signals } = await waits.history(id)
  return signals
    .filter(({ receivedBy }) => receivedBy === undefined)
    .map(({ seq, name, key }) => ({ seq, name, key }))
}
