/**
 * What the doctor reports. A finding names the promise that the data breaks, shows by what, and
 * says what can be done: by the doctor itself, or by a person.
 *
 *   error    the data breaks a promise
 *   warning  nothing is broken yet, but it will not get better by itself
 *   notice   worth knowing; not counted
 */

/** A promise, by its number. */
export type PromiseId = `P${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15 | 16}`

/** How bad it is. */
export type Severity = 'error' | 'warning' | 'notice'

/** What the doctor can do about a finding. */
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

/** One finding. */
export interface Finding {
  /** The check that made it. */
  readonly check: string
  readonly promise: PromiseId
  readonly severity: Severity
  /** What it is about: 'job 0198…', 'queue mail', 'trigger pawl_…'. */
  readonly subject: string
  readonly what: string
  /** What was seen, as far as it is not said already. */
  readonly evidence: Readonly<Record<string, unknown>>
  /** Absent where the doctor can do nothing. */
  readonly remedy?: Remedy
  /** What a person can do. */
  readonly advice?: string
}
