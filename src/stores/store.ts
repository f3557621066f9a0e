/**
 * THE contract of a store: domain verbs, asynchronous, each with its rule of atomicity, idempotence
 * and fencing. Nothing here speaks SQL. Every store keeps the same promises and passes the same
 * suite; the rules themselves are in the core, which the stores ask.
 *
 * One rule holds for every verb that changes a job: the fact and the folded row are written in one
 * transaction, or neither is. A verb over several jobs is one transaction, unless it says
 * otherwise, but its jobs are independent: a job that is refused changes nothing and hinders no
 * other.
 *
 * Payloads (input, step results, results, effects) are JSON texts. The store keeps them beside the
 * facts and never looks inside.
 */
import type { PawlError } from '../core/errors.ts'
import type {
  AttemptCommand,
  Command,
  Context,
  CreateCommand,
  Fence,
  Usage,
} from '../core/job/commands.ts'
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import type { Lane } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from './audit.ts'
import type { DamagedJob, Isolated, UnreadableFact } from './damaged.ts'
import type { Examination } from './examination.ts'
import type { MachineRow } from './machines.ts'
import type { Migration, MigrationRequest } from './migration.ts'
import type { Trouble } from './outage.ts'
import type {
  EffectClaim,
  EffectFilter,
  EffectInfo,
  EffectReport,
  HeldEffect,
} from './outbox-types.ts'
import type { QueueRecord, QueueRecordFilter } from './queue-records.ts'
import type { RunTables } from './runs.ts'
import type { SealTables } from './seals.ts'
import type { StoreTime } from './store-time.ts'

export type { DamagedJob, Isolated, UnreadableFact } from './damaged.ts'
export * from './outbox-types.ts'

/** Who asks, and what the ledger should say of it. */
export type Asker = Omit<Context, 'now' | 'random'>

/** What to do when the key of a new job is taken. */
export type OnConflict = 'existing' | 'replace' | 'reject'

/** A job to be accepted. */
export interface EnqueueItem {
  readonly lifecycle: Lifecycle
  readonly command: Omit<CreateCommand, 'kind'>
  /** JSON text. */
  readonly input: string
  readonly onConflict?: OnConflict
}

/** How jobs are enqueued. */
export interface EnqueueOptions {
  /** A client unless said otherwise. */
  readonly asker?: Asker
  /**
   * The user's own open transaction on the same database. The jobs are accepted when it commits,
   * and were never there when it rolls back.
   */
  readonly tx?: unknown
  /**
   * Called once the jobs are written in `tx`, with a function that tells whether that transaction
   * has ended, by a COMMIT or a ROLLBACK.
   */
  readonly onJoined?: (hasEnded: () => Promise<boolean>) => void
}

/** What became of one item: accepted, or its key belonged to a job already. */
export type Enqueued =
  | { readonly kind: 'created'; readonly job: Job }
  | { readonly kind: 'existing'; readonly job: Job }
  | { readonly kind: 'replaced'; readonly job: Job }
  | { readonly kind: 'rejected'; readonly error: PawlError }

/** What became of a command. */
export type Answer =
  | {
      readonly kind: 'done'
      readonly job: Job
      readonly fact: Fact
      /** The facts before it, if the job followed an earlier version of its lifecycle. */
      readonly migrated?: readonly Fact[]
      /** When the job came into the state that it has left, where the store had read it. */
      readonly since?: number
    }
  | { readonly kind: 'same'; readonly job: Job }
  /** Its holder was asked to cancel it. */
  | { readonly kind: 'asked'; readonly job: Job }
  | { readonly kind: 'rejected'; readonly error: PawlError }

/** What became of a job whose time had come: it took an edge, or was in its ready state already. */
export type Promoted = Extract<Answer, { readonly kind: 'done' | 'same' | 'asked' }>

/** Receives, after the commit, the answers about jobs that a verb moved by itself. */
export type OnMoved = (answers: readonly Answer[]) => void

/** What became of a job whose lease had expired, and who held it. */
export type Recovered = Answer & { readonly holder?: string }

/** What a worker asks for. */
export interface ClaimRequest {
  readonly worker: string
  /** In order of preference; all queues if absent. */
  readonly queues?: readonly string[]
  /** The types that the worker knows; all if absent. Unknown types stay where they are. */
  readonly types?: readonly string[]
  readonly limit: number
  readonly leaseMs: number
  /** Slots are free now: the attempts also enter IN_PROGRESS. */
  readonly start: boolean
  /**
   * Called when the store has seen that something is ready and goes on to take it. A store that
   * looks and takes by one statement does not call it.
   */
  readonly onFound?: () => void
}

