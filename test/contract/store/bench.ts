/**
 * What every test of the contract works with: an open store, a time that only the test moves, and
 * short words for what a test does again and again. Time is read through the store and moved
 * through the opener, because a store may judge by the clock of its database.
 */
import assert from 'node:assert/strict'
import type { Admission } from '../../../src/core/admission.ts'
import { PawlError } from '../../../src/core/errors.ts'
import type {
  AttemptCommand,
  Command,
  CreateCommand,
  Fence,
} from '../../../src/core/job/commands.ts'
import type { Fact } from '../../../src/core/job/facts.ts'
import type { Job } from '../../../src/core/job/job.ts'
import type { Lifecycle } from '../../../src/core/lifecycles/lifecycle.ts'
import { standard } from '../../../src/core/lifecycles/standard.ts'
import { DEFAULT_POLICY, type JobPolicy } from '../../../src/core/retry.ts'
import type {
  Answer,
  ClaimRequest,
  Enqueued,
  EnqueueItem,
  Held,
  OnConflict,
  Requester,
  Settlement,
  Store,
  StoreTx,
} from '../../../src/stores/contract/store.ts'
import type { TestEnvironment } from '../../../src/testing/test-environment.ts'

/** How the suite writes into a table of the user's own, through a tx of the store. */
export interface OwnTable {
  /** Adds a text; makes the table where there is none. */
  add(tx: StoreTx, text: string): void | Promise<void>
  /** Every text that was added and committed, or added by this tx, in order. */
  all(tx: StoreTx): string[] | Promise<string[]>
}

/** A fresh, empty store. */
export interface OpenedStore {
  readonly store: Store
  /** Moves the time by which the store judges, and the timers of its environment. */
  readonly advance: (ms: number) => void | Promise<void>
  readonly ownTable: OwnTable
  /**
   * Opens a further store on the same database that knows these lifecycles, as another process
   * would. If absent, the tests of several versions are not declared.
   */
  readonly reopen?: ((lifecycles: readonly Lifecycle[]) => Promise<Store>) | undefined
}

/** Opens a fresh, empty store in a given environment. */
export type OpenStore = (environment: TestEnvironment) => Promise<OpenedStore>

/** Tests by name. Functions in a table, so that each can be read on its own. */
export type Cases = Readonly<Record<string, (bench: Bench) => Promise<void>>>

/** The lease of every claim that does not say otherwise. */
export const LEASE_MS = 30_000
/** An operator, with a name and a reason. */
export const OPERATOR: Requester = { actor: 'operator', operator: 'ann', note: 'looked into it' }
/** Somebody who uses the store. */
export const CLIENT: Requester = { actor: 'client' }

type ItemFields = Partial<Omit<CreateCommand, 'kind'>> & {
  readonly lifecycle?: Lifecycle
  readonly input?: string
  readonly onConflict?: OnConflict
  readonly admission?: Admission
}

/** What a holder can report; its fence is added. */
export type Report = WithoutFence<AttemptCommand> | { readonly kind: 'cancel' }
type WithoutFence<C> = C extends unknown ? Omit<C, 'fence'> : never

/** An open store with its time. */
export class Bench {
  readonly store: Store
  readonly ownTable: OwnTable
  readonly environment: TestEnvironment
  readonly reopen: OpenedStore['reopen']
  readonly #advance: OpenedStore['advance']

  constructor(environment: TestEnvironment, opened: OpenedStore) {
    const { store, advance, ownTable } = opened
    this.environment = environment
    this.reopen = opened.reopen
    this.store = store
    this.ownTable = ownTable
    this.#advance = advance
  }

  /** Moves the time on. */
  async advance(ms: number): Promise<void> {
    await this.#advance(ms)
  }

  /** A job to be enqueued; what is not given has a plain default. */
  item(fields: ItemFields = {}): EnqueueItem {
    const { lifecycle = standard, input = '{}', onConflict, admission, ...command } = fields
    return {
      lifecycle,
      input,
      command: { jobId: this.environment.ids.next(), type: 'example', queue: 'main', ...command },
      ...(onConflict !== undefined && { onConflict }),
      ...(admission !== undefined && { admission }),
    }
  }

  /** Enqueues one job and gives back what became of it. */
  async offer(fields: ItemFields = {}): Promise<Enqueued> {
    return one(await this.store.enqueue([this.item(fields)]))
  }

  /** Enqueues one job that must be accepted. */
  async enqueue(fields: ItemFields = {}): Promise<Job> {
    return created(await this.offer(fields))
  }

  /** Claims; one job of any queue, started at once, unless said otherwise. */
  claim(fields: Partial<ClaimRequest> = {}): Promise<Held[]> {
    return this.store.claim({
      worker: 'worker-1',
      limit: 1,
      leaseMs: LEASE_MS,
      start: true,
      ...fields,
    })
  }

  /** Enqueues a job in a queue of its own, and claims it. */
  async hold(fields: ItemFields = {}, request: Partial<ClaimRequest> = {}): Promise<Held> {
    const queue = `queue of ${this.environment.ids.next()}`
    await this.enqueue({ queue, ...fields })
    return one(await this.claim({ queues: [fields.queue ?? queue], ...request }))
  }

