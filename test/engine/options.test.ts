// Options of the library: what is unknown or cannot be meant is refused, and nothing is ignored.
import { createTestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'

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
      [{ queues: 'mail' }, '"queues" must be a list'],
      [{ queues: [5] }, '"queues" must be a text'],
      [{ queue: 'mail' }, '"queue" is not known; known are id, jobs, concurrency'],
      [{ lease: 10 }, '"lease" must be 500 ms or longer'],
      [{ lease: '499ms' }, '"lease" must be 500 ms or longer'],
      [{ concurency: 5 }, '"concurency" is not known'],
      [{ effects: { concurency: 5 } }, '"effects.concurency" is not known'],
      [{ onEvent: {} }, '"onEvent" must be a function'],
      [{ id: 7 }, '"id" must be a text'],
    ]
    for (const [options, message] of bad) {
      await expect(pawl.work(options), message).rejects.toThrow(message)
    }
  })

  it('of a job that is enqueued says what it must be, and never replaces the input', async () => {
    const pawl = await open()
    const bad: [object, string][] = [
      [{ tags: 'x' }, '"tags" must be a list'],
      [{ tags: [5] }, '"tags" must be a text'],
      [{ tags: { length: 1 } }, '"tags" must be a list'],
      [{ key: 5 }, '"key" must be a text'],
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
      [{ retires: 3 }, 'retires cannot be defined so: is not known; known are name, queue'],
      [{ retry: { delayMs: 5 } }, 'retry.delayMs cannot be defined so: is not known'],
      [{ retry: 5 }, 'retry cannot be defined so: must be an object'],
      [{ effects: { mail: { deliver() {}, timout: 5 } } }, 'effects.mail.timout'],
      [{ run: 'code' }, 'run cannot be defined so: must be a function'],
      [{ lifecycle: 'standard' }, 'lifecycle cannot be defined so: must be an object'],
    ]
    for (const [options, message] of bad) {
      expect(() => defineJob({ name: 'x', ...options } as never), message).toThrow(message)
    }
    const effect = { effect: {} } as never
    expect(() => echo.implement(() => 1, effect)).toThrow(
      'effect cannot be defined so: is not known',
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
