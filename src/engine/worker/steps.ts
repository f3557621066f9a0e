/**
 * Steps: parts of a handler whose results are remembered, so that a later attempt does not repeat
 * them. The n-th step of a name in one attempt is the n-th of that name in every other; so a
 * handler must call its steps in the same order each time, as long as their names are the same.
 *
 * A result is stored under the fence of its attempt, by the group commit of the store: steps that
 * finish at the same moment, of whichever attempts, are one transaction. A step that throws is not
 * remembered.
 */
import { encode, type JsonBounds } from '../../core/canonical-json.ts'
import { name as checkName } from '../../core/checks.ts'
import { CommandInvalid, StaleFence } from '../../core/errors.ts'
import type { Fence } from '../../core/job/commands.ts'
import type { Job } from '../../core/job/job.ts'
import type { Held, Store } from '../../stores/store.ts'

/** What the function of a step is given. */
export interface StepContext {
  readonly signal: AbortSignal
  /** The same in every attempt: job id / step / name / n. For receivers that can tell repeats. */
  readonly key: string
}

/** Does something whose result is remembered. */
export type StepFunction<Result> = (context: StepContext) => Result | Promise<Result>

/** What steps need of their attempt. */
export interface StepParts {
  /** With the job as far as is known by now: what the store compares with. */
  readonly held: () => Held
  readonly fence: Fence
  readonly bounds: JsonBounds
  readonly signal: AbortSignal
  readonly store: Pick<Store, 'settle' | 'steps'>
  /** Throws where the attempt can do nothing any more. */
  readonly assertLive: () => void
  /** The job, as it is after a step was stored. */
  readonly onStored: (job: Job) => void
  /** The attempt was found to have lost its job. */
  readonly onLost: () => void
}

/** How many steps an attempt may have: all of their results are read by the next one. */
const STEPS_MAX = 10_000

/** The steps of one attempt. */
export class Steps {
  readonly #parts: StepParts
  readonly #counts = new Map<string, number>()
  #calls = 0
  /** What earlier attempts have finished; read once, when the first step asks. */
  #known: Promise<ReadonlyMap<string, string>> | undefined

  constructor(parts: StepParts) {
    this.#parts = parts
  }

  /** The result of a step: remembered, or made now and stored. */
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
    // It is there already, so what is there counts.
    const stored = await this.#read()
    return stored.get(keyOf(name, n)) ?? payload
  }

  /** The first attempt has nothing to remember. */
  #load(): Promise<ReadonlyMap<string, string>> {
    if (this.#known === undefined) {
      const isFirst = this.#parts.held().job.attempt <= 1
      this.#known = isFirst ? Promise.resolve(new Map()) : this.#read()
      // Where that failed, the next step asks again.
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
