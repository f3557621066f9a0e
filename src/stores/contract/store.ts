/**
 * The contract of a store: asynchronous verbs, each with its rule of atomicity, idempotence and
 * fencing. It contains no SQL. Every store keeps the same promises and passes the same tests
 * (`test/contract/store/`). The rules are in the core, which the stores call.
 *
 * One rule holds for every verb that changes a job: the fact and the folded row are written in one
 * transaction, or neither is. A verb over several jobs is one transaction, unless it says
 * otherwise, but its jobs are independent: a job that is refused changes nothing and does not
 * affect the others.
 *
 * Payloads (input, step results, results, effects) are JSON texts. The store keeps them beside the
 * facts and does not parse them.
 */
import type { Admission } from '../../core/admission.ts'
import type { PawlError } from '../../core/errors.ts'
import type {
  AttemptCommand,
  Command,
  Context,
  CreateCommand,
  Fence,
} from '../../core/job/commands.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import type { Lane } from '../../core/job/lanes.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { TraceContext } from '../../core/trace.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from '../audit.ts'
import type { OutcomeWord } from '../ends.ts'
import type { MachineRow } from '../machines.ts'
import type { Migration, MigrationRequest } from '../migration.ts'
import type { Trouble } from '../outage.ts'
import type { QueueRecord, QueueRecordFilter } from '../queue-records.ts'
import type { SealTables } from '../seals.ts'
import type { StoreTime } from '../store-time.ts'
import type { Admissions } from './admissions.ts'
import type { Closing, CommitAnswer, CommitWork, StoreTx } from './commit.ts'
import type { Isolated, UnreadableFact } from './damaged.ts'
import type { Examination } from './examination.ts'
import type { FlowTables } from './flows.ts'
import type { WorkerReport } from './job-types.ts'
import type { LimitTables } from './limits.ts'
import type { EffectClaim, EffectFilter, EffectInfo, EffectReport, HeldEffect } from './outbox.ts'
import type { Counts, Page, TailEntry, WorkerRow } from './reading.ts'
import type { PruneRequest, RemovedJob, Retention } from './retention.ts'
import type { RunTables } from './runs.ts'
import type { ScheduleTables } from './schedules.ts'
import type { TokenTables } from './tokens.ts'
import type { WaitTables } from './waits.ts'

export type * from './commit.ts'
export type { DamagedJob, Isolated, UnreadableFact } from './damaged.ts'
export * from './outbox.ts'
export type * from './reading.ts'
export type { PruneRequest } from './retention.ts'

/** The facts whose spans later work refers to. */
export type TracedTrigger = 'create' | 'commit'

/** Who asks, and what the ledger records about it. */
export type Requester = Omit<Context, 'now' | 'random'>

/** What to do when the key of a new job is taken. */
export type OnConflict = 'existing' | 'replace' | 'reject'

/** A job to be accepted. */
export interface EnqueueItem {
  readonly lifecycle: Lifecycle
  readonly command: Omit<CreateCommand, 'kind'>
  /** JSON text. */
  readonly input: string
  readonly onConflict?: OnConflict
  /** What the job is subject to; nothing if absent. */
  readonly admission?: Admission
}

/** How jobs are enqueued. */
export interface EnqueueOptions {
  /** A client if absent. */
  readonly requester?: Requester
  /**
   * The user's own open transaction on the same database. The jobs are accepted if it commits. If
   * it rolls back, they do not exist.
   */
  readonly tx?: unknown
  /**
   * Called when the jobs are written in `tx`, with a function that returns whether that transaction
   * has ended, by a COMMIT or a ROLLBACK.
   */
  readonly onJoined?: (hasEnded: () => Promise<boolean>) => void
}

/** The result of one item: accepted, or its key belonged to a job already. */
export type Enqueued =
  | { readonly kind: 'created'; readonly job: Job }
  | { readonly kind: 'existing'; readonly job: Job }
  | { readonly kind: 'replaced'; readonly job: Job }
  | { readonly kind: 'removed'; readonly removed: RemovedJob }
  | { readonly kind: 'rejected'; readonly error: PawlError }

/** The result of a command. */
export type Answer =
  | {
      readonly kind: 'done'
      readonly job: Job
      readonly fact: Fact
      /** The facts before it, if the job followed an earlier version of its lifecycle. */
      readonly migrated?: readonly Fact[]
      /** When the job entered the state that it has left, if the store has read it. */
      readonly since?: number
    }
  | { readonly kind: 'same'; readonly job: Job }
  /** Its holder was asked to cancel it. */
  | { readonly kind: 'asked'; readonly job: Job }
  | { readonly kind: 'rejected'; readonly error: PawlError }

