import type { JsonBounds } from '../../core/canonical-json.ts'
import type { FailureContext } from '../../core/failure.ts'
import type { Job } from '../../core/job/job.ts'
import type { Logger } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import type { FlowTables } from '../../stores/contract/flows.ts'
import type { Held, Store } from '../../stores/contract/store.ts'
import type { ScheduleContext } from '../schedules/schedule-context.ts'
import type { SignalTokens } from '../signal-tokens.ts'
import type { AttemptTrace } from '../tracing/attempt-trace.ts'
import type { EnqueueOne } from './children.ts'
import type { Leftover } from './handed.ts'
import type { StepStore } from './steps.ts'
import type { WaitStore } from './waits.ts'

/** What attempts need from their worker; one for all of them, unless they have spans. */
export interface AttemptParts {
  readonly environment: Environment
  readonly bounds: JsonBounds
  readonly store: Pick<Store, 'commit'> &
    StepStore & {
      readonly waits: Omit<WaitStore, 'invoke'>
      readonly flows: Pick<WaitStore, 'invoke'> & Pick<FlowTables, 'after'>
    }
  /** Returns the store's time, in which deadlines are given. */
  readonly now: () => number
  /** The deadline of a job by its facts; absent if there are none. */
  readonly deadlineBy?: (job: Job) => Promise<number | null>
  readonly onProgress: (held: Held, text: string) => void
  /** Called for each promise that the handler did not await. */
  readonly onLeftover?: (held: Held, leftover: Leftover) => void
  /** Changes texts of errors before they are stored. */
  readonly redact?: FailureContext['redact']
  readonly logger: Logger
  /** Makes tokens of signals; absent if there is no Pawl. */
  readonly tokens?: SignalTokens
  readonly enqueue: EnqueueOne
  /** The schedule that made the job; absent if there is no store. */
  readonly scheduleOf?: (job: Job) => Promise<ScheduleContext | undefined>
  /** The spans of the attempt; absent without tracing. */
  readonly trace?: AttemptTrace | undefined
}
