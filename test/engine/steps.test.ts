// Steps as a handler sees them: what was done once is remembered, by whichever attempt.
import { type JobContext, LeaseLost, StaleFence } from 'pawl'
import { Committed } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import type { Settlement, Store } from '../../src/stores/contract/store.ts'
import { UseTx } from '../../src/stores/errors.ts'
import { EngineBench } from './bench.ts'

const AGAIN = { retry: { max: 5, delay: 0 } } as const
const OPERATOR = { actor: 'operator', operator: 'ann', note: 'stop it' } as const

type Context = JobContext<unknown>

/** Runs one job with this handler to its end, and tells what came of it. */
async function runOne(
  run: (context: Context) => unknown,
  wrap?: (store: Store) => Store,
): Promise<{ bench: EngineBench; id: string; outcome: unknown }> {
  const job = defineJob({ ...AGAIN, name: 'stepping', run: (context: Context) => run(context) })
  const bench = await EngineBench.open([job], wrap)
  await bench.work()
  const handle = await bench.pawl.enqueue(job, null)
  const outcome = await bench.finish(handle.result())
  return { bench, id: handle.id, outcome }
}

/** A store some of whose verbs are done otherwise. */
const changed = (verbs: Partial<Store>) => (store: Store) =>
  new Proxy(store, {
    get(target, name) {
      const own = verbs[name as keyof Store]
      if (own !== undefined) return own
      const value = target[name as keyof Store] as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

describe('a step', () => {
  it('is done once, though later attempts come by it again', async () => {
    const ran: string[] = []
    const { outcome, bench, id } = await runOne(async ({ step, attempt }) => {
      const first = await step('first', () => {
        ran.push(`first in ${attempt}`)
        return { at: attempt }
      })
      if (attempt === 1) throw new Error('between the steps')
      const second = await step('second', () => {
        ran.push(`second in ${attempt}`)
        if (attempt === 2) throw new Error('in a step')
        return attempt
      })
      return [first, second]
    })
    expect(outcome).toMatchObject({ kind: 'succeeded', output: [{ at: 1 }, 3] })
    expect(ran).toEqual(['first in 1', 'second in 2', 'second in 3'])
    const facts = await bench.store.facts(id)
    expect(facts.filter(({ trigger }) => trigger === 'step').map(({ step }) => step)).toEqual([
      { name: 'first', n: 1 },
      { name: 'second', n: 1 },
    ])
  })

  it('of the same name is the next one, in the order of calls, also when several run', async () => {
    const keys: string[][] = []
    const { outcome, id } = await runOne(async ({ step, attempt }) => {
      const own: string[] = []
      keys.push(own)
      const results = await Promise.all(
        ['a', 'b', 'a', 'a'].map((name, i) =>
          step(name, async ({ key }) => {
            own.push(key)
            // The later ones finish first.
            for (let turn = 0; turn < 4 - i; turn++) await Promise.resolve()
            return `${name}${i}`
          }),
        ),
      )
      if (attempt === 1) throw new Error('once more')
      return results
    })
    expect(outcome).toMatchObject({ output: ['a0', 'b1', 'a2', 'a3'] })
    const expected = ['a/1', 'b/1', 'a/2', 'a/3'].map((key) => `${id}/step/${key}`)
    expect(keys).toEqual([expected, []])
  })

  it('is given the signal of its attempt, and its result as it was stored', async () => {
    let same = false
    const { outcome } = await runOne(async ({ step, signal }) => {
      const nothing = await step('nothing', (context) => {
        same = context.signal === signal
      })
      const date = await step('date', () => new Date(0))
      return [nothing, date, await step('list', () => [1, { deep: true }])]
    })
    expect(same).toBe(true)
    expect(outcome).toMatchObject({
      output: [undefined, new Date(0), [1, { deep: true }]],
    })
  })

  it('whose result cannot be stored fails where it is, and is not remembered', async () => {
    const errors: unknown[] = []
    const { outcome } = await runOne(async ({ step, attempt }) => {
      if (attempt > 1) return step('large', () => 'small')
      const results = [() => 'x'.repeat(17 * 1024 * 1024), () => () => 1, () => Symbol('s')]
      for (const result of results) {
        await step<unknown>('large', result).catch((error: unknown) => errors.push(error))
      }
      await step('', () => 1).catch((error: unknown) => errors.push(error))
      throw new Error('once more')
    })
    expect(outcome).toMatchObject({ output: 'small', job: { attempt: 2 } })
    expect(errors).toHaveLength(4)
    expect(errors.at(-1)).toMatchObject({ code: 'E_COMMAND_INVALID' })
    for (const error of errors) expect(error).toMatchObject({ code: expect.stringMatching(/^E_/) })
  })

  it('after the commit is refused, and does not run', async () => {
    const errors: unknown[] = []
    const { outcome } = await runOne(async ({ step, commit }) => {
      await step('before', () => 1)
      await commit(() => 'committed')
      await step('after', () => errors.push('it ran')).catch((error: unknown) => {
        errors.push(error)
      })
    })
    expect(outcome).toMatchObject({ output: 'committed' })
    expect(errors).toEqual([expect.any(Committed)])
  })

  it('inside the function of a commit is told to use the tx, and does not run', async () => {
    const errors: unknown[] = []
    const { outcome } = await runOne(({ step, commit }) =>
      commit(async () => {
        await step('inside', () => errors.push('it ran')).catch((error: unknown) => {
          errors.push(error)
        })
        return 1
      }),
    )
    expect(outcome).toMatchObject({ output: 1 })
    expect(errors).toEqual([expect.any(UseTx)])
  })

  it('is one of ten thousand at most', async () => {
    let refused: unknown
    const { outcome } = await runOne(async ({ step }) => {
      const all = Array.from({ length: 10_000 }, () => step('s', () => 1))
      await step('one more', () => 1).catch((error: unknown) => {
        refused = error
      })
      return (await Promise.all(all)).length
    })
    expect(outcome).toMatchObject({ output: 10_000 })
    expect(refused).toMatchObject({ code: 'E_COMMAND_INVALID' })
  })

  it('of an attempt that has lost its job is refused, and aborts the attempt', async () => {
    const seen: unknown[] = []
    let enter: () => void = () => {}
    const job = defineJob({
      name: 'late',
      run: async ({ step, signal }) => {
        await new Promise<void>((resolve) => {
          enter = resolve
        })
        await step('late', () => 'done').catch((error: unknown) => seen.push(error))
        seen.push(signal.reason)
        await step('later', () => seen.push('it ran')).catch((error: unknown) => seen.push(error))
      },
    })
    const bench = await EngineBench.open([job])
    await bench.work()
    const { id } = await bench.pawl.enqueue(job, null)
    await bench.until(async () => (await bench.state(id)) === 'running')
    await bench.store.applyCommand([id], { kind: 'park' }, OPERATOR)
    enter()
    await bench.until(() => seen.length === 3)
    expect(seen).toEqual([expect.any(StaleFence), expect.any(LeaseLost), expect.any(LeaseLost)])
    expect(bench.events).toContainEqual(expect.objectContaining({ type: 'state', slot: 0 }))
    const facts = await bench.store.facts(id)
    expect(facts.map(({ trigger }) => trigger)).toEqual(['create', 'claim', 'park'])
  })

  it('asks once what earlier attempts did, and never in the first attempt', async () => {
    let reads = 0
    const wrap = (store: Store) =>
      changed({
        steps: (ref) => {
          reads++
          return store.steps(ref)
        },
      })(store)
    const counts: number[] = []
    await runOne(async ({ step, attempt }) => {
      counts.push(reads)
      await Promise.all([step('a', () => 1), step('b', () => 2)])
      await step('c', () => 3)
      counts.push(reads)
      if (attempt < 3) throw new Error('once more')
    }, wrap)
    expect(counts).toEqual([0, 0, 0, 1, 1, 2])
  })

  it('whose answer was lost is found to be stored, with the result that is there', async () => {
    let ran = 0
    let losing = true
    const wrap = (store: Store) =>
      changed({
        settle: async (settlements, next) => {
          const isStep = settlements.some(({ command }) => command.kind === 'step')
          if (isStep && losing) {
            losing = false
            await store.settle(settlements)
            // As a store does whose connection broke: it asks again.
            const other = settlements.map((one): Settlement => ({ ...one, payload: '"other"' }))
            return store.settle(other, next)
          }
          return store.settle(settlements, next)
        },
      })(store)
    const { outcome } = await runOne(({ step }) => step('lost', () => `run ${++ran}`), wrap)
    expect(outcome).toMatchObject({ output: 'run 1' })
  })

  it('leaves a job that is reported by the quick way all the same', async () => {
    const settled: Settlement[] = []
    const wrap = (store: Store) =>
      changed({
        settle: (settlements, next) => {
          settled.push(...settlements)
          return store.settle(settlements, next)
        },
      })(store)
    const { bench, id } = await runOne(async ({ step }) => {
      await Promise.all([step('a', () => 1), step('b', () => 2)])
    }, wrap)
    const last = settled.at(-1)
    expect(last?.command.kind).toBe('commit')
    expect(last?.held.job.seq).toBe((await bench.store.facts(id)).length - 1)
  })
})

describe('steps of many jobs', () => {
  it('that finish together are one transaction', async () => {
    const groups: string[][] = []
    const job = defineJob({
      name: 'many',
      run: async ({ step }) => {
        for (const name of ['a', 'b', 'c']) await step(name, () => name)
      },
    })
    const bench = await EngineBench.open([job])
    let begun: string[] = []
    Object.assign(bench.environment, {
      crashPoint: (point: string) => {
        if (point === 'settle.begun') begun.push(point)
        else if (begun.length > 0 && point === 'settle.committed') {
          groups.push(begun)
          begun = []
        }
      },
    })
    const handles = await bench.pawl.enqueueMany(
      job,
      Array.from({ length: 50 }, () => ({ input: null })),
    )
    await bench.work({ concurrency: 50 })
    await bench.finish(Promise.all(handles.map((handle) => handle.result())))
    // Three rounds of steps and the reports; far from the 150 that one each would be.
    expect(groups.length).toBeLessThan(10)
    expect(groups.flat().length).toBeGreaterThanOrEqual(150)
  })
})
