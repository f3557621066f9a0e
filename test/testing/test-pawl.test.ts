// The test kit as its users use it: jobs of their own, and a test that owns the time.
import { createPawl, defineJob, RetryAfter, Terminal, typed } from 'pawl'
import { task } from 'pawl/rules'
import { createTestPawl, DrainStuck, type TestPawlOptions } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { brokenPromises } from '../processes/inspect.ts'

const NOTHING_RAN = {
  ...{ succeeded: [], failed: [], cancelled: [], parked: [], delivering: [], waiting: [] },
  ...{ held: [], attempts: [], failures: [] },
}

const echo = defineJob({ name: 'echo', input: typed<unknown>(), run: ({ input }) => input })
const fails = defineJob({
  name: 'fails',
  retry: { max: 2, delay: '10s', jitter: 0 },
  run: ({ attempt }) => {
    throw new Error(`try ${attempt}`)
  },
})

async function opened(options: TestPawlOptions) {
  const test = await createTestPawl(options)
  onTestFinished(async () => {
    expect(await brokenPromises(test.store)).toEqual([])
    await test.close()
  })
  return test
}

describe('drain', () => {
  it('runs nothing before it is called, and everything that is ready when it is', async () => {
    const ran: unknown[] = []
    const job = defineJob({ name: 'job', run: ({ input }) => void ran.push(input) })
    const test = await opened({ jobs: [job] })
    const handles = await test.pawl.enqueueMany(
      job,
      Array.from({ length: 30 }, (_, n) => ({ input: n, priority: n % 2 })),
    )
    expect(ran).toEqual([])
    const { succeeded, attempts } = await test.drain()
    const evenFirst = [...ran].map(Number)
    expect(evenFirst).toEqual([...evenFirst].sort((a, b) => (a % 2) - (b % 2) || a - b))
    expect(succeeded).toEqual(evenFirst.map((n) => handles[n]?.id))
    expect(attempts).toHaveLength(30)
    expect(await test.drain()).toEqual(NOTHING_RAN)
  })

  it('also runs what its jobs enqueue', async () => {
    const child = defineJob({ name: 'child', run: () => 'grown' })
    const parent = defineJob({
      name: 'parent',
      run: async () => (await test.pawl.enqueue(child, null, { key: 'only' })).id,
    })
    const test = await opened({ jobs: [parent, child] })
    const job = await test.pawl.enqueue(parent, null)
    const { succeeded, attempts } = await test.drain()
    expect(attempts.map(({ type, attempt }) => [type, attempt])).toEqual([
      ['parent', 1],
      ['child', 1],
    ])
    expect(succeeded).toHaveLength(2)
    expect(await job.result()).toMatchObject({ kind: 'succeeded', output: succeeded[1] })
  })

  it('tells where each job is that it worked on', async () => {
    const fatal = defineJob({
      name: 'fatal',
      run: () => {
        throw new Terminal('never')
      },
    })
    const picky = defineJob({ name: 'picky', input: numberOnly, run: () => null })
    const test = await opened({ jobs: [echo, fails, fatal, picky] })
    const good = await test.pawl.enqueue(echo, 1)
    const retried = await test.pawl.enqueue(fails, null)
    const dead = await test.pawl.enqueue(fatal, null)
    const bad = await enqueueUnchecked(test.store)
    expect(await test.drain()).toEqual({
      ...NOTHING_RAN,
      succeeded: [good.id],
      waiting: [retried.id],
      failed: [dead.id],
      parked: [bad],
      attempts: [
        { jobId: good.id, type: 'echo', attempt: 1 },
        { jobId: retried.id, type: 'fails', attempt: 1 },
        { jobId: dead.id, type: 'fatal', attempt: 1 },
        { jobId: bad, type: 'picky', attempt: 1 },
      ],
      failures: [retried.id, dead.id, bad].map((jobId) => expect.objectContaining({ jobId })),
    })
  })

  it('runs as many at once as it is told to, and one after the other unless it is', async () => {
    let running = 0
    let most = 0
    const job = defineJob({
      name: 'job',
      run: async () => {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => setImmediate(resolve))
        running--
      },
    })
    const test = await opened({ jobs: [job] })
    const inputs = Array.from({ length: 6 }, () => ({ input: null }))
    await test.pawl.enqueueMany(job, inputs)
    await test.drain()
    expect(most).toBe(1)
    await test.pawl.enqueueMany(job, inputs)
    await test.drain({ concurrency: 3 })
    expect(most).toBe(3)
  })

  it('takes from the queues that it is told to, and leaves paused ones alone', async () => {
    const mail = defineJob({ name: 'mail', queue: 'mail', run: () => null })
    const test = await opened({ jobs: [echo, mail] })
    const letter = await test.pawl.enqueue(mail, null)
    const other = await test.pawl.enqueue(echo, 1)
    expect((await test.drain({ queues: ['mail'] })).succeeded).toEqual([letter.id])
    await test.pawl.pauseQueue('default')
    expect(await test.drain()).toEqual(NOTHING_RAN)
    await test.pawl.resumeQueue('default')
    expect((await test.drain()).succeeded).toEqual([other.id])
  })

  it('leaves jobs alone whose code is not here, and refuses to work without any', async () => {
    const elsewhere = defineJob({ name: 'elsewhere' })
    const test = await opened({ jobs: [echo, elsewhere] })
    await test.pawl.enqueue(elsewhere, null)
    expect(await test.drain()).toEqual(NOTHING_RAN)
    const none = await opened({ jobs: [elsewhere] })
    await expect(none.drain()).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    await expect(none.drain()).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
  })

  it('waits for handlers that wait for the real world', async () => {
    const job = defineJob({
      name: 'job',
      run: async () => (await import('node:fs/promises')).readFile('package.json', 'utf8'),
    })
    const test = await opened({ jobs: [job] })
    const handle = await test.pawl.enqueue(job, null)
    expect((await test.drain()).succeeded).toEqual([handle.id])
  })

  it('says which job does not end, and lets the test go on', async () => {
    const job = defineJob({ name: 'job', run: () => new Promise<never>(() => {}) })
    const test = await opened({ jobs: [job, echo] })
    const { id } = await test.pawl.enqueue(job, null)
    const error = await test.drain({ patience: 50 }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(DrainStuck)
    expect(error).toMatchObject({ details: { jobIds: [id] } })
    const other = await test.pawl.enqueue(echo, 1)
    expect((await test.drain()).succeeded).toEqual([other.id])
  })

  it('says so as well of a handler that does not end in its commit', async () => {
    const job = defineJob({
      name: 'job',
      run: ({ commit }) => commit(() => new Promise<never>(() => {})),
    })
    const test = await opened({ jobs: [job] })
    const { id } = await test.pawl.enqueue(job, null)
    await expect(test.drain({ patience: 50 })).rejects.toMatchObject({ details: { jobIds: [id] } })
    expect(await test.store.get(id)).toMatchObject({ state: 'running' })
  })

  it('gives up on jobs that enqueue each other without end', async () => {
    const key = defineJob({ name: 'job' })
    const job = key.implement(async () => void (await test.pawl.enqueue(key, null)))
    const test = await opened({ jobs: [job] })
    await test.pawl.enqueue(job, null)
    await expect(test.drain({ attemptsMax: 50 })).rejects.toThrow('50 attempts')
    await test.pawl.pauseQueue('default')
    expect(await test.drain()).toEqual(NOTHING_RAN)
  })

  it('also finds jobs whose hints its worker has not received', async () => {
    const child = defineJob({ name: 'child', run: () => null })
    const parent = defineJob({
      name: 'parent',
      run: async () => {
        await test.pawl.enqueue(child, null)
      },
    })
    const test = await opened({
      jobs: [parent, child],
      wrap: (store) =>
        new Proxy(store, {
          get(target, name: keyof Store) {
            const value: unknown = target[name]
            if (name === 'onWake') return () => () => {}
            return typeof value === 'function' ? value.bind(target) : value
          },
        }),
    })
    await test.pawl.enqueue(parent, null)
    expect((await test.drain()).succeeded).toHaveLength(2)
  })

  it('does not run beside another one', async () => {
    const test = await opened({ jobs: [echo] })
    const first = test.drain()
    await expect(test.drain()).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    expect(await first).toEqual(NOTHING_RAN)
  })
})

