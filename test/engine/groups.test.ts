/** Groups as programs use them: the whole engine under a time that the test owns. */
import { describe, expect, it } from 'vitest'
import { createPawl, defineJob, typed } from '../../src/index.ts'
import { createTestPawl } from '../../src/testing/test-pawl.ts'

interface Sync {
  readonly tenant: string
  readonly plan: 'free' | 'pro'
  readonly n: number
}

describe('what a job type says of groups', () => {
  it('becomes the first key of each job, from its checked input', async () => {
    const turns = defineJob({
      name: 'turns',
      queue: 'sync',
      input: typed<Sync>(),
      concurrency: 5,
      group: { key: (i) => i.tenant, weight: (i) => (i.plan === 'pro' ? 3 : 1) },
      run: () => null,
    })
    const strict = defineJob({
      name: 'strict',
      input: typed<Sync>(),
      group: { key: (i) => i.tenant, order: 'strict', onParked: 'skip' },
      run: () => null,
    })
    await using pawl = await createPawl({ store: 'sqlite::memory:', jobs: [turns, strict] })
    const keyOf = async (id: string) => (await pawl.store.get(id))?.limitKey
    const input = { tenant: 'a/b c', plan: 'pro', n: 1 } as const
    const first = await pawl.enqueue(turns, input)
    expect(await keyOf(first.id)).toBe('group/sync/a%2Fb%20c=3 type/turns')
    const second = await pawl.enqueue(strict, input)
    expect(await keyOf(second.id)).toBe('strict/strict/a%2Fb%20c=0')
    expect((await pawl.store.facts(second.id))[0]?.created?.limitKey).toBe(await keyOf(second.id))
  })

  it('is refused if it makes no sense, when it is defined or enqueued', async () => {
    const key = (i: Sync) => i.tenant
    const bad: object[] = [
      { group: 'tenant' },
      { group: {} },
      { group: { key: 'tenant' } },
      { group: { key, weight: 0 } },
      { group: { key, weight: 1001 } },
      { group: { key, weight: 1.5 } },
      { group: { key, weight: 'much' } },
      { group: { key, order: 'fifo' } },
      { group: { key, order: 'strict', weight: 2 } },
      { group: { key, order: 'strict', onParked: 'drop' } },
      { group: { key, onParked: 'skip' } },
      { group: { key, more: 1 } },
    ]
    for (const options of bad) {
      const define = () => defineJob({ name: 'bad', ...options } as never)
      expect(define, JSON.stringify(options)).toThrow(/Invalid definition of job type "bad"/)
    }
    const loose = defineJob({
      name: 'loose',
      input: typed<{ key: string; weight: number }>(),
      group: { key: (i) => i.key, weight: (i) => i.weight },
      run: () => null,
    })
    await using pawl = await createPawl({ store: 'sqlite::memory:', jobs: [loose] })
    const refused = { code: 'E_LIMIT_KEY_INVALID' }
    for (const key of ['', 'x'.repeat(256), 'a\nb', '\ud800']) {
      await expect(pawl.enqueue(loose, { key, weight: 1 })).rejects.toMatchObject(refused)
    }
    for (const weight of [0, -1, 1001, 1.5, Number.NaN]) {
      await expect(pawl.enqueue(loose, { key: 'k', weight })).rejects.toMatchObject(refused)
    }
    expect((await pawl.store.list({})).items).toEqual([])
  })

  it('does not compile if a weight and a strict order meet', () => {
    const key = (i: Sync) => i.tenant
    const input = typed<Sync>()
    const first = () =>
      // @ts-expect-error A strict group has no weight.
      defineJob({ name: 'a', input, group: { key, order: 'strict', weight: 2 } })
    const second = () =>
      // @ts-expect-error Only a strict group is held by a parked job.
      defineJob({ name: 'b', input, group: { key, onParked: 'skip' } })
    const third = () =>
      // @ts-expect-error There is no such order.
      defineJob({ name: 'c', input, group: { key, order: 'loose' } })
    const fourth = () =>
      // @ts-expect-error The input has no such field.
      defineJob({ name: 'd', input, group: { key: (i) => i.tenants } })
    for (const define of [first, second, third]) expect(define).toThrow(/Invalid definition/)
    expect(fourth().limits).toBeDefined()
  })
})

