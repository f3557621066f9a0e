/**
 * Runs one attempt at a job without a store. The input is checked, the handler runs with a context
 * like that of a worker, and the outcome is what a worker would report.
 */
import { encode } from '../core/canonical-json.ts'
import { CommandInvalid } from '../core/errors.ts'
import type { Failure } from '../core/failure.ts'
import type { Usage } from '../core/job/commands.ts'
import type { Job } from '../core/job/job.ts'
import type { Logger } from '../core/ports.ts'
import type { JobDefinition } from '../engine/define-job.ts'
import type { JobKey } from '../engine/pawl.ts'
import { SILENT } from '../engine/watching/log.ts'
import { Attempt } from '../engine/worker/attempt.ts'
import { payloadBoundsOf } from '../stores/requests.ts'
import type {
  Answer,
  CommitAnswer,
  CommitTx,
  Settled,
  Settlement,
  StepResult,
  Store,
} from '../stores/store.ts'
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
  /** Answers the SQL statements of a commit. If absent, statements are rejected. */
  readonly query?: CommitTx['query']
  /** The stored results of earlier attempts; used if `attempt` is greater than 1. */
  readonly steps?: readonly RunJobStep[]
  /** Receives the log lines of the handler. */
  readonly logger?: Logger
  /** Controls the attempt's time; a time-out passes only if the test advances the time. */
  readonly environment?: TestEnvironment
}

/** The result of a step. `n` counts the steps of one name; 1 if absent. */
export interface RunJobStep {
  readonly name: string
  readonly n?: number
  readonly result: unknown
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
}

/** Runs one attempt at a job without a store. Never throws for a failure of the handler. */
export async function runJob<Input, Output>(
  definition: JobKey<Input, Output>,
  input: Input,
  options: RunJobOptions = {},
): Promise<RunJobOutcome<Output>> {
  if (definition.run === undefined) {
    throw new CommandInvalid('job', 'must have a handler (`run`)')
  }
  const environment = options.environment ?? testEnvironment()
  const bounds = payloadBoundsOf({})
  const progress: unknown[] = []
  const store = new LoneStore(options.query ?? refuseQuery, options.steps ?? [])
  const job = leasedJob(definition as JobDefinition, options, environment)
  const attempt = new Attempt(
    { ref: 1, job, input: encode(input ?? null, bounds) },
    definition as JobDefinition,
    {
      environment,
      bounds,
      store,
      now: () => environment.clock.now(),
      onProgress: (text) => progress.push(JSON.parse(text)),
      logger: options.logger ?? SILENT,
    },
  )
  const { signal } = options
  const cancel = () => attempt.cancel()
  if (signal?.aborted) cancel()
  signal?.addEventListener('abort', cancel)
  const report = await attempt.report
  signal?.removeEventListener('abort', cancel)
  if (report.kind === 'settle') {
    return { ...outcomeOf<Output>(report.settlement), progress, steps: store.made, effects: [] }
  }
  const { result, usage, effects, made: steps } = store
  const output = JSON.parse(result) as Output
  return { kind: 'succeeded', isCommit: true, output, usage, effects, steps, progress }
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

function outcomeOf<Output>({
  command,
  payload = 'null',
}: Settlement):
  | { kind: 'succeeded'; output: Output; isCommit: false; usage: Usage }
  | { kind: 'failed'; failure: Failure; usage: Usage }
  | { kind: 'cancelled'; usage: Usage } {
  switch (command.kind) {
    case 'commit': {
      const output = JSON.parse(payload) as Output
      return { kind: 'succeeded', output, isCommit: false, usage: command.usage ?? {} }
    }
    case 'fail':
      return { kind: 'failed', failure: command.failure, usage: command.usage ?? {} }
    default:
      return { kind: 'cancelled', usage: {} }
  }
}

/** The store of a single attempt: runs the commit's function once, and keeps steps in memory. */
class LoneStore implements Pick<Store, 'commit' | 'settle' | 'steps'> {
  readonly #query: CommitTx['query']
  readonly #earlier: readonly RunJobStep[]
  readonly made: RunJobStep[] = []
  #committed: Promise<CommitAnswer> | undefined
  result = 'null'
  usage: Usage = {}
  effects: RunJobTraces['effects'] = []

  constructor(query: CommitTx['query'], earlier: readonly RunJobStep[]) {
    this.#query = query
    this.#earlier = earlier
  }

  async steps(): Promise<StepResult[]> {
    return this.#earlier.map(({ name, n = 1, result }) => ({
      name,
      n,
      payload: JSON.stringify(result ?? null),
    }))
  }

  /** An attempt itself settles only its steps; other settlements are its report. */
  async settle(settlements: readonly Settlement[]): Promise<Settled> {
    const answers = settlements.map(({ held: { job }, command, payload = 'null' }): Answer => {
      if (command.kind === 'step') {
        this.made.push({ name: command.name, n: command.n, result: JSON.parse(payload) })
      }
      return { kind: 'asked', job }
    })
    return { answers, claimed: [] }
  }

  async commit(...[held, work, usage]: Parameters<Store['commit']>): Promise<CommitAnswer> {
    this.#committed ??= (async () => {
      const effects: RunJobTraces['effects'][number][] = []
      const tx: Pick<CommitTx, 'query' | 'effect'> = {
        query: this.#query,
        effect: (name, payload) => void effects.push({ name, payload: JSON.parse(payload) }),
      }
      this.result = await work(tx as CommitTx)
      this.effects = effects
      this.usage = usage?.() ?? {}
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

const refuseQuery: CommitTx['query'] = async () => {
  throw new CommandInvalid('query', 'must be passed to runJob; for a database use createTestPawl')
}
