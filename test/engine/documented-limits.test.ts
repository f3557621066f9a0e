// What the guides say of limits and late calls, as it is: docs/guides/jobs-and-workers.md,
// docs/guides/effects-and-steps.md and docs/guides/operating.md.
import { defineJob, LeaseLost, StaleFence } from 'pawl'
import { Committed, document, hardened, leased, standard, task } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { EngineBench } from './bench.ts'

const ANN = { actor: 'operator', operator: 'ann', note: 'to see what happens' } as const

/** A store whose heartbeats never come back: its worker learns of nothing. */
const silent = (store: Store): Store =>
  new Proxy(store, {
    get(target, name: keyof Store) {
      const value: unknown = target[name]
      if (typeof value !== 'function') return value
      if (name === 'heartbeat') return () => new Promise(() => {})
      return value.bind(target)
    },
  })

describe('an attempt that has lost its job', () => {
  /** Calls step twice and commit once after the job was taken away, and says what came of it. */
  async function lateCalls(worker: 'knows' | 'does not know') {
    const ran: string[] = []
    const errors: unknown[] = []
    let goOn: () => void = () => {}
    const told = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const job = defineJob({
      name: 'late',
      run: async ({ step, commit, attempt }) => {
        if (attempt > 1) return
        await told
        const note = (error: unknown) => void errors.push(error)
        await step('first', () => ran.push('first')).catch(note)
        await step('second', () => ran.push('second')).catch(note)
        await commit(() => ran.push('commit')).catch(note)
      },
    })
    const bench = await EngineBench.open([job], worker === 'knows' ? undefined : silent)
    const { id } = await bench.pawl.enqueue(job, null)
    await bench.work({ lease: '30s' })
    await bench.until(async () => (await bench.state(id)) === 'running')
    await bench.store.applyCommand([id], { kind: 'park' }, ANN)
    if (worker === 'knows') await bench.pass(15_000, 100)
    goOn()
    await bench.until(() => errors.length === 3)
    return { ran, errors }
  }

  it('and does not know it: the step runs and gets StaleFence, then LeaseLost', async () => {
    const { ran, errors } = await lateCalls('does not know')
    expect(ran).toEqual(['first'])
    expect(errors[0]).toBeInstanceOf(StaleFence)
    expect(errors[1]).toBeInstanceOf(LeaseLost)
    expect(errors[2]).toBeInstanceOf(StaleFence)
  })

  it('and knows it: steps get LeaseLost, a commit StaleFence, nothing runs', async () => {
    const { ran, errors } = await lateCalls('knows')
    expect(ran).toEqual([])
    expect(errors[0]).toBeInstanceOf(LeaseLost)
    expect(errors[1]).toBeInstanceOf(LeaseLost)
    expect(errors[2]).toBeInstanceOf(StaleFence)
  })
})

describe('by default', () => {
  it('a job that always fails is started four times, and then parked', async () => {
    let starts = 0
    const job = defineJob({
      name: 'failing',
      run: () => {
        starts++
        throw new Error('no')
      },
    })
    const bench = await EngineBench.open([job])
    const { id } = await bench.pawl.enqueue(job, null)
    await bench.test.fastForward()
    expect(starts).toBe(4)
    expect(await bench.store.get(id)).toMatchObject({ failures: 3, reason: 'retries_exhausted' })
  })

  it('the policies of the lifecycles are those that the guide lists', () => {
    const usual = { max: 3, backoff: 'fixed', delayMs: 1000, factor: 2, delayMaxMs: 3_600_000 }
    for (const { policy } of [standard, hardened, leased, document]) {
      expect(policy.retry).toMatchObject(usual)
      expect(policy).toMatchObject({ crashesMax: 3, releasesMax: 100 })
    }
    expect(task.policy).toMatchObject({ retry: { max: 0 }, crashesMax: 2, releasesMax: 100 })
  })
})

describe('the retry of a job that has succeeded', () => {
  it.each([standard, hardened, leased, document, task])(
    'is refused in $name with Committed, and a copy runs its input again',
    async (lifecycle) => {
      const job = defineJob({ name: 'done', lifecycle, run: ({ input }) => input })
      const bench = await EngineBench.open([job])
      const { id } = await bench.pawl.enqueue(job, 7)
      await bench.test.drain()
      const ann = bench.pawl.operator({ name: 'ann', reason: 'again' })
      await expect(ann.retry(id)).rejects.toBeInstanceOf(Committed)
      const { copies } = await ann.copy(id)
      await bench.test.drain()
      const copy = copies[0]?.id ?? ''
      expect(await bench.store.get(copy)).toMatchObject({ outcome: 'succeeded', retryOf: id })
    },
  )
})

describe('names', () => {
  it('have 1 to 255 characters and no control characters', async () => {
    const run = () => {}
    expect(() => defineJob({ name: 'n'.repeat(255), run })).not.toThrow()
    for (const name of ['n'.repeat(256), ' ', 'a\nb']) {
      expect(() => defineJob({ name, run })).toThrow(
        expect.objectContaining({ code: 'E_DEFINITION_INVALID' }),
      )
    }
  })

  it('of keys and tags, and priorities, are bounded in the same way', async () => {
    const job = defineJob({ name: 'bounded', run: () => {} })
    const { pawl } = await EngineBench.open([job])
    const tags = Array.from({ length: 33 }, (_, i) => `t${i}`)
    for (const options of [
      { key: 'k'.repeat(256) },
      { tags },
      { tags: ['a\nb'] },
      { priority: 32_768 },
      { priority: -32_768 },
    ]) {
      await expect(pawl.enqueue(job, null, options)).rejects.toMatchObject({
        code: 'E_COMMAND_INVALID',
      })
    }
    const longest = { key: 'k'.repeat(255), tags: tags.slice(1), priority: -32_767 }
    await expect(pawl.enqueue(job, null, longest)).resolves.toBeDefined()
  })
})
