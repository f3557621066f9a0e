import { JobNotFound } from '../core/errors.ts'
import { checkFields, unchecked } from '../core/fields.ts'
import type { Job } from '../core/job/job.ts'
import { checkDoctorOptions, Doctor, type DoctorParts } from '../doctor/doctor.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from '../stores/audit.ts'
import { CLIENT, checkRequester } from '../stores/contract/requester.ts'
import type { Requester, Store } from '../stores/contract/store.ts'
import { StoreClosed } from '../stores/errors.ts'
import type { QueueRecord } from '../stores/queue-records.ts'
import { auditOf } from './audit.ts'
import { logTroubles } from './connecting.ts'
import { type AnySignal, checkDeclared, type SentOf } from './define-signal.ts'
import type { Transaction } from './effects/effects.ts'
import {
  type EnqueuedCount,
  enqueueStream,
  type JobEntry,
  type StreamOptions,
} from './enqueue-stream.ts'
import { type EnqueueParts, enqueueAll } from './enqueueing.ts'
import { PawlClosed } from './errors.ts'
import type { FlowBuilder, FlowNode } from './flows/builder.ts'
import { type BatchOptions, createBatch, createFlow, type FlowOptions } from './flows/create.ts'
import { Flows } from './flows/flows.ts'
import type { BatchHandle, FlowHandle } from './flows/handles.ts'
import { wakeStore } from './flows/wake-store.ts'
import {
  checkSendOptions,
  type HandleParts,
  JobHandle,
  jobOf,
  type SendOptions,
  type SentSignal,
  sendSignal,
} from './job-handle.ts'
import { checkJobType, type JobKey } from './job-types.ts'
import { Limits } from './limits/limits.ts'
import { circumstancesOf } from './operators/circumstances.ts'
import { type Explanation, explain } from './operators/explain.ts'
import { Operator, type OperatorIdentity } from './operators/operators.ts'
import { checkEnqueueOptions, type EnqueueOptions, limitsOf, type QueueOptions } from './options.ts'
import { isSettled } from './outcome.ts'
import { Jobs, Queues, Workers } from './reading.ts'
import { Results } from './results.ts'
import { type RetentionStatus, type RunRetentionOptions, retentionStatus } from './retention/run.ts'
import { ticksOf } from './schedules/cron.ts'
import { Schedules } from './schedules/schedules.ts'
import { type PawlParts, startWorker } from './start-worker.ts'
import { observeStore } from './watching/observe-store.ts'
import type { WorkOptions } from './work-options.ts'
import type { JobWorker } from './worker/worker.ts'

/** @internal */
export type PawlInternals = EnqueueParts &
  Pick<PawlParts, 'jobs' | 'lifecycles' | 'environment' | 'logger' | 'redact' | 'tokens'>

/** The library: enqueues jobs, waits for their results, cancels them, and starts workers. */
export class Pawl implements AsyncDisposable {
  readonly store: Store
  /** Reads jobs: one by its id, lists by filter, and their number. */
  readonly jobs: Jobs
  /** Reads queues. */
  readonly queues: Queues
  /** Reads limits, and what runs and waits under each. */
  readonly limits: Limits
  /** Reads workers of all processes. */
  readonly workers: Workers
  /** Stores and reads schedules. */
  readonly schedules: Schedules
  /** Reads flows and batches, and acts on all jobs of one. */
  readonly flows: Flows
  readonly #parts: PawlParts
  readonly #results: Results
  readonly #handleParts: HandleParts
  readonly #stopLogging: () => void
  readonly #workers = new Set<JobWorker>()
  #isClosed = false