describe('advance', () => {
  it('lets a delayed job become ready at its time, and not before', async () => {
    const test = await opened({ jobs: [echo] })
    const { id } = await test.pawl.enqueue(echo, 1, { delay: '1h' })
    await test.advance('59m')
    await test.advance(59_999)
    expect(await test.drain()).toEqual(NOTHING_RAN)
    await test.advance(1)
    expect((await test.store.get(id))?.state).toBe('queued')
    expect((await test.drain()).succeeded).toEqual([id])
  })

  it('lets retries become ready, each at its time', async () => {
    const test = await opened({ jobs: [fails] })
    const { id } = await test.pawl.enqueue(fails, null)
    for (const attempt of [1, 2]) {
      const drained = await test.drain()
      expect(drained.attempts.map((one) => one.attempt)).toEqual([attempt])
      expect(drained.waiting).toEqual([id])
      await test.advance(9999)
      expect(await test.drain()).toEqual(NOTHING_RAN)
      await test.advance(1)
    }
    expect((await test.drain()).parked).toEqual([id])
  })

  it('lets a job be taken back whose lease has run out', async () => {
    const test = await opened({ jobs: [echo] })
    const { id } = await test.pawl.enqueue(echo, 1)
    await test.store.claim({ worker: 'gone', limit: 1, leaseMs: 30_000, start: true })
    await test.advance(29_999)
    expect((await test.store.get(id))?.state).toBe('running')
    await test.advance(1)
    expect((await test.store.get(id))?.state).toBe('retrying')
  })

  it('passes the time of a handler that runs, and its time-out comes', async () => {
    const reasons: unknown[] = []
    const job = defineJob({
      name: 'slow',
      timeout: '45s',
      run: ({ signal }) =>
        new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push((signal.reason as { code?: string }).code)
            reject(signal.reason)
          })
        }),
    })
    const test = await opened({ jobs: [job] })
    const { id } = await test.pawl.enqueue(job, null)
    const draining = test.drain()
    await test.advance(44_999)
    // The lease of 30 seconds was renewed on the way.
    expect(await test.store.get(id)).toMatchObject({ state: 'running', attempt: 1, crashes: 0 })
    expect(reasons).toEqual([])
    await test.advance(1)
    expect((await draining).waiting).toEqual([id])
    expect(reasons).toEqual(['E_ATTEMPT_TIMEOUT'])
    expect(await test.store.get(id)).toMatchObject({ failures: 1, error: { kind: 'timeout' } })
  })

  it('does not wait for a commit that waits for the test', async () => {
    let release: (value: string) => void = () => {}
    const released = new Promise<string>((resolve) => {
      release = resolve
    })
    const job = defineJob({ name: 'job', run: ({ commit }) => commit(() => released) })
    const test = await opened({ jobs: [job] })
    const handle = await test.pawl.enqueue(job, null)
    const draining = test.drain()
    await test.advance('1s')
    release('late, but in time')
    expect((await draining).succeeded).toEqual([handle.id])
  })

  it('refuses to go back', async () => {
    const test = await opened({ jobs: [echo] })
    await expect(test.advance(-1)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
  })
})

