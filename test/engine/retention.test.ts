// Retention in workers and at the request of a person, under the manual clock, on both databases.
import { chmod, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createPawl, defineJob, JobRemoved, type PawlEvent, Terminal, toFolder, typed } from 'pawl'
import { createTestPawl, type TestPawl, type TestPawlOptions } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { verifyArchives } from '../../src/audit/verify-seals.ts'
import { wrapStore } from '../../src/stores/wrap-store.ts'
import { freshFolder } from '../processes/folder.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const timeout = 60_000
const DAY = 86_400_000
const ANN = { name: 'ann', reason: 'INC-7' }
const STORES = [
  { name: 'SQLite', place: async () => 'sqlite::memory:' },
  { name: 'PostgreSQL', place: () => freshStoreDatabase() },
]

const mail = defineJob({
  name: 'mail',
  input: typed<'good' | 'bad'>(),
  run: ({ input }) => {
    if (input === 'bad') throw new Terminal('bad')
    return input
  },
})
const ping = defineJob({ name: 'ping', retention: { succeeded: '1h' }, run: () => 1 })
const keep = defineJob({ name: 'keep', retention: { succeeded: false }, run: () => 1 })

function removedBy(events: readonly PawlEvent[]): number {
  return events.reduce((sum, event) => sum + (event.type === 'retention' ? event.removed : 0), 0)
}

