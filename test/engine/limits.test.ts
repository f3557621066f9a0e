/** Limits and throttles as programs use them: the whole engine under a time that the test owns. */
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/index.ts'
import { createPawl, defineJob, defineLimit, typed } from '../../src/index.ts'
import { createTestPawl } from '../../src/testing/test-pawl.ts'

const openai = defineLimit({ name: 'openai', concurrency: 2 })
const github = defineLimit({ name: 'github', concurrency: 1, keyed: true })

interface Sync {
  readonly tenant: string
  readonly repo: string
  readonly plan: 'free' | 'pro'
}

const SYNC: Sync = { tenant: 'acme', repo: 'r', plan: 'free' }

const sync = defineJob({
  name: 'sync',
  input: typed<Sync>(),
  concurrency: [
    20,
    { name: 'tenant', key: (i) => i.tenant, limit: (i) => (i.plan === 'pro' ? 5 : 1) },
    openai,
    { limit: github, key: (i) => i.repo },
  ],
  throttle: { name: 'calls', limit: 10, period: '10s', key: (i) => i.tenant, units: 2 },
  run: () => null,
})

describe('what a job type says of limits', () => {
  it('becomes keys of each job, from its checked input', async () => {
    await using pawl = await createPawl({ store: 'sqlite::memory:', jobs: [sync] })
    const job = await pawl.enqueue(sync, { tenant: 'a/b', repo: 'r=1', plan: 'pro' })
    expect((await keysOf(pawl.store, job.id))?.split(' ')).toEqual([
      'job/sync/tenant/a%2Fb=5',
      'rate/sync/calls/a%2Fb+2',
      'shared/github/r%3D1',
      'shared/openai',
      'type/sync',
    ])
    const limits = await pawl.limits.list()
    expect(limits.map(({ name, max }) => [name, max])).toEqual([
      ['job/sync/tenant', null],
      ['rate/sync/calls', 10],
      ['shared/github', 1],
      ['shared/openai', 2],
      ['type/sync', 20],
    ])
  })

  it('is computed again when a job is replaced', async () => {
    await using pawl = await createPawl({ store: 'sqlite::memory:', jobs: [sync] })
    const first = await pawl.enqueue(sync, SYNC, { key: 'k' })
    const before = await keysOf(pawl.store, first.id)
    const options = { key: 'k', onConflict: 'replace' } as const
    const second = await pawl.enqueue(sync, { ...SYNC, tenant: 'other' }, options)
    expect(second.id).toBe(first.id)
    const after = await keysOf(pawl.store, first.id)
    expect(before).toContain('job/sync/tenant/acme=1')
    expect(after).toBe(before?.replaceAll('acme', 'other'))
    expect((await pawl.store.facts(first.id)).at(-1)).toMatchObject({ limitKey: after })
  })

  it('is the same for jobs of one call that have the same keys', async () => {
    await using pawl = await createPawl({ store: 'sqlite::memory:', jobs: [sync] })
    const entries = Array.from({ length: 30 }, (_, n) => ({
      input: { ...SYNC, tenant: `t${n % 3}` },
    }))
    const jobs = await pawl.enqueueMany(sync, entries)
    for (const [n, { id }] of jobs.entries()) {
      expect(await keysOf(pawl.store, id)).toContain(`job/sync/tenant/t${n % 3}=1`)
    }
  })

  it('leaves nothing enqueued if a function throws or returns no key', async () => {
    const broken = defineJob({
      name: 'broken',
      input: typed<{ key: unknown; units: number }>(),
      concurrency: { name: 'by', key: (i) => (i.key as () => string)(), limit: 1 },
      run: () => null,
    })
    const keyless = defineJob({
      name: 'keyless',
      input: typed<{ key: string }>(),
      concurrency: { name: 'by', key: (i) => i.key, limit: 1 },
      run: () => null,
    })
    const heavy = defineJob({
      name: 'heavy',
      input: typed<{ units: number }>(),
      throttle: { name: 'tpm', limit: 5, period: '1m', units: (i) => i.units },
      run: () => null,
    })
    const jobs = [broken, keyless, heavy]
    await using pawl = await createPawl({ store: 'sqlite::memory:', jobs })
    const refused = { code: 'E_LIMIT_KEY_INVALID' }
    await expect(pawl.enqueue(broken, { key: 1, units: 1 })).rejects.toMatchObject(refused)
    for (const key of ['', ' ', 'x'.repeat(256), 'a\nb', '\ud800']) {
      await expect(pawl.enqueue(keyless, { key })).rejects.toMatchObject(refused)
    }
    for (const units of [0, -1, 6, 1.5, Number.NaN]) {
      await expect(pawl.enqueue(heavy, { units })).rejects.toMatchObject(refused)
    }
    expect((await pawl.store.list({})).items).toEqual([])
  })

  it('is refused when it is defined if it makes no sense', () => {
    const bad: object[] = [
      { concurrency: -1 },
      { concurrency: 1.5 },
      { concurrency: [5, 6] },
      { concurrency: github },
      { concurrency: { limit: openai, key: () => 'a' } },
      { concurrency: { name: 'a', key: 'b', limit: 1 } },
      { concurrency: { name: 'a', key: () => 'b', limit: 1, more: 1 } },
      { concurrency: { limit: 1, version: 0 } },
      {
        concurrency: Array.from({ length: 9 }, (_, n) => ({ name: `${n}`, key: String, limit: 1 })),
      },
      { throttle: { name: 'a', limit: 0, period: '1s' } },
      { throttle: { name: 'a', limit: 1, period: 0 } },
      { throttle: { name: 'a', limit: 5, period: '1s', burst: 6 } },
      { throttle: { name: 'a', limit: 5, period: '1s', units: 6 } },
      { throttle: { name: '', limit: 5, period: '1s' } },
      { throttle: [7] },
    ]
    for (const options of bad) {
      const define = () => defineJob({ name: 'bad', ...options } as never)
      expect(define, JSON.stringify(options)).toThrow(/Invalid definition of job type "bad"/)
    }
    expect(() => defineLimit({ name: '', concurrency: 1 })).toThrow(/Invalid definition/)
    expect(() => defineLimit({ name: 'a', concurrency: -1 })).toThrow(/Invalid definition/)
    expect(() => defineLimit({ name: 'a', concurrency: 1, more: 1 } as never)).toThrow(/Invalid/)
  })
})

