// FM_001, the duplicate retry of the state-model requirements (R1): two attempts at one job both
// want to commit. "Fence off" runs a copy of the built package whose commit boundary is removed.
import { cpSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { defineJob } from 'pawl'
import { checkFacts, checkP9, executionsOf, leased } from 'pawl/rules'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Fm001Place, playFm001, runFm001, sqlitePlace } from '../../src/cli/demo/fm-001.ts'
import { copyUnfenced } from '../../src/cli/demo/unfenced.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { Place } from '../cli/pawl.ts'
import { PLACES } from '../engine/processes/places.ts'
import { Helper } from '../processes/children.ts'
import { freshFolder } from '../processes/folder.ts'
import { brokenPromises } from '../processes/inspect.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))

/** What the ledger says of both attempts, with and without the fence. */
const ATTEMPTS = [
  { attempt: 1, leaseOwner: 'worker-a', status: 'ABORTED', abort: 'lease_expired' },
  { attempt: 2, leaseOwner: 'worker-b', status: 'DONE', abort: null },
]

/** A build of the package: its scenario and its stores. */
interface Build {
  readonly playFm001: typeof playFm001
  readonly sqlitePlace: typeof sqlitePlace
  readonly openPostgresStore: typeof openPostgresStore
}

async function fencedBuild(): Promise<Build> {
  return { playFm001, sqlitePlace, openPostgresStore }
}

async function unfencedBuild(): Promise<Build> {
  const copy = await copyUnfenced(freshFolder(), DIST)
  const load = (path: string) => import(/* @vite-ignore */ new URL(path, copy).href)
  return { ...(await load('cli/demo/fm-001.js')), ...(await load('stores/postgres/open.js')) }
}

const PLAYS = [
  { name: 'a SQLite file', place: filePlace, fence: 'off', build: unfencedBuild, effects: 2 },
  { name: 'a SQLite file', place: filePlace, fence: 'on', build: fencedBuild, effects: 1 },
  { name: 'PostgreSQL', place: postgresPlace, fence: 'off', build: unfencedBuild, effects: 2 },
  { name: 'PostgreSQL', place: postgresPlace, fence: 'on', build: fencedBuild, effects: 1 },
] as const

describe('the duplicate retry', () => {
  it('has two effects without a fence, and one with it, counted in the database', async () => {
    const { fenceOff, fenceOn, steps } = await runFm001({ dist: DIST })
    expect({ fenceOff, fenceOn }).toEqual({ fenceOff: { effects: 2 }, fenceOn: { effects: 1 } })
    const late = steps.filter((step) => step.includes('worker-a commits'))
    expect(late.map((step) => step.trim())).toEqual([
      'worker-a commits its effect: accepted',
      'worker-a commits its effect: rejected, E_STALE_FENCE',
    ])
    expect(steps.filter((step) => step.includes('the ledger'))).toHaveLength(4)
    expect(await runFm001({ dist: DIST })).toEqual({ fenceOff, fenceOn, steps })
  })

  it('leaves nothing behind in the folder where it was played', async () => {
    const directory = freshFolder()
    await runFm001({ directory, dist: DIST })
    expect(readdirSync(directory)).toEqual([])
    await expect(runFm001({ directory: `${directory}/missing` })).rejects.toThrow('ENOENT')
    expect(existsSync(`${directory}/missing`)).toBe(false)
  })

  it.each(PLAYS)(
    'on $name with the fence $fence has $effects, and the ledger explains both attempts',
    async ({ place, fence, build, effects }) => {
      const { playFm001, ...stores } = await build()
      const play = await playFm001(await place(stores), fence)
      expect(play.effects).toBe(effects)
      expect(executionsOf(play.facts)).toMatchObject(ATTEMPTS)
      // Without the fence the second effect is there and the ledger has no fact for it.
      expect(play.facts.filter(({ trigger }) => trigger === 'commit')).toHaveLength(1)
      expect(checkFacts(leased, play.facts)).toEqual([])
      expect(checkP9(play.job, play.facts)).toEqual([])
    },
  )

  it('is one command of the program, which prints both counts', async () => {
    const counts = { fenceOff: { effects: 2 }, fenceOn: { effects: 1 } }
    expect(await new Place().json('fm001')).toEqual([counts])
    const text = await new Place().ok('fm001')
    expect(text.trimEnd().split('\n')).toEqual(['fence off: 2 effects', 'fence on:  1 effect'])
  })

  it('fails loudly if the package no longer has the statements that the copy removes', async () => {
    const folder = freshFolder()
    await copyUnfenced(join(folder, 'one'), DIST)
    // A copy of the copy: its boundary is gone already.
    const again = copyUnfenced(join(folder, 'two'), join(folder, 'one', 'dist'))
    await expect(again).rejects.toThrow('commit.js must contain this statement once, not 0 times')
  })
})

