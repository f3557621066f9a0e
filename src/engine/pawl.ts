/**
 * The library: what a program does with jobs. It enqueues them by their definitions, waits for
 * their results, cancels them, and works on them.
 */
import { checkFields, unchecked } from '../core/fields.ts'
import type { Job } from '../core/job/job.ts'
import { Doctor, type DoctorParts } from '../doctor/doctor.ts'
import { CLIENT } from '../stores/asker.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from '../stores/audit.ts'
import { StoreClosed } from '../stores/errors.ts'
import type { QueueRecord } from '../stores/queue-records.ts'
import type { Asker, EnqueueItem, Store } from '../stores/store.ts'
import { auditOf } from './audit.ts'
import { logTroubles } from './connecting.ts'
import type { JobDefinition } from './define-job.ts'
import type { Transaction } from './effects/effects.ts'
import { itemOf } from './enqueue-item.ts'
import { type HandleParts, JobHandle, jobOf } from './job-handle.ts'
import type { AnyJob, Whatever } from './job-types.ts'
import { circumstancesOf } from './operators/circumstances.ts'
import { type Explanation, explain } from './operators/explain.ts'
import { Operator, type OperatorIdentity } from './operators/operators.ts'
import {
  checkEnqueueOptions,
  checkJobOptions,
  type EnqueueOptions,
  limitsOf,
  type QueueOptions,
} from './options.ts'
import { isSettled } from './outcome.ts'
import { type HasEnded, Results } from './results.ts'
import { type PawlParts, startWorker } from './start-worker.ts'
import { watchStore } from './watching/watched-store.ts'
import type { WorkOptions } from './work-options.ts'
import type { JobWorker } from './worker/worker.ts'

/** A kind of job as its key: what it takes, and what it gives. */
export type JobKey<Input, Output> = JobDefinition<Input, Whatever, Output>

/** An open Pawl. */
export class Pawl implements AsyncDisposable {
  readonly store: Store
  readonly #parts: PawlParts
  readonly #results: Results
  readonly #stopLogging: () => void
  readonly #workers = new Set<JobWorker>()

  /** Made by `createPawl`. @internal */
  constructor(parts: PawlParts) {
    this.#parts = parts
    const { lifecycles, observe } = parts
    this.store = watchStore(parts.store, { worker: null, observe, lifecycles })
    const settled = (job: Job) => isSettled(job, parts.lifecycles)
    this.#results = new Results(parts.store, parts.environment, settled)
    this.#stopLogging = logTroubles(parts.store, parts.logger)
  }

  /** Accepts a job. It is durable when this returns, or becomes so with the user's transaction. */
  async enqueue<Input, Output>(
    definition: JobKey<Input, Output>,
    input: Input,
    options: EnqueueOptions = {},
  ): Promise<JobHandle<Output>> {
    checkEnqueueOptions(options)
    const { tx, ...own } = options
    const [handle] = await this.enqueueMany(definition, [{ input, ...own }], tx ? { tx } : {})
    return handle as JobHandle<Output>
  }

  /** Accepts many jobs of one kind at once; all of them, or none where one is refused. */
  async enqueueMany<Input, Output>(
    definition: JobKey<Input, Output>,
    jobs: readonly ({ readonly input: Input } & Omit<EnqueueOptions, 'tx'>)[],
    options: Pick<EnqueueOptions, 'tx'> = {},
  ): Promise<JobHandle<Output>[]> {
    checkFields(options, { tx: unchecked }, { what: 'options' })
    const { tx } = options
    const { environment, bounds } = this.#parts
    const context = { ids: environment.ids, bounds, now: () => this.store.now() }
    const items: EnqueueItem[] = []
    for (const { input, ...own } of jobs) {
      checkJobOptions(own)
      items.push(await itemOf(definition as AnyJob, input, own, context))
    }
    let hasEnded: HasEnded | undefined
    const onJoined = (ask: HasEnded) => {
      hasEnded = ask
    }
    const joining = tx === undefined ? {} : { tx, onJoined }
    const results = await this.store.enqueue(items, joining)
    const parts = this.#handleParts()
    return results.map((result) => {
      if (result.kind === 'rejected') throw result.error
      return new JobHandle<Output>(parts, result.job, result.kind === 'created', hasEnded)
    })
  }

