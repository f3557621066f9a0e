// How often the log of a run is read. A log can be long, so each call reads it once, or not at all.
import { type Journal, openFolderJournal, openStoreJournal } from 'pawl/runs'
import { openSqliteStore } from 'pawl/sqlite'
import {
  type FileHandle,
  type FileSystem,
  SeededRandom,
  SimulatedFiles,
  testEnvironment,
} from 'pawl/testing'
import { expect, it } from 'vitest'
import type { RunTables } from '../../src/stores/contract/runs.ts'
import { freshRuns, outcomeOf, releaseOf } from './bench.ts'

interface Counted {
  readonly journal: Journal
  /** Returns how many lines were read since the last call, and starts again at 0. */
  readonly linesRead: () => number
}

const stuck = releaseOf({
  testing: () => {
    throw new Error('stop here')
  },
})

/** Counts lines that are read from the log, also if a read covers more than one of them. */
async function inFolder(): Promise<Counted> {
  const files = new SimulatedFiles(new SeededRandom(1))
  let lines = 0
  const counting = (handle: FileHandle): FileHandle => ({
    ...bound(handle),
    read: async (offset, length) => {
      const bytes = await handle.read(offset, length)
      lines += bytes.filter((byte) => byte === 0x0a).length
      return bytes
    },
  })
  const open = async (path: string, mode: 'read' | 'append' | 'create') => {
    const handle = await files.open(path, mode as 'append')
    return path.endsWith('/events.ndjson') && handle !== undefined ? counting(handle) : handle
  }
  const counted = { ...bound(files), open } as unknown as FileSystem
  const environment = testEnvironment()
  const disk = { environment, files: counted, locks: files }
  const journal = await openFolderJournal({ path: 'runs', ...disk })
  const linesRead = () => {
    const read = lines
    lines = 0
    return read
  }
  return { journal, linesRead }
}

async function inStore(): Promise<Counted> {
  const store = await openSqliteStore({ path: ':memory:' })
  let lines = 0
  const runs: RunTables = {
    ...bound(store.runs),
    lines: async (runId, after, limit) => {
      const page = await store.runs.lines(runId, after, limit)
      lines += page.length
      return page
    },
  }
  const linesRead = () => {
    const read = lines
    lines = 0
    return read
  }
  return { journal: openStoreJournal({ store: { runs } }), linesRead }
}

/** The methods of an object, each bound to it. */
function bound<T extends object>(object: T): T {
  const methods: Record<string, unknown> = {}
  for (let at = object; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) {
      const value = (object as Record<string, unknown>)[name]
      if (typeof value === 'function') methods[name] ??= value.bind(object)
    }
  }
  return methods as T
}

it.each([
  // A folder recognizes a run that exists by the first 64 kB of its log, which is all of this one.
  { name: 'a folder', open: inFolder, looks: 1 },
  { name: 'a store', open: inStore, looks: 0 },
])('a run in $name is resumed with one read of its log', async ({ open, looks }) => {
  const { journal, linesRead } = await open()
  const runs = await freshRuns({ journal, runs: [stuck] })
  await outcomeOf(runs, stuck)
  const lengthOf = async () => (await runs.show('r1')).run.last_seq

  const before = await lengthOf()
  linesRead()
  expect(await (await runs.resume('r1')).result()).toMatchObject({ kind: 'stopped' })
  expect(linesRead()).toBe(before)

  const later = await lengthOf()
  linesRead()
  await (await runs.startOrResume(stuck, { runId: 'r1' })).result()
  expect(linesRead()).toBe(later + looks * later)

  const last = await lengthOf()
  linesRead()
  await runs.explain('r1')
  expect(linesRead()).toBe(last)
  await runs.linkCommit('r1', 'a'.repeat(40))
  expect(linesRead()).toBe(last)
})
