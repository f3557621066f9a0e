// Queues, workers, machines and schemas from the command line; on PostgreSQL as well.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Job } from '../../src/core/job/job.ts'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'
import type { QueueInfo } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { execute, rowsOf } from '../processes/inspect.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'
import { ended, linesOf, Place, said } from './pawl.ts'

type Listed = QueueInfo & { readonly workers: number; readonly oldestReadyMs?: number }

describe('pawl queue', () => {
  it('lists depth by lane, the oldest ready job, pauses, and queues without workers', async () => {
    const place = new Place()
    for (const more of [[], ['--delay', '1h'], ['--hold']]) {
      await place.ok('job', 'enqueue', 'mail', '--queue', 'mail', ...more)
    }
    const [mail] = await place.json<Listed>('queue', 'list')
    expect(mail).toMatchObject({
      name: 'mail',
      lanes: { ready: 1, waiting: 1, idle: 1 },
      workers: 0,
    })
    expect(mail?.oldestReadyMs).toBeGreaterThan(0)
    expect(await place.ok('queue', 'pause', 'mail', 'other', '--reason', 'x')).toBe(
      'mail paused\nother paused\n',
    )
    const rows = (await place.ok('queue', 'list')).trimEnd().split('\n')
    expect(rows[0]).toMatch(
      /^mail\t1\t1\t0\t0\t0\t0\t\S+\t0\tpaused by ada at \S+ \(x\); no live worker$/,
    )
    expect(rows[1]).toMatch(/^other\t0(\t0){5}\t-\t0\tpaused by ada/)
    expect(await place.ok('queue', 'resume', 'mail', '--reason', 'x')).toBe('mail resumed\n')
    expect((await place.json<Listed>('queue', 'list'))[0]?.pausedAt).toBeUndefined()
    expect((await place.run(['queue', 'pause', 'mail'])).code).toBe(2)
  })

  it('counts the live workers of each queue, and no silent ones', async () => {
    const place = new Place()
    await using store = await openSqliteStore({ path: place.path })
    for (const queue of ['a', 'b']) await store.pauseQueue(queue, { actor: 'client' })
    const info = JSON.stringify({ queues: ['a'], types: ['t'], running: 1, concurrency: 4 })
    await store.reportWorker({ id: 'w1', state: 'Polling', info })
    await store.reportWorker({ id: 'w2', state: 'Idle', info: '{}' })
    await store.reportWorker({ id: 'gone', state: 'Polling', info: 'no JSON' })
    execute(place.path, `UPDATE pawl_workers SET seen_at = seen_at - 16000 WHERE id = 'gone'`)
    const queues = await place.json<Listed>('queue', 'list')
    expect(queues.map(({ name, workers }) => [name, workers])).toEqual([
      ['a', 2],
      ['b', 1],
    ])
    const workers = await place.json<{ id: string; live: boolean }>('worker', 'list')
    expect(workers.map(({ id, live }) => [id, live])).toEqual([
      ['gone', false],
      ['w1', true],
      ['w2', true],
    ])
    expect(await place.ok('worker', 'list')).toMatch(/^gone\tgone\t.*\nw1\tworking\t1\/4\ta\tt\t/)
  })
})

