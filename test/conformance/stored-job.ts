// One job of a lifecycle, moved by the verbs of a real store under a time that the test owns.
import type { Job, Lifecycle } from 'pawl'
import { type Command, executionsOf, viewOf } from 'pawl/rules'
import { expect } from 'vitest'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { brokenPromises } from '../processes/inspect.ts'
import type { Examined } from '../stores/examined-stores.ts'
import { wayOf } from './played-job.ts'

export const ANN = {
  actor: 'operator',
  operator: 'ann',
  note: 'to see what happens',
  metadata: { ticket: 'T-1' },
} as const
export const LEASE_MS = 30_000

type Create = Partial<Extract<Command, { kind: 'create' }>>

/** A job in a store. */
export class StoredJob {
  readonly id: string
  readonly store: Store
  readonly #examined: Examined
  readonly #lifecycle: Lifecycle
  readonly #queue: string

  private constructor(examined: Examined, lifecycle: Lifecycle, id: string, queue: string) {
    this.#examined = examined
    this.#lifecycle = lifecycle
    this.#queue = queue
    this.store = examined.store
    this.id = id
  }

  static async enqueue(
    examined: Examined,
    lifecycle: Lifecycle,
    options: Create = {},
    input = 'null',
  ): Promise<StoredJob> {
    const jobId = examined.environment.ids.next()
    // A queue of its own, so that a claim gets no other job.
    const command = { type: 'work', queue: jobId, ...options, jobId }
    const [answer] = await examined.store.enqueue([{ lifecycle, command, input }])
    expect(answer?.kind).toBe('created')
    return new StoredJob(examined, lifecycle, jobId, command.queue)
  }

  /** Claims the job. */
  async claim({ leaseMs = LEASE_MS, start = true, worker = 'w1' } = {}): Promise<Held> {
    const request = { worker, queues: [this.#queue], limit: 1, leaseMs, start }
    const [held] = await this.store.claim(request)
    expect(held?.job.id).toBe(this.id)
    return held as Held
  }

  async commit(held: Held): Promise<void> {
    await this.#settle(held, { kind: 'commit' })
  }

  async fail(held: Held, type: 'retryable' | 'terminal', message = 'it broke'): Promise<void> {
    const failure = { kind: 'error', class: type, message } as const
    await this.#settle(held, { kind: 'fail', failure })
  }

  async release(held: Held): Promise<void> {
    await this.#settle(held, { kind: 'release' })
  }

  async #settle(held: Held, command: Record<string, unknown>): Promise<void> {
    const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim ?? '' }
    const settlement = { held, command: { ...command, fence } as never, payload: '1' }
    const { answers } = await this.store.settle([settlement])
    expect(answers[0]?.kind).toBe('done')
  }

  async applyCommand(command: Command) {
    const [answer] = await this.store.applyCommand([this.id], command, ANN)
    return answer
  }

  /** Lets time pass, and takes back and promotes what is then due. */
  async pass(ms: number): Promise<void> {
    this.#examined.environment.advance(ms)
    await this.store.recover(10)
    await this.store.promote(10)
  }

  async get(): Promise<Job> {
    return (await this.store.get(this.id)) as Job
  }

  async state(): Promise<string> {
    return (await this.get()).state
  }

  /** The job in the words of its document. */
  async view(): Promise<Record<string, unknown>> {
    return { ...viewOf(this.#lifecycle, await this.get()) } as Record<string, unknown>
  }

  async facts() {
    return this.store.facts(this.id)
  }

  /** The way of each fact after the first, as "from → to". */
  async ways(): Promise<string[]> {
    return (await this.facts()).slice(1).map(wayOf)
  }

  async executions() {
    return executionsOf(await this.facts())
  }

  now(): number {
    return this.store.now()
  }

  async expectSound(): Promise<void> {
    expect(await brokenPromises(this.store)).toEqual([])
  }
}
