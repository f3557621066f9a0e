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
import type { StepRun } from './checker.ts'
import type { Faults } from './faults.ts'
import { parcelOf, type Release } from './parcels.ts'
import type { SimProcess } from './process.ts'

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

/** What the n-th job will do. */
export function planOf(n: number, faults: Faults): Plan {
  const isSlow = faults.strikes('handler-is-slow')
  return {
    type: TYPES[(n + faults.between(0, TYPES.length)) % TYPES.length] as string,
    ms: isSlow ? faults.between(1500, 9000) : faults.between(0, 1500),
    failures: faults.strikes('handler-fails') ? faults.between(1, 6) : 0,
    effects: faults.between(1, 4),
    isDeaf: faults.strikes('handler-is-deaf'),
    isPoison: faults.between(0, 8) === 0 && faults.strikes('poison'),
    commitMs: faults.strikes('slow-commit') ? faults.between(100, 8000) : 0,
    delayMs: faults.between(0, 3) === 0 ? faults.between(0, 8000) : 0,
  }
}

type Context = JobContext<{ n: number }>
type SimJob = RunnableJob<{ n: number }, { n: number }, unknown>

/** The kinds of job with handlers that live in a process. */
export function jobsOf(
  plans: readonly Plan[],
  process: SimProcess,
  faults: Faults,
  outside: Outside,
  { isOld = false, release = 2 }: { readonly isOld?: boolean; readonly release?: Release } = {},
): SimJob[] {
  const code = new Code(plans, process, faults, outside)
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
  const jobs: SimJob[] = [
    defineJob({ ...common, name: 'plain', run: (context) => code.work(context) }),
    defineJob({ ...common, name: 'commits', run: (context) => code.commit(context) }),
    defineJob({ ...spread, name: 'flaky', run: (context) => code.work(context) }),
    defineJob({ ...common, name: 'slow', timeout: '45s', run: (context) => code.work(context) }),
    defineJob({ ...spread, name: 'sends', effects, run: (context) => code.send(context) }),
    defineJob({ ...common, name: 'hopeless', run: (context) => code.hopeless(context) }),
    defineJob({
      ...common,
      name: 'approved',
      recovery: 'operator',
      run: (context) => code.commit(context),
    }),
    defineJob({ input, name: 'hardened', lifecycle: hardened, run: (c) => code.commit(c) }),
    defineJob({ input, name: 'leased', lifecycle: leased, run: (c) => code.commit(c) }),
    defineJob({ input, name: 'document', lifecycle: document, run: (c) => code.work(c) }),
    defineJob({ input, name: 'task', lifecycle: task, run: (c) => code.commit(c) }),
    defineJob({ input, name: 'parcel', lifecycle: parcelOf(release), run: (c) => code.commit(c) }),
  ]
  return isOld ? jobs.filter(({ name }) => OLD_TYPES.includes(name)) : jobs
}

/** What the handlers of one process do. */
class Code {
  readonly #plans: readonly Plan[]
  readonly #process: SimProcess
  readonly #faults: Faults
  readonly #outside: Outside

  constructor(plans: readonly Plan[], process: SimProcess, faults: Faults, outside: Outside) {
    this.#plans = plans
    this.#process = process
    this.#faults = faults
    this.#outside = outside
  }

  /** Takes its time, and fails as often as it is planned to. */
  async work({ input, attempt, signal, progress }: Context): Promise<number> {
    const { ms, failures, isDeaf, isPoison } = this.#planOf(input.n)
    for (let part = 0; part < 3; part++) {
      progress(part)
      await this.#sleep(ms / 3)
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
    await this.work(context)
    const { commitMs } = this.#planOf(context.input.n)
    return context.commit(async (tx) => {
      if (commitMs > 0) await this.#sleep(commitMs / context.attempt)
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
        await this.#sleep(ms / 4)
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
    await this.#sleep(faults.strikes('delivery-is-slow') ? faults.between(5000, 20_000) : ms / 4)
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

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#process.environment.timers.after(ms, resolve))
  }
}

type Declare = (name: string, payload: unknown) => void
