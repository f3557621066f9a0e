import { checkFields, unchecked } from '../core/fields.ts'
import type { Job } from '../core/job/job.ts'
import { Doctor, type DoctorParts } from '../doctor/doctor.ts'
import { CLIENT, checkAsker } from '../stores/asker.ts'
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
import type { AnyJob, AnyValue } from './job-types.ts'
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
import { observeStore } from './watching/observe-store.ts'
import type { WorkOptions } from './work-options.ts'
import type { JobWorker } from './worker/worker.ts'

/** A job type as the key for `enqueue`: the types of its input and output. */
export type JobKey<Input, Output> = JobDefinition<Input, AnyValue, Output>

/** The library: enqueues jobs, waits for their results, cancels them, and starts workers. */
export class Pawl implements AsyncDisposable {
  readonly store: Store
  readonly #parts: PawlParts
  readonly #results: Results
  readonly #stopLogging: () => void
  readonly #workers = new Set<JobWorker>()

  /** Use `createPawl`. @internal */
  constructor(parts: PawlParts) {
    this.#parts = parts
    const { lifecycles, observe } = parts
    this.store = observeStore(parts.store, { worker: null, observe, lifecycles })
    const settled = (job: Job) => isSettled(job, parts.lifecycles)
    this.#results = new Results(parts.store, parts.environment, settled)
    this.#stopLogging = logTroubles(parts.store, parts.logger)
  }

  /** Enqueues a job. It is durable when this returns, or when your transaction commits. */
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

  /** Enqueues jobs of one type in one transaction: all of them, or none if one is rejected. */
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
   * Runs a function in a transaction on a connection of Pawl, and returns its result. Your own
   * writes and jobs enqueued with its `tx` are committed together, or rolled back together if the
   * function throws. It may take five seconds. Other calls of Pawl inside it throw `UseTx`.
   */
  transaction<T>(work: (tx: Transaction) => T | Promise<T>): Promise<T> {
    return this.store.transaction(work)
  }

  /** The handle of a job by its id. It does not check whether the job exists. */
  job<Output = unknown>(id: string): JobHandle<Output> {
    return new JobHandle<Output>(this.#handleParts(), { id }, false)
  }

  /** Makes a job ready that was enqueued with `hold`. */
  async submit(id: string): Promise<Job> {
    return jobOf(await this.store.tell([id], { kind: 'submit' }, CLIENT))
  }

  /** Acts on jobs in the name of a person; the ledger records the name and the reason. */
  operator(identity: OperatorIdentity): Operator {
    const { environment, lifecycles, observe } = this.#parts
    return new Operator({ store: this.store, environment, lifecycles, observe }, identity)
  }

  /** The doctor checks the store, reports findings, and repairs them when asked to. */
  doctor(options: Pick<DoctorParts, 'runs' | 'patience'> = {}): Doctor {
    checkFields(options, { runs: unchecked, patience: unchecked }, { what: 'options' })
    const { environment, lifecycles } = this.#parts
    return new Doctor({ store: this.store, environment, lifecycles, ...options })
  }

  /** Says in one sentence why a job is not running, and which command would change that. */
  async explain(id: string): Promise<Explanation> {
    return explain(await circumstancesOf(this.store, this.#parts.lifecycles, id))
  }

  /** All facts that match a filter, oldest first unless the options say otherwise. */
  audit(filter: AuditFilter = {}, options: AuditOptions = {}): AsyncGenerator<AuditEntry> {
    return auditOf(this.store, filter, options)
  }

  /**
   * Stops claims from a queue; running jobs continue. Returns the record of the change, or
   * `undefined` if the queue is paused already.
   */
  async pauseQueue(queue: string, asker: Asker = CLIENT): Promise<QueueRecord | undefined> {
    return this.store.pauseQueue(queue, checkAsker(asker))
  }

  /** Allows claims from a queue again. Returns `undefined` if the queue is not paused. */
  async resumeQueue(queue: string, asker: Asker = CLIENT): Promise<QueueRecord | undefined> {
    return this.store.resumeQueue(queue, checkAsker(asker))
  }

  /** Sets the limits of a queue for every process. Returns `undefined` if nothing changes. */
  async limitQueue(
    queue: string,
    limits: QueueOptions,
    asker: Asker = CLIENT,
  ): Promise<QueueRecord | undefined> {
    return this.store.limitQueue(queue, limitsOf(limits), checkAsker(asker))
  }

  /** Starts a worker for the job types in `options.jobs`, or for all that have a handler. */
  async work(options: WorkOptions = {}): Promise<JobWorker> {
    const worker = startWorker(this.#parts, options, {
      results: this.#results,
      doctor: this.doctor(),
      onStopped: (stopped) => this.#workers.delete(stopped),
    })
    this.#workers.add(worker)
    return worker
  }

  /** Stops all workers; closes the store if Pawl opened it. */
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
