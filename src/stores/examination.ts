/**
 * How the doctor sees and mends a store: rows as they are, also where they are damaged. Nothing
 * here trusts what it reads, and nothing here decides. The doctor decides on what it is shown,
 * inside the transaction that then writes.
 */

import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import type { Lane } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { EffectKey } from './effects.ts'
import type { JobDamaged } from './errors.ts'
import type { MachineFault } from './machines.ts'
import type { UndeliveredNotices } from './notices.ts'
import type { FactRow, JobRow } from './rows.ts'
import type { EffectState, Ref } from './store.ts'

/** By which a row is found again, in its own table. */
export type Handle = number | string

/** The row of a job, whole. */
export interface RawJob extends JobRow {
  readonly handle: Handle
  readonly lane: number
  readonly progress: string | null
  readonly cancel_asked_at: number | null
}

/** The row of a fact. */
export interface RawFact extends FactRow {
  readonly handle: Handle
  /** The input, where the fact has one; other payloads are not shown. */
  readonly payload: string | null
  /** The id of the job that this fact creates, where the ledger itself knows it. */
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
  /** The job that it is with. */
  readonly job_id: string
  readonly job_type: string
  readonly declared: EffectKey
}

/** Everything that a store has of one job, as of one moment. */
export interface Dossier {
  readonly ref: Ref
  /** Nothing where facts or effects belong to no job. */
  readonly row: RawJob | null
  /** Further rows of the same job, which constraints exclude. */
  readonly twins: readonly RawJob[]
  readonly facts: readonly RawFact[]
  readonly effects: readonly RawEffect[]
  /** The lifecycle that the row refers to; nothing where the store knows none by that number. */
  readonly machine: Pick<Lifecycle, 'name' | 'version'> | null
}

/** A table, index, constraint or trigger that is not as the migrations made it. */
export interface Drift {
  readonly kind: 'table' | 'index' | 'constraint' | 'trigger' | 'function' | 'view'
  readonly name: string
  readonly problem: 'missing' | 'different'
  /** What it should be, as a statement. */
  readonly expected: string
  readonly found?: string
}

/** Ids, or keys of a type, that several jobs have. */
export interface Duplicate {
  readonly id: string
  /** Absent where the ids themselves are the same. */
  readonly key?: string
  readonly type?: string
}

/** How many jobs of a queue ended in a state: as counted on the way, and as there are. */
export interface CounterDrift {
  readonly queue: string
  readonly state: string
  readonly counted: number
  readonly actual: number
}

/** What the rows of jobs say that none can say, found by plain counting. */
export interface Scan {
  readonly duplicates: number
  readonly unknownStates: readonly string[]
  readonly negativeAttempts: number
}

/** A row that is taken out of its table. */
export interface Aside {
  readonly origin: 'jobs' | 'ledger' | 'outbox'
  readonly handle: Handle
}

/** How a job is to be, and the fact that says why. */
export interface Mended {
  readonly lifecycle: Lifecycle
  readonly job: Job
  readonly lane: Lane
  readonly leaseUntil: number | null
  readonly fact: Fact
}

/** What is to be done about one job. */
export interface Mending {
  readonly why: string
  /** Nothing where no job can be made of what is left. */
  readonly after?: Mended
  readonly aside: readonly Aside[]
  /** Effects that nobody can say anything of: a person must decide about them. */
  readonly parked?: readonly Handle[]
  /** Effects whose time would never come: they are made due. */
  readonly due?: readonly Handle[]
}

/** Who answers for a repair. */
export interface Surgeon {
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

/** A look at a store by its own rows, and ways to mend them. */
export interface Examination {
  /** What is not as the migrations made it; what others have added is theirs. */
  drift(): Promise<Drift[]>
  /** Counts ids, states and attempts that cannot be; reads every row, so only where drift is. */
  scan(): Promise<Scan>
  /**
   * Jobs that workers would set aside (`Store.isolate`): their rows cannot be read or trusted.
   * Looks at the next ones of each lane, by index; costs a few milliseconds, however much is there.
   */
  damaged(): Promise<JobDamaged[]>
  /** Rows of lifecycles that are not as the code of this process has them. */
  machineFaults(): Promise<MachineFault[]>
  /** What the database says of its own file; nothing where it has no such check. */
  storage(): Promise<string[]>
  /** How many notices were due before a time and are not delivered; by index, bounded. */
  undeliveredNotices(before: number): Promise<UndeliveredNotices>
  /** What a server says of its durability and its standbys; absent if a store has no server. */
  replication?(): Promise<Replication>
  /** Jobs with all that belongs to them, in the order of their refs; also what belongs to none. */
  dossiers(after: Ref | undefined, limit: number): Promise<Dossier[]>
  /** Everything that there is of the job with this id; nothing if no row has it. */
  dossierOf(id: string): Promise<Dossier | undefined>
  duplicates(limit: number): Promise<Duplicate[]>
  /** Effects that are not under the key of their mark; reads the whole outbox. */
  strayEffects(limit: number): Promise<StrayEffect[]>
  counters(): Promise<CounterDrift[]>
  /**
   * How many jobs and facts are gone of which no record tells, as far as the numbers show it that
   * a database gives out; nothing where they show nothing.
   */
  vanished(): Promise<{ readonly jobs: number; readonly facts: number } | undefined>

  /** Shows one job to whoever decides, and does what was decided, in one transaction. */
  mend(
    ref: Ref,
    decide: (dossier: Dossier, now: number) => Mending | undefined,
    by: Surgeon,
  ): Promise<Mending | undefined>
  /** Gives effects the key of their mark again, and keeps a note of each; all or none. */
  returnEffects(effects: readonly StrayEffect[], by: Surgeon): Promise<void>
  /** Makes the counters what the rows say. */
  recount(): Promise<void>
  /** Makes the settings of a queue what its last record says, and keeps a note of it. */
  restoreQueue(queue: string, by: Surgeon): Promise<void>
  /** Makes the row of a lifecycle what the code of this process says. */
  restoreMachine(fault: MachineFault): Promise<void>
  /** Makes one object as the migrations made it. */
  restore(drift: Drift): Promise<void>

  /** Keeps what an operator took note of, beside the rows that were taken aside. */
  note(origin: string, content: string, why: string, by: Surgeon): Promise<void>
  /** What was noted of one kind, the last 1000 of it. */
  notes(origin: string): Promise<string[]>

  /** Takes on, or goes on with, what one process does at a time. Nothing while another has it. */
  takeDuty(name: string, holder: string, leaseMs: number): Promise<Duty | undefined>
  /** Notes how far it is, and frees it; false where somebody else has taken it on. */
  leaveDuty(name: string, holder: string, place: string | undefined): Promise<boolean>
}

/** No duty is held for longer: a lease that ends later is damaged, and counts as ended. */
export const DUTY_MAX_MS = 86_400_000

/** What only one process does at a time. */
export interface Duty {
  /** Where the last holder left off. */
  readonly place?: string
}
