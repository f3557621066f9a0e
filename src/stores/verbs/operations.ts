/**
 * What verbs may ask of a database. A verb is a generator over these operations; it holds every
 * decision and no SQL. A store implements each operation once, as a function of its own
 * transaction: at once on SQLite (`Dialect`), with a promise on PostgreSQL (`AsyncDialect`).
 *
 * Operations take and return sets, so that one statement serves all jobs of a call. A store may run
 * a verb again from its start if the transaction was rolled back or its end was not heard, so a
 * verb must keep nothing outside of its own variables.
 */
import type { PawlError } from '../../core/errors.ts'
import type { Environment } from '../../environment/system.ts'
import type { ArchivedFact, EndedJob, PrunedJob, PrunedRecord } from '../archive.ts'
import type { EffectKey } from '../effects.ts'
import type { EffectReport, Ref } from '../store.ts'
import type { WaitingRetries } from '../waiting-retries.ts'
import type { Changes } from './changes.ts'
import type { Read } from './reading.ts'

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

/** The operations, as SQLite has them. */
interface Operations {
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
  /** Counts the retries that wait in each queue. */
  waitingRetries(): WaitingRetries
  /** Puts jobs that are due into the lane of ready jobs; no fact says so (rule G2). */
  makeReady(reads: readonly Read[]): void
  /** The ids of those jobs that still have effects to deliver. */
  openEffects(reads: readonly Read[]): ReadonlySet<string>
  /** The ids of those jobs that have finished this step. */
  finishedSteps(reads: readonly Read[], name: string, n: number): ReadonlySet<string>
  /** Lets the effects that jobs have not delivered yet be delivered at once (rule G6). */
  resetEffects(reads: readonly Read[]): void
  /** Asks the holders of those jobs that are held to cancel them; returns the ids of these jobs. */
  askHolders(reads: readonly Read[]): ReadonlySet<string>
  /** Parks notices that nobody has tried to deliver for too long. */
  parkOldNotices(): void
  /** The queues that are bounded, by name. */
  limitedQueues(): readonly LimitedQueue[]
  /** How many jobs are ready in a queue, counted up to a bound. */
  countReady(queue: string, bound: number): number
  /** Locks ready jobs of a queue that became due before a time. */
  lockLate(queue: string, before: number, limit: number): readonly Read[]
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
  /** Keeps the seals from being written while jobs are removed. */
  holdSeals(): void
  /** Removes jobs that are as they were collected, with all that belongs to them. */
  removeJobs(jobs: readonly PrunedJob[]): readonly PrunedJob[]
  /** Writes the record of what was removed; returns its number. */
  recordPruned(record: PrunedRecord): number
  /** Says in the seals which of the collected jobs were removed, under that record. */
  noteRemovals(record: number, collected: readonly PrunedJob[], removed: readonly PrunedJob[]): void
  /** Writes everything that was decided: rows, facts, notices and the roll-up of ended jobs. */
  write(changes: Changes): void
}

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

/** An operation that a verb asks for with `yield*`. */
interface Step<T> {
  [Symbol.iterator](): Iterator<unknown, T, unknown>
}

/** What a verb works with: the operations of one transaction. */
export type Tx = Moment & {
  readonly [K in keyof Operations]: (
    ...args: Parameters<Operations[K]>
  ) => Step<ReturnType<Operations[K]>>
}

/** A verb while it runs. */
export type Verb<T> = Generator<unknown, T, unknown>
