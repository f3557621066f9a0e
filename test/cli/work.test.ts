// `pawl work` and `pawl demo`: users' own files of jobs, in real processes that get real signals.
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Job } from '../../src/core/job/job.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { startPostgres } from '../support/postgres/server.ts'
import { ended, linesOf, Place, said } from './pawl.ts'

const JOBS = `
import { defineJob, Terminal, typed } from 'pawl'

enum Greeting { Hello = 'hello' }

export const greet = defineJob({
  name: 'greet',
  queue: 'desk',
  input: typed<{ name: string }>(),
  run: ({ input }): string => {
    if (input.name === 'nobody') throw new Terminal('there is nobody')
    return Greeting.Hello + ' ' + input.name
  },
})

/** Goes on until it is told to stop. */
export const slow = defineJob({
  name: 'slow',
  queue: 'slow',
  run: ({ signal, progress }) =>
    new Promise((resolve, reject) => {
      progress('running')
      signal.addEventListener('abort', () => reject(signal.reason))
      if (process.env.QUICK) setTimeout(resolve, 300)
    }),
})
`

interface Event {
  readonly event: string
  readonly jobId: string
  readonly state: string
  readonly type: string
}

/** A place with a file of jobs. */
function placeWith(jobs = JOBS, name = 'jobs.ts'): Place {
  const place = new Place()
  writeFileSync(join(place.folder, name), jobs)
  return place
}

describe('pawl work while its database is away', () => {
  /** A server that is down, and a place that names it. */
  async function placeOfServer() {
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    await server.kill9()
    const place = new Place(server.url)
    writeFileSync(join(place.folder, 'jobs.ts'), JOBS)
    return { server, place }
  }

  it('prints that, waits, and continues when the database can be reached', {
    timeout: 60_000,
  }, async () => {
    const { server, place } = await placeOfServer()
    const child = place.start(['work', '--jobs', 'jobs.ts'])
    const away = await said(child.stderr, /Waiting for the store: .*\n/)
    expect(away).toContain(`ECONNREFUSED 127.0.0.1:${server.port}`)
    await server.restart()
    await said(child.stderr, /^Worker /)
    const done = said(child.stdout, /greet succeeded/)
    const end = ended(child)
    await place.ok('job', 'enqueue', 'greet', '{"name":"ada"}', '--jobs', 'jobs.ts')
    await done
    child.kill('SIGTERM')
    expect(await end).toMatchObject({ code: 0 })
  })

  it('ends at once with exit code 0 after a signal', { timeout: 60_000 }, async () => {
    const { place } = await placeOfServer()
    const child = place.start(['work', '--jobs', 'jobs.ts', '--json'])
    const event = await said(child.stdout, /"event":"connection".*\n/)
    expect(linesOf(event)[0]).toMatchObject({ state: 'Connecting', code: 'E_STORE_UNAVAILABLE' })
    const start = performance.now()
    const end = ended(child)
    child.kill('SIGTERM')
    expect(await end).toMatchObject({ code: 0 })
    expect(performance.now() - start).toBeLessThan(3000)
  })

  it('fails with --once and with --no-wait', { timeout: 60_000 }, async () => {
    const { place } = await placeOfServer()
    const runs = ['--once', '--no-wait'].map((flag) =>
      place.run(['work', '--jobs', 'jobs.ts', flag]),
    )
    for (const { code, stderr } of await Promise.all(runs)) {
      expect([code, stderr]).toEqual([1, expect.stringMatching(/ECONNREFUSED.*UNAVAILABLE/s)])
    }
  })
})

