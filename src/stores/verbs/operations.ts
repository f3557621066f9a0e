/**
 * The operations that verbs use. A verb is a generator over these operations; it contains every
 * decision and no SQL. A store implements each operation once, as a function of its own
 * transaction: at once on SQLite (`Dialect`), with a promise on PostgreSQL (`AsyncDialect`).
 *
 * Operations take and return sets, so that one statement serves all jobs of a call. A store may run
 * a verb again from its start if the transaction was rolled back or its answer was lost, so a verb
 * keeps nothing outside of its own variables.
 */
import type { PawlError } from '../../core/errors.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Environment } from '../../environment/system.ts'
import type { ArchivedFact, EndedJob, PrunedJob, PrunedRecord } from '../archive.ts'
import type {
  Aside,
  CounterDrift,
  Duplicate,
  Duty,
  Handle,
  RawJob,
  RepairAuthor,
  Scan,
  StoredJob,
  StrayEffect,
} from '../contract/examination.ts'
import type { WorkerReport } from '../contract/job-types.ts'
import type { ClaimRequest, EffectClaim, EffectReport, Ref, WorkerRow } from '../contract/store.ts'
import type { PlacedRow } from '../damage.ts'
import type { EffectKey, EffectRow, SeenEffect } from '../effects.ts'
import type { EffectBounds } from '../far-times.ts'
import type { NextDue } from '../gate-rows.ts'
import type { MachineFault, MachineRow, Machines, RawMachine } from '../machines.ts'
import type { UndeliveredNotices } from '../notices.ts'
import type { QueueRow } from '../queue-info.ts'
import type { QueueRecord, QueueRecordRow, QueueSettings } from '../queue-records.ts'
import type { FactRow, Value } from '../rows.ts'
import type { WaitingRetries } from '../waiting-retries.ts'
import type { AdmissionOperations } from './admit.ts'
import type { Changes } from './changes.ts'
import type { GroupOperations } from './claim-groups.ts'
import type { ClaimOperations } from './claim-limited.ts'
import type { FlowOperations } from './flow-tables.ts'
import type { GateOperations } from './gates.ts'
import type { LimitDoctorOperations } from './limit-doctor.ts'
import type { LimitOperations } from './limit-tables.ts'
import type { LinkDoctorOperations } from './link-doctor.ts'
import type { LockedRow, Read } from './reading.ts'
import type { RetentionOperations } from './retention-tables.ts'
import type { RunOperations } from './run-tables.ts'
import type { ScheduleOperations } from './schedule-tables.ts'
import type { SealOperations } from './seal-tables.ts'
import type { TokenOperations } from './token-tables.ts'
import type { WaitOperations } from './wait-tables.ts'

/** Jobs by their ids: those that this process can decide on, and why it cannot for the others. */
export interface Locked {
  readonly reads: ReadonlyMap<string, Read>
  readonly unknown: ReadonlyMap<string, PawlError>
}

/** A queue that is bounded, and how. */
export interface LimitedQueue {
  readonly name: string
  readonly maxDepth: number | null
  readonly maxWaitMs: number | null
}

/** An effect that is to be made due, of a job that was locked. */
export interface DueEffect {
  readonly read: Read
  readonly key: EffectKey
}

/** A job with its lane and the number of its last fact, for the checks of `../damage.ts`. */
export interface PlacedJob {
  readonly row: PlacedRow
  readonly ref: Ref
}

/** Rows of a window of the table of jobs. */
export interface JobWindow {
  readonly rows: readonly { readonly row: LockedRow; readonly ref: Ref }[]
  /** The cursor of the next window; absent if this is the last one. */
  readonly next?: string
}

/** A job whose row is replaced by what its facts say. */
export interface Overwritten {
  readonly ref: Ref
  /** The number of the last fact, as the row has it. */
  readonly seq: number
  readonly lifecycle: Lifecycle
  readonly before: Job
  readonly fact: Fact
}

/** Tables whose triggers can be lifted. */
/** A table whose rows are noted before a repair. */
type NotedTable = 'queues' | 'outbox' | 'limits' | 'schedules'

