// Handlers that invoke jobs and wait for them, on both databases, under a time that the test owns.
import { defineJob, defineSignal, isSucceeded, Terminal, typed, unwrap } from 'pawl'
import { createTestPawl, runJob, type TestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const STORES = [
  { name: 'SQLite', store: undefined },
  { name: 'PostgreSQL', store: freshStoreDatabase },
]
const ANN = { name: 'ann', reason: 'test' }

const failing = new Set<number>()
const ran: number[] = []
const double = defineJob({
  name: 'double',
  input: typed<number>(),
  retry: { max: 0 },
  run: ({ input }) => {
    ran.push(input)
    if (failing.has(input)) throw new Terminal(`not ${input}`)
    return input * 2
  },
})

describe.each(STORES)('on $name', { timeout: 20_000 }, ({ store }) => {
  async function open(...jobs: readonly unknown[]): Promise<TestPawl> {
    failing.clear()
    ran.length = 0
    const own = store === undefined ? {} : { store: await store() }
    const test = await createTestPawl({ jobs: jobs as never, ...own })
    onTestFinished(() => test.close())
    return test
  }

  const sum = defineJob({
    name: 'sum',
    input: typed<number[]>(),
    retry: { max: 0 },
    run: async ({ input, invoke, invokeMany }) => {
      const all = await invokeMany('each', double, input)
      const total = all.filter(isSucceeded).reduce((sum, { output }) => sum + output, 0)
      return unwrap(await invoke('total', double, total))
    },
  })

  it('a job waits for jobs that it invokes, without a slot, and has their outputs', async () => {
    const test = await open(double, sum)
    const handle = await test.pawl.enqueue(sum, [1, 2, 3])
    await test.drain()
    expect(await handle.result()).toMatchObject({ kind: 'succeeded', output: 24 })
    expect(ran.slice(0, 3).sort()).toEqual([1, 2, 3])
    expect(ran.slice(3)).toEqual([12])
    expect((await handle.get()).attempt).toBe(3)
    expect(await test.pawl.jobs.count({ type: 'double' })).toBe(4)
  })

  it('an attempt that fails after an invoke does not invoke again', async () => {
    let failures = 2
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      retry: { max: 3, delay: 0 },
      run: async ({ invoke }) => {
        const outcome = await invoke('child', double, 4)
        if (failures-- > 0) throw new Error('once more')
        return unwrap(outcome)
      },
    })
    const test = await open(double, parent)
    const handle = await test.pawl.enqueue(parent, null)
    await test.fastForward()
    expect(await handle.result()).toMatchObject({ output: 8 })
    expect(ran).toEqual([4])
  })

  it('a failed child is an outcome, and `unwrap` throws what is not retried', async () => {
    const soft = defineJob({
      name: 'soft',
      run: async ({ invoke }) => (await invoke('child', double, 1)).kind,
    })
    const hard = defineJob({
      name: 'hard',
      run: async ({ invoke }) => unwrap(await invoke('child', double, 1)),
    })
    const test = await open(double, soft, hard)
    failing.add(1)
    const [one, two] = [await test.pawl.enqueue(soft, null), await test.pawl.enqueue(hard, null)]
    await test.drain()
    expect(await one.result()).toMatchObject({ output: 'failed' })
    expect(await two.result()).toMatchObject({
      kind: 'failed',
      error: { name: 'ChildFailed', code: 'E_CHILD_FAILED', type: 'TERMINAL' },
    })
  })

  it('an outcome stays the same if the failed child is redriven later', async () => {
    const go = defineSignal({ name: 'go' })
    const seen: string[] = []
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      signals: [go],
      run: async ({ invoke, waitForSignal }) => {
        const { kind } = await invoke('child', double, 1)
        seen.push(kind)
        await waitForSignal(go)
        return kind
      },
    })
    const test = await open(double, parent)
    failing.add(1)
    const handle = await test.pawl.enqueue(parent, null)
    await test.drain()
    const [child] = (await test.store.list({ type: 'double' })).items
    failing.clear()
    await test.pawl.operator(ANN).redrive(child?.id as string)
    await test.drain()
    await handle.signal(go, null)
    await test.drain()
    expect(await handle.result()).toMatchObject({ output: 'failed' })
    expect(seen).toEqual(['failed', 'failed'])
  })

  it('a parked child is waited for, and explain names the end of the chain', async () => {
    const fragile = defineJob({ name: 'fragile', input: typed<number>(), retry: { max: 0 } })
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      run: async ({ invoke }) => (await invoke('child', fragile, 1)).kind,
    })
    const test = await open(
      fragile.implement(() => 1),
      parent,
    )
    const handle = await test.pawl.enqueue(parent, null)
    await test.drain({ queues: ['parents'] })
    const [child] = (await test.store.list({ type: 'fragile' })).items
    await test.pawl.operator(ANN).quarantine(child?.id as string)
    await test.drain()
    const explained = await test.pawl.explain(handle.id)
    expect(explained).toMatchObject({ kind: 'waiting', waitsFor: [child?.id] })
    expect(explained.command).toBe(`pawl job redrive ${child?.id} --reason …`)
    await test.pawl.operator(ANN).redrive(child?.id as string)
    await test.drain()
    expect(await handle.result()).toMatchObject({ output: 'succeeded' })
  })

  it('a bounded invokeMany has at most so many open jobs', async () => {
    let open1 = 0
    let most = 0
    const slow = defineJob({
      name: 'slow',
      input: typed<number>(),
      run: async ({ input }) => {
        most = Math.max(most, ++open1)
        await new Promise((resolve) => setImmediate(resolve))
        open1--
        return input
      },
    })
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      run: async ({ invokeMany }) => {
        const inputs = Array.from({ length: 9 }, (_, i) => i)
        return (await invokeMany('all', slow, inputs, { concurrency: 2 })).map(unwrap)
      },
    })
    const test = await open(slow, parent)
    const handle = await test.pawl.enqueue(parent, null)
    await test.drain({ concurrency: 8 })
    expect(await handle.result()).toMatchObject({ output: [0, 1, 2, 3, 4, 5, 6, 7, 8] })
    expect(most).toBeLessThanOrEqual(2)
  })

  it('no inputs are no wait', async () => {
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      run: async ({ invokeMany }) => (await invokeMany('none', double, [])).length,
    })
    const test = await open(double, parent)
    const handle = await test.pawl.enqueue(parent, null)
    await test.drain()
    expect(await handle.result()).toMatchObject({ output: 0 })
    expect((await handle.get()).attempt).toBe(1)
  })

  it.each([
    ['cancel', undefined, 'cancelled'],
    ['cancel', 'abandon', 'succeeded'],
  ] as const)(
    'a parent that ends by %s with onParentEnd %s leaves children %s',
    async (_, onParentEnd, kind) => {
      const nap = defineJob({
        name: 'nap',
        run: async ({ sleep }) => {
          await sleep('rest', '1h')
          return 1
        },
      })
      const middle = defineJob({
        name: 'middle',
        run: async ({ invoke }) => (await invoke('nap', nap, null)).kind,
      })
      const parent = defineJob({
        name: 'parent',
        queue: 'parents',
        run: async ({ invoke }) => {
          const own = onParentEnd === undefined ? {} : { onParentEnd }
          return (await invoke('middle', middle, null, own)).kind
        },
      })
      const test = await open(nap, middle, parent)
      const handle = await test.pawl.enqueue(parent, null)
      await test.drain()
      expect(await handle.get()).toMatchObject({ state: 'waiting' })
      await handle.cancel()
      await test.drain()
      await test.fastForward()
      for (const type of ['nap', 'middle']) {
        const [job] = (await test.store.list({ type })).items
        expect(job, type).toMatchObject({ outcome: kind })
      }
    },
  )

  it('another order of waits is a mismatch, with both lists, and parks the job', async () => {
    let isChanged = false
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      run: async ({ invoke, sleep }) => {
        if (isChanged) await sleep('rest', '1h')
        return (await invoke('child', double, 1)).kind
      },
    })
    const test = await open(double, parent)
    const handle = await test.pawl.enqueue(parent, null)
    await test.drain({ queues: ['parents'] })
    isChanged = true
    await test.drain()
    expect(await handle.get()).toMatchObject({
      state: 'quarantined',
      error: { code: 'E_REPLAY_MISMATCH' },
    })
    const { message } = (await handle.get()).error ?? {}
    expect(message).toContain('has waited for children "child"')
    expect(message).toContain('now waits for sleep "rest"')
    isChanged = false
    await test.pawl.operator(ANN).redrive(handle.id)
    await test.drain()
    expect(await handle.result()).toMatchObject({ output: 'succeeded' })
  })

  it('a handler that swallows Suspended changes nothing: the job waits', async () => {
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      run: async ({ invoke, step, commit }) => {
        const outcome = await invoke('child', double, 1).catch(() => undefined)
        if (outcome !== undefined) return outcome.kind
        await expect(step('late', () => 1)).rejects.toMatchObject({ code: 'E_SUSPENDED' })
        await expect(commit(() => 1)).rejects.toThrow()
        return 'swallowed'
      },
    })
    const test = await open(double, parent)
    const handle = await test.pawl.enqueue(parent, null)
    await test.drain()
    expect(await handle.result()).toMatchObject({ output: 'succeeded' })
  })

  it('a handler that returns before a recorded wait is a mismatch', async () => {
    let isEarly = false
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      run: async ({ invoke }) => (isEarly ? 'early' : (await invoke('child', double, 1)).kind),
    })
    const test = await open(double, parent)
    const handle = await test.pawl.enqueue(parent, null)
    await test.drain({ queues: ['parents'] })
    isEarly = true
    await test.drain()
    expect(await handle.get()).toMatchObject({ error: { code: 'E_REPLAY_MISMATCH' } })
  })

  it('two invokes at once run one after the other, in the order of the calls', async () => {
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      run: async ({ invoke }) => {
        const both = await Promise.all([invoke('a', double, 1), invoke('b', double, 2)])
        return both.map(unwrap)
      },
    })
    const test = await open(double, parent)
    const handle = await test.pawl.enqueue(parent, null)
    await test.drain()
    expect(await handle.result()).toMatchObject({ output: [2, 4] })
    expect(ran).toEqual([1, 2])
  })

  it('refuses job types and options that an invoke cannot have', async () => {
    const one = defineJob({ name: 'one', singleton: { mode: 'skip' } })
    const late = defineJob({ name: 'late', after: { it: double } })
    const errors: unknown[] = []
    const parent = defineJob({
      name: 'parent',
      queue: 'parents',
      run: async ({ invoke, invokeMany }) => {
        const note = (error: unknown) => void errors.push((error as Error).message)
        await invoke('a', one, null).catch(note)
        // @ts-expect-error: it comes after others.
        await invoke('a', late, null).catch(note)
        // @ts-expect-error: there is no such option.
        await invoke('a', double, 1, { concurrency: 1 }).catch(note)
        // @ts-expect-error: a key would be another job.
        await invoke('a', double, 1, { key: 'k' }).catch(note)
        await invokeMany('a', double, [1], { concurrency: 0 }).catch(note)
        await invoke('', double, 1).catch(note)
        return errors.length
      },
    })
    const test = await open(double, one, late, parent)
    const handle = await test.pawl.enqueue(parent, null)
    await test.drain()
    expect(await handle.result()).toMatchObject({ output: 6 })
    expect(errors.join('\n')).toMatch(/singleton.*comes after.*concurrency.*key.*concurrency/s)
  })
})

describe('one attempt without a store', () => {
  it('says what it invokes, and has the outcomes and outputs that are given', async () => {
    const total = defineJob({
      name: 'total',
      after: { doubled: [double] },
      run: async ({ after, invoke }) => {
        const more = await invoke('more', double, after.doubled.length)
        return [...after.doubled, isSucceeded(more) ? more.output : more.kind]
      },
    })
    const after = { doubled: [2, 4] }
    expect(await runJob(total, null, { after })).toMatchObject({
      kind: 'invoking',
      invoked: { name: 'more', n: 1, type: 'double', count: 1 },
    })
    const outcomes = [{ kind: 'failed', reason: 'no' }] as const
    const given = await runJob(total, null, { after, children: [{ name: 'more', outcomes }] })
    expect(given).toMatchObject({ kind: 'succeeded', output: [2, 4, 'failed'] })
    expect(await runJob(total, null)).toMatchObject({
      kind: 'failed',
      failure: { code: 'E_DEPENDENCY_UNMET' },
    })
  })
})