/** The result of a job whose time had come: it took an edge, or was in its ready state already. */
export type Promoted = Extract<Answer, { readonly kind: 'done' | 'same' | 'asked' }>

/** Receives, after the commit, the answers about jobs that a verb moved by itself. */
export type OnMoved = (answers: readonly Answer[]) => void

/** The result of a job whose lease had expired, and who held it. */
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
   * Called when the store has seen that something is ready and will now claim it. A store that
   * searches and claims with one statement does not call it.
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
  /** The gates that it counts in, as its row names them; absent if there are none. */
  readonly slots?: string
  /** The facts after the claim, if the job followed an earlier version of its lifecycle. */
  readonly migrated?: readonly Fact[]
  /** The span that enqueued the job; only a process with tracing looks for it. */
  readonly trace?: TraceContext
}

/** What an attempt reports, decided by the core on the snapshot that its holder has. */
export interface Settlement {
  readonly held: Held
  readonly command: AttemptCommand | { readonly kind: 'cancel'; readonly fence: Fence }
  /** The result of a step or of the job, as JSON text. */
  readonly payload?: string
  /** The last progress of the attempt, as JSON text, if a heartbeat may not have stored it. */
  readonly progress?: string
  /** The span that the attempt runs in; its fact keeps the ids. */
  readonly trace?: TraceContext
}

/** The results of settlements, and the jobs that were claimed with them. */
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

/** What a heartbeat returns to the holder. */
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

/** Which jobs a list shows; conditions are combined. */
export interface JobFilter {
  readonly state?: string
  readonly lane?: Lane
  /**
   * How jobs turned out, with the same meaning in every lifecycle. `failed` includes jobs that are
   * parked because an attempt failed or their retries are used up.
   */
  readonly outcome?: OutcomeWord
  /** Jobs whose lease has expired and whose recovery waits for an operator; or all others. */
  readonly stalled?: boolean
  readonly queue?: string
  readonly type?: string
  readonly tag?: string
  readonly key?: string
  /** Jobs whose last error contains this text: its message, its code or its fingerprint. */
  readonly error?: string
  /** Jobs that wait for a signal of this name now. */
  readonly waitsFor?: string
  /** Jobs of this flow or batch, or invoked children of this job. */
  readonly flow?: string
  /** Jobs that wait for a signal, whatever its name. */
  readonly waitsForSignal?: true
  readonly createdFrom?: number
  readonly createdBefore?: number
}

/** A queue, and what is in it. */
export interface QueueInfo {
  readonly name: string
  readonly lanes: Readonly<Record<Lane, number>>
  /** When the job that has been ready for longest became due; absent if no job is ready. */
  readonly readySince?: number
  /** How many jobs may be ready, and for how long; absent if the queue is not bounded. */
  readonly maxDepth?: number
  readonly maxWaitMs?: number
  readonly pausedAt?: number
  /** The operator who paused it, and why. */
  readonly pausedBy?: string
  readonly pauseReason?: string
}

/** The bounds of a queue; null removes a bound, and an absent one stays as it is. */
export interface QueueLimits {
  /**
   * How many jobs may be ready in the queue. A further one is refused with `QueueFull`. If its
   * lifecycle has a path to fail it (R2: resources are exhausted), it is accepted and then failed.
   */
  readonly maxDepth?: number | null
  /** How long a job may be ready without being claimed, before it is failed or cancelled. */
  readonly maxWaitMs?: number | null
}

/**
 * How many calls of one worker, which report and claim, a store can use at once.
 * @internal
 */
export interface FlightLimits {
  readonly max: number
  /** A call with fewer reports is not worth a round trip beside others. */
  readonly reportsMin: number
}

/**
 * A store. The declarations of the package leave out the verbs that are marked as internal: they
 * belong to the engine and may change in any release.
 */
export interface Store extends StoreTime, AsyncDisposable {
  /** Accepts jobs; `onConflict` says what happens if a key is taken. Durable when it resolves. */
  enqueue(items: readonly EnqueueItem[], options?: EnqueueOptions): Promise<Enqueued[]>

