/**
 * The jobs of the simulation, by what their handlers do: one kind for each way in which a job can
 * come to its end, on every lifecycle that ships. What each job will do is planned by the seed, so
 * a job fails in the same way in whichever process it runs.
 */
import {
  type Delivery,
  defineJob,
  type JobContext,
  Retryable,
  type RunnableJob,
  Terminal,
  typed,
} from 'pawl'
import { document, hardened, leased, task } from 'pawl/rules'
import { StoreBusy, StoreUnavailable } from 'pawl/sqlite'
import type { StepRun } from './checker.ts'
import { CHILD, EARLY_CHILD } from './children.ts'
import type { Faults } from './faults.ts'
import type { SimLimits } from './limits.ts'
import { parcelOf, type Release } from './parcels.ts'
import type { SimProcess } from './process.ts'
import { visitJobs } from './visits.ts'

/** What one job does. */
export interface Plan {
  readonly type: string
  /** How long it takes. */
  readonly ms: number
  /** How often it fails first. */
  readonly failures: number
  readonly effects: number
  readonly isDeaf: boolean
  readonly isPoison: boolean
  readonly commitMs: number
  readonly delayMs: number
  /** How long after its enqueue its deadline passes, if it has one. */
  readonly deadlineMs?: number
}

/** What jobs have done that no database knows of. */
export interface Outside {
  /** The keys of deliveries that the receiver took. */
  readonly delivered: string[]
  /** The runs of steps. */
  readonly stepped: StepRun[]
}

const TYPES = [
  'plain',
  'commits',
  'flaky',
  'slow',
  'sends',
  'hopeless',
  'approved',
  'hardened',
  'leased',
  'document',
  'task',
  'parcel',
] as const
/** What an old release knows. */
const OLD_TYPES: readonly string[] = ['plain', 'commits', 'flaky', 'sends', 'hardened']

/** These jobs enqueue two others: one before they work, and one with their commit. */
export const hasChildren = (n: number) => n % 6 === 4

/** The handlers of these jobs ask for their commit twice. */
const asksAgain = (n: number) => n % 3 === 1

/** Some deadlines pass before the job is due, some while it runs, and some are kept. */
const DEADLINE_MIN_MS = 300
const DEADLINE_SPAN_MS = 6000
/** By number and not by chance, so that the histories of other jobs stay what they were. */
const hasDeadline = (n: number) => n % 4 === 3
/** Long enough that some deadlines pass during the function of a commit. */
const TIMED_COMMIT_MS = 900

function commitMsOf(n: number): number {
  return hasDeadline(n) ? TIMED_COMMIT_MS : 0
}

/**
 * Jobs that wait for others would fail too often with the deadlines above, and prove less: half of
 * them have more time. The others pass their deadline while a limit blocks them.
 */
const LIMITED_DEADLINE = 10
const hasTime = (n: number) => n % 8 === 7

/** What the n-th job will do. */
export function planOf(n: number, faults: Faults, isLimited: boolean): Plan {
  const deadlineMs = DEADLINE_MIN_MS + ((n * 997) % DEADLINE_SPAN_MS)
  const isSlow = faults.strikes('handler-is-slow')
  return {
    type: TYPES[(n + faults.between(0, TYPES.length)) % TYPES.length] as string,
    ms: isSlow ? faults.between(1500, 9000) : faults.between(0, 1500),
    failures: faults.strikes('handler-fails') ? faults.between(1, 6) : 0,
    effects: faults.between(1, 4),
    isDeaf: faults.strikes('handler-is-deaf'),
    isPoison: faults.between(0, 8) === 0 && faults.strikes('poison'),
    commitMs: faults.strikes('slow-commit') ? faults.between(100, 8000) : commitMsOf(n),
    delayMs: faults.between(0, 3) === 0 ? faults.between(0, 8000) : 0,
    ...(hasDeadline(n) && {
      deadlineMs: isLimited && hasTime(n) ? deadlineMs * LIMITED_DEADLINE : deadlineMs,
    }),
  }
}

type Context = JobContext<{ n: number }>
type SimJob = RunnableJob<{ n: number }, { n: number }, unknown>

/** What a process has. */
export interface JobsOptions {
  readonly isOld?: boolean
  readonly release?: Release
  readonly limits: SimLimits | undefined
}

/** The kinds of job with handlers that live in a process. */
export function jobsOf(
  plans: readonly Plan[],
  process: SimProcess,
  faults: Faults,
  outside: Outside,
  { isOld = false, release = 2, limits }: JobsOptions,
): SimJob[] {
  const code = new Code(plans, process, faults, outside, limits)
  const input = typed<{ n: number }>()
  const common = { input, crashesMax: 6, retry: { max: 4, delay: '1s' } } as const
  const spread = {
    ...common,
    retry: { max: 4, delay: '1s', backoff: 'exponential', jitter: 0.5 },
  } as const
  const effects = {
    mail: {
      timeout: '6s',
      retry: { max: 8, delay: '2s' },
      deliver: (delivery: Delivery<{ n: number }>) => code.deliver(delivery),
    },
  } as const
  const named = (name: string) => ({ name, ...limits?.optionsOf(name, release) })
  const work = (context: Context) => code.work(context)
  const commit = (context: Context) => code.commit(context)
  const jobs: SimJob[] = [
    defineJob({ ...common, ...named('plain'), run: work }),
    defineJob({ ...common, ...named('commits'), run: commit }),
    defineJob({ ...spread, ...named('flaky'), run: work }),
    defineJob({ ...common, ...named('slow'), timeout: '45s', run: work }),
    defineJob({ ...spread, ...named('sends'), effects, run: (context) => code.send(context) }),
    defineJob({ ...common, ...named('hopeless'), run: (context) => code.hopeless(context) }),
    defineJob({ ...common, ...named('approved'), recovery: 'operator', run: commit }),
    defineJob({ input, ...named('hardened'), lifecycle: hardened, run: commit }),
    defineJob({ input, ...named('leased'), lifecycle: leased, run: commit }),
    defineJob({ input, ...named('document'), lifecycle: document, run: work }),
    defineJob({ input, ...named('task'), lifecycle: task, run: commit }),
    defineJob({ input, ...named('parcel'), lifecycle: parcelOf(release), run: commit }),
  ]
  jobs.push(...visitJobs((ms) => code.sleep(ms)))
  if (isOld) return jobs.filter(({ name }) => OLD_TYPES.includes(name))
  return [...jobs, code.child]
}