export type GuardedTable = 'jobs' | 'ledger'

/** Triggers that a repair may lift. */
export type Guard = 'live_jobs_are_not_deleted' | 'ledger_is_never_deleted' | 'succeeded_is_final'

/** Why rows are set aside, and by whom. */
export interface RepairCause {
  readonly ref: Ref
  readonly jobId: string | null
  readonly why: string
  readonly by: RepairAuthor
}

/** The operations of jobs and their effects, as SQLite has them. */
interface JobOperations {
  /** Loads versions of lifecycles that other processes have registered since. */
  refreshMachines(): void
  /** Locks jobs by their ids, in one order everywhere. Ids that do not exist are in neither map. */
  lockJobs(ids: readonly string[]): Locked
  /** The same for jobs that only need to be finished: also those of versions not known here. */
  lockDelivered(ids: readonly string[]): ReadonlyMap<string, Read>
  /** Locks jobs whose lease has expired, the oldest first; those that others lock are left out. */
  lockExpired(limit: number): readonly Read[]
  /** Locks jobs that wait and whose time has come; those that others lock are left out. */
  lockDue(limit: number): readonly Read[]
  /** When the next job that waits is due, and when the next gate that blocks jobs opens. */
  nextDue(): NextDue | undefined
  /** Counts the retries that wait in each queue. */
  waitingRetries(): WaitingRetries
  /** Puts jobs that are due into the lane of ready jobs; no fact says so (rule G2). */
  makeReady(reads: readonly Read[]): void
  /** The ids of those jobs that still have effects to deliver. */
  openEffects(reads: readonly Read[]): ReadonlySet<string>
  /** The ids of those jobs that have finished this step. */
  finishedSteps(reads: readonly Read[], name: string, n: number): ReadonlySet<string>
  /** Makes the effects due that jobs have not delivered yet (rule G6). */
  resetEffects(reads: readonly Read[]): void
  /** Asks the holders of those jobs that are held to cancel them; returns the ids of these jobs. */
  askHolders(reads: readonly Read[]): ReadonlySet<string>
  /** Parks notices that no process has tried to deliver for too long. */
  parkOldNotices(): void
  /** The queues that are bounded, by name. */
  limitedQueues(): readonly LimitedQueue[]
  /** How many jobs are ready in a queue or blocked by a limit, counted up to a bound. */
  countReady(queue: string, bound: number): number
  /** Locks ready and blocked jobs of a queue that became due before a time. */
  lockLate(queue: string, before: number, limit: number): readonly Read[]
  /** Locks jobs that are not held and whose deadline has passed, the earliest first. */
  lockOverdue(limit: number): readonly Read[]
  /** The deadlines of these jobs by their facts, in the same order. */
  deadlinesByFacts(reads: readonly Read[]): readonly (number | null)[]
  /** Locks the last jobs that would be claimed, of lifecycles that fail jobs without room. */
  lockSurplus(queue: string, limit: number): readonly Read[]
  /** Writes reports of dispatchers, each under its claim; returns which of them counted. */
  recordReports(reports: readonly EffectReport[]): readonly boolean[]
  /** Makes effects due now that are not being delivered; returns which of them. */
  makeEffectsDue(effects: readonly DueEffect[]): readonly boolean[]
  /** Jobs that ended before a time, the oldest first. */
  endedJobs(endedBefore: number, limit: number): readonly EndedJob[]
  /** The facts of these jobs, in their order. */
  factsOf(jobs: readonly EndedJob[]): ReadonlyMap<Ref, readonly ArchivedFact[]>
  /** Removes jobs that are as they were collected, with all that belongs to them. */
  removeJobs(jobs: readonly PrunedJob[]): readonly PrunedJob[]
  /** Writes the record of what was removed; returns its number. */
  recordPruned(record: PrunedRecord): number
  /** Locks live jobs of these machine numbers in the next window of the table of jobs. */
  lockWindow(after: string | undefined, machines: readonly number[]): JobWindow
  /** Writes everything that was decided: rows, facts, notices and the roll-up of ended jobs. */
  write(changes: Changes): void
}