describe('pawl work', () => {
  it('--once does what is ready and ends', async () => {
    const place = placeWith()
    const names = ['ada', 'nobody', 'bob']
    for (const name of names) {
      await place.ok('job', 'enqueue', 'greet', JSON.stringify({ name }), '--jobs', 'jobs.ts')
    }
    const later = await place.ok(
      'job',
      'enqueue',
      'greet',
      '{}',
      '--delay',
      '1h',
      '--queue',
      'desk',
    )
    const line = ['work', '--jobs', 'jobs.ts', '--once', '--concurrency', '1']
    const { code, stdout, stderr } = await place.run(line)
    expect(code).toBe(0)
    expect(stdout.match(/greet succeeded in attempt 1/g)).toHaveLength(2)
    expect(stdout).toMatch(/greet failed in attempt 1 {2}Terminal: there is nobody/)
    expect(stderr).toMatch(/^Worker \S+ runs jobs of type greet, slow\.\n/)
    expect(stderr).toMatch(/Stopped: 2 attempts succeeded, 1 did not\.\n$/)
    const failed = /error: Attempt 1 failed and the job has ended: Terminal: .+ \(job \S+, greet\)/
    expect(stderr).toMatch(failed)
    expect(stderr).toMatch(/\n {4}at run \(.*jobs\.ts:\d+:\d+\)\n/)
    const jobs = await place.json<Job>('job', 'list')
    expect(jobs.map(({ state }) => state)).toEqual([
      'scheduled',
      'succeeded',
      'failed',
      'succeeded',
    ])
    expect(jobs[0]?.id).toBe(later.trim())
    const [story] = await place.json<{ result: string }>('job', 'show', jobs[3]?.id ?? '')
    expect(story?.result).toBe('hello ada')
  })

  it('goes on if a promise that a handler did not await is rejected', async () => {
    const place = placeWith(`
      import { defineJob } from 'pawl'
      const fails = async () => { throw new Error('forgotten') }
      export const careless = defineJob({
        name: 'careless',
        run: async () => {
          fails()
          await new Promise((turn) => setTimeout(turn, 50))
          return 'done'
        },
      })
    `)
    await place.ok('job', 'enqueue', 'careless', 'null', '--jobs', 'jobs.ts')
    const { code, stdout, stderr } = await ended(
      place.start(['work', '--jobs', 'jobs.ts', '--once']),
    )
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('a promise that no code awaits was rejected: forgotten')
    expect(stdout).toContain('careless succeeded in attempt 1')
  })

  it('claims only from the given queues, and prints events as NDJSON', async () => {
    const place = placeWith()
    await place.ok('job', 'enqueue', 'greet', '{"name":"ada"}', '--jobs', 'jobs.ts')
    const line = ['work', '--jobs', 'jobs.ts', '--once', '--json']
    expect(await place.ok(...line, '--queue', 'elsewhere')).toBe('')
    const events = linesOf<Event>(await place.ok(...line, '--queue', 'desk', '--concurrency', '2'))
    expect(events.map(({ event, state }) => [event, state])).toEqual([
      ['started', 'running'],
      ['reported', 'succeeded'],
    ])
  })

  it('reads the paths of job files from the configuration, relative to its folder', async () => {
    const place = placeWith()
    writeFileSync(join(place.folder, 'pawl.config.json'), '{"jobs":"./jobs.ts"}')
    await place.ok('job', 'enqueue', 'greet', '{"name":"ada"}')
    expect(await place.ok('work', '--once')).toMatch(/greet succeeded/)
    const { code, stderr } = await place.run(['job', 'enqueue', 'great', '{}'])
    expect([code, stderr]).toEqual([4, expect.stringMatching(/no job "great"\n.*greet, slow/)])
  })

  it('waits for running jobs at the first signal, and ends with 0', async () => {
    const place = placeWith()
    const id = (await place.ok('job', 'enqueue', 'slow', '--jobs', 'jobs.ts')).trim()
    const child = place.start(['work', '--jobs', 'jobs.ts', '--json'], { env: { QUICK: '1' } })
    const over = ended(child)
    await said(child.stdout, /"started"/)
    const [worker] = await place.json('worker', 'list')
    expect(worker).toMatchObject({ live: true, types: ['greet', 'slow'], concurrency: 10 })
    child.kill('SIGTERM')
    expect((await over).code).toBe(0)
    const [{ job } = {} as { job: Job }] = await place.json<{ job: Job }>('job', 'show', id)
    expect(job).toMatchObject({ state: 'succeeded', attempt: 1 })
    expect(await place.ok('worker', 'list')).toBe('')
  })

  it('releases running jobs at the second signal, and ends with 130', async () => {
    const place = placeWith()
    const id = (await place.ok('job', 'enqueue', 'slow', '--jobs', 'jobs.ts')).trim()
    const child = place.start(['work', '--jobs', 'jobs.ts'], {})
    const talk = said(child.stderr, /Waiting for running jobs/)
    const working = said(child.stderr, /Worker /)
    const over = ended(child)
    await working
    await untilRunning(place, id)
    child.kill('SIGINT')
    await talk
    child.kill('SIGTERM')
    expect((await over).code).toBe(130)
    const [{ job } = {} as { job: Job }] = await place.json<{ job: Job }>('job', 'show', id)
    expect(job).toMatchObject({ state: 'queued', releases: 1, failures: 0 })
  })

  it('releases a job at the second signal although its handler ignores its abort', async () => {
    const { place, id, endNow } = await workOnDeaf()
    expect(await endNow()).toEqual({ code: 130, isQuick: true })
    const [{ job } = {} as { job: Job }] = await place.json<{ job: Job }>('job', 'show', id)
    expect(job).toMatchObject({ state: 'queued', releases: 1, failures: 0 })
  })

  it('ends at the second signal although the store can release nothing', async () => {
    const { place, id, endNow } = await workOnDeaf()
    const { DatabaseSync } = loadDriver()
    const locking = new DatabaseSync(place.path)
    locking.exec('BEGIN IMMEDIATE')
    expect(await endNow()).toEqual({ code: 130, isQuick: true })
    locking.close()
    const [{ job } = {} as { job: Job }] = await place.json<{ job: Job }>('job', 'show', id)
    expect(job).toMatchObject({ state: 'running', releases: 0 })
  })
})

