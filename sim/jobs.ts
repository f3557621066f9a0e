/** The jobs of the simulation, by what their handlers do; each job's plan comes from the seed. */
import {
  type Delivery,
  defineJob,
  type JobDefinition,
  Retryable,
  type Schema,
  Terminal,
  type Timers,
  typed,
} from 'pawl'
import type { SeededRandom } from 'pawl/testing'

const KINDS = ['plain', 'commits', 'flaky', 'slow', 'deaf', 'hopeless', 'sends'] as const

/** What jobs have done that no database knows of. */
export interface World {
  /** The keys of deliveries that came through, as often as they did. */
  readonly delivered: string[]
  /** The runs of steps. */
  readonly stepped: { readonly jobId: string; readonly name: string; readonly attempt: number }[]
}

/** What one job does. */
export interface Plan {
  readonly kind: (typeof KINDS)[number]
  readonly ms: number
  readonly failures: number
}

/** What the n-th job will do. */
export function planOf(n: number, random: SeededRandom): Plan {
  return {
    kind: KINDS[n % KINDS.length] as Plan['kind'],
    ms: Math.floor(random.next() * 4000),
    failures: Math.floor(random.next() * 3),
  }
}

/** The definitions, with handlers that live by the timers of their process. */
export function jobsOf(
  plans: readonly Plan[],
  timers: Timers,
  world: World,
): JobDefinition<{ n: number }, { n: number }, unknown>[] {
  const planFor = (n: number) => plans[n] as Plan
  const sleep = (ms: number) => new Promise<void>((resolve) => timers.after(ms, resolve))
  const common = {
    input: typed<{ n: number }>(),
    crashesMax: 50,
    retry: { max: 5, delay: '1s' },
  } as const
  return [
    defineJob({ ...common, name: 'plain', run: ({ input }) => input.n }),
    defineJob({
      ...common,
      name: 'commits',
      async run({ input, commit }) {
        await sleep(planFor(input.n).ms)
        return commit(async (tx) => {
          await tx.query('CREATE TABLE IF NOT EXISTS effects (n INTEGER NOT NULL)')
          await tx.query('INSERT INTO effects VALUES (?)', [input.n])
          return tx.query('SELECT n FROM effects WHERE n = ?', [input.n])
        })
      },
    }),
    defineJob({
      ...common,
      name: 'flaky',
      async run({ input, attempt }) {
        const { ms, failures } = planFor(input.n)
        await sleep(ms)
        if (attempt <= failures) throw new Retryable(`failure ${attempt}`)
        return attempt
      },
    }),
    defineJob({
      ...common,
      name: 'slow',
      async run({ input, signal, progress }) {
        for (let i = 0; i < 5; i++) {
          progress(i)
          await sleep(planFor(input.n).ms)
          signal.throwIfAborted()
        }
      },
    }),
    defineJob({
      ...common,
      name: 'deaf',
      timeout: '3s',
      async run({ input }) {
        await sleep(planFor(input.n).ms * 2)
      },
    }),
    defineJob({
      ...common,
      name: 'hopeless',
      run: () => {
        throw new Terminal('there is no hope')
      },
    }),
    senderOf(common, planFor, sleep, world),
  ]
}

/** A job with steps that fail now and then, and effects that do so, too. */
function senderOf(
  common: { readonly input: Schema<{ n: number }> },
  planFor: (n: number) => Plan,
  sleep: (ms: number) => Promise<void>,
  world: World,
) {
  return defineJob({
    ...common,
    name: 'sends',
    effects: {
      mail: {
        timeout: '6s',
        async deliver({ payload, key, tries, signal }: Delivery<{ n: number }>) {
          const { ms, failures } = planFor(payload.n)
          await sleep(ms)
          signal.throwIfAborted()
          if (tries <= failures) throw new Retryable(`failure ${tries}`)
          world.delivered.push(key)
        },
      },
    },
    async run({ input, jobId, attempt, step, commit }) {
      const { ms, failures } = planFor(input.n)
      for (const name of ['first', 'second']) {
        await step(name, async () => {
          world.stepped.push({ jobId, name, attempt })
          await sleep(ms / 4)
          if (attempt <= failures) throw new Retryable(`failure ${attempt}`)
        })
      }
      return commit(async (tx) => {
        await tx.query('CREATE TABLE IF NOT EXISTS effects (n INTEGER NOT NULL)')
        await tx.query('INSERT INTO effects VALUES (?)', [input.n])
        for (let i = 0; i <= failures; i++) tx.effect('mail', input)
        return tx.query('SELECT n FROM effects WHERE n = ?', [input.n])
      })
    },
  })
}
