/** The jobs of the simulation, by what their handlers do; each job's plan comes from the seed. */
import { defineJob, type JobDefinition, Retryable, Terminal, type Timers, typed } from 'pawl'
import type { SeededRandom } from 'pawl/testing'

const KINDS = ['plain', 'commits', 'flaky', 'slow', 'deaf', 'hopeless'] as const

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
  ]
}
