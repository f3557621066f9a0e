/**
 * The library: what a program does with jobs. It enqueues them by their definitions, waits for what
 * comes of them, cancels them, and works on them.
 */
import { encode, type JsonBounds } from '../core/canonical-json.ts'
import { checkFields, unchecked } from '../core/fields.ts'
import type { Job } from '../core/job/job.ts'
import { LIFECYCLES } from '../core/lifecycles/index.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Logger } from '../core/ports.ts'
import { Doctor, type DoctorParts } from '../doctor/doctor.ts'
import { type Environment, systemEnvironment } from '../environment/system.ts'
import { CLIENT } from '../stores/asker.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from '../stores/audit.ts'
import { StoreClosed } from '../stores/errors.ts'
import type { QueueRecord } from '../stores/queue-records.ts'
import { type PayloadOptions, payloadBoundsOf } from '../stores/requests.ts'
import type { SoundnessOptions } from '../stores/soundness.ts'
import type { Asker, EnqueueItem, OnConflict, Store } from '../stores/store.ts'
import type { TimeChange } from '../stores/store-time.ts'
import { auditOf } from './audit.ts'
import { type ConnectOptions, logTroubles, openWhenThere } from './connecting.ts'
import type { JobDefinition } from './define-job.ts'
import { type Duration, toMs } from './durations.ts'
import { Dispatcher, type DispatcherParts } from './effects/dispatcher.ts'
import { type JoinableTx, storeTxOf, type Transaction } from './effects/effects.ts'
import { type NotifyOptions, noticesOf } from './effects/notify.ts'
import { InputInvalid } from './errors.ts'
import { type HandleParts, JobHandle, jobOf } from './job-handle.ts'
import { type AnyJob, byName, runnableOf, type Whatever } from './job-types.ts'
import { openStore } from './open-store.ts'
import { circumstancesOf } from './operators/circumstances.ts'
import { type Explanation, explain } from './operators/explain.ts'
import { Operator, type OperatorIdentity } from './operators/operators.ts'
import {
  checkEnqueueOptions,
  checkJobOptions,
  checkPawlOptions,
  limitsOf,
  runAtOf,
} from './options.ts'
import { isSettled } from './outcome.ts'
import { Results } from './results.ts'
import { validate } from './schema.ts'
import type { PawlEvent } from './watching/events.ts'
import { harmless, harmlessLogger } from './watching/hooks.ts'
import { logEvent, SILENT } from './watching/log.ts'
import { type Metrics, measure } from './watching/metrics.ts'
import { watchStore } from './watching/watched-store.ts'
import { checkConcurrency, DEFAULTS, settingsOf, type WorkOptions } from './work-options.ts'
import { Checkup } from './worker/checkup.ts'
import { type HeartbeatEvents, type HeartbeatHost, TimerHeartbeat } from './worker/heartbeat.ts'
import { canHaveThread, ThreadHeartbeat } from './worker/heartbeat-thread.ts'
import { JobWorker } from './worker/worker.ts'

/** A kind of job as its key: what it takes, and what it gives. */
export type JobKey<Input, Output> = JobDefinition<Input, Whatever, Output>

/** How to open Pawl. */
export interface PawlOptions extends PayloadOptions, ConnectOptions {
  /** 'sqlite:./jobs.db', 'sqlite::memory:', 'postgres://…', or a store that is open already. */
  readonly store: string | Store
  /** The kinds of job that this process knows; those with code can be worked on. */
  readonly jobs?: readonly AnyJob[]
  /**
   * Lifecycles that this process knows beside those of its jobs: earlier versions, for example,
   * whose jobs it is to work on as they are instead of migrating them.
   */
  readonly lifecycles?: readonly Lifecycle[]
  /** Bounds of queues; kept in the store, for every process. */
  readonly queues?: Readonly<Record<string, QueueOptions>>
  /** Who is told when a job ends or is parked whose kind says `notify`: while it works, by it. */
  readonly notify?: NotifyOptions
  /**
   * What to do where constraints or triggers of the store are missing: 'block', the default, gives
   * out no work until the doctor has mended it; 'warn' only tells the logger.
   */
  readonly onFindings?: SoundnessOptions['onFindings']
  /** How long a call of the store tries to get past outages; 10 seconds if absent. */
  readonly storeTimeout?: Duration
  readonly environment?: Environment
  readonly logger?: Logger
  /** Told of everything that happens here, in every worker. */
  readonly onEvent?: (event: PawlEvent) => void
  /** Where measurements go; `METRICS` has their names. */
  readonly metrics?: Metrics
}

/** What a queue will take; null lifts a bound that was set before. */
export interface QueueOptions {
  /** How many jobs may be ready in it; a further one is refused with `QueueFull`. */
  readonly maxDepth?: number | null
  /** How long a job may be ready without being started; then it is failed or cancelled. */
  readonly maxWait?: Duration | null
}