const WORKER = 'duplicate-retry.mjs'

/** The program of a worker process, run by the package or by its copy without a boundary. */
async function programOf(fence: 'on' | 'off'): Promise<URL> {
  const program = new URL(WORKER, import.meta.url)
  if (fence === 'on') return program
  const folder = freshFolder()
  await copyUnfenced(folder, DIST)
  cpSync(program, join(folder, WORKER))
  return pathToFileURL(join(folder, WORKER))
}

function startWorker(program: URL): Helper {
  const helper = new Helper(program)
  onTestFinished(() => {
    // A stopped process could not be ended otherwise.
    helper.signal('SIGCONT')
    return helper.stop()
  })
  return helper
}

/** Stops a process, but not in the middle of a transaction, for which all others would wait. */
async function freeze(helper: Helper, isQuiet: () => Promise<boolean>): Promise<void> {
  for (;;) {
    helper.signal('SIGSTOP')
    if (await isQuiet()) return
    helper.signal('SIGCONT')
  }
}

describe('the engine, with a worker process that is frozen for longer than its lease,', () => {
  const refused = { kind: 'refused', code: 'E_STALE_FENCE' } as const
  const cases = PLACES.flatMap(({ name, place }) => [
    { name, place, fence: 'off' as const, answer: { kind: 'accepted' }, attempts: [1, 2] },
    { name, place, fence: 'on' as const, answer: refused, attempts: [2] },
  ])

  it.each(cases)(
    'on $name with the fence $fence runs the commits of attempts $attempts',
    { timeout: 60_000 },
    async ({ place, fence, answer, attempts }) => {
      const { pawl, store, bookings, isQuiet } = await place()
      const program = await programOf(fence)
      const retry = { delay: '20ms', jitter: 0 } as const
      const charge = defineJob({ name: 'charge', lifecycle: leased, retry })
      const { id } = await pawl.enqueue(charge, null)
      const frozen = startWorker(program)
      const started = await frozen.ask({ kind: 'work', store, hold: true })
      expect(started).toEqual({ kind: 'started', attempt: 1 })
      await freeze(frozen, isQuiet)
      const second = await startWorker(program).ask({ kind: 'work', store, hold: false })
      expect(second).toEqual({ kind: 'accepted', attempt: 2 })
      // The message waits in the pipe, so the handler commits as soon as the process goes on.
      const late = frozen.ask({ kind: 'commit' })
      frozen.signal('SIGCONT')
      expect(await late).toEqual({ ...answer, attempt: 1 })

      const booked = (await bookings()).map(({ attempt }) => attempt)
      expect(booked.toSorted()).toEqual(attempts)
      expect(await pawl.store.get(id)).toMatchObject({ state: 'SUCCEEDED', attempt: 2 })
      expect(await brokenPromises(pawl.store)).toEqual([])
    },
  )
})

type Stores = Pick<Build, 'sqlitePlace' | 'openPostgresStore'>

async function filePlace({ sqlitePlace }: Stores): Promise<Fm001Place> {
  return sqlitePlace(join(freshFolder(), 'jobs.db'))
}

async function postgresPlace({ openPostgresStore }: Stores): Promise<Fm001Place> {
  const connectionString = await freshStoreDatabase()
  const client = await connected(connectionString)
  return {
    open: (environment) =>
      openPostgresStore({ connectionString, environment, clock: 'environment' }),
    async transact(work) {
      await client.query('BEGIN')
      const result = await work(async (sql) => (await client.query(sql)).rows)
      await client.query('COMMIT')
      return result
    },
  }
}
