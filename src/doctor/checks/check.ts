/**
 * The interfaces of checks. A job check gets one job at a time, so memory does not grow with the
 * store. A store check queries the whole database. Neither changes anything.
 */
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Duplicate } from '../../stores/contract/examination.ts'
import type { TicksOf } from '../../stores/contract/schedules.ts'
import type { Store, WorkerRow } from '../../stores/contract/store.ts'
import type { ExaminedJob } from '../examined-job.ts'
import type { Finding, PromiseId, Remedy, Severity } from '../finding.ts'
import type { Surroundings } from '../mend.ts'

/** What a job check reports; the doctor makes a finding of it. */
export interface Sighting {
  readonly what: string
  readonly evidence?: Readonly<Record<string, unknown>>
  /** 'error' if absent. */
  readonly severity?: Severity
  /** The repair, if it is not the planned repair of the whole job. */
  readonly remedy?: Remedy
  readonly advice?: string
}

export interface CheckContext extends Surroundings {
  readonly workers: ReadonlyMap<string, WorkerRow>
  readonly thresholds: Thresholds
  /** For a job without a row: the id of the job that now has its key. */
  readonly rival?: string
}

/** After which time a delay becomes a finding. */
export interface Thresholds {
  /** A worker that has not reported for so long counts as gone. */
  readonly workerMs: number
  /** How long an expired lease, a due job or a due effect may wait. */
  readonly dueMs: number
  /** A longer attempt is reported (R0: 600 seconds). */
  readonly stalledMs: number
}

export interface JobCheck {
  readonly name: string
  readonly promise: PromiseId
  readonly says: string
  look(examined: ExaminedJob, context: CheckContext): readonly Sighting[]
}

export interface StoreCheckContext {
  readonly store: Store
  readonly lifecycles: readonly Lifecycle[]
  readonly now: number
  readonly thresholds: Thresholds
  /** The first 1000 jobs that share an id or a key; read once for all checks. */
  duplicates(): Promise<readonly Duplicate[]>
  /** The ticks of schedules; absent if the doctor does not know cron. */
  readonly ticksOf?: TicksOf
}

export interface StoreCheck {
  readonly name: string
  readonly promise: PromiseId
  readonly says: string
  look(context: StoreCheckContext): Promise<readonly Omit<Finding, 'check'>[]>
}
