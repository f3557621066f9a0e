/** What a store reports about rows that cannot be read or trusted; `damage.ts` has the rules. */
import type { Fact } from '../../core/job/facts.ts'
import type { Lane } from '../../core/job/lanes.ts'

/** A job whose row cannot be read, as a list shows it. */
export interface DamagedJob {
  readonly id: string
  /** Null if the row names a lane that does not exist. */
  readonly lane: Lane | null
  readonly why: string
}

/** A job that was set aside because its row cannot be read or trusted. */
export interface Isolated {
  readonly jobId: string
  /** The lane in which it was found. */
  readonly lane: Lane | null
  readonly why: string
  /** The fact that says so; absent if the facts of the job are damaged as well. */
  readonly fact?: Fact
}

/** A fact that cannot be read, with its position in the ledger. */
export interface UnreadableFact {
  readonly pos: string
  readonly jobId: string
  readonly seq: number
  /** Why it cannot be read. */
  readonly unreadable: string
}