/** A worker that runs a job whose handler ignores its abort, and how it ends by two signals. */
async function workOnDeaf() {
  const place = placeWith(`import { defineJob } from 'pawl'
    export default defineJob({
      name: 'deaf',
      run: () => new Promise((resolve) => setTimeout(resolve, 60_000)),
    })`)
  const id = (await place.ok('job', 'enqueue', 'deaf', '--jobs', 'jobs.ts')).trim()
  const child = place.start(['work', '--jobs', 'jobs.ts', '--json'])
  const asked = said(child.stderr, /Waiting for running jobs/)
  const running = said(child.stdout, /"started"/)
  const over = ended(child)
  await running
  const endNow = async () => {
    child.kill('SIGTERM')
    await asked
    const start = performance.now()
    child.kill('SIGTERM')
    const { code } = await over
    return { code, isQuick: performance.now() - start < 4000 }
  }
  return { place, id, endNow }
}

async function untilRunning(place: Place, id: string): Promise<void> {
  for (let look = 0; look < 50; look++) {
    const [{ job } = {} as { job: Job }] = await place.json<{ job: Job }>('job', 'show', id)
    if (job.state === 'running') return
  }
  throw new Error('it never ran')
}

describe('a job file', () => {
  const bad: [string, string, RegExp][] = [
    ['throws', `throw new Error('no \\u001b[31mdatabase')`, /cannot be loaded: no \\x1b\[31mdata/],
    ['throws no error', `throw null`, /cannot be loaded: null/],
    ['is not TypeScript', 'export const = 7', /cannot be loaded/],
    ['exports nothing', 'const a = 1', /exports no job type/],
    [
      'exports other things',
      `export const a = 1; export default { b: [2, null] }`,
      /exports no job type/,
    ],
    [
      'exports two jobs of one name',
      `import { defineJob } from 'pawl'
       export const a = defineJob({ name: 'same', run: () => 1 })
       export const b = defineJob({ name: 'same', run: () => 2 })`,
      /a second job type named "same"/,
    ],
    ['imports what is not there', `import 'nowhere'`, /cannot be loaded: .*nowhere/],
  ]

  it.each(bad)('that %s is refused', async (_what, text, why) => {
    const place = placeWith(text)
    const { code, stderr } = await place.run(['work', '--jobs', 'jobs.ts', '--once'])
    expect(stderr).toMatch(why)
    expect([code, stderr]).toEqual([2, expect.stringContaining('E_JOB_FILE_INVALID')])
  })

  it('that is missing is refused', async () => {
    const { code, stderr } = await new Place().run(['work', '--jobs', 'nowhere.ts'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('E_JOB_FILE_INVALID')])
  })

  it('that defines a job wrongly says what is wrong with it', async () => {
    const place = placeWith(
      `import { defineJob } from 'pawl'\nexport default defineJob({ name: '' })`,
    )
    const { stderr } = await place.run(['work', '--jobs', 'jobs.ts'])
    expect(stderr).toContain(
      'Invalid definition of a job type without a name: name: must not be empty',
    )
  })

  it('may be JavaScript, may export one job twice, and may be one of several', async () => {
    const place = placeWith()
    const one = `import { defineJob } from 'pawl'
      export const one = defineJob({ name: 'one', run: () => 1 })
      export default one
      export const all = [one]`
    writeFileSync(join(place.folder, 'one.mjs'), one)
    const files = ['--jobs', 'jobs.ts', '--jobs', 'one.mjs']
    await place.ok('job', 'enqueue', 'one', ...files)
    expect(await place.ok('work', '--once', ...files)).toMatch(/one succeeded/)
    writeFileSync(join(place.folder, 'again.mjs'), one)
    const { code, stderr } = await place.run(['work', ...files, '--jobs', 'again.mjs'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('a second job type named "one"')])
  })

  it('that leaves something open keeps no command from ending', async () => {
    const place = placeWith(`import { defineJob } from 'pawl'
      import { createServer } from 'node:net'
      createServer().listen(0)
      export default defineJob({ name: 'a', run: () => 1 })`)
    await place.ok('job', 'enqueue', 'a', '--jobs', 'jobs.ts')
    expect(await place.ok('work', '--jobs', 'jobs.ts', '--once')).toMatch(/a succeeded/)
  })

  it('without code can be enqueued to, and not worked on', async () => {
    const place = placeWith(
      `import { defineJob } from 'pawl'\nexport default defineJob({ name: 'a' })`,
    )
    await place.ok('job', 'enqueue', 'a', '--jobs', 'jobs.ts')
    const { code, stderr } = await place.run(['work', '--jobs', 'jobs.ts', '--once'])
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('must contain a job type with a handler'),
    ])
  })

  it('whose schema refuses an input keeps the job out', async () => {
    const place = placeWith(`import { defineJob } from 'pawl'
      const validate = (value) =>
        typeof value?.to === 'string' ? { value } : { issues: [{ message: 'to is missing' }] }
      const input = { '~standard': { version: 1, vendor: 'own', validate } }
      export default defineJob({ name: 'mail', input, run: () => 1 })`)
    const refused = await place.run(['job', 'enqueue', 'mail', '{}', '--jobs', 'jobs.ts'])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('to is missing')])
    await place.ok('job', 'enqueue', 'mail', '{"to":"ada"}', '--jobs', 'jobs.ts')
  })
})