describe('fastForward', () => {
  it('goes from one due time to the next until every job has come out', async () => {
    const later = defineJob({
      name: 'later',
      retry: { max: 3 },
      run: ({ attempt }) => {
        if (attempt < 3) throw new RetryAfter(3_600_000)
        return attempt
      },
    })
    const test = await opened({ jobs: [echo, fails, later] })
    const start = test.store.now()
    const plain = await test.pawl.enqueue(echo, 1, { delay: '2d' })
    const failing = await test.pawl.enqueue(fails, null)
    const examined = await test.pawl.enqueue(later, null)
    const drained = await test.fastForward()
    expect(drained.attempts.filter(({ type }) => type === 'fails')).toHaveLength(3)
    expect(drained.attempts.filter(({ type }) => type === 'later')).toHaveLength(3)
    expect(drained).toMatchObject({ succeeded: [examined.id, plain.id], parked: [failing.id] })
    expect(test.store.now() - start).toBe(2 * 86_400_000)
  })
})

describe('fastForward, where something is due that nobody here can run', () => {
  it('comes to an end', async () => {
    const test = await opened({ jobs: [echo] })
    const { id } = await test.pawl.enqueue(echo, 1)
    let asked = 0
    const nextDue = async () => {
      asked++
      return test.store.now()
    }
    Object.assign(test.store, { nextDue })
    expect((await test.fastForward()).succeeded).toEqual([id])
    expect(asked).toBeLessThan(20)
  })
})

describe('enqueued', () => {
  it('lists the inputs of a kind of job in order, whatever became of them', async () => {
    const other = defineJob({ name: 'other', input: typed<string>(), run: () => null })
    const test = await opened({ jobs: [echo, other] })
    expect(await test.enqueued(echo)).toEqual([])
    for (let n = 0; n < 3; n++) await test.pawl.enqueue(echo, { n })
    await test.pawl.enqueue(other, 'not one of them')
    await test.drain()
    const held = await test.pawl.enqueue(echo, { n: 3 }, { delay: '1h' })
    await held.cancel()
    expect(await test.enqueued(echo)).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }])
    expect(await test.enqueued(other)).toEqual(['not one of them'])
  })
})

