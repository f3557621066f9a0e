/** What the life of a run and its judge both know. */

/** The id of the run. */
export const RUN = 'story'

/** What the workload is told. */
export interface Workload {
  readonly folder: string
  /** The number of the process, from 1. */
  readonly act: number
}

/** An item that a process did. */
export interface Witness {
  readonly act: number
  readonly key: string
}

/** What the workload says when its run has ended. */
export interface Said {
  readonly kind: string
}