describe('limits in a running engine', () => {
  it('never let more jobs run than they allow, and all jobs finish', async () => {
    let running = 0
    let most = 0
    const call = defineJob({
      name: 'call',
      concurrency: openai,
      run: async ({ step }) => {
        running++
        most = Math.max(most, running)
        await step('wait', async () => {
          for (let turn = 0; turn < 5; turn++) await Promise.resolve()
        })
        running--
      },
    })
    await using kit = await createTestPawl({ jobs: [call] })
    await kit.pawl.enqueueMany(
      call,
      Array.from({ length: 20 }, () => ({ input: null })),
    )
    const drained = await kit.drain({ concurrency: 8 })
    expect(drained.succeeded).toHaveLength(20)
    expect(most).toBe(2)
  })

  it('keep a queue at the number of createPawl, until an operator says otherwise', async () => {
    const mail = defineJob({ name: 'mail', queue: 'mail', run: () => null })
    const options = { store: 'sqlite::memory:', jobs: [mail], queues: { mail: { concurrency: 1 } } }
    await using pawl = await createPawl(options)
    for (let n = 0; n < 3; n++) await pawl.enqueue(mail, null)
    const request = { worker: 'w', limit: 5, leaseMs: 1000, start: true }
    expect(await pawl.store.claim(request)).toHaveLength(1)
    const ann = pawl.operator({ name: 'ann', reason: 'INC-7' })
    expect(await ann.setLimit('queue/mail', { concurrency: 2 })).toMatchObject({ action: 'set' })
    expect(await pawl.store.claim(request)).toHaveLength(1)
    const state = await pawl.limits.get('queue/mail')
    expect(state).toMatchObject({ used: 2, max: 2, setting: { max: 1, overrideBy: 'ann' } })
    await ann.resetLimit('queue/mail')
    expect(await pawl.limits.get('queue/mail')).toMatchObject({ used: 2, max: 1 })
  })

  it('are named by their definition, by a short or by a full name', async () => {
    await using pawl = await createPawl({ store: 'sqlite::memory:', jobs: [sync] })
    const ann = pawl.operator({ name: 'ann', reason: 'INC-7' })
    await ann.setLimit(openai, { concurrency: 1 })
    await ann.setLimit('sync/tenant', { concurrency: 3, key: 'acme' })
    await ann.setLimit(github, { concurrency: 0, key: 'r/1' })
    expect(await pawl.limits.get('openai')).toMatchObject({ gate: 'shared/openai', max: 1 })
    const tenant = await pawl.limits.get('job/sync/tenant', { key: 'acme' })
    expect(tenant).toMatchObject({ gate: 'job/sync/tenant/acme', key: 'acme', max: 3 })
    expect(await pawl.limits.get(github, { key: 'r/1' })).toMatchObject({ key: 'r/1', max: 0 })
    const unknown = ann.setLimit('opneai', { concurrency: 1 })
    await expect(unknown).rejects.toMatchObject({ code: 'E_LIMIT_UNKNOWN' })
  })

  it('that two definitions contradict are refused', async () => {
    const other = defineLimit({ name: 'openai', concurrency: 3 })
    const jobs = [
      defineJob({ name: 'a', concurrency: openai }),
      defineJob({ name: 'b', concurrency: other }),
    ]
    await expect(createPawl({ store: 'sqlite::memory:', jobs })).rejects.toThrow(/defined twice/)
  })
})

