/**
 * Runs one attempt at a job without a store. The input is checked, the handler runs with a context
 * like that of a worker, and the outcome is what a worker would report.
 */
import type { JsonBounds } from '../core/canonical-json.ts'
import { abortSignal, callable, listOf, record } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import type { Failure } from '../core/failure.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Usage } from '../core/job/commands.ts'
import type { Job } from '../core/job/job.ts'
import type { Logger } from '../core/ports.ts'
import { decodeValue, encodeValue } from '../core/values.ts'
import type { JobDefinition } from '../engine/define-job.ts'
import { itemOf } from '../engine/enqueue-item.ts'
import { type HandleParts, JobHandle } from '../engine/job-handle.ts'
import type { AnyJob, AnyValue } from '../engine/job-types.ts'
import type { EnqueueOptions } from '../engine/options.ts'
import { readResult } from '../engine/stored-values.ts'
import { SILENT } from '../engine/watching/log.ts'
import { Attempt } from '../engine/worker/attempt.ts'
import type { AttemptParts } from '../engine/worker/attempt-parts.ts'
import type { WaitStore } from '../engine/worker/waits.ts'
import type { AfterEnds } from '../stores/contract/flows.ts'
import { payloadBoundsOf } from '../stores/contract/requests.ts'
import type {
  Answer,
  CommitAnswer,
  CommitTx,
  Settled,
  Settlement,
  StepResult,
  Store,
} from '../stores/contract/store.ts'
import type { WaitEnd } from '../stores/contract/waits.ts'
import { type SqlValue, textOf } from '../stores/user-sql.ts'
import { givenAfter, givenEnds, type RunJobChildren, type RunJobInvoked } from './given-jobs.ts'
import { JobScript } from './job-script.ts'
import { SequentialIds } from './sequential-ids.ts'
import { type TestEnvironment, testEnvironment } from './test-environment.ts'

/** The options of `runJob`. */
export interface RunJobOptions {
  /** 1 if absent. */
  readonly attempt?: number
  readonly tags?: readonly string[]
  /**
   * If it is aborted, the attempt is cancelled: the handler's signal has the reason `Cancelled`.
   */
  readonly signal?: AbortSignal
  /**
   * Answers the SQL statements of a commit. A statement of the tag `sql` arrives as a text with
   * question marks. If absent, statements are rejected.
   */
  readonly query?: RunJobQuery
  /** The stored results of earlier attempts; used if `attempt` is greater than 1. */
  readonly steps?: readonly RunJobStep[]
  /** The signals that were sent to the job. */
  readonly signals?: readonly RunJobSignal[]
  /** What the handler receives as `after`; outcomes for `settled`. */
  readonly after?: Readonly<Record<string, unknown>>
  /** The outcomes of the jobs that the handler invokes. */
  readonly children?: readonly RunJobChildren[]
  /** Receives the log lines of the handler. */
  readonly logger?: Logger
  /** Controls the attempt's time; a time-out passes only if the test advances the time. */
  readonly environment?: TestEnvironment
}

/** Answers a statement with rows. */
type RunJobQuery = (sql: string, values?: readonly SqlValue[]) => Promise<unknown[]>

const STEPS_MAX = 10_000

const RUN_JOB: FieldChecks<RunJobOptions> = {
  // Checked with the job.
  attempt: unchecked,
  tags: unchecked,
  signal: abortSignal,
  query: callable,
  signals: (values: readonly RunJobSignal[]) => listOf(values, STEPS_MAX, record),
  steps: (values: readonly RunJobStep[]) => listOf(values, STEPS_MAX, record),
  after: record,
  children: (values: readonly RunJobChildren[]) => listOf(values, STEPS_MAX, record),
  logger: record,
  environment: record,
}

/** The result of a step. `n` counts the steps of one name; 1 if absent. */
export interface RunJobStep {
  readonly name: string
  readonly n?: number
  readonly result: unknown
}

