/**
 * How the doctor reads and repairs a store. Rows are returned as they are, also if they are
 * damaged. Nothing here trusts what it reads, and nothing here decides: the doctor decides on what
 * it is shown, inside the transaction that then writes.
 */

import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lane } from '../../core/job/lanes.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { EffectKey } from '../effects.ts'
import type { JobDamaged } from '../errors.ts'
import type { MachineFault } from '../machines.ts'
import type { UndeliveredNotices } from '../notices.ts'
import type { FactRow, JobRow } from '../rows.ts'
import type { EffectState, Ref } from './store.ts'

/** Identifies a row in its own table. */
export type Handle = number | string

/** Every column of the row of a job. */
export interface RawJob extends JobRow {
  readonly handle: Handle
  readonly lane: number
  readonly progress: string | null
  readonly cancel_asked_at: number | null
  /** The gates that it counts in, if it is held. */
  readonly slots: string | null
  /** The gate that blocks it, or blocked it last. */
  readonly blocked_on: string | null
}

export interface RawFact extends FactRow {
  readonly handle: Handle
  /** The input, if the fact has one; other payloads are not read. */
  readonly payload: string | null
  /** The id of the job that this fact creates, if the ledger itself contains it. */
  creates: string | null
}

/** The row of an effect or a notice, without its payload. */
export interface RawEffect {
  readonly handle: Handle
  readonly type: string
  readonly name: string
  readonly n: number
  readonly state: EffectState
  readonly tries: number
  readonly run_at: number
  readonly claim: string | null
  readonly error: string | null
  readonly mark: string | null
}

/** An effect whose row has another key than the one under which it was declared. */
export interface StrayEffect extends RawEffect {
  /** The job that the row refers to. */
  readonly job_id: string
  readonly job_type: string
  readonly declared: EffectKey
}

/** Everything that a store has of one job, read at one moment. */
export interface StoredJob {
  readonly ref: Ref
  /** Null if facts or effects belong to no job. */
  readonly row: RawJob | null
  /** Further rows of the same job, which the constraints of the schema exclude. */
  readonly twins: readonly RawJob[]
  readonly facts: readonly RawFact[]
  readonly effects: readonly RawEffect[]
  /** The lifecycle that the row refers to; null if the store has none with that number. */
  readonly machine: Pick<Lifecycle, 'name' | 'version'> | null
}

/** A table, index, constraint or trigger that is not as the migrations made it. */
export interface Drift {
  readonly kind: 'table' | 'index' | 'constraint' | 'trigger' | 'function' | 'view'
  readonly name: string
  readonly problem: 'missing' | 'different'
  /** The statement that makes it. */
  readonly expected: string
  readonly found?: string
}

/** Ids, or keys of a type, that several jobs have. */
export interface Duplicate {
  readonly id: string
  /** Absent if the ids themselves are the same. */
  readonly key?: string
  readonly type?: string
}

/**
 * How many jobs of a queue ended in a state: according to the roll-up, and according to the rows.
 */
export interface CounterDrift {
  readonly queue: string
  readonly state: string
  readonly counted: number
  readonly actual: number
}

/** Counts of values that Pawl never writes. */
export interface Scan {
  readonly duplicates: number
  readonly unknownStates: readonly string[]
  readonly negativeAttempts: number
}

/** A row that is moved to the rows set aside. */
export interface Aside {
  readonly origin: 'jobs' | 'ledger' | 'outbox'
  readonly handle: Handle
}

/** A job after its repair, and the fact that says why. */
export interface Mended {
  readonly lifecycle: Lifecycle
  readonly job: Job
  readonly lane: Lane
  readonly leaseUntil: number | null
  readonly fact: Fact
}

/** The repair of one job. */
export interface Mending {
  readonly why: string
  /** Absent if no job can be made from what is left. */
  readonly after?: Mended
  readonly aside: readonly Aside[]
  /** Effects whose state cannot be known: a person must decide about them. */
  readonly parked?: readonly Handle[]
  /** Effects that would never become due: they are made due. */
  readonly due?: readonly Handle[]
}

/** Who makes a repair, and why. */
export interface RepairAuthor {
  readonly operator: string
  readonly note: string
}

