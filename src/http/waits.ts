/** What a job waits for, for routes and commands. */
import type { Job } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { WaitHistory, WaitRecord } from '../stores/contract/waits.ts'

/**
 * Returns the wait of a job that waits now. A job that was woken, has ended or is parked has a wait
 * without an end as well, so its state counts.
 */
export function currentWait(
  lifecycles: readonly Lifecycle[],
  job: Job,
  { waits }: WaitHistory,
): WaitRecord | undefined {
  const lifecycle = lifecycles.find(
    ({ name, version }) => name === job.lifecycle && version === job.lifecycleVersion,
  )
  if (job.state !== lifecycle?.targets.get('wait')) return undefined
  return waits.findLast(({ end }) => end === undefined)
}