/** A signal that the job has received; those of one name in the order in which they were sent. */
export interface RunJobSignal {
  readonly name: string
  readonly payload: unknown
  /** Who sent it; a client if absent. */
  readonly by?: string
  /** The reason of an operator. */
  readonly note?: string
}

function receivedOf({ payload, by = 'client', note }: RunJobSignal): WaitEnd {
  const own = { kind: 'received', payload: encodeValue(payload), by } as const
  return note === undefined ? own : { ...own, note }
}

/** The outcome of the attempt, with everything that it reported. */
export type RunJobOutcome<Output> = RunJobTraces &
  (
    | {
        readonly kind: 'succeeded'
        readonly output: Output
        /** Whether the handler called `commit`; false if it only returned. */
        readonly isCommit: boolean
      }
    /** `failure.class` says whether a worker would retry. */
    | { readonly kind: 'failed'; readonly failure: Failure }
    | { readonly kind: 'cancelled' }
    /** The handler called `snooze`; the job would run again after so many milliseconds. */
    | { readonly kind: 'snoozed'; readonly delayMs: number }
    /** The handler waits for a signal that was not given. Sleeps return at once. */
    | { readonly kind: 'waiting'; readonly signal: string }
    /** The handler waits for invoked jobs whose outcomes were not given. */
    | { readonly kind: 'invoking'; readonly invoked: RunJobInvoked }
  )

/** What an attempt reports besides its outcome. */
export interface RunJobTraces {
  /** All values passed to `progress`, in order. */
  readonly progress: readonly unknown[]
  /** The totals of `count`. */
  readonly usage: Usage
  /** The steps that this attempt finished, in order. */
  readonly steps: readonly RunJobStep[]
  /** The effects that the commit declared, in order. */
  readonly effects: readonly { readonly name: string; readonly payload: unknown }[]
  /** The jobs that the handler enqueued, in order; those of a commit only if it succeeded. */
  readonly enqueued: readonly RunJobEnqueued[]
}

/** A job that the handler enqueued. */
export interface RunJobEnqueued {
  readonly jobId: string
  readonly type: string
  /** As the job's own handler would receive it, before its schema transforms it. */
  readonly input: unknown
}

/**
 * Runs one attempt at a job without a store. A failure of the handler is returned, not thrown.
 * Throws `ResultNotStored` if the handler succeeds with a result that cannot be stored.
 */
export async function runJob<Input, Output>(
  definition: JobDefinition<Input, AnyValue, Output, AnyValue, AnyValue>,
  input: Input,
  options: RunJobOptions = {},
): Promise<RunJobOutcome<Output>> {
  if (definition.run === undefined) {
    throw new CommandInvalid('job', 'must have a handler (`run`)')
  }
  checkFields(options, RUN_JOB, { what: 'options' })
  const environment = options.environment ?? testEnvironment()
  const job = leasedJob(definition as JobDefinition, options, environment)
  const text = encodeValue(input, payloadBoundsOf({}))
  return playAttempt<Output>(definition as JobDefinition, job, text, { ...options, environment })
}

interface PlayOptions extends RunJobOptions {
  readonly environment: TestEnvironment
  readonly isReplay?: boolean
  /** How the jobs ended that it comes after, as a store says it; instead of `after`. */
  readonly afterEnds?: readonly AfterEnds[]
}

/**
 * Runs the attempt that a leased job is at. With `isReplay`, steps are known also to the first
 * attempt.
 * @internal
 */
