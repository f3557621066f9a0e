/**
 * What the doctor reports. A finding names the promise that the data breaks, the evidence, and what
 * the doctor or a person can do about it.
 *
 *   error    the data breaks a promise
 *   warning  no promise is broken yet, but a person has to act
 *   notice   information; it does not make a report fail
 *
 * `remedy` and `check` are stable: scripts compare them.
 */

export type PromiseId =
  `P${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | 16 | 17 | 18 | 19}`

export type Severity = 'error' | 'warning' | 'notice'

/** The repairs of the doctor. */
export type Remedy =
  | 'rebuild the row from its facts'
  | 'restore the row from its facts'
  | 'quarantine the job'
  | 'take the contradicting rows aside'
  | 'note what is wrong and go on'
  | 'give the key up'
  | 'park the effects'
  | 'return the effect to its job'
  | 'let the job go on'
  | 'expire the lease'
  | 'finish the commit'
  | 'make the job ready'
  | 'rebuild the counters'
  | 'restore the schema'
  | 'restore the lifecycle'
  | 'rebuild the snapshot'
  | 'end the lease'
  | 'make the effects due'
  | 'forget the worker'
  | 'restore the queue'
  | 'restore the schedule'
  | 'restore the limit'
  | 'recount the limit'
  | 'restore the links'

export interface Finding {
  /** The name of the check. */
  readonly check: string
  readonly promise: PromiseId
  readonly severity: Severity
  /** The job, queue or object: 'job 0198…', 'queue mail', 'trigger pawl_…'. */
  readonly subject: string
  readonly what: string
  /** The values that the check has read. */
  readonly evidence: Readonly<Record<string, unknown>>
  /** The repair for it; absent if the doctor has none. */
  readonly remedy?: Remedy
  /** What a person can do, with the command if there is one. */
  readonly advice?: string
}