  /**
   * Applies one command to each of these jobs, read and decided in the same transaction. With
   * `seqs`, one for each id, a job whose last fact has another number is answered with
   * `TransitionRace`.
   * @internal
   */
  applyCommand(
    ids: readonly string[],
    command: Command,
    requester: Requester,
    seqs?: readonly number[],
  ): Promise<Answer[]>

  /** What the store can use of calls that claim at once for one worker. @internal */
  readonly flights?: FlightLimits

  /** Takes leases on jobs that are ready and due, by priority, then time. */
  claim(request: ClaimRequest): Promise<Held[]>

  /**
   * Applies what attempts report, each under its fence, and then claims again. Each report is
   * written completely or not at all. A store may use several transactions, of which the last one
   * claims. A repeated settlement whose reply was lost is answered with "same" or `StaleFence`.
   */
  settle(settlements: readonly Settlement[], next?: ClaimRequest): Promise<Settled>

  /** Renews leases, each under its fence. An expired lease is lost and cannot be renewed. */
  heartbeat(beats: readonly Beat[], leaseMs: number): Promise<Heartbeat>

  /**
   * The commit boundary: checks the fence, runs the function, records its result (JSON text) and
   * its effects, all in one transaction. The function runs at most once for a job that ends up
   * committed; a repeated commit with the same fence returns the stored result. If the function
   * takes too long, everything is rolled back with `CommitTooSlow`. What `closing`
   * returns after the function has run is recorded with it.
   */
  commit(held: Held, work: CommitWork, closing?: () => Closing): Promise<CommitAnswer>

  /**
   * Runs a function in one transaction on a connection of the store, and returns what it returns;
   * durable when it resolves. If the function throws, everything is rolled back and the error is
   * rethrown. Jobs join it by `enqueue(items, { tx })`. After five seconds it is rolled back with
   * `TransactionTooSlow`. Every other verb inside the function throws `UseTx`.
   */
  transaction<T>(work: (tx: StoreTx) => T | Promise<T>): Promise<T>

  /**
   * Returns the results of the steps that earlier attempts of this job finished. If one cannot be
   * read, or with the check `json` is not JSON, sets the held job aside and throws `JobDamaged`.
   * @internal
   */
  steps(ref: Ref, check?: 'json'): Promise<StepResult[]>

  /** Claims effects to deliver, each under a lease of its own; those that are longest due first. */
  claimEffects(request: EffectClaim): Promise<HeldEffect[]>
  /**
   * Records deliveries. The last one of a job finishes it, which `onMoved` receives. Returns false
   * for a report whose lease was lost.
   */
  settleEffects(reports: readonly EffectReport[], onMoved?: OnMoved): Promise<boolean[]>
  /** Effects by keyset, newest first. */
  listEffects(
    filter: EffectFilter,
    options?: { limit?: number; after?: string },
  ): Promise<Page<EffectInfo>>
  /**
   * Makes effects due now that are parked or wait for their next try, with fresh tries. A fact for
   * each records who asked and why. By an operator only. Returns false for an effect that does not
   * exist, was delivered, is being delivered, or is due already.
   */
  retryEffects(keys: readonly string[], requester: Requester): Promise<boolean[]>

  /**
   * Requests cancellation; a job without a holder is cancelled at once. `seqs` as for
   * `applyCommand`.
   */
  cancel(ids: readonly string[], requester: Requester, seqs?: readonly number[]): Promise<Answer[]>

  /** Makes jobs ready whose time has come; at most `limit` of them. Returns how many. */
  promote(limit: number, onMoved?: OnMoved): Promise<number>
  /**
   * When the next waiting job is due that `promote` of this process would make ready, or a gate
   * that blocks jobs opens; `undefined` if there is neither. @internal
   */
  nextDue(): Promise<number | undefined>

  /** Recovers jobs whose lease has expired; at most `limit`, each by compare-and-set. */
  recover(limit: number): Promise<Recovered[]>

  /**
   * Migrates live jobs of earlier versions, a bounded number of rows in one transaction; ask again
   * from `next` until there is none. A running job is left to its holder. Needs no code of any
   * version: the store has the definitions. By an operator only.
   * @internal
   */
  migrate(request: MigrationRequest, requester: Requester): Promise<Page<Migration>>
  /** Every version of every lifecycle that was ever registered, by number. @internal */
  listMachines(): Promise<MachineRow[]>

  /**
   * Sets aside jobs whose rows cannot be read or trusted. Reads the next rows of each lane that
   * workers use, a bounded number of each. Also returns those that other verbs of this store have
   * set aside since the last call.
   * @internal
   */
  isolate(): Promise<Isolated[]>