describe('pawl demo', () => {
  it('kills workers, and every job is committed once all the same', async () => {
    const [told] = await new Place().json<Record<string, number>>('demo', '--transfers', '200')
    expect(told).toMatchObject({ jobs: 200, commits: 200, duplicates: 0, lost: 0, findings: 0 })
    expect(told?.kills).toBeGreaterThan(0)
    expect(told?.crashes).toBeGreaterThan(0)
    expect(told?.executions).toBeGreaterThan(200)
  }, 40_000)
})

describe('effects', () => {
  const EFFECTS = `
    import { appendFileSync } from 'node:fs'
    import { defineJob } from 'pawl'
    export const order = defineJob({
      name: 'order',
      effects: {
        mail: {
          deliver: ({ key, payload }) => {
            if (process.env.RELAY !== 'up') throw new Error('no \\u001b[31mrelay')
            appendFileSync('sent.txt', key + ' ' + JSON.stringify(payload) + '\\n')
          },
          retry: { max: 0 },
        },
      },
      run: ({ input, commit }) => commit((tx) => { tx.effect('mail', input); return 'ordered' }),
    })`

  it('that could not be delivered are listed, shown with their job, and retried', async () => {
    const place = placeWith(EFFECTS)
    const id = (await place.ok('job', 'enqueue', 'order', '"tea"', '--jobs', 'jobs.ts')).trim()
    const key = `${id}/mail/1`
    const work = ['work', '--jobs', 'jobs.ts', '--once']
    const down = await place.run(work)
    expect(down.stdout).toContain(`${id} order committed in attempt 1\n`)
    expect(down.stderr).toContain('Stopped: 1 attempts succeeded, 0 did not.')
    expect(down.stdout).toMatch(/mail\/1 parked in try 1 {2}Error: no \\x1b\[31mrelay/)
    const [effect] = await place.json('effect', 'list', '--state', 'parked')
    expect(effect).toMatchObject({
      key,
      jobId: id,
      jobType: 'order',
      state: 'parked',
      payload: 'tea',
    })
    expect(await place.ok('effect', 'list', '--job', id)).toMatch(/\torder\tparked\t1\t.*\\x1b/)
    const story = await place.ok('job', 'show', id)
    expect(story).toMatch(/state +running {2}lane delivering/)
    expect(story).toContain(`(pawl effect retry ${key} --reason …)`)

    const bulk = ['effect', 'retry', '--state', 'parked', '--reason', 'INC-7']
    expect((await place.run(bulk)).code).toBe(2)
    const dry = await place.ok(...bulk, '--dry-run')
    expect(dry).toBe('retry: 1 matched, 1 done, 0 same (dry run, nothing was written)\n')
    expect((await place.run(['effect', 'retry', '--reason', 'x'])).code).toBe(2)
    expect((await place.run(['effect', 'retry', 'x/y/1', '--reason', 'x'])).code).toBe(4)
    expect(await place.ok(...bulk, '--yes')).toBe('retry: 1 matched, 1 done, 0 same\n')
    const again = await place.run(['effect', 'retry', key, '--reason', 'x'])
    expect(again).toMatchObject({ code: 0, stdout: 'retry: 1 matched, 0 done, 1 same\n' })
    const up = await place.run(work, { env: { RELAY: 'up' } })
    expect(up.stdout).toMatch(/mail\/1 delivered in try 1/)
    const sent = readFileSync(join(place.folder, 'sent.txt'), 'utf8')
    expect(sent).toBe(`${key} "tea"\n`)
    const [told] = await place.json<{ job: Job; facts: object[] }>('job', 'show', id)
    expect(told?.job).toMatchObject({ state: 'succeeded', attempt: 1 })
    expect(told?.facts).toContainEqual(expect.objectContaining({ operator: 'ada', note: 'INC-7' }))
    expect((await place.run(['effect', 'retry', key, '--reason', 'x'])).code).toBe(5)
    expect(await place.ok('effect', 'list', '--state', 'parked')).toBe('')
  }, 40_000)
})

describe('pawl work with a receiver of notices', () => {
  const NOTIFIED = `
import { defineJob } from 'pawl'
export const hello = defineJob({ name: 'hello', notify: true, run: () => 'hi' })
`

  it('posts what waits, signed, and shows it as delivered', async () => {
    const received: { key: unknown; outcome: string }[] = []
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => {
        body += String(chunk)
      })
      request.on('end', () => {
        const { outcome } = JSON.parse(body) as { outcome: string }
        received.push({ key: request.headers['pawl-key'], outcome })
        response.end()
      })
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const place = placeWith(NOTIFIED)
    const work = ['work', '--jobs', 'jobs.ts', '--once']
    await place.ok('job', 'enqueue', 'hello', '--jobs', 'jobs.ts')
    await place.ok(...work)
    const pending = ['effect', 'list', '--notices', '--state', 'pending']
    const [waiting] = await place.json<{ key: string }>(...pending)
    expect(received).toEqual([])
    const receiver = ['--notify-url', `http://127.0.0.1:${port}/`, '--notify-private']
    const unsigned = await place.run([...work, ...receiver])
    expect(unsigned.code).toBe(2)
    expect(unsigned.stderr).toContain('PAWL_NOTIFY_SECRET')
    const env = { PAWL_NOTIFY_SECRET: 'sixteen characters at least' }
    expect(await place.run([...work, ...receiver], { env })).toMatchObject({ code: 0 })
    expect(received).toEqual([{ key: waiting?.key, outcome: 'succeeded' }])
    expect(await place.json(...pending)).toEqual([])
  })
})