  /** Claims the same job again, which must be ready. */
  async reclaim({ job }: Held, request: Partial<ClaimRequest> = {}): Promise<Held> {
    const held = one(await this.claim({ queues: [job.queue], worker: 'worker-2', ...request }))
    assert.equal(held.job.id, job.id)
    return held
  }

  /** Settles one report under the fence of its holder. */
  async settle(held: Held, report: Report, payload?: string): Promise<Answer> {
    const { answers } = await this.store.settle([settlement(held, report, payload)])
    return one(answers)
  }

  /** Fails the attempt: 'retryable', 'terminal' or 'invalid_input'. */
  fail(
    held: Held,
    kind: 'transient' | 'terminal' | 'invalid_input' = 'transient',
    message = 'boom',
  ) {
    return this.settle(held, { kind: 'fail', failure: failureOf(kind, message) })
  }

  /** Gives one command to one job. */
  async applyCommand(id: string, command: Command, requester: Requester = CLIENT): Promise<Answer> {
    return one(await this.store.applyCommand([id], command, requester))
  }

  /** Lets the lease run out and takes the job back; without a delay unless its policy has one. */
  async expire(leaseMs = LEASE_MS): Promise<readonly Answer[]> {
    await this.advance(leaseMs)
    return this.store.recover(100)
  }

  /** The job as it is now. */
  async job(id: string): Promise<Job> {
    const job = await this.store.get(id)
    assert.ok(job, `job ${id} is missing`)
    return job
  }

  /** The last fact of a job. */
  async lastFact(id: string): Promise<Fact> {
    const fact = (await this.store.facts(id)).at(-1)
    assert.ok(fact, `job ${id} has no facts`)
    return fact
  }

  /** The ids of all jobs, newest first. */
  async ids(): Promise<string[]> {
    const { items } = await this.store.list({}, { limit: 1000 })
    return items.map(({ id }) => id)
  }

  /** What the own table holds, seen through a commit that is rolled back. */
  async ownTexts(): Promise<string[]> {
    const held = await this.hold({ type: 'reader' })
    let texts: string[] = []
    const leave = new Error('only looking')
    const looking = this.store.commit(held, async (tx) => {
      texts = await this.ownTable.all(tx)
      throw leave
    })
    await assert.rejects(looking, leave)
    return texts
  }

  /** Asserts that an action leaves a job exactly as it was, facts and all. */
  async assertUntouched(id: string, action: () => Promise<void>): Promise<void> {
    const before = [await this.store.get(id), await this.store.facts(id)]
    await action()
    assert.deepEqual([await this.store.get(id), await this.store.facts(id)], before)
  }
}

/** The fence of a holder. */
export function fenceOf({ job }: Held): Fence {
  assert.ok(job.execution, 'a held job has an execution')
  return { attempt: job.attempt, claim: job.execution.claim }
}

/** A report under the fence of its holder. */
export function settlement(held: Held, report: Report, payload?: string): Settlement {
  const command = { ...report, fence: fenceOf(held) } as Settlement['command']
  return { held, command, ...(payload !== undefined && { payload }) }
}

/** What the decider learns of a failure of this kind. */
export function failureOf(kind: 'transient' | 'terminal' | 'invalid_input', message = 'boom') {
  const failureClass = kind === 'transient' ? 'retryable' : kind
  return { class: failureClass, kind, message } as const
}

/** The default policy with some budgets changed, and retries without delay. */
export function policyWith(changes: Partial<JobPolicy> = {}): JobPolicy {
  return {
    ...DEFAULT_POLICY,
    retry: { ...DEFAULT_POLICY.retry, delayMs: 0, jitter: 0 },
    ...changes,
  }
}

/** The one and only element. */
export function one<T>(items: readonly T[]): T {
  assert.equal(items.length, 1, `one was expected, not ${items.length}`)
  return items[0] as T
}

/** The job of an item that was accepted. */
export function created(enqueued: Enqueued | undefined): Job {
  assert.equal(enqueued?.kind, 'created', describeAnswer(enqueued))
  return (enqueued as { job: Job }).job
}

/** Job and fact of a command that was done. */
export function done(answer: Answer | undefined): { job: Job; fact: Fact } {
  assert.equal(answer?.kind, 'done', describeAnswer(answer))
  return answer as { job: Job; fact: Fact }
}

/** Asserts a refusal by this class of error, and gives the error back. */
export function refused<E extends Error>(
  answer: { readonly kind: string } | undefined,
  type: new (...values: never[]) => E,
): E {
  assert.equal(answer?.kind, 'rejected', describeAnswer(answer))
  const { error } = answer as { error?: unknown }
  assert.ok(error instanceof type, `${type.name} was expected, not ${String(error)}`)
  return error
}

/** What was given, where a senseless request is either answered so or refused with a type. */
export async function noneOrRefused<T>(asking: Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await asking
  } catch (error) {
    assert.ok(error instanceof PawlError, String(error))
    return []
  }
}

function describeAnswer(answer: { readonly kind?: string } | undefined): string {
  const { error } = (answer ?? {}) as { error?: unknown }
  return `answered ${answer?.kind}${error === undefined ? '' : `: ${String(error)}`}`
}
