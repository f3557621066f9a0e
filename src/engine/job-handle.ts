/** A job, as whoever enqueued it sees it: what became of it, where it is, how to cancel it. */
import { abortSignal } from '../core/checks.ts'
import { JobNotFound, type PawlError } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { isCommitted, type Job } from '../core/job/job.ts'
import type { JobView } from '../core/job/views.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { CLIENT } from '../stores/asker.ts'
import type { Answer, Asker, Store } from '../stores/store.ts'
import { type Duration, toMs } from './durations.ts'
import { viewIn } from './job-view.ts'
import { type JobOutcome, outcomeOf } from './outcome.ts'
import type { HasEnded, Results } from './results.ts'

/** What a handle asks. */
export interface HandleParts {
  readonly store: Store
  readonly results: Results
  readonly lifecycles: readonly Lifecycle[]
}

/** How long to wait for what becomes of a job. */
interface ResultOptions {
  readonly timeout?: Duration
  readonly signal?: AbortSignal
}

const RESULT: FieldChecks<ResultOptions> = { timeout: unchecked, signal: abortSignal }

/** A job, as whoever enqueued it sees it. */
export class JobHandle<Output = unknown> {
  readonly id: string
  /** False where the key belonged to a job already, and this is that job. */
  readonly created: boolean
  readonly #parts: HandleParts
  readonly #hasEnded: HasEnded | undefined

  /** Made by `enqueue` and `job`. @internal */
  constructor(parts: HandleParts, { id }: Pick<Job, 'id'>, created: boolean, hasEnded?: HasEnded) {
    this.#parts = parts
    this.#hasEnded = hasEnded
    this.id = id
    this.created = created
  }

  /**
   * What became of the job; waits until that is clear. A job has succeeded with its commit: what
   * effects are still to be delivered is not waited for. Rejects with `ResultTimeout`, and with
   * `JobNotFound` if there is no such job: its transaction was rolled back, or it was pruned.
   */
  async result(options: ResultOptions = {}): Promise<JobOutcome<Output>> {
    checkFields(options, RESULT, { what: 'options' })
    const { store, results } = this.#parts
    const timeoutMs = options.timeout === undefined ? undefined : toMs(options.timeout, 'timeout')
    const { signal } = options
    const job = await results.wait(this.id, { timeoutMs, signal, hasEnded: this.#hasEnded })
    const texts = isCommitted(job) ? await store.payloads(this.id) : undefined
    return outcomeOf<Output>(job, texts?.result)
  }

  /** The job as it is now. */
  async get(): Promise<Job> {
    const job = await this.#parts.store.get(this.id)
    if (job === undefined) throw new JobNotFound(this.id)
    return job
  }

  /**
   * The job as it is now, in the field names of its lifecycle's document; in those of `standard`
   * for a lifecycle of your own. Throws `LifecycleUnknown` if nobody has ever defined it.
   */
  async view(): Promise<JobView> {
    const { store, lifecycles } = this.#parts
    return viewIn(store, lifecycles, await this.get())
  }

  /** What the present attempt last told of itself; nothing where it did not. */
  async progress(): Promise<unknown> {
    const text = await this.#parts.store.progress(this.id)
    return text === undefined ? undefined : JSON.parse(text)
  }

  /** Cancels the job; where it runs, its handler is asked to stop. */
  async cancel(asker: Asker = CLIENT): Promise<Job> {
    return jobOf(await this.#parts.store.cancel([this.id], asker))
  }
}

/** The job that a command was given to; a refusal is thrown. */
export function jobOf([answer]: readonly Answer[]): Job {
  if (answer?.kind === 'rejected') throw answer.error as PawlError
  return (answer as Exclude<Answer, { kind: 'rejected' }>).job
}
