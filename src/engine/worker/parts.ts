import type { Job } from '../../core/job/job.ts'
import type { Environment } from '../../environment/system.ts'
import type { JobTypeDeclaration } from '../../stores/contract/job-types.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { JobDefinition } from '../define-job.ts'
import type { Dispatcher } from '../effects/dispatcher.ts'
import type { SignalTokens } from '../signal-tokens.ts'
import type { Tracer } from '../tracing/tracer.ts'
import type { PawlEvent } from '../watching/events.ts'
import type { AttemptParts } from './attempt-parts.ts'
import type { HeartbeatEvents, HeartbeatHost } from './heartbeat.ts'
import type { StuckPolicy } from './stuck.ts'

/** The settings of a worker, with defaults applied. */
interface WorkerSettings {
  readonly id: string
  readonly concurrency: number
  readonly leaseMs: number
  /** The longest wait between two claims of an idle worker. */
  readonly pollMaxMs: number
  /** How often the worker looks for expired leases. */
  readonly recoverMs: number
  /** How long a stopping worker waits for its handlers before it aborts them. */
  readonly drainMs: number
  /** In order of preference; all queues if absent. */
  readonly queues: readonly string[] | undefined
  readonly onStuck: StuckPolicy
  /** After how long without activity the event `silent` reports a handler; 0 for never. */
  readonly stallWarningMs: number
}

/** What a worker is built from. */
export interface WorkerParts {
  readonly store: Store
  readonly environment: Environment
  readonly jobs: ReadonlyMap<string, JobDefinition>
  /** What it declares of these job types. */
  readonly declared: readonly JobTypeDeclaration[]
  readonly settings: WorkerSettings
  readonly bounds: AttemptParts['bounds']
  readonly logger: AttemptParts['logger']
  readonly enqueue: AttemptParts['enqueue']
  readonly redact: AttemptParts['redact']
  readonly tokens?: SignalTokens
  readonly heartbeats: (events: HeartbeatEvents) => HeartbeatHost
  /** Whether a separate thread renews the leases, or a timer of the main thread. */
  /** The names of the schedules of this process; absent if there are many. */
  readonly schedules: readonly string[] | undefined
  readonly renewal: 'thread' | 'timer'
  /** What to do so that a thread renews them; absent if there is one, or cannot be one. */
  readonly renewalAdvice?: string
  /** Delivers effects; stops together with the worker. */
  readonly dispatcher: Dispatcher | undefined
  /** Makes spans; absent without tracing. */
  readonly tracer: Tracer | undefined
  readonly observe: (event: PawlEvent) => void
  /** Whether the events of each job are received: its start, its report and moves of slots. */
  readonly isHeard: boolean
  /** Called after the store has recorded a report, with the job after it. */
  readonly onReported: (job: Job) => void
  readonly onStopped: () => void
}