/** The operations of the outbox. */
interface OutboxOperations {
  /** Puts effects that are due under a claim, or returns those that are under it after a `redo`. */
  takeEffects(claim: string, request: EffectClaim, redo: boolean): readonly EffectRow[]
  /** Parks effects under this claim that must not be delivered. */
  parkStrays(claim: string, strays: readonly { readonly eid: number; readonly why: string }[]): void
  /** Effects with a number below the cursor, newest first, at most `SCAN_CHUNK`. */
  effectsBelow(cursor: number, parkedOnly: boolean): readonly SeenEffect[]
  effectsOfJob(jobId: string): readonly SeenEffect[]
  /** Whole effects, newest first. */
  effectsByNumber(eids: readonly number[]): readonly EffectRow[]
}

/** The operations of queues and workers. */
interface QueueOperations {
  /** Locks the row of a queue. If there is none and `isNew`, a row may be inserted first. */
  lockQueue(queue: string, isNew: boolean): QueueRow | undefined
  /** Writes the settings of a queue that was locked. */
  writeQueue(queue: string, settings: QueueSettings, pausedBy: string | null): void
  /** Writes a record of a change; returns its number. */
  recordQueueChange(record: Omit<QueueRecord, 'number'>): number
  /** Records with a number below `before`, newest first. */
  queueRecords(queue: string | undefined, before: number, limit: number): readonly QueueRecordRow[]
  /** Writes that a worker is alive. */
  reportWorker(worker: WorkerReport): void
  removeWorker(id: string): void
  /** Every worker that has reported and was not removed, by id. */
  workers(): WorkerRow[]
}

/** The operations of stored lifecycles. */
interface MachineOperations {
  /** The rows that can be used, by number. */
  machineRows(): MachineRow[]
  /** Inserts a row with the next number, unless there is one of this name and version. */
  insertMachine(lifecycle: Lifecycle, definition: string): void
  lockMachine(name: string, version: number): MachineRow | undefined
  setDefinition(number: number, definition: string): void
  /** Every row as it is, also those that cannot be used. */
  rawMachines(): readonly RawMachine[]
  /** The machine numbers that rows of jobs refer to. */
  numbersOfJobs(): readonly number[]
  /** Writes the row of a lifecycle as it should be. */
  writeMachine(fault: MachineFault): void
}

/** The operations that set damaged jobs aside. */
interface IsolationOperations {
  /** The next rows of each lane that workers use, a bounded number of each. */
  nextOfLanes(): readonly PlacedJob[]
  /** The jobs that a claim would take. */
  claimCandidates(request: ClaimRequest): readonly Ref[]
  lockPlaced(ref: Ref): PlacedJob | undefined
  /** When the last claim of a job was made, and until when it granted a lease. */
  lastClaim(ref: Ref): Pick<FactRow, 'at' | 'lease_until'> | undefined
  /** Sets the end of the lease of a job that is held. */
  setLease(ref: Ref, until: number): void
  /** Writes a row that is not trusted as its facts say, and one more fact. */
  overwrite(job: Overwritten): void
  /** Moves a row to the lane of parked or ended jobs, without a fact. */
  parkRow(ref: Ref): void
  /** Pending effects that are due later than the bounds allow, some of each type. */
  farEffects(bounds: EffectBounds): readonly number[]
  makeFarEffectsDue(effects: readonly number[], bounds: EffectBounds): void
}