  /** Use `createPawl`. @internal */
  constructor(parts: PawlParts) {
    this.#parts = parts
    const { lifecycles, observe, isHeard } = parts
    const watched = { worker: null, observe, isHeard, lifecycles }
    // Workers look again, so a wake that fails here is only late.
    const onError = (error: unknown) => parts.logger.warn({ error }, 'Waiting jobs were not woken')
    this.store = wakeStore(observeStore(parts.store, watched), onError)
    this.jobs = new Jobs(this.store)
    this.queues = new Queues(this.store)
    this.limits = new Limits(this.store)
    this.workers = new Workers(this.store)
    const { bounds } = parts
    this.schedules = new Schedules({ store: this.store, bounds, requester: CLIENT })
    this.flows = new Flows({
      store: this.store,
      enqueue: () => this.#handleParts,
      operator: (identity) => this.operator(identity),
    })
    const settled = (job: Job) => isSettled(job, parts.lifecycles)
    this.#results = new Results(parts.store, parts.environment, settled)
    const { environment } = parts
    this.#handleParts = {
      store: this.store,
      results: this.#results,
      lifecycles,
      environment,
      bounds,
    }
    this.#stopLogging = logTroubles(parts.store, parts.logger)
  }

  /** Enqueues a job that takes no input, or whose input may be undefined. */
  enqueue<Input, Output, G extends AnySignal>(
    definition: JobKey<Input, Output, G> & (undefined extends Input ? unknown : never),
  ): Promise<JobHandle<Output, G>>
  /** Enqueues a job. It is durable when this returns, or when your transaction commits. */
  enqueue<Input, Output, G extends AnySignal>(
    definition: JobKey<Input, Output, G>,
    input: Input,
    options?: EnqueueOptions<G>,
  ): Promise<JobHandle<Output, G>>
  /** Enqueues a job. */
  async enqueue<Input, Output, G extends AnySignal>(
    definition: JobKey<Input, Output, G>,
    input?: Input,
    options: EnqueueOptions<G> = {},
  ): Promise<JobHandle<Output, G>> {
    checkEnqueueOptions(options)
    const { tx, ...own } = options
    const entry = { input: input as Input, ...own }
    const joining = tx ? { tx } : {}
    const [handle] = await enqueueAll(this.#handleParts, definition, [entry], joining)
    return handle as JobHandle<Output, G>
  }

  /** Enqueues jobs of one type in one transaction: all of them, or none if one is rejected. */
  enqueueMany<Input, Output>(
    definition: JobKey<Input, Output>,
    jobs: readonly JobEntry<Input>[],
    options?: Pick<EnqueueOptions, 'tx'>,
  ): Promise<JobHandle<Output>[]>
  /**
   * Enqueues jobs of one type from a stream, in batches: each batch is one transaction. Throws
   * `EnqueueInterrupted` if it ends early, with the number of entries that are enqueued.
   */
  enqueueMany<Input, Output>(
    definition: JobKey<Input, Output>,
    jobs: AsyncIterable<JobEntry<Input>> | Iterable<JobEntry<Input>>,
    options?: StreamOptions,
  ): Promise<EnqueuedCount>
  /** Enqueues jobs of one type. */
  async enqueueMany<Input, Output>(
    definition: JobKey<Input, Output>,
    jobs: Iterable<JobEntry<Input>> | AsyncIterable<JobEntry<Input>>,
    options: Pick<EnqueueOptions, 'tx'> | StreamOptions = {},
  ): Promise<JobHandle<Output>[] | EnqueuedCount> {
    const parts = this.#handleParts
    if (!Array.isArray(jobs)) {
      return enqueueStream(parts, definition, jobs, options as StreamOptions)
    }
    const joining = options as Pick<EnqueueOptions, 'tx'>
    checkFields(joining, { tx: unchecked }, { what: 'options' })
    return (await enqueueAll(parts, definition, jobs, joining)) as JobHandle<Output>[]
  }

  /**
   * Makes jobs that come after each other, in one transaction: all of them, or none. `f.add` adds a
   * job and returns its node, which later jobs can name in `after`. The handle waits for the node
   * that the function returns.
   */
  flow<Output = never>(
    // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing
    build: (f: FlowBuilder) => FlowNode<Output> | void,
    options: FlowOptions = {},
  ): Promise<FlowHandle<Output>> {
    return createFlow(this.#handleParts, build, options)
  }

  /**
   * Makes a job for each input, and jobs that run when all of them have ended, in one transaction.
   * Without inputs, the batch is complete at once unless it is open.
   */
  batch<Input, Output, OnSuccess, OnComplete, OnFailure>(
    definition: JobKey<Input, Output>,
    inputs: readonly NoInfer<Input>[],
    options: BatchOptions<OnSuccess, OnComplete, OnFailure> = {},
  ): Promise<BatchHandle<Input>> {
    return createBatch<Input>(this.#handleParts, definition, inputs, options)
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
    return new JobHandle<Output>(this.#handleParts, { id }, false)
  }

  /**
   * Sends a signal to the job of a type and key, as `handle.signal` does. Throws `JobNotFound` if
   * there is none.
   */
  async signal<Input, Output, G extends AnySignal, S extends G>(
    definition: JobKey<Input, Output, G>,
    where: { readonly key: string },
    signal: S,
    payload: NoInfer<SentOf<S>>,
    options: SendOptions = {},
  ): Promise<SentSignal> {
    checkJobType(definition)
    checkDeclared(definition, signal)
    checkFields(where, { key: unchecked }, { what: 'where' })
    checkSendOptions(options)
    const { key } = where
    const { items } = await this.store.list({ type: definition.name, key }, { limit: 1 })
    const [job] = items
    if (job === undefined) throw new JobNotFound(key)
    return sendSignal(this.#handleParts, job.id, signal, payload, options)
  }

  /** Makes a job ready that was enqueued with `hold`. */
  async submit(id: string): Promise<Job> {
    return jobOf(await this.store.applyCommand([id], { kind: 'submit' }, CLIENT))
  }

  /** Acts on jobs in the name of a person; the ledger records the name and the reason. */
  operator(identity: OperatorIdentity): Operator {
    const { environment, lifecycles, observe, bounds, retention: policy } = this.#parts
    const shared = { environment, lifecycles, observe, bounds, policy }
    return new Operator({ store: this.store, ...shared }, identity)
  }

  /** The doctor checks the store, reports findings, and repairs them when asked to. */
  doctor(options: Pick<DoctorParts, 'runs' | 'thresholds'> = {}): Doctor {
    checkDoctorOptions(options)
    const { environment, lifecycles } = this.#parts
    return new Doctor({ store: this.store, environment, lifecycles, ticksOf, ...options })
  }

  /** Counts what retention would remove now, and what is left of removed jobs. */
  retentionStatus(
    options: Pick<RunRetentionOptions, 'retention' | 'types'> = {},
  ): Promise<RetentionStatus> {
    const { environment, retention: policy } = this.#parts
    return retentionStatus({ store: this.store, environment, policy }, options)
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
  async pauseQueue(queue: string, requester: Requester = CLIENT): Promise<QueueRecord | undefined> {
    return this.store.pauseQueue(queue, checkRequester(requester))
  }

  /** Allows claims from a queue again. Returns `undefined` if the queue is not paused. */
  async resumeQueue(
    queue: string,
    requester: Requester = CLIENT,
  ): Promise<QueueRecord | undefined> {
    return this.store.resumeQueue(queue, checkRequester(requester))
  }

  /** Sets the limits of a queue for every process. Returns `undefined` if nothing changes. */
  async limitQueue(
    queue: string,
    limits: QueueOptions,
    requester: Requester = CLIENT,
  ): Promise<QueueRecord | undefined> {
    return this.store.limitQueue(queue, limitsOf(limits), checkRequester(requester))
  }

  /**
   * Starts a worker for the job types in `options.jobs`, or for all that have a handler. Throws
   * `PawlClosed` after `close`.
   */
  async work(options: WorkOptions = {}): Promise<JobWorker> {
    if (this.#isClosed) throw new PawlClosed('work')
    const worker = startWorker(this.#parts, options, {
      results: this.#results,
      doctor: this.doctor(),
      onStopped: (stopped) => this.#workers.delete(stopped),
    })
    this.#workers.add(worker)
    return worker
  }

  /** What the HTTP API needs besides the public methods. @internal */
  get internals(): PawlInternals {
    const { jobs, environment, logger, redact, tokens } = this.#parts
    return { ...this.#handleParts, jobs, environment, logger, redact, tokens }
  }

  /** Stops all workers; closes the store if Pawl opened it. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#workers].map((worker) => worker.stop()))
    this.#results.close(new StoreClosed())
    this.#stopLogging()
    if (this.#parts.place !== undefined) await this.store.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
