import type { JsonBounds } from '../core/canonical-json.ts'
import { abortSignal } from '../core/checks.ts'
import { type Duration, toMs } from '../core/durations.ts'
import { JobNotFound, type PawlError } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { isCommitted, type Job } from '../core/job/job.ts'
import type { JobView } from '../core/job/views.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { encodeValue } from '../core/values.ts'
import type { Environment } from '../environment/system.ts'
import { CLIENT, checkRequester } from '../stores/contract/requester.ts'
import type { RemovedJob } from '../stores/contract/retention.ts'
import type { Answer, Requester, Store } from '../stores/contract/store.ts'
import type { SignalRequest } from '../stores/contract/waits.ts'
import { JobRemoved } from '../stores/errors.ts'
import type { AnySignal, InitialSignal, SentOf } from './define-signal.ts'
import { SignalInvalid } from './errors.ts'
import { viewIn } from './job-view.ts'
import { type JobOutcome, outcomeOf } from './outcome.ts'
import type { HasEnded, Results } from './results.ts'
import { validate } from './schema.ts'
import { readProgress } from './stored-values.ts'

export interface HandleParts {
  readonly store: Store
  readonly environment: Pick<Environment, 'ids'>
  readonly bounds: JsonBounds
  readonly results: Results
  readonly lifecycles: readonly Lifecycle[]
}

/** How a signal is sent. */
export interface SendOptions {
  /**
   * A second signal of the same name and key is not stored.
   * @defaultValue a new key
   */
  readonly key?: string
  /**
   * Who sends it.
   * @defaultValue a client
   */
  readonly requester?: Requester
}

const SEND: FieldChecks<SendOptions> = { key: unchecked, requester: unchecked }

/** Throws `CommandInvalid` for an unknown option. @internal */
export function checkSendOptions(options: SendOptions): void {
  checkFields(options, SEND, { what: 'options' })
}

/** Whether a signal was stored; 'same' if the job has one of this name and key. */
export interface SentSignal {
  readonly kind: 'sent' | 'same'
  readonly job: Job
}

interface ResultOptions {
  readonly timeout?: Duration
  readonly signal?: AbortSignal
}

const RESULT: FieldChecks<ResultOptions> = { timeout: unchecked, signal: abortSignal }

/** A job as seen by the program that enqueued it. */
export class JobHandle<Output = unknown, G extends AnySignal = AnySignal> {
  readonly id: string
  /** False if a job with the same key existed already; the handle is that job's. */
  readonly created: boolean
  /** Set if the job had ended and retention removed it, and only its key is kept. */
  readonly removed: RemovedJob | undefined
  readonly #parts: HandleParts
  readonly #hasEnded: HasEnded | undefined

  /** Use `enqueue` or `job` to get a handle. @internal */
  constructor(
    parts: HandleParts,
    { id }: Pick<Job, 'id'>,
    created: boolean,
    { hasEnded, removed }: { readonly hasEnded?: HasEnded; readonly removed?: RemovedJob } = {},
  ) {
    this.#parts = parts
    this.#hasEnded = hasEnded
    this.id = id
    this.created = created
    this.removed = removed
  }

  /**
   * Waits until the outcome of the job is known, and returns it. A job has succeeded when it is
   * committed; deliveries of its effects are not waited for. Rejects with `ResultTimeout`, or with
   * `JobNotFound` if the job does not exist: its transaction was rolled back, or it was pruned.
   * Rejects with `JobRemoved` if `removed` is set.
   */
  async result(options: ResultOptions = {}): Promise<JobOutcome<Output>> {
    checkFields(options, RESULT, { what: 'options' })
    if (this.removed !== undefined) throw new JobRemoved(this.removed)
    const { store, results } = this.#parts
    const timeoutMs = options.timeout === undefined ? undefined : toMs(options.timeout, 'timeout')
    const { signal } = options
    const job = await results.wait(this.id, { timeoutMs, signal, hasEnded: this.#hasEnded })
    const texts = isCommitted(job) ? await store.payloads(this.id) : undefined
    return outcomeOf<Output>(job, texts?.result)
  }

  /** Reads the job; throws `JobNotFound`, or `JobRemoved` if `removed` is set. */
  async get(): Promise<Job> {
    if (this.removed !== undefined) throw new JobRemoved(this.removed)
    const job = await this.#parts.store.get(this.id)
    if (job === undefined) throw new JobNotFound(this.id)
    return job
  }

  /**
   * Reads the job, with the field names of its lifecycle's requirement document, or those of
   * `standard` for your own lifecycles. Throws `LifecycleUnknown` if the lifecycle is not known.
   */
  async view(): Promise<JobView> {
    const { store, lifecycles } = this.#parts
    return viewIn(store, lifecycles, await this.get())
  }

  /** The last progress of the current attempt; undefined if there is none. */
  async progress(): Promise<unknown> {
    const text = await this.#parts.store.progress(this.id)
    return text === undefined ? undefined : readProgress(this.id, text)
  }

  /**
   * Sends a signal to the job. It is durable when this returns, and kept until the job waits for
   * it. A job has at most one signal of a name and key, so a call with a key can be repeated.
   * Throws `JobEnded` if the job has ended.
   */
  signal<S extends G>(
    signal: S,
    payload: NoInfer<SentOf<S>>,
    options: SendOptions = {},
  ): Promise<SentSignal> {
    return sendSignal(this.#parts, this.id, signal, payload, options)
  }

  /** Cancels the job. If it is running, its handler's signal is aborted. */
  async cancel(requester: Requester = CLIENT): Promise<Job> {
    return jobOf(await this.#parts.store.cancel([this.id], checkRequester(requester)))
  }
}

/** Sends a signal to one job. Throws if the payload is invalid or the job has ended. @internal */
export async function sendSignal(
  parts: HandleParts,
  id: string,
  signal: AnySignal,
  payload: unknown,
  options: SendOptions,
): Promise<SentSignal> {
  checkSendOptions(options)
  const { key, requester = CLIENT } = options
  const request = await signalRequest(parts, { signal, payload, key })
  const { store } = parts
  const [answer] = await store.waits.signal([id], request, checkRequester(requester))
  const job = jobOf([answer as Answer])
  return { kind: answer?.kind === 'same' ? 'same' : 'sent', job }
}

/** A signal for the store. Throws `SignalInvalid`. */
export async function signalRequest(
  { environment, bounds }: Pick<HandleParts, 'environment' | 'bounds'>,
  { signal, payload, key = environment.ids.next() }: InitialSignal,
): Promise<SignalRequest> {
  const checked = await validate(signal.schema, payload)
  if (!checked.ok) throw new SignalInvalid(signal.name, checked.why)
  return { name: signal.name, key, payload: encodeValue(payload, bounds) }
}

/** Returns the job of an answer; throws if the command was rejected. */
export function jobOf([answer]: readonly Answer[]): Job {
  if (answer?.kind === 'rejected') throw answer.error as PawlError
  return (answer as Exclude<Answer, { kind: 'rejected' }>).job
}
