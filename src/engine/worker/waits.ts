/**
 * Sleeps, and waits for signals and for invoked jobs. A wait that is not over ends the attempt: the
 * store records it, the slot becomes free, and the handler is unwound by `Suspended`, so that its
 * `finally` blocks run. When the wait is over, the handler starts from the top, and waits that are
 * over return at once.
 *
 * Waits of one attempt run one after another, in the order of the calls. In every attempt a handler
 * must wait for the same things in the same order; `ReplayMismatch` is thrown if it does not.
 */
import { name as checkName } from '../../core/checks.ts'
import { type Duration, toMs } from '../../core/durations.ts'
import { CommandInvalid, ReplayMismatch, StaleFence } from '../../core/errors.ts'
import { Terminal } from '../../core/failure.ts'
import { checkFields, unchecked } from '../../core/fields.ts'
import type { Fence } from '../../core/job/commands.ts'
import type { Job } from '../../core/job/job.ts'
import type { TraceContext } from '../../core/trace.ts'
import { decodeValue } from '../../core/values.ts'
import type {
  DependencyEnd,
  FlowItem,
  InvokeAnswer,
  InvokeRequest,
} from '../../stores/contract/flows.ts'
import type {
  WaitAnswer,
  WaitEnd,
  WaitHistory,
  WaitRecord,
  WaitRequest,
  WaitTables,
} from '../../stores/contract/waits.ts'
import { type ApprovalAnswer, approval } from '../approvals.ts'
import type { Signal, SignalAnswer, SignalWaitOptions } from '../define-signal.ts'
import { Suspended } from '../errors.ts'
import { validate } from '../schema.ts'

/** What an attempt needs of the answer of a store. */
type Answered = WaitAnswer extends infer A
  ? A extends { readonly kind: 'rejected' }
    ? A
    : Omit<A, 'fact'>
  : never

/** What an attempt needs of the answer of an invoke. */
type InvokeAnswered = InvokeAnswer extends infer A
  ? A extends { readonly kind: 'rejected' }
    ? A
    : Omit<A, 'fact'>
  : never

/** @internal */
export type WaitStore = Pick<WaitTables, 'history'> & {
  wait(request: WaitRequest): Promise<Answered>
  invoke(request: InvokeRequest): Promise<InvokeAnswered>
}

/** Jobs that a handler invokes. @internal */
export interface Invocation {
  readonly name: string
  /** Checks the inputs; called unless the jobs have ended already. */
  readonly children: () => Promise<readonly FlowItem[]>
  readonly count: number
  readonly concurrency?: number | undefined
  readonly onParentEnd?: 'cancel' | 'abandon' | undefined
}

/** What waits need from their attempt. @internal */
export interface WaitParts {
  readonly job: () => Job
  readonly fence: Fence
  /** The history is read also for a first attempt, which is replayed. */
  readonly isReplay: boolean
  readonly store: WaitStore
  readonly now: () => number
  /** The span that the attempt runs in. */
  readonly trace: () => TraceContext | undefined
  /** Throws if the attempt is over. */
  readonly assertLive: () => void
  /** Called with the job after a wait was recorded and the attempt goes on. */
  readonly onStored: (job: Job) => void
  /** Called when the attempt has ended because the job waits. */
  readonly onSuspended: (job: Job, error: Suspended) => void
  /** Called when a write shows that the lease is lost. */
  readonly onLost: () => void
}

/** Bounds the waits of an attempt, because the next attempt reads all of them. */
const WAITS_MAX = 10_000

const NOTHING: WaitHistory = { waits: [], signals: [] }

/** Whether earlier attempts may have waited: each attempt is counted, for whatever reason. */
export function mayHaveWaited({ attempt, failures, crashes, releases }: Job): boolean {
  return attempt - failures - crashes - releases > 1
}

type What = Pick<WaitRecord, 'for' | 'name'>

/** @internal */
export class Waits {
  readonly #parts: WaitParts
  readonly #counts = new Map<string, number>()
  readonly #calls: What[] = []
  #history: Promise<WaitHistory> | undefined
  /** The last wait; the next one begins after it. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(parts: WaitParts) {
    this.#parts = parts
  }

  /** Returns when the time has passed. */
  async sleep(name: string, time: Duration | Date): Promise<void> {
    const why = checkName(name)
    if (why !== undefined) throw new CommandInvalid('sleep', why)
    await this.#wait({ for: 'sleep', name }, () => this.#wakeTime(time))
  }