describe('throttles in a running engine', () => {
  it('let no more start in a period than they allow', async () => {
    const starts: number[] = []
    const call = defineJob({
      name: 'call',
      throttle: { name: 'rps', limit: 5, period: '10s', burst: 2 },
      run: () => {
        starts.push(kit.store.now())
        return null
      },
    })
    const kit = await createTestPawl({ jobs: [call] })
    await using _ = kit
    await kit.pawl.enqueueMany(
      call,
      Array.from({ length: 14 }, () => ({ input: null })),
    )
    await kit.fastForward({ concurrency: 4 })
    expect(starts).toHaveLength(14)
    for (const from of starts) {
      expect(starts.filter((at) => at >= from && at < from + 10_000).length).toBeLessThanOrEqual(5)
    }
    expect((starts.at(-1) as number) - (starts[0] as number)).toBeLessThanOrEqual(30_000)
  })

  it('are closed for all jobs by a handler that is told to wait', async () => {
    const seen: [number, number][] = []
    const call = defineJob({
      name: 'call',
      input: typed<number>(),
      throttle: { name: 'rps', limit: 100, period: '1s' },
      retry: { max: 0 },
      run: ({ input, attempt, throttled }) => {
        seen.push([input, kit.store.now()])
        if (input === 1 && attempt === 1) throw throttled('rps', { retryAfter: '30s' })
        return null
      },
    })
    const kit = await createTestPawl({ jobs: [call] })
    await using _ = kit
    const start = kit.store.now()
    const first = await kit.pawl.enqueue(call, 1)
    await kit.pawl.enqueue(call, 2, { delay: '1s' })
    await kit.fastForward()
    expect(seen.map(([input]) => input)).toEqual([1, 2, 1])
    expect(seen[0]?.[1]).toBeLessThan(start + 1000)
    for (const [, at] of seen.slice(1)) expect(at).toBeGreaterThanOrEqual(start + 30_000)
    const facts = await kit.store.facts(first.id)
    const suspended = facts.find(({ trigger }) => trigger === 'suspend')
    expect(suspended).toMatchObject({ reason: 'throttled', gate: 'rate/call/rps' })
    expect((await kit.store.get(first.id))?.failures).toBe(0)
  })
})

async function keysOf(store: Store, id: string): Promise<string | null | undefined> {
  return (await store.get(id))?.limitKey
}

describe('types', () => {
  it('refuse limits that are used wrongly', () => {
    const uncalled = () => {
      // @ts-expect-error a keyed limit needs a key
      defineJob({ name: 'a', concurrency: github })
      // @ts-expect-error a limit without keys has no `by`
      openai.by((i: Sync) => i.repo)
      defineJob({
        name: 'a',
        input: typed<Sync>(),
        // @ts-expect-error the input has no such field
        concurrency: { limit: github, key: (i) => i.rep },
      })
      defineJob({
        name: 'a',
        input: typed<Sync>(),
        // @ts-expect-error the input has no such field
        concurrency: { name: 'by', key: (i) => i.ten, limit: 1 },
      })
      // @ts-expect-error the function takes another input
      defineJob({ name: 'a', input: typed<string>(), concurrency: github.by((i: Sync) => i.repo) })
      defineJob({ name: 'a', input: typed<Sync>(), concurrency: github.by((i: Sync) => i.repo) })
      defineJob({
        name: 'a',
        throttle: [
          { name: 'tpm', limit: 1, period: '1s' },
          { name: 'user', limit: 1, period: '1s' },
        ],
        run: ({ throttled }) => {
          throttled('tpm', { retryAfter: '1s' })
          throttled('user', { retryAfter: '1s' })
          // @ts-expect-error not a throttle of this job type
          throw throttled('other', { retryAfter: '1s' })
        },
      })
      defineJob({
        name: 'a',
        run: ({ throttled }) => {
          // @ts-expect-error this job type has no throttles
          throw throttled('tpm', { retryAfter: '1s' })
        },
      })
    }
    expect(uncalled).toBeTypeOf('function')
  })
})