describe('query', () => {
  it('makes tables for commits and sees what they wrote', async () => {
    const invoice = defineJob({
      name: 'invoice',
      input: typed<{ order: number }>(),
      run: ({ input, commit }) =>
        commit(async (tx) => {
          await tx.query('INSERT INTO invoices VALUES (?)', [input.order])
          return 'sent'
        }),
    })
    const test = await opened({ jobs: [invoice] })
    await test.query('CREATE TABLE invoices (order_id INTEGER NOT NULL)')
    await test.pawl.enqueue(invoice, { order: 7 })
    await test.drain()
    expect(await test.query('SELECT order_id FROM invoices')).toStrictEqual([{ order_id: 7 }])
    expect(await test.query('SELECT ? AS n', [3])).toEqual([{ n: 3 }])
  })

  it('does not see what a commit may yet roll back', async () => {
    const seen: unknown[] = []
    const job = defineJob({
      name: 'job',
      retry: { max: 0 },
      run: ({ commit }) =>
        commit(async (tx) => {
          await tx.query('INSERT INTO rows_of_mine VALUES (1)')
          looking = test.query('SELECT * FROM rows_of_mine').catch((error) => seen.push(error.code))
          await new Promise<void>((resolve) => setImmediate(resolve))
          throw new Error('no')
        }),
    })
    let looking: Promise<unknown> | undefined
    const test = await opened({ jobs: [job] })
    await test.query('CREATE TABLE rows_of_mine (n INTEGER)')
    await test.pawl.enqueue(job, null)
    const outside = test.query('SELECT * FROM rows_of_mine')
    await test.drain()
    await looking
    expect(await outside).toEqual([])
    expect(seen).toEqual(['E_USE_TX'])
    expect(await test.query('SELECT * FROM rows_of_mine')).toEqual([])
  })
})

describe('a test Pawl', () => {
  it('plays the same again, ids, delays and all', async () => {
    const ledgers = await Promise.all([play(1), play(1), play(2)])
    expect(ledgers[0]).toEqual(ledgers[1])
    expect(ledgers[0]).not.toEqual(ledgers[2])
  })

  it('begins at the time that it is given', async () => {
    const start = Date.UTC(2030, 5, 1)
    const test = await opened({ jobs: [echo], start })
    expect(test.store.now()).toBe(start)
    const handle = await test.pawl.enqueue(echo, 1)
    expect((await handle.get()).createdAt).toBe(start)
  })

  it('takes the options of Pawl, for its store and for its workers', async () => {
    const lines: string[] = []
    const log = (_fields: unknown, message: string) => void lines.push(message)
    const logger = { debug: log, info: log, warn: log, error: log }
    const test = await opened({ jobs: [echo], logger, payloadBytesMax: 20 })
    const tooLong = test.pawl.enqueue(echo, 'x'.repeat(30))
    await expect(tooLong).rejects.toMatchObject({ code: 'E_VALUE_INVALID' })
    await test.drain()
    expect(lines).not.toEqual([])
  })

  it('can have something between Pawl and its store', async () => {
    let refusals = 0
    const test = await opened({
      jobs: [echo],
      wrap: (store) =>
        new Proxy(store, {
          get(target, name: keyof Store) {
            const value: unknown = target[name]
            if (typeof value !== 'function') return value
            if (name !== 'settle' || refusals > 0) return value.bind(target)
            return async () => {
              refusals++
              throw new StoreUnavailable(0, 'away')
            }
          },
        }),
    })
    const { id } = await test.pawl.enqueue(echo, 1)
    const draining = test.drain()
    await test.advance('5s')
    expect((await draining).succeeded).toEqual([id])
    expect(refusals).toBe(1)
  })

  it('knows the lifecycles of its jobs, and can have workers that run on', async () => {
    const job = defineJob({ name: 'a task', lifecycle: task, run: () => 'done' })
    const test = await opened({ jobs: [job] })
    await test.pawl.work()
    const handle = await test.pawl.enqueue(job, null, { delay: '1m' })
    expect(await test.finish(handle.result())).toMatchObject({ job: { state: 'done' } })
    await expect(test.until(() => false, 1)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
  })

  it('is closed with everything that works on it', async () => {
    const test = await createTestPawl({ jobs: [echo] })
    await test.pawl.work()
    await test.close()
    await expect(test.pawl.enqueue(echo, 1)).rejects.toMatchObject({ code: 'E_STORE_CLOSED' })
  })
})

/** The ledger of a job that is retried with jitter. */
async function play(seed: number) {
  const job = defineJob({
    name: 'job',
    retry: { max: 2, delay: '1s', backoff: 'exponential', jitter: 0.5 },
    run: ({ attempt }) => {
      throw new Error(`try ${attempt}`)
    },
  })
  const test = await opened({ jobs: [job], seed })
  const { id } = await test.pawl.enqueue(job, null)
  await test.fastForward()
  return test.store.facts(id)
}

const numberOnly = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) =>
      typeof value === 'number' ? { value } : { issues: [{ message: 'no number' }] },
  },
} as const

/** A job with an input that was accepted when its schema was another one. */
async function enqueueUnchecked(store: Store): Promise<string> {
  const earlier = defineJob({ name: 'picky' })
  const pawl = await createPawl({ store, jobs: [earlier] })
  return (await pawl.enqueue(earlier, 'text')).id
}