  /**
   * Runs a function in one transaction on a connection of Pawl, and returns what it returns. Jobs
   * enqueued with its `tx` and your own writes are committed together, or rolled back together if
   * the function throws. It may take five seconds; other verbs inside it throw `UseTx`.
   */
  transaction<T>(work: (tx: Transaction) => T | Promise<T>): Promise<T> {
    return this.store.transaction(work)
  }

  /** The handle of a job by its id; whether it exists is found out when it is used. */
  job<Output = unknown>(id: string): JobHandle<Output> {
    return new JobHandle<Output>(this.#handleParts(), { id }, false)
  }

  /** Lets a job run that was enqueued with `hold`. */
  async submit(id: string): Promise<Job> {
    return jobOf(await this.store.tell([id], { kind: 'submit' }, CLIENT))
  }

  /** A person who acts on jobs: named, and with a reason, both of which the ledger keeps. */
  operator(identity: OperatorIdentity): Operator {
    const { environment, lifecycles, observe } = this.#parts
    return new Operator({ store: this.store, environment, lifecycles, observe }, identity)
  }

  /** Whoever looks at the store, says what is wrong with it, and mends it when asked to. */
  doctor(options: Pick<DoctorParts, 'runs' | 'patience'> = {}): Doctor {
    checkFields(options, { runs: unchecked, patience: unchecked }, { what: 'options' })
    const { environment, lifecycles } = this.#parts
    return new Doctor({ store: this.store, environment, lifecycles, ...options })
  }

  /** Why a job is not running, in one sentence, and the command that would change it. */
  async explain(id: string): Promise<Explanation> {
    return explain(await circumstancesOf(this.store, this.#parts.lifecycles, id))
  }

  /** What happened to jobs: every fact that a filter shows, oldest first unless said otherwise. */
  audit(filter: AuditFilter = {}, options: AuditOptions = {}): AsyncGenerator<AuditEntry> {
    return auditOf(this.store, filter, options)
  }

  /**
   * Stops claims from a queue; what runs, runs on. Returns the record of the change, or `undefined`
   * if the queue is paused already.
   */
  pauseQueue(queue: string, asker: Asker = CLIENT): Promise<QueueRecord | undefined> {
    return this.store.pauseQueue(queue, asker)
  }

  /** Lets a queue be claimed from again; `undefined` if it is not paused. */
  resumeQueue(queue: string, asker: Asker = CLIENT): Promise<QueueRecord | undefined> {
    return this.store.resumeQueue(queue, asker)
  }

  /** Bounds what a queue will take, for every process; `undefined` if nothing changes. */
  async limitQueue(
    queue: string,
    limits: QueueOptions,
    asker: Asker = CLIENT,
  ): Promise<QueueRecord | undefined> {
    return this.store.limitQueue(queue, limitsOf(limits), asker)
  }

  /** Starts a worker for every job type that has code here, or for those of the options. */
  async work(options: WorkOptions = {}): Promise<JobWorker> {
    const worker = startWorker(this.#parts, options, {
      results: this.#results,
      doctor: this.doctor(),
      onStopped: (stopped) => this.#workers.delete(stopped),
    })
    this.#workers.add(worker)
    return worker
  }

  /** Stops every worker, and closes the store if it was opened here. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()))
    this.#results.close(new StoreClosed())
    this.#stopLogging()
    if (this.#parts.storeName !== undefined) await this.store.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #handleParts(): HandleParts {
    return { store: this.store, results: this.#results, lifecycles: this.#parts.lifecycles }
  }
}