/** The store's own handle of a job. */
export type Ref = number | string

/** A job that the caller holds. */
export interface Held {
  readonly ref: Ref
  readonly job: Job
  readonly input: string
  /** The facts after the claim, if the job followed an earlier version of its lifecycle. */
  readonly migrated?: readonly Fact[]
}

/** What an attempt reports, decided by the core on the snapshot that its holder has. */
export interface Settlement {
  readonly held: Held
  readonly command: AttemptCommand | { readonly kind: 'cancel'; readonly fence: Fence }
  /** The result of a step or of the job, as JSON text. */
  readonly payload?: string
}

/** What came of settling, and what was claimed with it. */
export interface Settled {
  readonly answers: readonly Answer[]
  readonly claimed: readonly Held[]
}

/** One lease to be renewed. */
export interface Beat {
  readonly ref: Ref
  readonly fence: Fence
  /** How far the attempt is, as JSON text; kept until the next claim, and not in the ledger. */
  readonly progress?: string
}

/** What the holder must know after a heartbeat. */
export interface Heartbeat {
  /** Leases that are no longer the caller's. */
  readonly lost: readonly Ref[]
  /** Jobs whose cancellation was asked for. */
  readonly cancelling: readonly Ref[]
}

/** The result of a step that an earlier attempt finished. */
export interface StepResult {
  readonly name: string
  readonly n: number
  readonly payload: string
}

/** A transaction on the store's own database, as a function of the user's gets it. */
export interface StoreTx {
  /** Runs a statement of the user's own in the transaction; returns its rows. */
  query(sql: string, values?: readonly (string | number | null)[]): Promise<unknown[]>
  /**
   * The driver's own handle, in the same transaction: on SQLite a database with `prepare` and
   * `exec`, on PostgreSQL a client of `pg`. It can neither end the transaction nor outlive it.
   */
  readonly raw: unknown
}

/** What the function of a commit may do. */
export interface CommitTx extends StoreTx {
  /** Declares an effect, as JSON text, to be delivered after the commit. */
  effect(name: string, payload: string): void
}

/** What became of a commit: its result, also when an earlier try had committed it already. */
export type CommitAnswer =
  | { readonly kind: 'done'; readonly job: Job; readonly result: string }
  | { readonly kind: 'same'; readonly job: Job; readonly result: string }
  | { readonly kind: 'rejected'; readonly error: PawlError }

/** Which jobs a list shows; conditions are combined. */
export interface JobFilter {
  readonly state?: string
  readonly lane?: Lane
  readonly queue?: string
  readonly type?: string
  readonly tag?: string
  readonly key?: string
  /** Jobs whose last error contains this text. */
  readonly error?: string
  readonly createdFrom?: number
  readonly createdBefore?: number
}

/** A page of a list. */
export interface Page<T> {
  readonly items: readonly T[]
  /** Jobs that belong on this page and cannot be read; absent if there are none. */
  readonly damaged?: readonly DamagedJob[]
  /** Facts that belong on this page and cannot be read; absent if there are none. */
  readonly unreadable?: readonly UnreadableFact[]
  /** Give it back for the next page; absent at the end. */
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

/** A queue, and what is in it. */
export interface QueueInfo {
  readonly name: string
  readonly lanes: Readonly<Record<Lane, number>>
  /** When the job that has been ready for longest became due; absent where none is ready. */
  readonly readySince?: number
  /** How many jobs may be ready, and for how long, where the queue is bounded. */
  readonly maxDepth?: number
  readonly maxWaitMs?: number
  readonly pausedAt?: number
  /** The operator who paused it, and why. */
  readonly pausedBy?: string
  readonly pauseReason?: string
}

/**
 * A fact with its place in the ledger, for those who follow it. The order of places is one in which
 * nothing is missed: what is committed later never gets a place that was passed already.
 */
export interface TailEntry {
  /** Give the last one back to go on from there. */
  readonly pos: string
  readonly fact: Fact
}

/** What a queue will take; null lifts a bound, and what is absent stays as it is. */
export interface QueueLimits {
  /**
   * How many jobs may be ready in the queue. A further one is refused with `QueueFull`; where its
   * lifecycle has a way to fail it (R2: resources are exhausted), it is accepted, and then failed.
   */
  readonly maxDepth?: number | null
  /** How long a job may be ready without being claimed, before it is failed or cancelled. */
  readonly maxWaitMs?: number | null
}

/** A worker, as it tells of itself. */
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

/** What retention does. */
export interface PruneRequest {
  /** Jobs that ended before this time. */
  readonly endedBefore: number
  readonly limit: number
  /** Gets every pruned job with its ledger as lines of NDJSON, before they are removed. */
  readonly archive?: (lines: string) => Promise<void>
}

/**
 * A store. The declarations of the package leave out the verbs that are marked as internal: they
 * belong to the engine and may change in any release.
 */
export interface Store extends StoreTime, AsyncDisposable {
  /** Accepts jobs; a taken key is answered by `onConflict`. Durable when it returns. */
  enqueue(items: readonly EnqueueItem[], options?: EnqueueOptions): Promise<Enqueued[]>

