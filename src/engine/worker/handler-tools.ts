/** What a handler calls and only some handlers need: opened by the first call. */
import type { Fence } from '../../core/job/commands.ts'
import type { Job } from '../../core/job/job.ts'
import type { Held } from '../../stores/contract/store.ts'
import type { Suspended } from '../errors.ts'
import { fieldIn } from '../tracing/attempt-trace.ts'
import type { AttemptParts } from './attempt-parts.ts'
import { Children } from './children.ts'
import type { LazyAbort } from './lazy-abort.ts'
import { Steps } from './steps.ts'
import { Waits } from './waits.ts'

/** What the tools need from their attempt. */
interface ToolParts extends Pick<AttemptParts, 'bounds' | 'store' | 'trace' | 'enqueue' | 'now'> {
  readonly held: Held
  readonly fence: Fence
  readonly abort: LazyAbort
  /** The job with the facts of its steps. */
  readonly job: () => Job
  /** Calls the store, and remembers whether the call failed because of an outage. */
  readonly inStore: <T>(work: () => Promise<T>) => Promise<T>
  /** Throws if the attempt is over. */
  readonly assertLive: (command: string) => void
  readonly onStored: (job: Job) => void
  readonly onSuspended: (job: Job, error: Suspended) => void
  readonly onLost: () => void
}

/** The steps, waits and children of one attempt. */
export class HandlerTools {
  readonly #parts: ToolParts
  #steps: Steps | undefined
  #waits: Waits | undefined
  #children: Children | undefined

  constructor(parts: ToolParts) {
    this.#parts = parts
  }

  get steps(): Steps {
    const { bounds, store: inner, trace, inStore, abort, held, job } = this.#parts
    const { assertLive, onStored, onLost, fence } = this.#parts
    this.#steps ??= new Steps({
      held: () => ({ ...held, job: job() }),
      fence,
      bounds,
      store: {
        isReplay: inner.isReplay === true,
        settle: (...values) => inStore(() => inner.settle(...values)),
        steps: (...values) => inStore(() => inner.steps(...values)),
      },
      signal: abort.signal,
      ...(trace && { during: (name, work) => trace.during(name, work) }),
      assertLive: () => assertLive('step'),
      onStored,
      onLost,
    })
    return this.#steps
  }

  /** Opened by the first wait, or at the end if earlier attempts may have waited. */
  get waits(): Waits {
    const { store, now, trace, inStore, job, fence } = this.#parts
    const { assertLive, onStored, onSuspended, onLost } = this.#parts
    this.#waits ??= new Waits({
      job,
      fence,
      isReplay: store.isReplay === true,
      store: {
        wait: (request) => inStore(() => store.waits.wait(request)),
        history: (id) => inStore(() => store.waits.history(id)),
        invoke: (request) => inStore(() => store.flows.invoke(request)),
      },
      now,
      trace: () => fieldIn(trace).trace,
      assertLive: () => assertLive('wait'),
      onStored,
      onSuspended,
      onLost,
    })
    return this.#waits
  }

  get children(): Children {
    const { held, enqueue, assertLive } = this.#parts
    this.#children ??= new Children({
      job: held.job,
      enqueue,
      assertLive: () => assertLive('enqueue'),
    })
    return this.#children
  }

  /** Whether the handler has enqueued jobs. */
  get hasChildren(): boolean {
    return this.#children !== undefined
  }
}
