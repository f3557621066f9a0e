/**
 * The shape of a check. A check of jobs looks at one job at a time, so that a million of them cost
 * no memory; a check of the store asks the database as a whole. Neither changes anything.
 */
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Duplicate } from '../../stores/examination.ts'
import type { Store, WorkerRow } from '../../stores/store.ts'
import type { Finding, PromiseId, Remedy, Severity } from '../finding.ts'
import type { Surroundings } from '../mend.ts'
import type { Patient } from '../patient.ts'

/** What a check saw of one job. */
export interface Sighting {
  readonly what: string
  readonly evidence?: Readonly<Record<string, unknown>>
  /** An error unless said otherwise. */
  readonly severity?: Severity
  /** Where it is not what is prescribed for the job as a whole. */
  readonly remedy?: Remedy
  readonly advice?: string
}

/** What every check of a job knows besides. */
export interface Ward extends Surroundings {
  readonly workers: ReadonlyMap<string, WorkerRow>
  readonly patience: Patience
  /** Of a job without a row: the id of the job that has its key now. */
  readonly rival?: string
}

/** How long things may take before they are worth a finding. */
export interface Patience {
  /** A worker that was not heard of for so long is gone. */
  readonly workerMs: number
  /** What is due may wait so long for somebody to take it up: a lease, a due job, an effect. */
  readonly dueMs: number
  /** An attempt that runs for longer is told of (R0: 600 seconds). */
  readonly stalledMs: number
}

/** A check of one job at a time. */
export interface JobCheck {
  readonly name: string
  readonly promise: PromiseId
  readonly says: string
  look(patient: Patient, ward: Ward): readonly Sighting[]
}

/** What a check of the whole store has. */
export interface Surgery {
  readonly store: Store
  readonly lifecycles: readonly Lifecycle[]
  readonly now: number
  readonly patience: Patience
  /** Jobs that share an id or a key, the first thousand; looked for once for all checks. */
  duplicates(): Promise<readonly Duplicate[]>
}

/** A check of the store as a whole. */
export interface StoreCheck {
  readonly name: string
  readonly promise: PromiseId
  readonly says: string
  look(surgery: Surgery): Promise<readonly Omit<Finding, 'check'>[]>
}
