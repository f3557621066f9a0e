/** What the reading verbs of a store return. */
import type { Fact } from '../../core/job/facts.ts'
import type { Lane } from '../../core/job/lanes.ts'
import type { DamagedJob, UnreadableFact } from './damaged.ts'

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[]
  /** Jobs that belong on this page and cannot be read; absent if there are none. */
  readonly damaged?: readonly DamagedJob[]
  /** Facts that belong on this page and cannot be read; absent if there are none. */
  readonly unreadable?: readonly UnreadableFact[]
  /** Pass it as `after` for the next page; absent at the end. */
  readonly next?: string
  /** The time budget ended before the page was full: ask again from `next`. */
  readonly partial?: true
}

/** How many jobs there are. */
export interface Counts {
  readonly lanes: Readonly<Record<Lane, number>>
  /** Ended jobs by state. */
  readonly ended: Readonly<Record<string, number>>
}

/**
 * A fact with its position in the ledger, for followers. A fact that is committed later never has
 * an earlier position than one that was already returned, so a follower misses nothing.
 */
export interface TailEntry {
  /** Pass the last one as `after` to go on from there. */
  readonly pos: string
  readonly fact: Fact
}

/** A worker, as it reports itself. */
export interface WorkerRow {
  readonly id: string
  readonly state: string
  readonly startedAt: number
  readonly seenAt: number
  readonly info: string
}

/** Which migrations a database has, and which this release would add. */
export interface SchemaStatus {
  readonly applied: readonly { readonly number: number; readonly appliedAt: number }[]
  readonly pending: readonly number[]
}