/** What the handlers of one process do. */
class Code {
  readonly #plans: readonly Plan[]
  readonly #process: SimProcess
  readonly #faults: Faults
  readonly #outside: Outside
  readonly #limits: SimLimits | undefined

  constructor(
    plans: readonly Plan[],
    process: SimProcess,
    faults: Faults,
    outside: Outside,
    limits: SimLimits | undefined,
  ) {
    this.#limits = limits
    this.#plans = plans
    this.#process = process
    this.#faults = faults
    this.#outside = outside
  }

  /** What other jobs enqueue. */
  readonly child: SimJob = defineJob({
    name: CHILD,
    input: typed<{ n: number }>(),
    crashesMax: 6,
    run: ({ attempt }) => attempt,
  })

  /** Takes its time, and fails as often as it is planned to. */
  async work({ input, attempt, signal, progress, throttled }: Context): Promise<number> {
    const { type, ms, failures, isDeaf, isPoison } = this.#planOf(input.n)
    if (this.#limits?.closes(type, input.n, attempt)) {
      throw (throttled as unknown as Throttled)('starts', { retryAfter: '3s' })
    }
    for (let part = 0; part < 3; part++) {
      progress(part)
      await this.sleep(ms / 3)
      if (!isDeaf) signal.throwIfAborted()
    }
    if (isPoison) {
      this.#process.crash(`is killed by job ${input.n}`)
      await new Promise<never>(() => {})
    }
    if (attempt <= failures) throw new Retryable(`failure ${attempt}`)
    return attempt
  }

  async hopeless(context: Context): Promise<never> {
    await this.work(context)
    throw new Terminal('there is no hope')
  }

  /** Writes a row of its own with its commit. */
  async commit(context: Context): Promise<number> {
    const { input } = context
    if (hasChildren(input.n)) await context.enqueue(this.child, input, { name: EARLY_CHILD })
    await this.work(context)
    if (!asksAgain(input.n)) return this.#commitOnce(context)
    // An answer that was lost says nothing: the handler asks again, and gets the first result.
    await this.#commitOnce(context).catch((error) => {
      if (!(error instanceof StoreUnavailable || error instanceof StoreBusy)) throw error
    })
    return this.#commitOnce(context)
  }

  #commitOnce(context: Context): Promise<number> {
    const { input } = context
    const { commitMs } = this.#planOf(input.n)
    return context.commit(async (tx) => {
      if (commitMs > 0) await this.sleep(commitMs / context.attempt)
      if (hasChildren(input.n)) await tx.enqueue(this.child, input)
      await tx.query('INSERT INTO sim_rows (job, attempt) VALUES (?, ?)', [
        context.jobId,
        context.attempt,
      ])
      return context.attempt
    })
  }

  /** Does two steps, then writes a row and declares effects. */
  async send(context: JobContext<{ n: number }, { mail: never }>): Promise<number> {
    const { input, jobId, attempt, step } = context
    const { ms, failures, effects } = this.#planOf(input.n)
    for (const name of ['first', 'second']) {
      await step(name, async () => {
        this.#outside.stepped.push({ job: jobId, name, attempt })
        await this.sleep(ms / 4)
        if (attempt <= failures && name === 'second') throw new Retryable(`failure ${attempt}`)
        return attempt
      })
    }
    return context.commit(async (tx) => {
      await tx.query('INSERT INTO sim_rows (job, attempt) VALUES (?, ?)', [jobId, attempt])
      for (let i = 0; i < effects; i++) (tx.effect as Declare)('mail', input)
      return attempt
    })
  }

  async deliver({ payload, key, signal }: Delivery<{ n: number }>): Promise<void> {
    const faults = this.#faults
    const { ms } = this.#planOf(payload.n)
    await this.sleep(faults.strikes('delivery-is-slow') ? faults.between(5000, 20_000) : ms / 4)
    signal.throwIfAborted()
    if (faults.strikes('delivery-fails')) throw new Retryable('the receiver refuses')
    this.#outside.delivered.push(key)
    if (faults.strikes('crash-in-delivery')) {
      this.#process.crash(`crashes when it has delivered ${key}`)
      await new Promise<never>(() => {})
    }
    if (faults.strikes('delivery-unheard')) throw new Retryable('the receiver was not heard')
  }

  #planOf(n: number): Plan {
    return this.#plans[n] as Plan
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#process.environment.timers.after(ms, resolve))
  }
}

type Declare = (name: string, payload: unknown) => void
type Throttled = (name: string, options: { readonly retryAfter: '3s' }) => Error
