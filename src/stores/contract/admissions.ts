/** Admission: the rows by which enqueues of one job type and key know of each other. */

/** What an admission row is for, with the number that stores keep. */
export const ADMISSION_KINDS = { rate: 1, debounce: 2, singleton: 3 } as const
export type AdmissionKind = keyof typeof ADMISSION_KINDS

/** The name of an admission row. */
export interface AdmissionName {
  readonly type: string
  readonly kind: number
  readonly key: string
}

/** An admission row. */
export interface AdmissionRow extends AdmissionName {
  /** The job that was created last, or the one job of a singleton. */
  readonly job: string | null
  /** The job of a singleton that waits for the end of `job`. */
  readonly next: string | null
  /** When the first of a row of debounced enqueues came. */
  readonly first_at: number | null
  /** The counts of a rate limit. */
  readonly counts: string | null
  /** When a worker looks at the row. */
  readonly look_at: number
}

/** What a job waits for. */
export interface Waiting {
  readonly type: string
  readonly key: string
  /** The job that must end first. */
  readonly job: string
}

/** What a step did. */
export interface Tended {
  /** Jobs that no longer wait for another one. */
  readonly released: number
  /** Rows that had no effect any more. */
  readonly removed: number
  /** How many rows were looked at. */
  readonly seen: number
}

/** The rows of admission; `store.admissions`. */
export interface Admissions {
  /** Releases jobs whose predecessor has ended, and removes rows without effect; bounded. */
  tend(limit: number): Promise<Tended>
  /** Returns what a job waits for; `undefined` if it does not wait for another job. */
  waiting(jobId: string): Promise<Waiting | undefined>
  /** Returns rows, by name. */
  list(after: AdmissionName | undefined, limit: number): Promise<AdmissionRow[]>
}