/** What may be said of a job when it is enqueued. */
export interface EnqueueOptions {
  /** One job per type and key; what happens to a second one says `onConflict`. */
  readonly key?: string
  readonly onConflict?: OnConflict
  readonly priority?: number
  /** Not before this much time has passed, or not before this moment. */
  readonly delay?: Duration
  readonly runAt?: Date
  readonly tags?: readonly string[]
  /** How long an attempt may take; the definition's if absent. */
  readonly timeout?: Duration
  /** Past this moment the job fails for good. */
  readonly deadline?: Date
  /** Create it only; `submit` lets it run. */
  readonly hold?: boolean
  /** A transaction on the same database: of `pawl.transaction`, of a commit, or your own. */
  readonly tx?: JoinableTx
  /** A UUID of the caller's choice. */
  readonly jobId?: string
}

/** Who bounds the queues that the options name. */
const OPENER: Asker = { actor: 'client', note: 'the option queues of createPawl' }

/** Opens Pawl: the store is made or brought up to date as needed. */
export async function createPawl(options: PawlOptions): Promise<Pawl> {
  checkPawlOptions(options)
  const environment = options.environment ?? systemEnvironment()
  const isReal = options.environment === undefined
  const logger = harmlessLogger(options.logger ?? SILENT)
  const jobs = byName(options.jobs ?? [])
  const bounds = payloadBoundsOf(options)
  const ofJobs = [...jobs.values()].map((job) => job.lifecycle)
  const lifecycles = [...new Set([...LIFECYCLES, ...ofJobs, ...(options.lifecycles ?? [])])]
  const { store: given, payloadBytesMax, payloadDepthMax, onFindings } = options
  const observe = observerOf(options, environment, logger)
  const timeoutMs = options.storeTimeout && toMs(options.storeTimeout, 'storeTimeout')
  const opening = {
    lifecycles,
    environment,
    logger,
    onTimeChange: (change: TimeChange) => observe({ type: 'time', change }),
    ...(payloadBytesMax !== undefined && { payloadBytesMax }),
    ...(payloadDepthMax !== undefined && { payloadDepthMax }),
    ...(onFindings !== undefined && { onFindings }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  }
  const open = (name: string) =>
    openWhenThere(options, { environment, observe }, (hear) =>
      openStore(name, { ...opening, ...hear }),
    )
  const store = typeof given === 'string' ? await open(given) : given
  const storeName = typeof given === 'string' ? given : undefined
  const watched = watchStore(store, { worker: null, observe, lifecycles })
  for (const [queue, limits] of Object.entries(options.queues ?? {})) {
    await watched.limitQueue(queue, limitsOf(limits), OPENER)
  }
  const deliverable = deliverableOf(jobs, options.notify, environment)
  const parts = { environment, isReal, logger, jobs, deliverable, bounds, lifecycles, observe }
  return new Pawl({ store, storeName, timeoutMs, ...parts })
}

/** Everything that a dispatcher of this process can deliver. */
function deliverableOf(
  jobs: ReadonlyMap<string, AnyJob>,
  notify: NotifyOptions | undefined,
  { clock }: Environment,
): Parts['deliverable'] {
  const known = [...jobs].filter(([, { effects }]) => effects.size > 0)
  const notices = notify === undefined ? [] : [noticesOf(notify, clock)]
  return new Map([...known, ...notices.map((one) => [one.name, one] as const)])
}

/** Tells the log, and whoever was given to `createPawl`; what they throw hurts nobody. */
function observerOf(
  { onEvent, metrics }: PawlOptions,
  { clock }: Environment,
  logger: Logger,
): (event: PawlEvent) => void {
  const tell = harmless('onEvent', onEvent, { clock, logger })
  const toMetrics = metrics && ((event: PawlEvent) => measure(metrics, event))
  const measured = harmless('metrics', toMetrics, { clock, logger })
  return (event) => {
    logEvent(logger, event)
    tell(event)
    measured(event)
  }
}

interface Parts {
  readonly store: Store
  /** Nothing where the store was opened by somebody else. */
  readonly storeName: string | undefined
  readonly timeoutMs: number | undefined
  readonly environment: Environment
  /** Whether time is that of the machine, which a thread would go by as well. */
  readonly isReal: boolean
  readonly logger: Logger
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly deliverable: DispatcherParts['jobs']
  readonly bounds: JsonBounds
  readonly lifecycles: readonly Lifecycle[]
  readonly observe: (event: PawlEvent) => void
}

/** An open Pawl. */
export class Pawl implements AsyncDisposable {
  readonly store: Store
  readonly #parts: Parts
  readonly #results: Results
  readonly #stopLogging: () => void
  readonly #workers = new Set<JobWorker>()

  /** Made by `createPawl`. */
  constructor(parts: Parts) {
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
    const items: EnqueueItem[] = []
    for (const { input, ...own } of jobs) {
      checkJobOptions(own)
      items.push(await this.#itemOf(definition as AnyJob, input, own))
    }
    const results = await this.store.enqueue(items, tx === undefined ? {} : { tx: storeTxOf(tx) })
    return results.map((result) => {
      if (result.kind === 'rejected') throw result.error
      return new JobHandle<Output>(this.#handleParts(), result.job, result.kind === 'created')
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

  /** Starts a worker, for every kind of job that has code here unless said otherwise. */
  async work(options: WorkOptions = {}): Promise<JobWorker> {
    const { store, environment, logger, jobs, bounds, lifecycles } = this.#parts
    const settings = settingsOf(options, environment)
    const runnable = runnableOf(jobs, options.jobs)
    const tell = harmless('onEvent', options.onEvent, { clock: environment.clock, logger })
    const observe = (event: PawlEvent) => {
      if (event.type === 'reported') {
        this.#results.tell(event.job)
        if (leavesWork(event.job)) dispatcher?.wake()
      }
      this.#parts.observe(event)
      tell(event)
    }
    const watched = watchStore(store, { worker: settings.id, observe, lifecycles })
    const dispatcher = this.#dispatcher(options, settings.id, observe, watched)
    let checkup: Checkup | undefined
    const worker = new JobWorker({
      store: watched,
      environment,
      bounds,
      logger,
      settings,
      jobs: runnable,
      dispatcher,
      heartbeats: (events) => this.#heartbeats(settings.leaseMs, events),
      observe,
      onStopped: () => {
        checkup?.stop()
        this.#workers.delete(worker)
      },
    })
    this.#workers.add(worker)
    const { checkup: every = DEFAULTS.checkupMs } = options
    if (every !== false) {
      const everyMs = toMs(every, 'checkup')
      const doctor = this.doctor()
      checkup = new Checkup({ worker: settings.id, doctor, store, environment, everyMs, observe })
    }
    return worker
  }

  /** Delivers the effects of the kinds of job that have some here; nothing where none has. */
  #dispatcher(
    { effects = true, poll }: WorkOptions,
    worker: string,
    observe: (event: PawlEvent) => void,
    store: Store,
  ): Dispatcher | undefined {
    const { environment, deliverable: jobs } = this.#parts
    const { concurrency = DEFAULTS.concurrency } = typeof effects === 'object' ? effects : {}
    checkConcurrency('effects.concurrency', concurrency)
    if (effects === false || jobs.size === 0) return undefined
    const pollMaxMs = toMs(poll ?? DEFAULTS.pollMs, 'poll')
    const parts = { worker, environment, jobs, concurrency, pollMaxMs, observe }
    return new Dispatcher({ store, ...parts })
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

  #heartbeats(leaseMs: number, events: HeartbeatEvents): HeartbeatHost {
    const { store, storeName, timeoutMs, environment, logger, isReal } = this.#parts
    if (storeName !== undefined && isReal && canHaveThread(storeName)) {
      return new ThreadHeartbeat({ storeName, leaseMs, timeoutMs }, events)
    }
    const fields = { event: 'worker.heartbeat_by_timer' }
    logger.info(fields, 'Leases are renewed by this thread: a handler must not block it for long')
    return new TimerHeartbeat(store, environment, leaseMs, events)
  }

  #handleParts(): HandleParts {
    return { store: this.store, results: this.#results, lifecycles: this.#parts.lifecycles }
  }

  async #itemOf(
    definition: AnyJob,
    input: unknown,
    options: Omit<EnqueueOptions, 'tx'>,
  ): Promise<EnqueueItem> {
    const { environment, bounds } = this.#parts
    const checked = await validate(definition.schema, input)
    if (!checked.ok) throw new InputInvalid(definition.name, checked.why)
    const { key, onConflict, priority = definition.priority, tags, hold, timeout } = options
    const timeoutMs = timeout === undefined ? definition.timeoutMs : toMs(timeout, 'timeout')
    const runAt = runAtOf(options, this.store.now())
    return {
      lifecycle: definition.lifecycle,
      input: encode(input ?? null, bounds),
      ...(onConflict !== undefined && { onConflict }),
      command: {
        jobId: options.jobId ?? environment.ids.next(),
        type: definition.name,
        queue: definition.queue,
        ...(priority !== 0 && { priority }),
        ...(key !== undefined && { key }),
        ...(tags !== undefined && { tags }),
        ...(hold !== undefined && { hold }),
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(runAt !== undefined && { runAt }),
        ...(options.deadline !== undefined && { deadlineAt: options.deadline.getTime() }),
        ...(definition.policy !== undefined && { policy: definition.policy }),
      },
    }
  }
}

/** Whether a report may have put something into the outbox. */
function leavesWork({ execution, policy }: Job): boolean {
  return execution?.status === 'COMMITTED' || policy?.notify === true
}