/** How a server keeps acknowledged writes. */
export interface Replication {
  readonly fsync: boolean
  /** The setting of the store's own sessions. */
  readonly synchronousCommit: string
  /** The setting of server, database or role, by which transactions of the user commit. */
  readonly defaultCommit: string
  /** The setting `synchronous_standby_names`. */
  readonly standbyNames: string
  /** How many standbys are connected that could be promoted. */
  readonly standbys: number
  /** How many of them commits wait for; absent if the server does not show it to this user. */
  readonly synchronousStandbys?: number
}

/** Reads the rows of a store as they are, and repairs them. */
export interface Examination {
  /**
   * Returns objects of the schema that differ from the migrations. Objects that users added are
   * left out.
   */
  drift(): Promise<Drift[]>
  /**
   * Counts ids, states and attempts that Pawl never writes. Reads every row, so it is called only
   * if there is drift.
   */
  scan(): Promise<Scan>
  /**
   * Returns jobs that workers would set aside (`Store.isolate`): their rows cannot be read or
   * trusted. Reads the next rows of each lane, by index; takes a few milliseconds, whatever the
   * size of the store.
   */
  damaged(): Promise<JobDamaged[]>
  /** Returns rows of lifecycles that differ from the code of this process. */
  machineFaults(): Promise<MachineFault[]>
  /** Returns what the database reports about its own file; empty if it has no such check. */
  storage(): Promise<string[]>
  /** Counts notices that were due before a time and are not delivered; by index, bounded. */
  undeliveredNotices(before: number): Promise<UndeliveredNotices>
  /** Returns the durability and the standbys of a server; absent if a store has no server. */
  replication?(): Promise<Replication>
  /** Returns jobs with all that belongs to them, by ref; also facts and effects without a job. */
  storedJobs(after: Ref | undefined, limit: number): Promise<StoredJob[]>
  /** Returns everything of the job with this id; `undefined` if no row has it. */
  storedJobOf(id: string): Promise<StoredJob | undefined>
  duplicates(limit: number): Promise<Duplicate[]>
  /** Returns effects that are not under the key of their mark; reads the whole outbox. */
  strayEffects(limit: number): Promise<StrayEffect[]>
  counters(): Promise<CounterDrift[]>
  /**
   * Counts jobs and facts that are missing without a record, as far as gaps in the numbers of rows
   * show it. Returns `undefined` if gaps prove nothing.
   */
  vanished(): Promise<{ readonly jobs: number; readonly facts: number } | undefined>

  /** Shows one job to `decide` and carries out what it returns, in one transaction. */
  mend(
    ref: Ref,
    decide: (stored: StoredJob, now: number) => Mending | undefined,
    by: RepairAuthor,
  ): Promise<Mending | undefined>
  /** Moves effects back under the keys of their marks, and keeps a note of each; all or none. */
  returnEffects(effects: readonly StrayEffect[], by: RepairAuthor): Promise<void>
  /** Writes the counters as the rows have them. */
  recount(): Promise<void>
  /** Sets the settings of a queue to those of its last record, and keeps a note of it. */
  restoreQueue(queue: string, by: RepairAuthor): Promise<void>
  /** Writes the row of a lifecycle as the code of this process has it. */
  restoreMachine(fault: MachineFault): Promise<void>
  /** Restores one object of the schema. */
  restore(drift: Drift): Promise<void>

  /** Keeps a note of an operator beside the rows that were set aside. */
  note(origin: string, content: string, why: string, by: RepairAuthor): Promise<void>
  /** Returns the last 1000 notes of an origin. */
  notes(origin: string): Promise<string[]>

  /** Takes a duty, or extends it. Returns `undefined` while another process has it. */
  takeDuty(name: string, holder: string, leaseMs: number): Promise<Duty | undefined>
  /** Writes the cursor and releases the duty. Returns false if another process has taken it. */
  leaveDuty(name: string, holder: string, cursor: string | undefined): Promise<boolean>
}

/** The longest lease of a duty. One that ends later is damaged, and counts as ended. */
export const DUTY_MAX_MS = 86_400_000

/** Work that one process does at a time. */
export interface Duty {
  /** Where the last holder stopped. */
  readonly cursor?: string
}

/** The duty that a row holds. */
export function dutyOf({ place }: { readonly place: string | null }): Duty {
  return place === null ? {} : { cursor: place }
}
