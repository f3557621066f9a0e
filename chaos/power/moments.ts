/**
 * Power failures. The writes of a real process are recorded (`record.ts`); then its files are
 * rebuilt as they may be after the power failed at some moment (`disk.ts`), and judged: what the
 * process was told before is there, the file is whole, and every promise holds.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSqliteStore } from 'pawl/sqlite'
import { SeededRandom } from 'pawl/testing'
import { type Judged, judgeJobs, readStore } from '../../sim/checker.ts'
import { collectGarbage } from '../../test/support/garbage.ts'
import { openHandle, rowsOf } from '../sqlite-file.ts'
import { Disk, FAILURES, type Failure, materialise, type Operation } from './disk.ts'
import { record } from './record.ts'

/** How the writer keeps what it acknowledges: as the store does, or without ever syncing. */
export type WriterDurability = 'full' | 'relaxed' | 'off'

/** What a process was told before the power failed, and the file that it left. */
export interface Moment {
  readonly told: readonly Told[]
  readonly path: string
  readonly what: string
}

type Told = { enqueued: string } | { committed: string } | { inserted: string }

const WRITER = new URL('./writer.mjs', import.meta.url)
const TOLD_MIN = 8
/** Handles of files that were judged are closed after so many. */
const PLACES = 10

/** Moments at which the power fails: one after each acknowledgement, the others by chance. */
export async function* moments(
  folder: string,
  options: {
    readonly durability: WriterDurability
    readonly states: number
    readonly seed: number
  },
): AsyncGenerator<Moment> {
  const { durability, states, seed } = options
  const [live, traces] = ['live', 'traces'].map((name) => join(folder, `${durability}-${name}`))
  for (const made of [live, traces]) mkdirSync(made as string)
  const args = { path: join(live as string, 'store.db'), durability }
  const operations = await record(WRITER, args, traces as string)
  assertComplete(operations, args.path)
  const random = new SeededRandom(seed)
  for (const [i, [length, failure]] of [...plan(operations, states, random)].entries()) {
    const disk = new Disk()
    for (const operation of operations.slice(0, length)) disk.apply(operation)
    const crashed = join(folder, `${durability}-crashed-${i % PLACES}`)
    materialise(crashed, disk.failed(failure, random))
    if (i % PLACES === PLACES - 1) await collectGarbage()
    yield {
      told: toldIn(operations.slice(0, length)),
      path: join(crashed, 'store.db'),
      what: `seed ${seed}, ${failure} after ${length} of ${operations.length} operations`,
    }
  }
}

/** What was acknowledged, and is not in the file. */
export function missingFrom({ path, told }: Moment): Told[] {
  const database = openHandle(path)
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

/** What is wrong with a file by itself; jobs in it may still be under way. */
export async function unsound({ path }: Moment): Promise<Judged[]> {
  const checked = rowsOf<{ integrity_check: string }>(path, 'PRAGMA integrity_check')
  const damage = checked.filter(({ integrity_check }) => integrity_check !== 'ok')
  if (damage.length > 0) {
    const what = JSON.stringify(damage)
    return [{ promise: 'integrity', job: '', what, facts: [] }]
  }
  const store = await openSqliteStore({ path })
  try {
    const found = judgeJobs(await readStore(store), store.now())
    return found.filter(({ promise }) => promise !== 'P15')
  } finally {
    await store.close()
  }
}

/** The record leaves nothing out: what it rebuilds is the file that the process left. */
function assertComplete(operations: readonly Operation[], path: string): void {
  const disk = new Disk()
  for (const operation of operations) disk.apply(operation)
  const files = disk.failed('none lost', new SeededRandom(1))
  const isSame = files.get(path)?.equals(readFileSync(path)) === true
  const isAll = files.size === 1 && toldIn(operations).length >= TOLD_MIN
  if (!isSame || !isAll) throw new Error(`the record of ${path} is not complete`)
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
