// Rate limits, debounced jobs and singletons through the library, on both databases.
import { CommandInvalid, defineJob, type PawlEvent, RateLimited, typed } from 'pawl'
import { KeyFunctionFailed } from 'pawl/errors'
import { createTestPawl, type TestPawl, type TestPawlOptions } from 'pawl/testing'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { freshStoreDatabase } from '../support/postgres/databases.ts'
import { KeptMetrics } from './logbook.ts'

const timeout = 60_000
const STORES = [
  { name: 'SQLite', place: async () => 'sqlite::memory:' },
  { name: 'PostgreSQL', place: () => freshStoreDatabase() },
]
interface Push {
  readonly repo: string
  readonly commit: number
}
const input = typed<Push>()
const done: Push[] = []
const run = ({ input }: { input: Push }) => {
  done.push(input)
  return input.commit
}

const limited = defineJob({
  ...{ name: 'limited', input, run },
  rateLimit: { limit: 2, period: '1h', key: (i) => i.repo },
})
const debounced = defineJob({
  ...{ name: 'debounced', input, run },
  debounce: { period: '5s', timeout: '8s', key: ({ repo }) => repo },
})
const once = defineJob({ name: 'once', input, singleton: { mode: 'skip' }, run })
const deploy = defineJob({
  ...{ name: 'deploy', input, run },
  singleton: { mode: 'latest', key: (i) => i.repo },
})

describe.each(STORES)('admission on $name', ({ place }) => {
  async function open(options: Partial<TestPawlOptions> = {}): Promise<TestPawl> {
    done.length = 0
    const jobs = [limited, debounced, once, deploy]
    const t = await createTestPawl({ store: await place(), jobs, ...options })
    onTestFinished(() => t.close())
    return t
  }

  it('a rate limit throws, says when to try again, and is counted', { timeout }, async () => {
    const metrics = new KeptMetrics()
    const events: PawlEvent[] = []
    const t = await open({ metrics, onEvent: (event) => events.push(event) })
    const push = (commit: number, repo = 'a') => t.pawl.enqueue(limited, { repo, commit })
    await push(1)
    await push(2)
    const error = await push(3).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RateLimited)
    const { retryAfterMs } = error as RateLimited
    await push(1, 'b')
    await t.advance(retryAfterMs)
    await push(4)
    const results = events.flatMap((event) => (event.type === 'admission' ? [event.result] : []))
    expect(results).toEqual(['created', 'created', 'limited', 'created', 'created'])
    // All of a call or nothing.
    const many = [5, 6].map((commit) => ({ input: { repo: 'c', commit } }))
    await t.pawl.enqueueMany(limited, many)
    const more = [{ input: { repo: 'd', commit: 7 } }, ...many]
    await expect(t.pawl.enqueueMany(limited, more)).rejects.toThrow(RateLimited)
    await t.pawl.enqueueMany(
      limited,
      [more[0], more[0]].flatMap((one) => one ?? []),
    )
  })

  it('a debounced job runs once, with the last input', { timeout }, async () => {
    const t = await open()
    const first = await t.pawl.enqueue(debounced, { repo: 'a', commit: 1 })
    await t.advance('3s')
    const second = await t.pawl.enqueue(debounced, { repo: 'a', commit: 2 })
    expect([second.id, second.created]).toEqual([first.id, false])
    await t.advance('4s')
    await t.drain()
    expect(done).toEqual([])
    await t.pawl.enqueueMany(
      debounced,
      [3, 4].map((commit) => ({ input: { repo: 'a', commit } })),
    )
    await t.advance('1s')
    await t.drain()
    expect(done).toEqual([{ repo: 'a', commit: 4 }])
    expect((await t.pawl.enqueue(debounced, { repo: 'a', commit: 5 })).created).toBe(true)
  })

  it('a singleton runs one at a time, and explain says what a job waits for', {
    timeout,
  }, async () => {
    const t = await open()
    const first = await t.pawl.enqueue(once, { repo: 'a', commit: 1 })
    const again = await t.pawl.enqueue(once, { repo: 'b', commit: 2 })
    expect([again.id, again.created]).toEqual([first.id, false])
    await t.drain()
    expect((await t.pawl.enqueue(once, { repo: 'a', commit: 3 })).created).toBe(true)
    await t.drain()
    const running = await t.pawl.enqueue(deploy, { repo: 'a', commit: 1 })
    const [held] = await t.store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
    const next = await t.pawl.enqueue(deploy, { repo: 'a', commit: 2 })
    const last = await t.pawl.enqueue(deploy, { repo: 'a', commit: 3 })
    expect([next.created, last.created, last.id]).toEqual([true, false, next.id])
    expect(await t.pawl.explain(next.id)).toMatchObject({
      kind: 'waiting',
      says: expect.stringContaining(`until job ${running.id} has ended`),
    })
    done.length = 0
    await t.drain()
    expect(done).toEqual([])
    if (held !== undefined) await t.store.commit(held, () => '1')
    await t.advance('1s')
    // The worker of the first drain releases the job, which is due a millisecond later.
    await t.drain()
    await t.advance('1s')
    await t.drain()
    expect(done).toEqual([{ repo: 'a', commit: 3 }])
    expect((await t.pawl.doctor().check({ full: true })).ok).toBe(true)
  })

  it('a key function that throws or returns no key writes nothing', { timeout }, async () => {
    const t = await open()
    const bad = defineJob({
      ...{ name: 'bad', input, run },
      rateLimit: {
        ...{ limit: 1, period: '1h' },
        key: ({ repo }) => {
          if (repo === 'throw') throw new Error('no such repo')
          return ''
        },
      },
    })
    for (const repo of ['throw', 'empty']) {
      const enqueuing = t.pawl.enqueue(bad, { repo, commit: 1 })
      await expect(enqueuing).rejects.toThrow(KeyFunctionFailed)
    }
    const delayed = t.pawl.enqueue(debounced, { repo: 'a', commit: 1 }, { delay: '1h' })
    await expect(delayed).rejects.toThrow(CommandInvalid)
    expect((await t.store.list({})).items).toEqual([])
    expect(await t.store.admissions.list(undefined, 10)).toEqual([])
  })
})

