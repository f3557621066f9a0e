// The numbers of a store: once for people and programs, and one after the other without a terminal.
import { describe, expect, it, onTestFinished } from 'vitest'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import { defineSchedule } from '../../src/engine/schedules/define-schedule.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { startPostgres } from '../support/postgres/server.ts'
import { EVIL_NAME, HIDDEN } from './hostile-text.ts'
import { ended, linesOf, Place, said } from './pawl.ts'

interface Numbers {
  readonly lanes: Record<string, number>
  readonly queues: readonly { name: string; endedPerSecond?: number | null }[]
  readonly outage?: { code: string }
}

describe('pawl stats', () => {
  it('prints what is in the store, aligned', async () => {
    const place = new Place()
    for (const queue of ['mail', 'mail', 'b']) {
      await place.ok('job', 'enqueue', 'send', '1', '--queue', queue)
    }
    await place.ok('queue', 'pause', 'b', '--reason', 'INC-7')
    const text = await place.ok('stats')
    expect(text).toMatch(/^store {6}sqlite:\S+jobs\.db {2}[\d.]+ KiB\ntime {7}\d{4}-/)
    expect(text).toContain('workers    0 live, 0 gone; 0 of 0 places in use')
    expect(text).toContain('schedules  0, 0 paused, 0 late')
    expect(text).toContain('retention  off; 0 jobs ended more than 30 days ago')
    expect(text).toMatch(/\nlast 5m +enqueued .*\njobs +3 +0 +0 +0 +0 +0\nper second +0\.01 /)
    expect(text).toContain('! paused queues: 1 (pawl queue list)')
    const [head = '', ...rows] = text.slice(text.indexOf('queue  ')).split('\n')
    const end = head.indexOf('ready') + 'ready'.length
    expect(rows.slice(0, 2).map((row) => row.slice(0, end))).toEqual([
      'mail       2',
      'b          1',
    ])
    expect(rows[1]).toMatch(/paused; no live worker$/)
  })

  it('prints one object with --json, with what retention would remove', async () => {
    const place = new Place()
    await place.ok('job', 'enqueue', 'send', '1')
    const [stats, ...more] = await place.json('stats')
    expect(more).toEqual([])
    expect(stats).toMatchObject({
      lanes: { ready: 1 },
      queueCount: 1,
      workerList: [],
      limits: [],
      schedules: { count: 0, more: false, paused: 0, late: 0, latestMs: null },
      retention: { active: false, old: 0 },
      bytes: expect.any(Number),
    })
  })

  it('says that there are more schedules than it has read', async () => {
    const place = new Place()
    const job = defineJob({ name: 'send' })
    await using pawl = await createPawl({ store: `sqlite:${place.path}`, jobs: [job] })
    const all = Array.from({ length: 501 }, (_, n) => `s${n}`)
    const put = (name: string) => pawl.schedules.put(defineSchedule({ name, job, every: '1d' }))
    await Promise.all(all.map(put))
    expect(await place.ok('stats')).toContain('schedules  500 or more, 0 paused, 0 late')
  })

  it('shows limits at their value, and jobs that they block', async () => {
    const place = new Place()
    await using store = await openSqliteStore({ path: place.path })
    const job = defineJob({ name: 'send', concurrency: 1 })
    await using pawl = await createPawl({ store, jobs: [job] })
    await pawl.enqueueMany(job, [{ input: 1 }, { input: 2 }])
    await store.claim({ worker: 'w', limit: 2, leaseMs: 30_000, start: true })
    expect(await place.ok('stats')).toMatch(/\ntype\/send +1 +1 +1 +\S+\n/)
  })

  it('reads a missing store as an error', async () => {
    const { code, stderr } = await new Place().run(['stats'])
    expect([code, stderr]).toEqual([4, expect.stringContaining('E_STORE_MISSING')])
  })
})

describe('pawl top without a terminal', () => {
  it('prints a block for each reading, without escape sequences', async () => {
    const place = new Place()
    await using store = await openSqliteStore({ path: place.path })
    const pawl = await createPawl({ store })
    await pawl.enqueue(defineJob({ name: 'evil', queue: EVIL_NAME }), 1)
    await store.reportWorker({ id: EVIL_NAME, state: EVIL_NAME, info: '{}' })
    const child = place.start(['top', '--interval', '100ms'])
    const end = ended(child)
    await said(child.stdout, /(store {6}[\s\S]*?){3}/)
    child.kill('SIGINT')
    const { code, stdout, stderr } = await end
    expect([code, stderr]).toEqual([130, ''])
    expect(stdout).not.toMatch(HIDDEN)
    expect(stdout).toContain('n\\u{202e}\\u{2066}\\u{200f}\\u{2028}x')
  })

  it('counts per queue what ended between two readings', async () => {
    const place = new Place()
    await place.ok('job', 'enqueue', 'send', '1')
    const child = place.start(['top', '--interval', '100ms', '--json'])
    const end = ended(child)
    await said(child.stdout, /\n/)
    const [job] = await place.json<{ id: string }>('job', 'list')
    const more = said(child.stdout, /"endedPerSecond":(?!0[,}]|null)/)
    await place.ok('job', 'cancel', job?.id ?? '', '--reason', 'enough')
    await more
    child.kill('SIGTERM')
    const rates = linesOf<Numbers>((await end).stdout).map(
      ({ queues }) => queues[0]?.endedPerSecond,
    )
    expect(rates[0]).toBeNull()
    expect(rates.filter((rate) => rate !== null && rate !== undefined && rate > 0)).toHaveLength(1)
  })

  it('ends without an error when its reader does', async () => {
    const place = new Place()
    await place.ok('db', 'migrate')
    const child = place.start(['top', '--interval', '100ms', '--json'])
    await said(child.stdout, /\n/)
    const end = new Promise((resolve) => child.once('exit', resolve))
    child.stdout.destroy()
    expect(await end).toBe(0)
  })

  it.each([
    [['--interval', '1ms'], '--interval must be from 100ms to 1h'],
    [['--interval', '2h'], '--interval must be from 100ms to 1h'],
    [['--interval', 'soon'], '--interval must be a duration'],
    [['extra'], 'Too many arguments'],
  ])('%j is wrong usage', async (args, why) => {
    const { code, stderr } = await new Place().run(['top', ...args])
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)])
  })

  it('reports an outage and continues; with --once it is an error', {
    timeout: 90_000,
  }, async () => {
    const server = await startPostgres()
    onTestFinished(() => server.stop())
    const place = new Place(server.url)
    await place.ok('job', 'enqueue', 'send', '1')
    const child = place.start(['top', '--interval', '200ms', '--json'])
    const end = ended(child)
    await said(child.stdout, /"lanes"/)
    await server.kill9()
    await said(child.stdout, /"outage":\{"code":"E_STORE_UNAVAILABLE"/)
    const once = await place.run(['top', '--once'])
    expect([once.code, once.stderr]).toEqual([1, expect.stringMatching(/E_STORE_UNAVAILABLE/)])
    const again = said(child.stdout, /"lanes"/)
    await server.restart()
    await again
    child.kill('SIGTERM')
    const { code, stdout, stderr } = await end
    expect([code, stderr]).toEqual([130, ''])
    expect(linesOf<Numbers>(stdout).at(-1)?.lanes).toMatchObject({ ready: 1 })
  })
})
