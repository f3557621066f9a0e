import type { Job } from '../../core/job/job.ts'
import type { Settlement } from '../../stores/contract/store.ts'

/** The outcome of an attempt, and what the store still has to record. */
export type Report =
  /** `thrown` is what the handler threw, if that is why the attempt failed. */
  | {
      readonly kind: 'settle'
      readonly settlement: Settlement
      readonly thrown?: { readonly error: unknown }
    }
  | { readonly kind: 'committed'; readonly job: Job }
  /** The job waits, which the store has recorded. */
  | { readonly kind: 'suspended'; readonly job: Job }
  /** The lease is lost, so nothing can be reported. */
  | { readonly kind: 'lost' }

/** A report that the store has to record. */
export type SettleReport = Extract<Report, { kind: 'settle' }>