  /**
   * Gives one command to each of these jobs, read and decided in the same transaction. With `seqs`,
   * one for each id, a job whose last fact has another number is answered with `TransitionRace`.
   * @internal
   */
  tell(
    ids: readonly string[],
    command: Command,
    asker: Asker,
    seqs?: readonly number[],
  ): Promise<Answer[]>

  /** Takes leases on jobs that are ready and due, by priority, then time. */
  claim(request: ClaimRequest): Promise<Held[]>

  /**
   * Applies what attempts report, each under its fence, and then claims anew. Each report is whole
   * or not at all; where some need more than others, a store may take them in several transactions,
   * of which the last one claims. Repeating a settlement whose reply was lost is answered "same" or
   * `StaleFence`.
   */
  settle(settlements: readonly Settlement[], next?: ClaimRequest): Promise<Settled>

  /** Renews leases, each under its fence; an expired one is lost, and never revived. */
  heartbeat(beats: readonly Beat[], leaseMs: number): Promise<Heartbeat>

  /**
   * The commit boundary: checks the fence, runs the function, records its result (JSON text) and
   * its effects, all in one transaction. The function runs at most once for a job that ends up
   * committed; a repeated commit with the same fence returns the stored result. Bounded in time:
   * past it everything is rolled back, with `CommitTooSlow`. The numbers that `usage` gives after
   * the function has run are recorded with it.
   */
  commit(
    held: Held,
    work: (tx: CommitTx) => string | Promise<string>,
    usage?: () => Usage | undefined,
  ): Promise<CommitAnswer>

  /**
   * Runs a function in one transaction on a connection of the store, and returns what it returns;
   * durable when it resolves. If the function throws, everything is rolled back and the error is
   * rethrown. Jobs join it by `enqueue(items, { tx })`. Bounded in time: past five seconds it is
   * rolled back with `TransactionTooSlow`. Every other verb inside the function throws `UseTx`.
   */
  transaction<T>(work: (tx: StoreTx) => T | Promise<T>): Promise<T>

  /**
   * The results of the steps that earlier attempts of this job finished. If one cannot be read, or
   * with the check `json` is no JSON, sets the held job aside and throws `JobDamaged`.
   * @internal
   */
  steps(ref: Ref, check?: 'json'): Promise<StepResult[]>

  /** Takes effects to deliver, each under a lease of its own; those that are longest due first. */
  claimEffects(request: EffectClaim): Promise<HeldEffect[]>
  /**
   * Records deliveries; the last one of a job finishes it, which `onMoved` receives. False where
   * the lease was lost.
   */
  settleEffects(reports: readonly EffectReport[], onMoved?: OnMoved): Promise<boolean[]>
  /** Effects by keyset, newest first. */
  listEffects(
    filter: EffectFilter,
    options?: { limit?: number; after?: string },
  ): Promise<Page<EffectInfo>>
  /**
   * Makes effects due now that are parked or wait for their next try, with fresh tries; for each a
   * fact tells who asked and why. By an operator only. False where there is no such effect, it was
   * delivered, somebody is delivering it just now, or it is due already.
   */
  retryEffects(keys: readonly string[], asker: Asker): Promise<boolean[]>

  /**
   * Notes that cancellation is wanted; a job without a holder is cancelled at once. `seqs` as for
   * `tell`.
   */
  cancel(ids: readonly string[], asker: Asker, seqs?: readonly number[]): Promise<Answer[]>

  /** Makes jobs ready whose time has come; at most `limit` of them. Returns how many. */
  promote(limit: number, onMoved?: OnMoved): Promise<number>
  /** When the next job that waits for its time is due; nothing where none waits. @internal */
  nextDue(): Promise<number | undefined>