describe('pawl machine', () => {
  it('lists and shows every lifecycle, as tables, diagrams and JSON', async () => {
    const place = new Place()
    const names = (await place.json<{ name: string }>('machine', 'list')).map(({ name }) => name)
    expect(names).toEqual([...LIFECYCLES.map(({ name }) => name), 'execution', 'worker', 'run'])
    expect(await place.ok('machine', 'show', 'leased', '--mermaid')).toMatch(/^stateDiagram-v2\n/)
    expect(await place.ok('machine', 'show', 'worker', '--dot')).toMatch(/^digraph "worker" \{\n/)
    expect(await place.ok('machine', 'show', 'leased')).toMatch(/^PENDING\tfirst\t/)
    const [shown] = await place.json<{ edges: unknown[] }>('machine', 'show', 'leased')
    expect(shown).toMatchObject({ initial: 'PENDING', kind: 'job', version: 1 })
    const { code, stderr } = await place.run(['machine', 'show', 'nothing'])
    expect([code, stderr]).toEqual([4, expect.stringMatching(/no machine "nothing"\n.*standard/)])
  })
})

describe('pawl db', () => {
  it('migrates a file once, and shows what is applied and pending', async () => {
    const place = new Place()
    const before = await place.run(['db', 'status', '--json'])
    expect(before.code).toBe(3)
    const [pending] = linesOf<{ pending: number[] }>(before.stdout)
    expect(pending?.pending.length).toBeGreaterThan(0)
    const [made] = await place.json<{ applied: number[] }>('db', 'migrate')
    expect(made?.applied).toEqual(pending?.pending)
    expect(await place.ok('db', 'migrate')).toBe(`${place.store} is up to date\n`)
    const [after] = await place.json<{ applied: unknown[]; pending: number[] }>('db', 'status')
    expect([after?.applied.length, after?.pending]).toEqual([pending?.pending.length, []])
  })

  it('prints SQL by which a store can be made by hand', async () => {
    const place = new Place()
    execute(place.path, await place.ok('db', 'print-sql'))
    expect(rowsOf(place.path, 'SELECT number FROM pawl_migrations').length).toBeGreaterThan(0)
    expect((await place.run(['db', 'status'])).code).toBe(0)
    const sql = await place.ok('db', 'print-sql', '--store', 'postgres://nobody@nowhere/none')
    expect(sql).toContain('CREATE SCHEMA IF NOT EXISTS "pawl"')
  })

  it('leaves a store of another release alone, and so does every command', async () => {
    const place = new Place()
    await place.ok('db', 'migrate')
    execute(place.path, `INSERT INTO pawl_migrations VALUES (99, 'x', 0)`)
    for (const args of [
      ['db', 'status'],
      ['db', 'migrate'],
      ['job', 'list'],
    ]) {
      const { code, stderr } = await place.run(args)
      expect([code, stderr]).toEqual([1, expect.stringContaining('E_SCHEMA_TOO_NEW')])
    }
    execute(place.path, 'DELETE FROM pawl_migrations')
    const { code, stderr } = await place.run(['job', 'list'])
    expect([code, stderr]).toEqual([4, expect.stringContaining('E_STORE_MISSING')])
  })
})

describe('on PostgreSQL', () => {
  it('jobs are enqueued, worked on, shown, followed and changed in the same way', async () => {
    const place = new Place(await freshDatabase(sharedPostgres()))
    expect((await place.run(['job', 'list'])).code).toBe(4)
    expect((await place.run(['db', 'status'])).code).toBe(3)
    await place.ok('db', 'migrate')
    expect((await place.run(['db', 'status'])).code).toBe(0)
    writeFileSync(
      join(place.folder, 'jobs.ts'),
      `import { defineJob, Terminal } from 'pawl'
       export const a = defineJob({ name: 'a', run: ({ input }) => {
         if (input === 'bad') throw new Terminal('bad input')
         return input
       } })`,
    )
    const ids: string[] = []
    for (const input of ['"good"', '"bad"']) {
      ids.push((await place.ok('job', 'enqueue', 'a', input, '--jobs', 'jobs.ts')).trim())
    }
    await place.ok('queue', 'pause', 'default', '--reason', 'x')
    expect(await place.ok('work', '--jobs', 'jobs.ts', '--once')).toBe('')
    await place.ok('queue', 'resume', 'default', '--reason', 'x')
    expect(await place.ok('work', '--jobs', 'jobs.ts', '--once')).toMatch(/a failed in attempt 1/)
    const jobs = await place.json<Job>('job', 'list')
    expect(jobs.map(({ state }) => state)).toEqual(['failed', 'succeeded'])
    const retry = ['job', 'retry', '--state', 'failed', '--reason', 'INC-7']
    expect((await place.run(retry)).code).toBe(2)
    expect(await place.ok(...retry, '--yes')).toBe('retry: 1 matched, 1 done\n')
    expect(await place.ok('job', 'show', ids[1] ?? '')).toMatch(
      /redrive +failed → queued · operator/,
    )
    const [queue] = await place.json<Listed>('queue', 'list')
    expect(queue).toMatchObject({ name: 'default', lanes: { ready: 1, ended: 1 }, workers: 0 })
    const facts = await place.json('job', 'tail', '--from-start', '--no-follow')
    expect(facts).toHaveLength(7)
    const child = place.start(['job', 'tail', ids[1] ?? ''])
    const over = ended(child)
    await said(child.stdout, /redrive/)
    await place.ok('job', 'cancel', ids[1] ?? '', '--reason', 'enough')
    const { code, stdout } = await over
    expect([code, stdout]).toEqual([0, expect.stringMatching(/cancel .*"enough"\n$/)])
  }, 60_000)

  it('a migration that is missing is asked for', async () => {
    const url = await freshDatabase(sharedPostgres())
    const place = new Place(url)
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(await place.ok('db', 'print-sql'))
    await client.end()
    expect((await place.run(['db', 'status'])).code).toBe(0)
    expect(await place.ok('db', 'migrate')).toMatch(/up to date\n$/)
  })
})

/** The packages that come with Pawl, and none that is optional or for its development. */
function neededPaths(): string[] {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Record<string, { dev?: true; optional?: true; devOptional?: true; peer?: true }>
  }
  return Object.entries(packages)
    .filter(([, { dev, optional, devOptional, peer }]) => !(dev || optional || devOptional || peer))
    .map(([path]) => path)
    .filter((path) => path !== '')
}

describe('installed without what is optional', () => {
  it('says which driver is missing, and how to get it', async () => {
    const place = new Place()
    const home = join(place.folder, 'node_modules', 'pawl')
    mkdirSync(home, { recursive: true })
    for (const part of ['dist', 'specs', 'package.json']) {
      cpSync(part, join(home, part), { recursive: true })
    }
    for (const path of neededPaths()) cpSync(path, join(place.folder, path), { recursive: true })
    const program = join(home, 'dist', 'cli', 'main.js')
    const env = { PAWL_STORE: 'postgres://localhost/none' }
    const { code, stderr } = await place.run(['job', 'list'], { env, program })
    expect([code, stderr]).toEqual([1, expect.stringMatching(/npm install pg.*E_DRIVER_MISSING/s)])
    const machines = await place.run(['machine', 'list', '--json'], { program })
    expect([machines.code, machines.stderr]).toEqual([0, ''])
  })
})