export async function playAttempt<Output>(
  definition: JobDefinition,
  job: Job,
  input: string,
  options: PlayOptions,
): Promise<RunJobOutcome<Output>> {
  const { environment, isReplay = false } = options
  const bounds = payloadBoundsOf({})
  const progress: unknown[] = []
  const store = new LoneStore(definition, job, options, isReplay)
  const attempt = new Attempt({ ref: 1, job, input }, definition, {
    environment,
    bounds,
    store,
    now: () => environment.clock.now(),
    onProgress: (_, text) => progress.push(decodeValue(text)),
    logger: options.logger ?? SILENT,
    enqueue: loneEnqueue(environment, bounds, store),
  })
  const { signal } = options
  const cancel = () => attempt.cancel()
  if (signal?.aborted) cancel()
  signal?.addEventListener('abort', cancel)
  const report = await attempt.report
  signal?.removeEventListener('abort', cancel)
  if (report.kind === 'settle') {
    const { made: steps, enqueued } = store
    const outcome = outcomeOf<Output>(report.settlement, environment.clock.now())
    return { ...outcome, progress, steps, enqueued, effects: [] }
  }
  const { result, usage, effects, enqueued, made: steps } = store
  if (report.kind === 'suspended') {
    const { awaited, invoked } = store
    const what = invoked
      ? ({ kind: 'invoking', invoked } as const)
      : ({ kind: 'waiting', signal: awaited } as const)
    return { ...what, progress, steps, enqueued, usage, effects: [] }
  }
  const output = readResult(job.id, result) as Output
  return { kind: 'succeeded', isCommit: true, output, usage, effects, enqueued, steps, progress }
}

function leasedJob(
  { lifecycle, name, queue, timeoutMs }: JobDefinition,
  { attempt = 1, tags = [] }: RunJobOptions,
  { clock }: TestEnvironment,
): Job {
  if (!Number.isSafeInteger(attempt) || attempt < 1) {
    throw new CommandInvalid('attempt', 'must be a whole number from 1')
  }
  const script = new JobScript(lifecycle, { clock, ids: new SequentialIds() })
  const created = script.create({
    type: name,
    queue,
    tags,
    ...(timeoutMs !== undefined && { timeoutMs }),
  })
  if (created.kind === 'rejected') throw created.error
  script.claim()
  return { ...script.job, attempt }
}

function outcomeOf<Output>(
  { held, command, payload }: Settlement,
  now: number,
):
  | { kind: 'succeeded'; output: Output; isCommit: false; usage: Usage }
  | { kind: 'failed'; failure: Failure; usage: Usage }
  | { kind: 'snoozed'; delayMs: number; usage: Usage }
  | { kind: 'cancelled'; usage: Usage } {
  switch (command.kind) {
    case 'commit': {
      const output = readResult(held.job.id, payload) as Output
      return { kind: 'succeeded', output, isCommit: false, usage: command.usage ?? {} }
    }
    case 'fail':
      return { kind: 'failed', failure: command.failure, usage: command.usage ?? {} }
    case 'suspend':
      return { kind: 'snoozed', delayMs: command.runAt - now, usage: {} }
    default:
      return { kind: 'cancelled', usage: {} }
  }
}

/** The store of a single attempt: runs the commit's function once, and keeps steps in memory. */
class LoneStore implements Pick<Store, 'commit' | 'settle' | 'steps'> {
  readonly #query: RunJobQuery
  readonly #earlier: readonly RunJobStep[]
  readonly made: RunJobStep[] = []
  #committed: Promise<CommitAnswer> | undefined
  result: string | undefined
  usage: Usage = {}
  effects: RunJobTraces['effects'] = []
  readonly enqueued: RunJobEnqueued[] = []
  /** Jobs that were enqueued in the commit that runs. */
  joined: RunJobEnqueued[] = []

  readonly isReplay: boolean
  /** The name of the signal that the handler waits for. */
  awaited = ''
  readonly #signals: RunJobSignal[]

  /** The jobs that the handler waits for. */
  invoked: RunJobInvoked | undefined
  readonly #job: Job
  readonly #definition: JobDefinition
  readonly #options: Omit<PlayOptions, 'environment'>

  constructor(
    definition: JobDefinition,
    job: Job,
    options: Omit<PlayOptions, 'environment'>,
    isReplay: boolean,
  ) {
    const { query, steps, signals } = options
    this.#job = job
    this.#definition = definition
    this.#options = options
    this.#query = query ?? refuseQuery
    this.#earlier = steps ?? []
    this.#signals = [...(signals ?? [])]
    this.isReplay = isReplay
  }