  /** Takes back jobs whose lease has expired; at most `limit`, each by compare-and-set. */
  recover(limit: number): Promise<Recovered[]>

  /**
   * Migrates live jobs of earlier versions, a bounded number of rows in one transaction; ask again
   * from `next` until there is none. A running job is left to its holder. Needs no code of any
   * version: the store has the definitions. By an operator only.
   * @internal
   */
  migrate(request: MigrationRequest, asker: Asker): Promise<Page<Migration>>
  /** Every version of every lifecycle that was ever registered, by number. @internal */
  listMachines(): Promise<MachineRow[]>

  /**
   * Sets aside jobs whose rows cannot be read or trusted: looks at the next ones of the lanes that
   * are worked on, a bounded number of each. Also returns those that other verbs of this store have
   * set aside since the last call.
   * @internal
   */
  isolate(): Promise<Isolated[]>

  /**
   * Pauses, resumes or bounds a queue for every process, and records who asked and why. Returns the
   * record, or `undefined` if the settings of the queue stay the same; then nothing is written.
   * @internal
   */
  pauseQueue(queue: string, asker: Asker): Promise<QueueRecord | undefined>
  /** @internal */
  resumeQueue(queue: string, asker: Asker): Promise<QueueRecord | undefined>
  /** @internal */
  limitQueue(queue: string, limits: QueueLimits, asker?: Asker): Promise<QueueRecord | undefined>
  /** Ends jobs that a queue has no room or no time for; at most `limit` of them. @internal */
  shed(limit: number): Promise<Answer[]>

  /** Notes that a worker is alive. @internal */
  reportWorker(worker: Pick<WorkerRow, 'id' | 'state' | 'info'>): Promise<void>
  /** @internal */
  removeWorker(id: string): Promise<void>
  listWorkers(): Promise<WorkerRow[]>

  /** The tables of runs; see `openStoreJournal`. */
  readonly runs: RunTables

  /** The rows themselves, for the doctor. @internal */
  readonly examination: Examination

  /** Seals of the ledger; see `verifySeals`. There are none unless somebody makes them. */
  readonly seals: SealTables

  /** Removes ended jobs with their facts, after archiving if asked, and leaves a record. */
  prune(request: PruneRequest): Promise<number>

  /**
   * Calls back when something may have become ready, here or in another process, until the
   * returned function is called. A hint only: it may come for nothing, and may be missed.
   */
  onWake(listener: () => void): () => void
  /**
   * Calls back while the database is away, a second after that began and then every five seconds,
   * and when it is back, until the returned function is called. Absent if a store cannot be away.
   */
  onTrouble?(listener: (trouble: Trouble) => void): () => void

  /** The job as it is now; nothing where there is none. */
  get(id: string): Promise<Job | undefined>
  /** Those of these jobs that there are, in any order, by one look for all of them. */
  getMany(ids: readonly string[]): Promise<Job[]>
  /** The job that has this key. */
  getByKey(type: string, key: string): Promise<Job | undefined>
  /** Every fact of a job, in order. */
  facts(id: string): Promise<Fact[]>
  /** The job as it was after a fact. */
  asOf(id: string, seq: number): Promise<Job | undefined>
  /** The JSON texts beside a job's facts: input and, once committed, result. */
  payloads(id: string): Promise<{ input: string; result?: string } | undefined>
  /** What the present attempt last told of itself, as JSON text; nothing where it did not. */
  progress(id: string): Promise<string | undefined>
  /** Jobs by keyset, newest first as far as ids tell: those that Pawl makes, do. */
  list(filter: JobFilter, options?: { limit?: number; after?: string }): Promise<Page<Job>>
  counts(): Promise<Counts>
  /** Every queue that has or had jobs, or is paused, by name. */
  listQueues(): Promise<QueueInfo[]>
  /** Records of changes of queues, newest first. */
  listQueueRecords(
    filter: QueueRecordFilter,
    options?: { limit?: number; after?: string },
  ): Promise<Page<QueueRecord>>
  /**
   * Facts of all jobs by filter and keyset, in the order of the ledger or against it: of what is
   * complete, so that nothing appears later at a place that was passed.
   */
  audit(filter: AuditFilter, options?: AuditOptions): Promise<Page<AuditEntry>>
  /** Facts after a place, or from the beginning; those of each job in their order. */
  tail(after: string | undefined, limit: number): Promise<(TailEntry | UnreadableFact)[]>
  /** The place after everything that `tail` could give now, from which only new facts follow. */
  tailEnd(): Promise<string>

  close(): Promise<void>
}