describe.each(STORES)('retention on $name', ({ place }) => {
  async function open(options: Partial<TestPawlOptions> = {}): Promise<TestPawl> {
    const t = await createTestPawl({ store: await place(), jobs: [mail, ping, keep], ...options })
    onTestFinished(() => t.close())
    return t
  }

  async function types(t: TestPawl): Promise<string[]> {
    const { items } = await t.store.list({})
    return items.map(({ type }) => type).sort()
  }

  /** Lets a worker run until it has removed so many jobs; returns its events. */
  async function retain(t: TestPawl, count: number): Promise<PawlEvent[]> {
    const events: PawlEvent[] = []
    const worker = await t.pawl.work({ onEvent: (event) => events.push(event), checkup: false })
    await t.until(() => removedBy(events) >= count, 100)
    await t.finish(worker.stop())
    return events
  }

  it('workers remove what is older than its time, by type and outcome', { timeout }, async () => {
    const t = await open({ retention: { succeeded: '7d', failed: '90d' } })
    await t.pawl.enqueueMany(mail, [{ input: 'good' }, { input: 'good' }, { input: 'bad' }])
    await t.pawl.enqueue(ping, null)
    await t.pawl.enqueue(keep, null)
    await t.drain()
    await t.advance('1h')
    const events = await retain(t, 1)
    expect(await types(t)).toEqual(['keep', 'mail', 'mail', 'mail'])
    await t.advance('7d')
    events.push(...(await retain(t, 2)))
    expect(await types(t)).toEqual(['keep', 'mail'])
    await t.advance('90d')
    events.push(...(await retain(t, 1)))
    expect(await types(t)).toEqual(['keep'])
    expect(events.filter(({ type }) => type === 'retention')).toMatchObject([
      { outcome: 'succeeded', keepMs: 3_600_000, removed: 1, keys: 0 },
      { outcome: 'succeeded', keepMs: 7 * DAY, removed: 2, keys: 0 },
      { outcome: 'failed', keepMs: 90 * DAY, removed: 1, keys: 0 },
    ])
    expect(events.filter(({ type }) => type === 'error')).toEqual([])
  })

  it('a key stays taken after its job is removed', { timeout }, async () => {
    const t = await open({ retention: { succeeded: '1d', keys: '30d' } })
    const first = await t.pawl.enqueue(mail, 'good', { key: 'order 1' })
    await t.drain()
    await t.advance('2d')
    await retain(t, 1)
    const again = await t.pawl.enqueue(mail, 'good', { key: 'order 1' })
    expect([again.id, again.created]).toEqual([first.id, false])
    expect(again.removed).toMatchObject({ outcome: 'succeeded', key: 'order 1' })
    await expect(again.result()).rejects.toThrow(JobRemoved)
    await expect(again.get()).rejects.toThrow(JobRemoved)
    await t.advance('30d')
    expect((await t.pawl.enqueue(mail, 'good', { key: 'order 1' })).created).toBe(true)
  })

  it('jobs of types that the process does not know are kept', { timeout }, async () => {
    const t = await open({ jobs: [mail, ping] })
    await t.pawl.enqueue(ping, null)
    await t.drain()
    await t.advance('30d')
    const other = await createPawl({
      ...{ store: t.store, environment: t.environment, jobs: [mail] },
      retention: { succeeded: '1d' },
    })
    const report = await other.operator(ANN).runRetention()
    expect(report).toMatchObject({ removed: 0, complete: true })
    expect(await t.pawl.operator(ANN).runRetention()).toMatchObject({ removed: 1 })
  })

  it('a changed policy looks at all jobs again', { timeout }, async () => {
    const t = await open({ jobs: [mail], retention: { succeeded: '10d' } })
    await t.pawl.enqueueMany(
      mail,
      Array.from({ length: 5 }, () => ({ input: 'good' as const })),
    )
    await t.drain()
    await t.advance('5d')
    const worker = await t.pawl.work({ checkup: false })
    await t.until(async () => (await t.pawl.retentionStatus()).active, 100)
    await t.finish(worker.stop())
    const shorter = await createPawl({
      ...{ store: t.store, environment: t.environment, jobs: [mail] },
      retention: { succeeded: '1d' },
    })
    const second = await shorter.work({ checkup: false })
    await t.until(async () => (await t.store.counts()).lanes.ended === 0, 1000)
    await t.finish(second.stop())
  })

  it('a run by a person is recorded, and a dry run removes nothing', { timeout }, async () => {
    const events: PawlEvent[] = []
    const t = await open({ retention: { succeeded: '1d' }, onEvent: (event) => events.push(event) })
    await t.pawl.enqueue(mail, 'good')
    await t.drain()
    await t.advance('40d')
    expect(await t.pawl.retentionStatus()).toMatchObject({
      ...{ active: false, old: 1, keys: 0 },
      due: { removed: 1, dryRun: true, complete: true },
    })
    const ann = t.pawl.operator(ANN)
    expect(await ann.runRetention({ dryRun: true })).toMatchObject({ removed: 1, dryRun: true })
    expect(await types(t)).toEqual(['mail'])
    const other = { retention: { succeeded: '50d' } } as const
    expect(await ann.runRetention(other)).toMatchObject({ removed: 0 })
    expect(await ann.runRetention()).toMatchObject({ removed: 1, dryRun: false, complete: true })
    const [record] = await t.store.seals.prunings(0, 10)
    expect(record).toMatchObject({ jobs: 1, operator: 'ann', note: 'INC-7' })
    const [event] = events.filter(({ type }) => type === 'retention')
    expect(event).toMatchObject({ worker: null, operator: 'ann', removed: 1 })
  })

  it('two workers share the duty, and one that died is replaced', { timeout }, async () => {
    const t = await open({ jobs: [mail], retention: { succeeded: '1d' } })
    await t.pawl.enqueueMany(
      mail,
      Array.from({ length: 20 }, () => ({ input: 'good' as const })),
    )
    await t.drain()
    await t.advance('2d')
    // A worker that died in its shift.
    await t.store.examination.takeDuty('retention', 'dead', 60_000)
    const events: PawlEvent[] = []
    const options = { onEvent: (event: PawlEvent) => events.push(event), checkup: false } as const
    const workers = [await t.pawl.work(options), await t.pawl.work(options)]
    await t.until(() => removedBy(events) === 20, 1000)
    for (const worker of workers) await t.finish(worker.stop())
    expect(events.filter(({ type }) => type === 'error')).toEqual([])
    expect((await t.pawl.retentionStatus()).active).toBe(true)
  })

  it('an archive in a folder proves what was removed', { timeout }, async () => {
    const folder = join(freshFolder(), 'deep', 'archive')
    const archive = toFolder(folder, { bytesMax: 2000 })
    const t = await open({ retention: { succeeded: '1d', archive } })
    await t.pawl.enqueueMany(
      mail,
      Array.from({ length: 9 }, () => ({ input: 'good' as const })),
    )
    await t.drain()
    await t.store.seals.make()
    await t.advance('2d')
    const step = { outcome: 'succeeded', endedBefore: t.store.now(), limit: 3, archive } as const
    let after: string | undefined
    for (let i = 0; i < 3; i++) {
      const { next } = await t.store.retention.sweep({ ...step, ...(after && { after }) })
      after = next
    }
    expect((await t.store.counts()).lanes.ended).toBe(0)
    const names = await readdir(folder)
    expect(names.length).toBeGreaterThan(1)
    const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
    async function* lines(all: readonly string[]) {
      for (const text of all) yield* text.split('\n').filter((line) => line !== '')
    }
    const kinds = async (all: readonly string[]) => {
      const findings = verifyArchives(t.store.seals, lines(all))
      const found: string[] = []
      for await (const { kind } of findings) found.push(kind)
      return found
    }
    expect(await kinds(texts)).toEqual([])
    expect(await kinds(texts.slice(1))).toContain('archive-missing')
  })

  it('nothing is removed if the archive fails, and the worker goes on', { timeout }, async () => {
    let isBroken = true
    const archive = async () => {
      if (isBroken) throw new Error('the disk is full')
    }
    const t = await open({ retention: { succeeded: '1d', archive } })
    await t.pawl.enqueue(mail, 'good')
    await t.drain()
    await t.advance('2d')
    const events: PawlEvent[] = []
    const worker = await t.pawl.work({ onEvent: (event) => events.push(event), checkup: false })
    await t.until(() => events.some(({ type }) => type === 'error'), 100)
    expect(await types(t)).toEqual(['mail'])
    isBroken = false
    await t.until(() => removedBy(events) === 1, 1000)
    await t.finish(worker.stop())
    expect(await types(t)).toEqual([])
  })
})