describe('the options of admission', () => {
  const refused = [
    [{ rateLimit: { limit: 0, period: '1h' } }, /rateLimit\.limit/],
    [{ rateLimit: { limit: 1, period: 0 } }, /rateLimit\.period/],
    [{ rateLimit: { limit: 1, period: 'soon' } }, /rateLimit\.period/],
    [{ rateLimit: { period: '1h' } }, /rateLimit\.limit/],
    [{ rateLimit: { limit: 1, period: '1h', burst: 2 } }, /rateLimit\.burst/],
    [{ debounce: { period: '0s' } }, /debounce\.period/],
    [{ debounce: { period: '2s', timeout: '1s' } }, /debounce\.timeout/],
    [{ singleton: { mode: 'first' } }, /singleton\.mode/],
    [{ singleton: {} }, /singleton\.mode/],
    [{ singleton: { mode: 'skip', key: 'repo' } }, /singleton\.key/],
    [{ debounce: { period: '1s' }, singleton: { mode: 'skip' } }, /together with singleton/],
  ] as const
  it.each(refused)('are refused if they make no sense: %j', (options, why) => {
    expect(() => defineJob({ name: 'a', ...(options as object) })).toThrow(why)
  })

  it('are typed by the input, and exclude each other', () => {
    const name = 'typed'
    defineJob({
      name,
      input,
      debounce: {
        period: '1s',
        key: (i) => {
          expectTypeOf(i).toEqualTypeOf<Push>()
          return i.repo
        },
      },
    })
    // @ts-expect-error the input has no such field
    defineJob({ name, input, singleton: { mode: 'skip', key: (i) => i.nothing } })
    // @ts-expect-error a key is a string
    defineJob({ name, input, rateLimit: { limit: 1, period: '1h', key: (i) => i.commit } })
    // @ts-expect-error a period is a number or a text with a unit
    expect(() => defineJob({ name, rateLimit: { limit: 1, period: 'an hour' } })).toThrow()
    const both = { debounce: { period: '1s' }, singleton: { mode: 'skip' } } as const
    // @ts-expect-error debounce and singleton exclude each other
    expect(() => defineJob({ name, ...both })).toThrow()
  })
})
