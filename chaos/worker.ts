/**
 * A worker process. It stops as a service does: SIGTERM closes Pawl, and nothing calls `exit`, so
 * that whatever kept a closed Pawl alive would keep the process alive as well.
 */
import { openPatiently, say, settings } from './child.ts'
import { jobsOf } from './jobs.ts'
import { DRAIN_MS, LEASE_MS } from './settings.ts'

const pawl = await openPatiently({ jobs: jobsOf(settings.store, settings.receiver) })
await pawl.work({
  id: settings.name,
  concurrency: 8,
  lease: LEASE_MS,
  drain: DRAIN_MS,
  poll: '250ms',
  recover: '300ms',
  onEvent(event) {
    if (event.type === 'lost') say({ kind: 'lost', jobId: event.job.id })
  },
})
process.once('SIGTERM', () => void pawl.close().then(() => process.disconnect()))
say({ kind: 'ready' })