  #wakeTime(time: Duration | Date): number {
    if (!(time instanceof Date)) return this.#parts.now() + toMs(time, 'sleep')
    const at = time.getTime()
    if (Number.isNaN(at)) throw new CommandInvalid('sleep', 'must not be an invalid Date')
    return at
  }

  /** Returns the next signal of this name, or says that the time has passed. */
  async signal<Received>(
    signal: Signal<unknown, Received>,
    options: SignalWaitOptions = {},
  ): Promise<SignalAnswer<Received>> {
    checkFields(options, { timeout: unchecked }, { what: 'options' })
    const { timeout } = options
    const timeoutMs = timeout === undefined ? undefined : toMs(timeout, 'timeout')
    const end = await this.#wait({ for: 'signal', name: signal.name }, () =>
      timeoutMs === undefined ? null : this.#parts.now() + timeoutMs,
    )
    if (end.kind !== 'received') return { kind: 'timeout' }
    const { by, note } = end
    const checked = await validate(signal.schema, decodeValue(end.payload))
    if (checked.ok) return { kind: 'received', payload: checked.value as Received, by, note }
    const message = `The payload of signal "${signal.name}" is invalid: ${checked.why}`
    throw new Terminal(message, 'validation')
  }

  /** Returns the next decision of a person, or says that the time has passed. */
  async approval(options?: SignalWaitOptions): Promise<ApprovalAnswer> {
    const answer = await this.signal(approval, options)
    if (answer.kind === 'timeout') return answer
    const { payload, by, note } = answer
    return { kind: payload.approved ? 'approved' : 'rejected', by, note: payload.note ?? note }
  }

  /** Throws `ReplayMismatch` if earlier attempts have waited for more than this one. */
  async assertComplete(): Promise<void> {
    const { waits } = await this.#load()
    if (waits.length > this.#calls.length) throw this.#mismatch(waits)
  }

  /** Returns how the invoked jobs ended, in order. */
  async invoke(invocation: Invocation): Promise<readonly DependencyEnd[]> {
    const { name, children, concurrency, onParentEnd } = invocation
    const why = checkName(name)
    if (why !== undefined) throw new CommandInvalid('name', why)
    // No jobs, nothing to wait for.
    if (invocation.count === 0) return []
    const own = {
      name,
      ...(concurrency !== undefined && { concurrency }),
      ...(onParentEnd !== undefined && { onParentEnd }),
    }
    return this.#enter({ for: 'children', name }, async (n) => {
      return this.#invoke({ ...own, n, children: await children() })
    })
  }

  #wait(what: What, until: () => number | null): Promise<WaitEnd> {
    return this.#enter(what, async (n, recorded) => {
      if (recorded?.end !== undefined) return recorded.end
      return this.#ask({ ...what, n, until: recorded === undefined ? until() : recorded.until })
    })
  }

  /** Calls the function with the number of the wait, and what earlier attempts know of it. */
  #enter<T>(
    what: What,
    ask: (n: number, recorded: WaitRecord | undefined) => Promise<T>,
  ): Promise<T> {
    this.#parts.assertLive()
    if (this.#calls.push(what) > WAITS_MAX) {
      throw new CommandInvalid('wait', `must not be called more than ${WAITS_MAX} times`)
    }
    const index = this.#calls.length - 1
    const key = `${what.for}/${what.name}`
    const n = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, n)
    const waited = this.#last.then(() => this.#answer(what, n, index, ask))
    // A wait after one that failed fails in its own way.
    this.#last = waited.catch(() => {})
    return waited
  }

  async #answer<T>(
    what: What,
    n: number,
    index: number,
    ask: (n: number, recorded: WaitRecord | undefined) => Promise<T>,
  ): Promise<T> {
    const { waits } = await this.#load()
    const recorded = waits[index]
    if (recorded !== undefined && !(recorded.for === what.for && recorded.name === what.name)) {
      throw this.#mismatch(waits)
    }
    return ask(n, recorded)
  }

  async #ask(wait: WaitRecord): Promise<WaitEnd> {
    const { store } = this.#parts
    return (await this.#put(wait, (own) => store.wait({ ...own, wait }))).end
  }

  async #invoke(
    request: Omit<InvokeRequest, 'id' | 'fence' | 'trace'>,
  ): Promise<readonly DependencyEnd[]> {
    const { store } = this.#parts
    const what = { for: 'children', name: request.name } as const
    return (await this.#put(what, (own) => store.invoke({ ...request, ...own }))).ends
  }

  /** Asks the store. Throws `Suspended` if the attempt has ended by it. */
  async #put<A extends Answered | InvokeAnswered>(
    what: What,
    ask: (own: Pick<WaitRequest, 'id' | 'fence' | 'trace'>) => Promise<A>,
  ): Promise<Extract<A, { kind: 'over' }>> {
    const { job, fence, trace, assertLive, onStored, onSuspended, onLost } = this.#parts
    assertLive()
    const span = trace()
    const answer = await ask({ id: job().id, fence, ...(span !== undefined && { trace: span }) })
    if (answer.kind === 'rejected') {
      if (answer.error instanceof StaleFence) onLost()
      throw answer.error
    }
    if (answer.kind === 'suspended') {
      const error = new Suspended(answer.job.id, what.for, what.name)
      onSuspended(answer.job, error)
      throw error
    }
    onStored(answer.job)
    return answer as Extract<A, { kind: 'over' }>
  }

  #mismatch(waits: readonly WaitRecord[]): ReplayMismatch {
    const words = ({ for: what, name }: What) => `${what} "${name}"`
    return new ReplayMismatch(this.#parts.job().id, waits.map(words), this.#calls.map(words))
  }

  #load(): Promise<WaitHistory> {
    if (this.#history === undefined) {
      const { job, store, isReplay } = this.#parts
      const isFirst = job().attempt <= 1 && !isReplay
      this.#history = isFirst ? Promise.resolve(NOTHING) : store.history(job().id)
      // After a failure the next wait reads again.
      this.#history.catch(() => {
        this.#history = undefined
      })
    }
    return this.#history
  }
}
