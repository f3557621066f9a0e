/**
 * Steps: parts of a handler whose results are stored, so that later attempts do not repeat them.
 * The n-th call with a name in one attempt is the same step as the n-th call with that name in
 * every other attempt. So a handler must call steps of the same name in the same order each time.
 *
 * The store records a result under the fence of its attempt. Steps of any attempts that finish
 * together share one transaction. If the function of a step throws, nothing is stored.
 */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { name as checkName } from '../../core/checks.ts'
import { CommandInvalid, StaleFence } from '../../core/errors.ts'
import type { Fence } from '../../core/job/commands.ts'
import type { Job } from '../../core/job/job.ts'
import type { TraceContext } from '../../core/trace.ts'
import { decodeValue, encodeValue } from '../../core/values.ts'
import type { Held, Store } from '../../stores/contract/store.ts'

/** What the function of a step receives. */
export interface StepContext {
  readonly signal: AbortSignal
  /** The same in every attempt: job id / step / name / n. Use it as an idempotency key. */
  readonly key: string
}

/** The function of a step. */
export type StepFunction<Result> = (context: StepContext) => Result | Promise<Result>

/** @internal */
export type StepStore = Pick<Store, 'settle' | 'steps'> & {
  /** Results are read also for a first attempt, which is replayed. */
  readonly isReplay?: boolean
}

/** What steps need from their attempt. @internal */
export interface StepParts {
  /** Returns the job with its latest facts; the store compares it with the stored row. */
  readonly held: () => Held
  readonly fence: Fence
  readonly bounds: JsonBounds
  readonly signal: AbortSignal
  readonly store: StepStore
  /** Runs a step in a span of its own; absent without tracing. */
  readonly during?: (
    name: string,
    work: (span: { readonly trace: TraceContext | undefined }) => Promise<string>,
  ) => Promise<string>
  /** Throws if the attempt is over. */
  readonly assertLive: () => void
  /** Called with the job after a step was stored. */
  readonly onStored: (job: Job) => void
  /** Called when a write shows that the lease is lost. */
  readonly onLost: () => void
}

/** Bounds the steps of an attempt, because the next attempt reads all their results. */
const STEPS_MAX = 10_000

/** @internal */
export class Steps {
  readonly #parts: StepParts
  readonly #counts = new Map<string, number>()
  #calls = 0
  /** The stored results of earlier attempts, read before the first step. */
  #known: Promise<ReadonlyMap<string, string>> | undefined

  constructor(parts: StepParts) {
    this.#parts = parts
  }

  /** Returns the stored result, or runs the function and stores its result. */
  async run<Result>(name: string, work: StepFunction<Result>): Promise<Result> {
    this.#parts.assertLive()
    const why = checkName(name)
    if (why !== undefined) throw new CommandInvalid('step', why)
    if (++this.#calls > STEPS_MAX) {
      throw new CommandInvalid('step', `must not be called more than ${STEPS_MAX} times`)
    }
    const n = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, n)
    const known = (await this.#load()).get(keyOf(name, n))
    const { during } = this.#parts
    const make = (trace?: TraceContext) => this.#make(name, n, work, trace)
    const text =
      known ?? (await (during === undefined ? make() : during(name, ({ trace }) => make(trace))))
    return decodeValue(text) as Result
  }

  async #make<Result>(
    name: string,
    n: number,
    work: StepFunction<Result>,
    trace: TraceContext | undefined,
  ): Promise<string> {
    const { held, signal, bounds, assertLive } = this.#parts
    assertLive()
    const result = await work({ signal, key: `${held().job.id}/step/${keyOf(name, n)}` })
    const payload = encodeValue(result, bounds)
    assertLive()
    return this.#store(name, n, payload, trace)
  }

  async #store(
    name: string,
    n: number,
    payload: string,
    trace: TraceContext | undefined,
  ): Promise<string> {
    const { held, fence, store, onStored, onLost } = this.#parts
    const command = { kind: 'step', fence, name, n } as const
    const own = trace === undefined ? {} : { trace }
    const { answers } = await store.settle([{ held: held(), command, payload, ...own }])
    const [answer] = answers
    if (answer?.kind === 'rejected') {
      if (answer.error instanceof StaleFence) onLost()
      throw answer.error
    }
    if (answer?.kind === 'done') onStored(answer.job)
    if (answer?.kind !== 'same') return payload
    // The step is stored already; the stored result counts.
    const stored = await this.#read()
    return stored.get(keyOf(name, n)) ?? payload
  }

  /** The first attempt has no earlier results. */
  #load(): Promise<ReadonlyMap<string, string>> {
    if (this.#known === undefined) {
      const { held, store } = this.#parts
      const isFirst = held().job.attempt <= 1 && store.isReplay !== true
      this.#known = isFirst ? Promise.resolve(new Map()) : this.#read()
      // After a failure the next step reads again.
      this.#known.catch(() => {
        this.#known = undefined
      })
    }
    return this.#known
  }

  async #read(): Promise<ReadonlyMap<string, string>> {
    const { store, held } = this.#parts
    const results = await store.steps(held().ref, 'json')
    return new Map(results.map(({ name, n, payload }) => [keyOf(name, n), payload]))
  }
}

function keyOf(name: string, n: number): string {
  return `${name}/${n}`
}
