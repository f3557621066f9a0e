/** Retention: what a store removes when it is asked to, and what it keeps of removed jobs. */
import type { Outcome } from '../../core/lifecycles/lifecycle.ts'
import type { EndedWord } from '../../core/retention.ts'

/** Which jobs retention removes. */
export interface PruneRequest {
  /** Jobs that ended before this time. */
  readonly endedBefore: number
  readonly limit: number
  /** Receives every pruned job with its ledger as lines of NDJSON, before they are removed. */
  readonly archive?: (lines: string) => Promise<void>
}

/** The duty of the worker that removes jobs. */
export const RETENTION_DUTY = 'retention'

/** The person who asks for a removal, and why. */
export interface RemovalAuthor {
  readonly operator: string
  readonly note: string
}

/** One step of a pass over ended jobs, the oldest first. */
export interface SweepRequest {
  readonly outcome: EndedWord
  /** The types of the jobs; all types if absent. */
  readonly types?: readonly string[]
  /** Jobs that ended before this time. */
  readonly endedBefore: number
  /** How many ended jobs to look at. */
  readonly limit: number
  /** Goes on after this position; the first ended job if absent. */
  readonly after?: string
  /** For how long keys stay taken, counted from the end of the job; keys are freed if absent. */
  readonly keysMs?: number
  /** Receives the jobs as lines of NDJSON before they are removed; rejects to keep them. */
  readonly archive?: (lines: string) => Promise<void>
  /** Absent if a worker removes jobs by itself. */
  readonly by?: RemovalAuthor
  /** Counts what would be removed, and removes nothing. */
  readonly dryRun?: boolean
}

/** The result of a step. */
export interface Swept {
  /** How many jobs were removed, or would be. */
  readonly removed: number
  /** How many of their keys stay taken. */
  readonly keys: number
  /** How much text was read, in characters. */
  readonly characters: number
  /** Pass it as `after` for the next step; absent if no ended job was left to look at. */
  readonly next?: string
  /** Whether there may be more jobs after `next` now. */
  readonly hasMore: boolean
}

/** A job that retention removed and whose key is still taken. */
export interface RemovedJob {
  readonly id: string
  readonly type: string
  readonly key: string
  readonly outcome: Outcome
  readonly endedAt: number
  /** When the key becomes free. */
  readonly keepUntil: number
}

/** A job that was created although its key belonged to a removed job. */
export interface KeyRival {
  readonly removed: RemovedJob
  readonly jobId: string
}

/** Removes ended jobs, and keeps the keys of removed jobs; `store.retention`. */
export interface Retention {
  /**
   * Looks at the next ended jobs and removes those of one class, with a record. Archives them
   * first, outside of the transaction that removes them. A job that has changed meanwhile is kept.
   */
  sweep(request: SweepRequest): Promise<Swept>
  /** Frees keys whose time is over; at most `limit`. Returns how many. */
  freeKeys(limit: number): Promise<number>
  /** Returns the removed job that still has this key. */
  removedJob(type: string, key: string): Promise<RemovedJob | undefined>
  /** Counts jobs that ended before a time, up to a bound; by index. */
  countEnded(endedBefore: number, bound: number): Promise<number>
  /** When a worker last looked after retention, to the day; `undefined` if none ever did. */
  lastLook(): Promise<number | undefined>
  /** Counts keys of removed jobs, up to a bound. */
  countKeys(bound: number): Promise<number>
  /** Returns jobs that have the key of a removed job; reads all keys of removed jobs. */
  rivals(limit: number): Promise<KeyRival[]>
}