  /**
   * Pauses, resumes or bounds a queue for every process, and records who asked and why. Returns the
   * record, or `undefined` if the settings of the queue stay the same; then nothing is written.
   * @internal
   */
  pauseQueue(queue: string, requester: Requester): Promise<QueueRecord | undefined>
  /** @internal */
  resumeQueue(queue: string, requester: Requester): Promise<QueueRecord | undefined>
  /** @internal */
  limitQueue(
    queue: string,
    limits: QueueLimits,
    requester?: Requester,
  ): Promise<QueueRecord | undefined>
  /**
   * Ends jobs that wait past their deadline, or that a queue has no room or no time for; at most
   * `limit` of them. @internal
   */
  shed(limit: number): Promise<Answer[]>

  /**
   * Writes that a worker is alive, and what it declares of its job types. Only PostgreSQL keeps
   * declarations, for the function `enqueue` of its schema. @internal
   */
  reportWorker(worker: WorkerReport): Promise<void>
  /** @internal */
  removeWorker(id: string): Promise<void>
  listWorkers(): Promise<WorkerRow[]>

  /** The tables of runs; see `openStoreJournal`. */
  readonly runs: RunTables

  /** Limits, and what runs and waits under each. @internal */
  readonly limits: LimitTables
  /** Schedules, and the records of their ticks; see `pawl.schedules`. */
  readonly schedules: ScheduleTables

  /** The rows themselves, for the doctor. @internal */
  readonly examination: Examination

  /** Seals of the ledger; see `verifySeals`. They are made on request only. */
  readonly seals: SealTables

  /** The rows of `rateLimit`, `debounce` and `singleton`. @internal */
  readonly admissions: Admissions

  /** Removes ended jobs by class, and keeps their keys. @internal */
  readonly retention: Retention
  /** Tokens of the HTTP API. @internal */
  readonly tokens: TokenTables
  /** Waits and signals of jobs. @internal */
  readonly waits: WaitTables
  /** Flows, batches and invoked children. @internal */
  readonly flows: FlowTables

  /** Removes ended jobs with their facts, after archiving if asked, and leaves a record. */
  prune(request: PruneRequest): Promise<number>

  /**
   * Calls `listener` when something may have become ready, here or in another process, until the
   * returned function is called. A hint only: it may be wrong, and may be missed.
   */
  onWake(listener: () => void): () => void
  /**
   * Calls `listener` while the database is away, after a second and then every five seconds, and
   * when it is back, until the returned function is called. Absent if a store cannot be away.
   */
  onTrouble?(listener: (trouble: Trouble) => void): () => void

  /** Returns the job as it is now, or `undefined`. */
  get(id: string): Promise<Job | undefined>
  /** Returns those of these jobs that exist, in any order, by one read. */
  getMany(ids: readonly string[]): Promise<Job[]>
  /** The job that has this key. */
  getByKey(type: string, key: string): Promise<Job | undefined>
  /** Every fact of a job, in order. */
  facts(id: string): Promise<Fact[]>
  /**
   * The spans in which jobs were created, or committed, by job. A job is left out if its fact was
   * not written inside a span, or cannot be read.
   * @internal
   */
  traces(ids: readonly string[], of: TracedTrigger): Promise<ReadonlyMap<string, TraceContext>>
  /** The job as it was after a fact. */
  asOf(id: string, seq: number): Promise<Job | undefined>
  /** The JSON texts beside a job's facts: input and, once committed, result. */
  payloads(id: string): Promise<{ input: string; result?: string } | undefined>
  /**
   * The progress that the present attempt last reported, as JSON text; `undefined` if it has not.
   */
  progress(id: string): Promise<string | undefined>
  /** Jobs by keyset, newest first: ids that Pawl makes are in the order of time. */
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
   * Facts of all jobs by filter and keyset, in the order of the ledger or against it. Returns only
   * positions at which no further fact can appear.
   */
  audit(filter: AuditFilter, options?: AuditOptions): Promise<Page<AuditEntry>>
  /** Facts after a position, or from the beginning; those of each job in their order. */
  tail(after: string | undefined, limit: number): Promise<(TailEntry | UnreadableFact)[]>
  /** The position after everything that `tail` can return now; only new facts follow it. */
  tailEnd(): Promise<string>

  close(): Promise<void>
}
