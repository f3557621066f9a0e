// Power failures. The writes of a real process are recorded; then its files are rebuilt as they may
// be after the power failed at some moment, and opened again. Whoever skips a sync is caught: the
// same is done to writers that do, and must find their losses.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SeededRandom } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { freshFolder } from '../processes/folder.ts'
import { brokenPromises, collectGarbage, integrityOf, openRaw } from '../processes/inspect.ts'
import { Disk, FAILURES, type Failure, materialise, type Operation } from './disk.ts'
import { canRecord, record } from './record.ts'

const POWER = new URL('./power.mjs', import.meta.url)
const states = Number(process.env.PAWL_TEST_STATES ?? 100)
const seed = Number(process.env.PAWL_TEST_SEED ?? 1)
const SLOW = { timeout: 60_000 + states * 200 }

/** What a process was told before the power failed, and the files that it left. */
interface Moment {
  readonly told: readonly Told[]
  readonly path: string
  readonly what: string
}

type Told = { enqueued: string } | { committed: string } | { inserted: string }

const recordable = canRecord()
if (!recordable) {
  process.stderr.write('Power failures are not tested: strace is missing, or may not trace here.\n')
}

describe.runIf(recordable)('when the power fails', () => {
  it('nothing that was acknowledged is missing, and every promise holds', SLOW, async () => {
    let seen = 0
    for await (const { told, path, what } of moments('full', states)) {
      expect(missingFrom(path, told), what).toEqual([])
      await expectSound(path, what)
      seen++
    }
    expect(seen).toBeGreaterThanOrEqual(states)
  })

  it('a relaxed store may lose the last writes, but never a promise', SLOW, async () => {
    let lossy = 0
    for await (const { told, path, what } of moments('relaxed', Math.ceil(states / 3))) {
      if (missingFrom(path, told).length > 0) lossy++
      await expectSound(path, what)
    }
    expect(lossy).toBeGreaterThan(0)
  })

  it('a writer that never syncs is caught', SLOW, async () => {
    let lossy = 0
    for await (const { told, path } of moments('off', Math.ceil(states / 3))) {
      if (missingFrom(path, told).length > 0) lossy++
    }
    expect(lossy).toBeGreaterThan(0)
  })
})

/** Moments at which the power fails: one after each acknowledgement, the others by chance. */
async function* moments(durability: string, count: number): AsyncGenerator<Moment> {
  const folder = freshFolder()
  const [live, traces] = [join(folder, 'live'), join(folder, 'traces')]
  mkdirSync(live)
  mkdirSync(traces)
  const args = { path: join(live, 'store.db'), durability }
  const operations = await record(POWER, args, traces)
  expectComplete(operations, args.path)
  const random = new SeededRandom(seed)
  for (const [i, [length, failure]] of [...plan(operations, count, random)].entries()) {
    const disk = new Disk()
    for (const operation of operations.slice(0, length)) disk.apply(operation)
    const crashed = join(folder, `crashed-${i % 10}`)
    materialise(crashed, disk.failed(failure, random))
    if (i % 10 === 9) await collectGarbage()
    yield {
      told: toldIn(operations.slice(0, length)),
      path: join(crashed, 'store.db'),
      what: `seed ${seed}, ${failure} after ${length} of ${operations.length} operations`,
    }
  }
}

/** The record leaves nothing out: what it rebuilds is the file that the process left. */
function expectComplete(operations: readonly Operation[], path: string): void {
  const disk = new Disk()
  for (const operation of operations) disk.apply(operation)
  const files = disk.failed('none lost', new SeededRandom(seed))
  expect([...files.keys()]).toEqual([path])
  expect(files.get(path)?.equals(readFileSync(path))).toBe(true)
  expect(toldIn(operations).length).toBeGreaterThanOrEqual(8)
}

/** How many operations are done before the power fails, and how it fails. */
function* plan(
  operations: readonly Operation[],
  count: number,
  random: SeededRandom,
): Generator<[number, Failure]> {
  for (const [i, { kind }] of operations.entries()) if (kind === 'told') yield [i + 1, 'all lost']
  for (let i = 0; i < count; i++) {
    const length = Math.floor(random.next() * (operations.length + 1))
    yield [length, FAILURES[i % FAILURES.length] as Failure]
  }
}

function toldIn(operations: readonly Operation[]): Told[] {
  return operations.flatMap((operation) =>
    operation.kind === 'told' ? [JSON.parse(operation.line) as Told] : [],
  )
}

/** What was acknowledged, and is not in the file. */
function missingFrom(path: string, told: readonly Told[]): Told[] {
  const database = openRaw(path)
  try {
    const has = (table: string, where: string, value: string) => {
      const tables = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').all(table)
      if (tables.length === 0) return false
      return database.prepare(`SELECT 1 FROM ${table} WHERE ${where}`).all(value).length === 1
    }
    return told.filter((one) => {
      if ('inserted' in one) return !has('user_rows', 'job = ?', one.inserted)
      if ('enqueued' in one) return !has('pawl_jobs', 'id = ?', one.enqueued)
      const committed = has('pawl_jobs', `id = ? AND status = 'C'`, one.committed)
      return !committed || !has('user_rows', 'job = ?', one.committed)
    })
  } finally {
    database.close()
  }
}

/** The file is whole, a store opens it, and every job keeps every promise. */
async function expectSound(path: string, what: string): Promise<void> {
  expect(integrityOf(path), what).toEqual(['ok'])
  await using store = await openSqliteStore({ path })
  expect(await brokenPromises(store), what).toEqual([])
}
