// Options of the library: what is unknown or cannot be meant is refused, and nothing is ignored.
import { createTestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'
import { defineLifecycle } from '../../src/core/lifecycles/lifecycle.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

const echo = defineJob({ name: 'echo', run: ({ input }) => input })

async function open() {
  const test = await createTestPawl({ jobs: [echo] })
  onTestFinished(() => test.close())
  return test.pawl
}

describe('an option', () => {
  it('of createPawl that is unknown or cannot be is refused before it opens', async () => {
    const bad: object[] = [
      { job: [echo] },
      { jobs: echo },
      { store: 5 },
      { store: undefined },
      { queues: [] },
      { queues: { mail: { depth: 3 } } },
      { onEvent: 'log' },
      { onFindings: 'ignore' },
      { notify: { url: 'https://x.test', secret: 'x'.repeat(16), secrt: 1 } },
    ]
    for (const options of bad) {
      const opened = createPawl({ store: 'sqlite::memory:', ...options } as never)
      await expect(opened, JSON.stringify(options)).rejects.toMatchObject({
        code: expect.stringMatching(/^E_(COMMAND|DEFINITION)_INVALID$/),
      })
    }
  })

  it('of work that is unknown or cannot be is refused', async () => {
    const pawl = await open()
    const bad: [object, string][] = [
      [{ queues: [] }, '"queues" must not be empty'],
      [{ queues: 'mail' }, '"queues" must be an array'],
      [{ queues: [5] }, '"queues" must be a string'],
      [{ queue: 'mail' }, '"queue" is not known; known fields: id, jobs, concurrency'],
      [{ lease: 10 }, '"lease" must be 500 ms or longer'],
      [{ lease: '499ms' }, '"lease" must be 500 ms or longer'],
      [{ concurency: 5 }, '"concurency" is not known'],
      [{ effects: { concurency: 5 } }, '"effects.concurency" is not known'],
      [{ onEvent: {} }, '"onEvent" must be a function'],
      [{ id: 7 }, '"id" must be a string'],
    ]
    for (const [options, message] of bad) {
      await expect(pawl.work(options), message).rejects.toThrow(message)
    }
  })

  it('of a job that is enqueued says what it must be, and never replaces the input', async () => {
    const pawl = await open()
    const bad: [object, string][] = [
      [{ tags: 'x' }, '"tags" must be an array'],
      [{ tags: [5] }, '"tags" must be a string'],
      [{ tags: { length: 1 } }, '"tags" must be an array'],
      [{ key: 5 }, '"key" must be a string'],
      [{ key: '' }, '"key" must not be empty'],
      [{ input: 'other' }, '"input" is not known'],
      [{ dealy: 5 }, '"dealy" is not known'],
      [{ runAt: 5 }, '"runAt" must be a valid Date'],
      [{ deadline: new Date(Number.NaN) }, '"deadline" must be a valid Date'],
      [{ hold: 'yes' }, '"hold" must be true or false'],
      [{ onConflict: 'ignore' }, '"onConflict" must be one of existing, replace, reject'],
      [{ priority: '5' }, '"priority" must be a whole number'],
      [{ jobId: 5 }, '"jobId" must be a UUID'],
    ]
    for (const [options, message] of bad) {
      await expect(pawl.enqueue(echo, 1, options), message).rejects.toThrow(message)
    }
    const many = pawl.enqueueMany(echo, [{ input: 1, tx: {} } as never])
    await expect(many).rejects.toThrow('"tx" is not known')
    await expect(pawl.enqueueMany(echo, [], { key: 'x' } as never)).rejects.toThrow('not known')
    expect((await pawl.store.counts()).lanes.ready).toBe(0)
    const { id } = await pawl.enqueue(echo, 1)
    await expect(pawl.job(id).result({ timout: 5 } as never)).rejects.toThrow(
      '"timout" is not known',
    )
  })

  it('of a definition that is unknown is refused', () => {
    const bad: [object, string][] = [
      [
        { retires: 3 },
        'Invalid definition of job type "x": retires: is not known; known fields: name, queue',
      ],
      [
        { retry: { delayMs: 5 } },
        'Invalid definition of job type "x": retry.delayMs: is not known',
      ],
      [{ retry: 5 }, 'Invalid definition of job type "x": retry: must be an object'],
      [{ effects: { mail: { deliver() {}, timout: 5 } } }, 'effects.mail.timout'],
      [{ run: 'code' }, 'Invalid definition of job type "x": run: must be a function'],
      [{ lifecycle: 'standard' }, 'job type "x": lifecycle: must be a lifecycle, not the name'],
    ]
    for (const [options, message] of bad) {
      expect(() => defineJob({ name: 'x', ...options } as never), message).toThrow(message)
    }
    const effect = { effect: {} } as never
    expect(() => echo.implement(() => 1, effect)).toThrow(
      'Invalid definition of effect: is not known',
    )
  })

  it('of the doctor and of retention that is unknown is refused', async () => {
    const pawl = await open()
    expect(() => pawl.doctor({ run: [] } as never)).toThrow('"run" is not known')
    const bad = { endedBefore: 1, limit: 1, archiv: () => {} } as never
    await expect(pawl.store.prune(bad)).rejects.toThrow('"archiv" is not known')
    await expect(pawl.store.prune({ limit: 1 } as never)).rejects.toThrow('"endedBefore"')
  })
})

describe('an operator', () => {
  it('is refused what belongs to no verb, and nothing is changed', async () => {
    const pawl = await open()
    const { id } = await pawl.enqueue(echo, 1)
    const ada = pawl.operator({ name: 'ada', reason: 'INC-7' })
    const typo = { dryrun: true } as never
    await expect(ada.cancel(id, typo)).rejects.toThrow('"dryrun" is not known')
    const migration = { lifecycle: 'standard', to: 1 }
    await expect(ada.migrate(migration, typo)).rejects.toThrow('"dryrun" is not known')
    const limited = { ...migration, limit: 1 } as never
    await expect(ada.migrate(limited)).rejects.toThrow('"limit" is not known')
    const dry = { actor: 'client', dryRun: true } as never
    await expect(pawl.job(id).cancel(dry)).rejects.toThrow('"dryRun" is not known')
    await expect(pawl.pauseQueue('default', dry)).rejects.toThrow('"dryRun" is not known')
    await expect(pawl.resumeQueue('default', dry)).rejects.toThrow('"dryRun" is not known')
    await expect(pawl.limitQueue('default', {}, dry)).rejects.toThrow('"dryRun" is not known')
    expect(await pawl.job(id).get()).toMatchObject({ state: 'queued' })
  })

  it('meets the same refusal in a dry run of one job as without it', async () => {
    const pawl = await open()
    const { id } = await pawl.enqueue(echo, 1)
    const ada = pawl.operator({ name: 'ada', reason: 'INC-7' })
    for (const options of [{ dryRun: true }, {}]) {
      const absent = ada.cancel('0198a1b2-0000-7000-8000-000000000001', options)
      await expect(absent).rejects.toMatchObject({ code: 'E_JOB_NOT_FOUND' })
      await expect(ada.copy(id, options)).rejects.toMatchObject({ code: 'E_JOB_NOT_ENDED' })
      expect(await ada.copy({ ids: [id] }, options)).toMatchObject({ refused: 1 })
    }
  })

  it('without a name is refused, for every verb', async () => {
    const pawl = await open()
    const { id } = await pawl.enqueue(echo, 1)
    for (const name of ['', '  ', undefined]) {
      const identity = { name, reason: 'INC-7' } as never
      expect(() => pawl.operator(identity)).toThrow('must not be empty')
      const requester = { actor: 'operator', operator: name, note: 'INC-7' } as never
      if (name === undefined) continue
      await expect(pawl.job(id).cancel(requester)).rejects.toThrow('must not be empty')
      await expect(pawl.pauseQueue('default', requester)).rejects.toThrow('must not be empty')
    }
    const nobody = { actor: 'operator', note: 'INC-7' } as never
    await expect(pawl.pauseQueue('default', nobody)).rejects.toThrow('must not be empty')
    expect(await pawl.job(id).get()).toMatchObject({ state: 'queued' })
  })
})

describe('a state in a filter', () => {
  const own = defineLifecycle({
    name: 'brew',
    version: 1,
    initial: 'cold',
    states: {
      cold: { role: 'ready', meaning: 'To be brewed.' },
      hot: { role: 'held', meaning: 'Being brewed.' },
      drunk: { role: 'succeeded', meaning: 'Done.' },
      spilt: { role: 'failed', meaning: 'Given up.' },
    },
    edges: [
      { from: 'cold', to: 'hot', on: ['claim', 'cancel'] },
      { from: 'hot', to: 'drunk', on: ['succeed'] },
      { from: 'hot', to: 'cold', on: ['expire', 'release'] },
      { from: 'hot', to: 'spilt', on: ['fail', 'give-up', 'reject', 'cancel'] },
    ],
  })

  it('that no lifecycle has is refused, and one of another process is known', async () => {
    const store = await openSqliteStore({ path: ':memory:', lifecycles: [...LIFECYCLES, own] })
    onTestFinished(() => store.close())
    const pawl = await createPawl({ store })
    await pawl.enqueue(echo, 1)
    const ada = pawl.operator({ name: 'ada', reason: 'INC-7' })
    const wrong = /must be a state of a lifecycle, one of .*cancelled, cold, created/
    await expect(pawl.store.list({ state: 'cancelld' })).rejects.toThrow(wrong)
    await expect(ada.cancel({ filter: { state: 'cancelld' } })).rejects.toThrow(wrong)
    await expect(pawl.audit({ toState: 'cancelld' }).next()).rejects.toThrow(wrong)
    await expect(pawl.audit({ fromState: 'cancelld' }).next()).rejects.toThrow(wrong)
    expect(await pawl.store.list({ state: 'cold' })).toMatchObject({ items: [] })
    expect(await pawl.store.list({ state: 'queued' })).toMatchObject({ items: [{}] })
  })
})

describe('a store', () => {
  it('refuses options that it does not have, before it opens anything', async () => {
    const unknown = { code: 'E_COMMAND_INVALID', message: /is not known; known fields:/ }
    const bad = { path: ':memory:', timeoutMs: 5, connections: 3 } as never
    await expect(openSqliteStore(bad)).rejects.toMatchObject(unknown)
    const other = { connectionString: 'postgres://127.0.0.1:1/none', busyTimeoutMs: 5 } as never
    await expect(openPostgresStore(other)).rejects.toMatchObject(unknown)
    const wrong = openSqliteStore({ path: ':memory:', durability: 'none' as never })
    await expect(wrong).rejects.toThrow('"durability" must be one of full, relaxed')
  })
})

describe('a counter', () => {
  it('may have the name of something that every object has', async () => {
    const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty']
    const counting = defineJob({
      name: 'counting',
      run: ({ count }) => {
        for (const name of [...names, ...names]) count(name)
      },
    })
    const test = await createTestPawl({ jobs: [counting] })
    onTestFinished(() => test.close())
    const { id } = await test.pawl.enqueue(counting, null)
    await test.drain()
    const usage = (await test.pawl.store.facts(id)).at(-1)?.usage ?? {}
    expect(Object.entries(usage)).toEqual(names.map((name) => [name, 2]))
  })
})
