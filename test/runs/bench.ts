// What tests of the engine of runs share: a folder of its own, a small pipeline, and what it did.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgresStore } from 'pawl/postgres'
import {
  defineRun,
  defineRunMachine,
  type Journal,
  openFolderJournal,
  openRuns,
  openStoreJournal,
  type RunContext,
  type RunDefinition,
  type RunEvent,
  type RunOutcome,
  type Runs,
  type RunsOptions,
} from 'pawl/runs'
import { openSqliteStore } from 'pawl/sqlite'
import { onTestFinished } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'

/** A folder that is gone when the test is over. */
export function freshFolder(inside = tmpdir()): string {
  const folder = mkdtempSync(join(inside, 'pawl-runs-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Both stores, each with how to open it; on PostgreSQL in a schema of this name. */
export function storesNamed(name: string): [string, () => Promise<Store>][] {
  const path = () => join(freshFolder(), 'runs.db')
  const schema = `${name}_${process.pid}`
  const connect = () => ({ connectionString: sharedPostgres(), schema, connections: 4 })
  return [
    ['SQLite', () => openSqliteStore({ path: path() })],
    ['PostgreSQL', () => openPostgresStore(connect())],
  ]
}

/** Every kind of journal, each with how to open an empty one. */
export function journalsNamed(name: string): [string, () => Promise<Journal>][] {
  let opened = 0
  const inStore = (kind: number) => async () => {
    const [, open] = storesNamed(`${name}_${++opened}`)[kind] as [string, () => Promise<Store>]
    const store = await open()
    onTestFinished(() => store.close())
    return openStoreJournal({ store })
  }
  return [
    ['a folder', () => openFolderJournal({ path: freshFolder() })],
    ['SQLite', inStore(0)],
    ['PostgreSQL', inStore(1)],
  ]
}

/** Runs in a folder of their own. */
export async function freshRuns(options: Partial<RunsOptions> = {}): Promise<Runs> {
  const place = options.journal === undefined ? { folder: options.folder ?? freshFolder() } : {}
  const runs = await openRuns({ ...options, ...place })
  onTestFinished(() => runs.close())
  return runs
}

/** build → test → shipped, with a stable state in the middle. */
export const release = defineRunMachine({
  machine: {
    name: 'release',
    version: 1,
    initial: 'build',
    sameState: 'refuse',
    states: {
      build: { meaning: 'It is built.' },
      built: { meaning: 'It can be tested.', stable: true },
      testing: { meaning: 'It is tested.', transitional: true },
      shipped: { meaning: 'Out.', terminal: true },
      broken: { meaning: 'Not out.', terminal: true },
      stopped: { meaning: 'Not wanted.', terminal: true },
    },
    edges: [
      { from: 'build', to: 'built', on: ['build'] },
      { from: 'built', to: 'testing', on: ['test'] },
      { from: 'testing', to: 'shipped', on: ['ship'] },
      { from: 'build', to: 'broken', on: ['fail'] },
      { from: 'built', to: 'broken', on: ['fail'] },
      { from: 'testing', to: 'broken', on: ['fail'] },
      { from: 'build', to: 'stopped', on: ['cancel'] },
      { from: 'built', to: 'stopped', on: ['cancel'] },
      { from: 'testing', to: 'stopped', on: ['cancel'] },
    ],
  },
  failed: 'broken',
  cancelled: 'stopped',
})

type Work = (run: RunContext) => unknown | Promise<unknown>

/** A release whose states do what they are given, and else nothing. */
export function releaseOf(work: {
  readonly build?: Work
  readonly built?: Work
  readonly testing?: Work
}): RunDefinition {
  return defineRun({
    name: 'release',
    machine: release,
    nodes: {
      build: async (run) => {
        await does(work.build, run)
        return 'built'
      },
      built: async (run) => {
        await does(work.built, run)
        return 'testing'
      },
      testing: async (run) => {
        await does(work.testing, run)
        return 'shipped'
      },
    },
  })
}

const does = async (work: Work | undefined, run: RunContext) => work?.(run)

/** Starts a run and waits for what comes of it. */
export async function outcomeOf(
  runs: Runs,
  definition: RunDefinition,
  runId = 'r1',
): Promise<RunOutcome> {
  return (await runs.start(definition, { runId })).result()
}

/** All events of a run. */
export async function eventsOf(runs: Runs, runId = 'r1'): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runs.events(runId)) events.push(event)
  return events
}

/** The events of a run, each as its type and the most telling part of its data. */
export async function storyOf(runs: Runs, runId = 'r1'): Promise<string[]> {
  return (await eventsOf(runs, runId)).map(({ type, data }) => {
    const { to_state, key, name, issue } = data as Partial<Record<string, string>>
    return [type, key ?? name ?? issue ?? to_state].filter(Boolean).join(' ')
  })
}