/** The operations of the doctor. */
interface ExaminationOperations {
  scan(): Scan
  /** What the database reports about its own file. */
  storage(): string[]
  undeliveredNotices(before: number): UndeliveredNotices
  /** Jobs with all that belongs to them, by ref; also facts and effects without a job. */
  storedJobs(after: Ref | undefined, limit: number): StoredJob[]
  storedJobOf(id: string): StoredJob | undefined
  storedJob(ref: Ref): StoredJob | undefined
  duplicates(limit: number): Duplicate[]
  counters(): CounterDrift[]
  /** How many rows are gone without a record; `undefined` if the numbers of rows do not show it. */
  missingRows(): { readonly jobs: number; readonly facts: number } | undefined
  /** Writes the roll-up of ended jobs as the rows of jobs have it. */
  recount(): void
  /** Locks everything of a job that can change, and returns it. */
  lockStored(ref: Ref): StoredJob | undefined
  /** Locks tables whose guards are lifted; returns whether other locks were released for that. */
  lockTables(tables: readonly GuardedTable[]): boolean
  /** Lifts a trigger; returns what restores it, or `undefined` if it refuses nothing now. */
  liftGuard(guard: Guard): string | undefined
  restoreGuard(guard: Guard, lifted: string): void
  /** Moves rows of one table to the rows that were set aside. */
  moveAside(origin: Aside['origin'], handles: readonly Handle[], cause: RepairCause): void
  /** Parks effects for an operator to decide about. */
  parkEffects(handles: readonly Handle[], why: string): void
  /** Writes over a row, or inserts it if there is no target, and appends the fact. */
  writeMended(
    ref: Ref,
    target: RawJob | undefined,
    columns: Readonly<Record<string, Value>>,
    fact: Fact,
  ): void
  /** Effects whose row does not agree with its mark; reads the whole outbox. */
  strayEffects(limit: number): StrayEffect[]
  /** Moves effects to numbers that no other effect of their job has. */
  freeKeys(effects: readonly StrayEffect[]): void
  /** Moves an effect to the key of its mark; returns whether its job exists. */
  returnEffect(effect: StrayEffect): boolean
  /** Keeps a row of a table as it was before a repair. */
  noteRow(table: NotedTable, content: string, why: string, by: RepairAuthor): void
  /** Keeps a note beside the rows that were set aside. */
  keepNote(origin: string, content: string, why: string, by: RepairAuthor): void
  /** The last 1000 notes of an origin. */
  notes(origin: string): string[]
  takeDuty(name: string, holder: string, leaseMs: number): Duty | undefined
  leaveDuty(name: string, holder: string, cursor: string | undefined): boolean
}

/** Every operation, as SQLite has it. */
interface Operations
  extends AdmissionOperations,
    JobOperations,
    OutboxOperations,
    QueueOperations,
    MachineOperations,
    IsolationOperations,
    ExaminationOperations,
    RetentionOperations,
    RunOperations,
    SealOperations,
    ClaimOperations,
    FlowOperations,
    GateOperations,
    GroupOperations,
    LimitOperations,
    LimitDoctorOperations,
    LinkDoctorOperations,
    ScheduleOperations,
    TokenOperations,
    WaitOperations {}

/** The moment of a call, and what decisions need of the process. */
export interface Moment {
  readonly environment: Environment
  readonly now: number
}

/** The operations of a store whose statements return at once. */
export type Dialect<At> = {
  readonly [K in keyof Operations]: (
    at: At,
    ...args: Parameters<Operations[K]>
  ) => ReturnType<Operations[K]>
}

/** The operations of a store whose statements have to be awaited. */
export type AsyncDialect<At> = {
  readonly [K in keyof Operations]: (
    at: At,
    ...args: Parameters<Operations[K]>
  ) => ReturnType<Operations[K]> | Promise<ReturnType<Operations[K]>>
}

/** An operation that a verb asks for with `yield*`. One alone can be run as a verb, too. */
export interface Step<T> extends Iterator<unknown, T, unknown> {
  [Symbol.iterator](): Iterator<unknown, T, unknown>
}

/** What a transaction has beside its operations. */
export interface Scope extends Moment {
  readonly machines: Machines
}

/** What a verb works with: the operations of one transaction. */
export type Tx = Scope & {
  readonly [K in keyof Operations]: (
    ...args: Parameters<Operations[K]>
  ) => Step<ReturnType<Operations[K]>>
}

/** A verb while it runs. */
export type Verb<T> = Generator<unknown, T, unknown>

/**
 * A verb as a store is asked to run it. With `redo` an earlier run may have been committed, because
 * its answer was lost.
 */
export type Performed<T> = (tx: Tx, redo: boolean) => Step<T>
