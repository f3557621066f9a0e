/**
 * Steps: parts of a handler whose results are stored, so that later attempts do not repeat them.
 * The n-th call with a name in one attempt is the same step as the n-th call with that name in
 * every other attempt. So a handler must call steps of the same name in the same order each time.
 *
 * The store records a result under the fence of its attempt. Steps of any attempts that finish
 * together share one transaction. If the function of a step throws, nothing is stored.
 */
import { encode, type JsonBounds } from '../../core/canonical-json.ts'
import { name as checkName } from '../../core/checks.ts'
import { CommandInvalid, StaleFence } from '../../core/errors.ts'
import type { Fence } from '../../core/job/commands.ts'
import type { Job } from '../../core/job/job.ts'
import type { Held, Store } from '../../stores/store.ts'

/** What the function of a step receives. */
export interface StepContext {
  readonly signal: AbortSignal
  /** The same in every attempt: job id / step / name / n. Use it as an idempotency key. */
  readonly key: string
}

/** The function of a step. */
export type StepFunction<Result> = (context: StepContext) => Result | Promise<Result>

/** What steps need from their attempt. @internal */
export interface StepParts {
  /** Returns the job with its latest facts; the store compares it with the stored row. */
  readonly held: () => Held
  readonly fence: Fence
  readonly bounds: JsonBounds
  readonly signal: AbortSignal
  readonly store: Pick<Store, 'settle' | 'steps'>
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
    const text = known ?? (await this.#make(name, n, work))
    return JSON.parse(text) as Result
  }

  async #make<Result>(name: string, n: number, work: StepFunction<Result>): Promise<string> {
    const { held, signal, bounds, assertLive } = this.#parts
    assertLive()
    const result = await work({ signal, key: `${held().job.id}/step/${keyOf(name, n)}` })
    const payload = encode(result ?? null, bounds)
    assertLive()
    return this.#store(name, n, payload)
  }

  async #store(name: string, n: number, payload: string): Promise<string> {
    const { held, fence, store, onStored, onLost } = this.#parts
    const command = { kind: 'step', fence, name, n } as const
    const { answers } = await store.settle([{ held: held(), command, payload }])
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
      const isFirst = this.#parts.held().job.attempt <= 1
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