  /** Sleeps are over at once; a signal is received if it was given. */
  readonly waits: Omit<WaitStore, 'invoke'> = {
    wait: async ({ wait }) => {
      const over = (end: WaitEnd) => ({ kind: 'over', end, job: this.#job }) as const
      if (wait.for === 'sleep') return over({ kind: 'passed' })
      const at = this.#signals.findIndex(({ name }) => name === wait.name)
      const [given] = at < 0 ? [] : this.#signals.splice(at, 1)
      if (given !== undefined) return over(receivedOf(given))
      this.awaited = wait.name
      return { kind: 'suspended', job: this.#job }
    },
    history: async () => ({ waits: [], signals: [] }),
  }

  /** Other jobs have the outcomes that were given. */
  readonly flows: AttemptParts['store']['flows'] = {
    after: async (id) => {
      const { afterEnds, after = {} } = this.#options
      return [...(afterEnds ?? givenAfter(id, this.#definition.groups ?? [], after))]
    },
    invoke: async (request) => {
      const ends = givenEnds(request, this.#options.children ?? [])
      if (ends !== undefined) return { kind: 'over', ends, job: this.#job }
      const { name, n, children } = request
      const type = children[0]?.command.type ?? ''
      this.invoked = { name, n, type, count: children.length }
      return { kind: 'suspended', job: this.#job }
    },
  }

  async steps(): Promise<StepResult[]> {
    return this.#earlier.map(({ name, n = 1, result }) => ({
      name,
      n,
      payload: encodeValue(result),
    }))
  }

  /** An attempt itself settles only its steps; other settlements are its report. */
  async settle(settlements: readonly Settlement[]): Promise<Settled> {
    const answers = settlements.map(({ held: { job }, command, payload = 'null' }): Answer => {
      if (command.kind === 'step') {
        this.made.push({ name: command.name, n: command.n, result: decodeValue(payload) })
      }
      return { kind: 'asked', job }
    })
    return { answers, claimed: [] }
  }

  async commit(...[held, work, closing]: Parameters<Store['commit']>): Promise<CommitAnswer> {
    this.#committed ??= (async () => {
      this.joined = []
      const effects: RunJobTraces['effects'][number][] = []
      const tx: Pick<CommitTx, 'query' | 'effect'> = {
        query: async (sql, values) =>
          typeof sql === 'string'
            ? this.#query(sql, values)
            : this.#query(textOf(sql, 'sqlite'), sql.values),
        effect: (name, payload) => void effects.push({ name, payload: decodeValue(payload) }),
      }
      this.result = await work(tx as CommitTx)
      this.effects = effects
      this.enqueued.push(...this.joined)
      this.usage = closing?.().usage ?? {}
      return { kind: 'done', job: held.job, result: this.result }
    })()
    try {
      return await this.#committed
    } catch (error) {
      // Nothing was committed, so the handler may commit again.
      this.#committed = undefined
      throw error
    }
  }
}

/** Checks what a store would check of a new job, and records it. */
function loneEnqueue(environment: TestEnvironment, bounds: JsonBounds, store: LoneStore) {
  const context = { ids: new SequentialIds(), bounds, now: () => environment.clock.now() }
  const enqueue = async (
    definition: AnyJob,
    input: unknown,
    { tx, ...options }: EnqueueOptions,
  ): Promise<JobHandle> => {
    const item = await itemOf(definition, input, options, context)
    const { jobId, type } = item.command
    const list = tx === undefined ? store.enqueued : store.joined
    list.push({ jobId, type, input: decodeValue(item.input) })
    return new JobHandle(NO_STORE, { id: jobId }, true)
  }
  const handleOf = ({ id }: { readonly id: string }) => new JobHandle(NO_STORE, { id }, false)
  return Object.assign(enqueue, { find: async () => undefined, handleOf })
}

/** The handle of a job that no store has can only say its id. */
const NO_STORE = new Proxy({} as HandleParts, {
  get() {
    throw new CommandInvalid('runJob', 'must not read other jobs; for a store use createTestPawl')
  },
})

const refuseQuery: RunJobQuery = async () => {
  throw new CommandInvalid('query', 'must be passed to runJob; for a database use createTestPawl')
}