describe('groups in a running engine', () => {
  it('run strict jobs one at a time, in order, through retries', async () => {
    const seen: string[] = []
    let running = 0
    const ledger = defineJob({
      name: 'ledger',
      input: typed<Sync>(),
      retry: { max: 3, delay: '1s' },
      group: { key: (i) => i.tenant, order: 'strict' },
      run: async ({ input, attempt }) => {
        running++
        await Promise.resolve()
        expect(running).toBeLessThanOrEqual(2)
        running--
        if (attempt === 1 && input.n % 2 === 0) throw new Error('try again')
        seen.push(`${input.tenant}${input.n}`)
        return null
      },
    })
    await using kit = await createTestPawl({ jobs: [ledger] })
    for (let n = 0; n < 6; n++) {
      for (const tenant of ['a', 'b']) await kit.pawl.enqueue(ledger, { tenant, plan: 'free', n })
      await kit.advance(1)
    }
    await kit.fastForward({ concurrency: 8 })
    for (const tenant of ['a', 'b']) {
      const own = seen.filter((one) => one.startsWith(tenant))
      expect(own).toEqual([0, 1, 2, 3, 4, 5].map((n) => `${tenant}${n}`))
    }
  })

  it('give every tenant its turn, by weight', async () => {
    const seen: string[] = []
    const pull = defineJob({
      name: 'pull',
      input: typed<Sync>(),
      group: { key: (i) => i.tenant, weight: (i) => (i.plan === 'pro' ? 3 : 1) },
      run: ({ input }) => {
        seen.push(input.tenant)
        return null
      },
    })
    await using kit = await createTestPawl({ jobs: [pull] })
    const of = (tenant: string, plan: Sync['plan'], jobs: number) =>
      Array.from({ length: jobs }, (_, n) => ({ input: { tenant, plan, n } }))
    await kit.pawl.enqueueMany(pull, of('large', 'free', 40))
    await kit.pawl.enqueueMany(pull, of('pro', 'pro', 9))
    await kit.pawl.enqueueMany(pull, of('small', 'free', 2))
    await kit.fastForward({ concurrency: 1 })
    expect(seen.slice(0, 10).join(' ')).toBe('large pro pro pro small large pro pro pro small')
    expect(seen).toHaveLength(51)
  })
})

describe('explain', () => {
  it('names the job of a strict group that comes first, and what it waits for', async () => {
    const ledger = defineJob({
      name: 'ledger',
      input: typed<Sync>(),
      retry: { max: 3, delay: '1h', jitter: 0 },
      group: { key: (i) => i.tenant, order: 'strict' },
      run: () => {
        throw new Error('not today')
      },
    })
    await using kit = await createTestPawl({ jobs: [ledger] })
    const { pawl } = kit
    const ids: string[] = []
    for (let n = 0; n < 3; n++) {
      ids.push((await pawl.enqueue(ledger, { tenant: 'acme', plan: 'free', n })).id)
      await kit.advance(1)
    }
    const [first, second, third] = ids as [string, string, string]
    const early = await pawl.explain(second)
    const head = `the head ${first} is ready or blocked by a limit`
    expect(early.says).toBe(`It is blocked: 1 job of its group comes first (acme); ${head}.`)
    await kit.drain()
    expect((await pawl.explain(first)).kind).not.toBe('blocked')
    const { kind, says } = await pawl.explain(third)
    expect(kind).toBe('blocked')
    expect(says).toContain('2 jobs of its group come first (acme)')
    expect(says).toContain(`the head ${first} waits for its retry`)
  })

  it('says that a job waits for the turn of its group', async () => {
    const pull = defineJob({
      name: 'pull',
      input: typed<Sync>(),
      group: { key: (i) => i.tenant },
      run: () => null,
    })
    await using kit = await createTestPawl({ jobs: [pull] })
    const ids: string[] = []
    for (let n = 0; n < 4; n++) {
      ids.push((await kit.pawl.enqueue(pull, { tenant: 'acme', plan: 'free', n })).id)
    }
    const info = JSON.stringify({ concurrency: 10, running: 0, version: '1' })
    await kit.store.reportWorker({ id: 'w', state: 'Idle', info })
    const request = { worker: 'w', limit: 1, leaseMs: 60_000, start: true }
    await kit.store.claim(request)
    expect(await kit.pawl.explain(ids[3] as string)).toMatchObject({
      kind: 'blocked',
      says: 'It waits for the turn of its group acme; 2 jobs of it are ahead.',
    })
  })
})
