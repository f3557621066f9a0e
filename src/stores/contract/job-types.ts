/** Job types as workers declare them, so that a store can accept jobs without their code. */
import type { JsonBounds } from '../../core/canonical-json.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { WorkerRow } from './reading.ts'
import type { EnqueueItem } from './store.ts'

/** A job type: what its jobs have if the caller passes no options. */
export interface JobTypeDeclaration {
  readonly lifecycle: Lifecycle
  readonly command: Omit<EnqueueItem['command'], 'jobId'>
  /** How large and how deep an input may be. */
  readonly bounds: JsonBounds
  /** What only the code of the type can compute for a new job; absent if there is nothing. */
  readonly needs?: 'limit-keys' | 'admission'
}

/** A worker as it reports itself. */
export interface WorkerReport extends Pick<WorkerRow, 'id' | 'state' | 'info'> {
  /** The job types that it runs; only in its first report. */
  readonly declared?: readonly JobTypeDeclaration[]
}