describe('a worker', () => {
  it('does not look after retention if no time is given', { timeout }, async () => {
    const taken: string[] = []
    const t = await createTestPawl({
      jobs: [mail],
      wrap: (store) =>
        wrapStore(store, {
          retention: new Proxy(store.retention, {
            get: () => expect.fail('retention was used'),
          }),
        }),
    })
    onTestFinished(() => t.close())
    const worker = await t.pawl.work({ checkup: false })
    await t.advance('5m')
    await t.finish(worker.stop())
    expect(taken).toEqual([])
  })
})

describe('toFolder', () => {
  it('starts another file after a failed write, and refuses bad options', async () => {
    const folder = freshFolder()
    const archive = toFolder(folder)
    await archive('1\n')
    const [name = ''] = await readdir(folder)
    expect(name).toMatch(/^[\dTZ-]+-[\da-f-]{36}\.ndjson$/)
    expect(await readFile(join(folder, name), 'utf8')).toBe('1\n')
    await archive('2\n')
    expect(await readFile(join(folder, name), 'utf8')).toBe('1\n2\n')
    expect(() => toFolder('')).toThrow(/must be the path of a folder/)
    expect(() => toFolder(folder, { bytesMax: 0 })).toThrow(/bytesMax/)
    expect(() => toFolder(folder, { typo: 1 } as object)).toThrow(/is not known/)
    if (process.getuid?.() === 0) return
    await chmod(folder, 0o500)
    await expect(toFolder(folder)('3\n')).rejects.toThrow()
    await chmod(folder, 0o700)
  })
})

describe('the times of retention', () => {
  const refused = [
    [{ succeeded: '0s' }, /retention\.succeeded/],
    [{ succeeded: -1 }, /retention\.succeeded/],
    [{ failed: 'soon' }, /retention\.failed/],
    [{ cancelled: '101y' }, /retention\.cancelled/],
    [{ keys: '1ms' }, /retention\.keys/],
    [{ archive: './archive' }, /retention\.archive/],
    [{ parked: '1d' }, /retention\.parked/],
  ] as const
  it.each(refused)('are refused if they make no sense: %j', async (retention, why) => {
    const options = { store: 'sqlite::memory:', retention: retention as object }
    await expect(createPawl(options)).rejects.toThrow(why)
    if ('keys' in retention || 'archive' in retention) return
    expect(() => defineJob({ name: 'a', retention: retention as object })).toThrow(/retention/)
  })
})
