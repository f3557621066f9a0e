/** What a worker is made of, and how it works. */
import type { Job } from '../../core/job/job.ts'
import type { Environment } from '../../environment/system.ts'
import type { Store } from '../../stores/store.ts'
import type { JobDefinition } from '../define-job.ts'
import type { Dispatcher } from '../effects/dispatcher.ts'
import type { PawlEvent } from '../watching/events.ts'
import type { AttemptParts } from './attempt.ts'
import type { HeartbeatEvents, HeartbeatHost } from './heartbeat.ts'
import type { StuckPolicy } from './stuck.ts'

/** How a worker works; every field has a default that is fit for production. */
interface WorkerSettings {
  readonly id: string
  readonly concurrency: number
  readonly leaseMs: number
  /** The longest sleep of an idle worker that nobody wakes. */
  readonly pollMaxMs: number
  /** How often leases that have expired are looked for. */
  readonly recoverMs: number
  /** How long a stopping worker waits for its handlers before it tells them to stop. */
  readonly drainMs: number
  /** In order of preference; all queues if absent. */
  readonly queues: readonly string[] | undefined
  readonly onStuck: StuckPolicy
  /** After how long without a sign of life a handler is reported; 0 for never. */
  readonly stallWarningMs: number
}

/** What a worker is made of. */
export interface WorkerParts {
  readonly store: Store
  readonly environment: Environment
  readonly jobs: ReadonlyMap<string, JobDefinition>
  readonly settings: WorkerSettings
  readonly bounds: AttemptParts['bounds']
  readonly logger: AttemptParts['logger']
  readonly heartbeats: (events: HeartbeatEvents) => HeartbeatHost
  /** Delivers effects beside the worker, and stops with it. */
  readonly dispatcher: Dispatcher | undefined
  readonly observe: (event: PawlEvent) => void
  /** Called after the store has taken a report, with the job as it is then. */
  readonly onReported: (job: Job) => void
  readonly onStopped: () => void
}
