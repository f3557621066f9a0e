// Stores that earlier versions wrote. Every version opens each of them, finds in it what the old
// version saw, and goes on working. `npm run golden` writes one; none is ever rewritten.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Job } from 'pawl'
import { verifySeals } from 'pawl/audit'
import { Doctor, type Finding } from 'pawl/doctor'
import { openPostgresStore } from 'pawl/postgres'
import { openRuns, openStoreJournal } from 'pawl/runs'
import {
  type Counts,
  type EffectInfo,
  type EffectReport,
  openSqliteStore,
  type Store,
} from 'pawl/sqlite'
import { type TestEnvironment, testEnvironment } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { GOLDEN_LIFECYCLES } from '../../scripts/golden/history.ts'
import { releaseRun } from '../../scripts/golden/runs.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'

interface Expected {
  readonly jobs: readonly Job[]
  readonly counts: Counts
  readonly effects: readonly EffectInfo[]
}

const GOLDEN = join(import.meta.dirname, '../golden')
const VERSIONS = readdirSync(GOLDEN)
const LEASE_MS = 60_000
/** What the old version left to do is years old by now: that alone is no finding. */
const AGES_MS = 100 * 365 * 86_400_000
const PATIENCE = { dueMs: AGES_MS, stalledMs: AGES_MS, workerMs: AGES_MS }

function copyOf(version: string, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-golden-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(join(GOLDEN, version, name), join(folder, name), { recursive: true })
  return join(folder, name)
}

/** A year later, with ids that the old version did not use. */
function yearLater(): TestEnvironment {
  return { ...testEnvironment({ start: Date.UTC(2027, 0, 1) }), ids: systemEnvironment().ids }
}

async function openSqliteCopy(version: string, environment: TestEnvironment): Promise<Store> {
  const path = copyOf(version, 'store.db')
  return openSqliteStore({ path, environment, lifecycles: GOLDEN_LIFECYCLES })
}

async function openPostgresCopy(version: string, environment: TestEnvironment): Promise<Store> {
  const connectionString = await freshDatabase(sharedPostgres())
  const client = await connected(connectionString)
  await client.query(readFileSync(join(GOLDEN, version, 'store.sql'), 'utf8'))
  const time = { environment, clock: 'environment' } as const
  return openPostgresStore({ connectionString, ...time, lifecycles: GOLDEN_LIFECYCLES })
}

const STORES = { sqlite: openSqliteCopy, postgres: openPostgresCopy }
const CASES = VERSIONS.flatMap((version) => [
  { version, store: 'sqlite' as const },
  { version, store: 'postgres' as const },
])

describe.each(CASES)('a store of $version on $store', ({ version, store: kind }) => {
  async function open() {
    const environment = yearLater()
    const store = await STORES[kind](version, environment)
    onTestFinished(() => store.close())
    const text = readFileSync(join(GOLDEN, version, 'expected.json'), 'utf8')
    return { store, environment, expected: JSON.parse(text)[kind] as Expected }
  }

  it('opens, contains what the old version saw in it, and is healthy', async () => {
    const { store, environment, expected } = await open()
    const { jobs, effects } = await contentsOf(store)
    const byId = (a: Job, b: Job) => (a.id < b.id ? -1 : 1)
    expect([...jobs].sort(byId)).toMatchObject([...expected.jobs].sort(byId))
    expect(effects).toMatchObject(expected.effects)
    expect(await store.counts()).toMatchObject(expected.counts)
    expect(await errorsOf(store, environment)).toEqual([])
    const broken = []
    for await (const finding of verifySeals(store.seals)) broken.push(finding)
    expect(broken).toEqual([])
  })

  it('goes on: every job that is not parked ends, every effect is delivered', async () => {
    const { store, environment } = await open()
    await store.resumeQueue('paused', OPERATOR)
    await store.limitQueue('bounded', { maxDepth: null, maxWaitMs: null })
    await finishEverything(store, environment)
    const { jobs, effects } = await contentsOf(store)
    const live = jobs.filter((job) => job.outcome === null && !isParked(job) && !isIdle(job))
    expect(live.map(({ id, state }) => `${id} ${state}`)).toEqual([])
    expect(effects.filter(({ state }) => state !== 'delivered')).toEqual([])
    expect(await errorsOf(store, environment)).toEqual([])
  })

  it('goes on with its runs, and repeats no finished work item', async () => {
    const { store } = await open()
    await goOnWithRuns({ journal: openStoreJournal({ store }) })
  })
})

it.each(VERSIONS)('a folder of runs of %s goes on, and repeats no work item', async (version) => {
  await goOnWithRuns({ folder: copyOf(version, 'runs') })
})

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'goes on' } as const

async function contentsOf(store: Store) {
  const jobs: Job[] = []
  let after: string | undefined
  do {
    const page = await store.list({}, { limit: 100, ...(after !== undefined && { after }) })
    jobs.push(...page.items)
    after = page.next
  } while (after !== undefined)
  const { items: effects } = await store.listEffects({}, { limit: 1000 })
  return { jobs, effects }
}

async function errorsOf(store: Store, environment: TestEnvironment): Promise<Finding[]> {
  const parts = { store, lifecycles: GOLDEN_LIFECYCLES, environment, thresholds: PATIENCE }
  const { findings } = await new Doctor(parts).check({ full: true })
  return findings.filter(({ severity }) => severity === 'error')
}

/** Recovers, promotes, claims and commits until nothing is left that a worker could do. */
async function finishEverything(store: Store, environment: TestEnvironment): Promise<void> {
  const parked = (await contentsOf(store)).effects.filter(({ state }) => state === 'parked')
  const keys = parked.map(({ key }) => key)
  await store.retryEffects(keys, OPERATOR)
  for (let idleRounds = 0, round = 0; idleRounds < 3; round++) {
    expect(round).toBeLessThan(100)
    const recovered = await store.recover(1000)
    const promoted = await store.promote(1000)
    const claim = { worker: 'w', limit: 1000, leaseMs: LEASE_MS, start: true }
    const claimed = await store.claim(claim)
    await store.settle(
      claimed.map((held) => {
        const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim ?? '' }
        // Past its deadline an attempt does not start, and can only fail.
        if (held.job.execution?.status === 'LEASED') {
          const failure = { class: 'terminal', kind: 'deadline', message: 'too late' } as const
          return { held, command: { kind: 'fail', fence, failure } }
        }
        return { held, command: { kind: 'commit', fence }, payload: '{}' }
      }),
    )
    const effects = await store.claimEffects({ limit: 1000, leaseMs: LEASE_MS })
    const reports = effects.map((effect): EffectReport => ({ kind: 'delivered', effect }))
    await store.settleEffects(reports)
    const found = recovered.length + promoted + claimed.length + effects.length
    idleRounds = found === 0 ? idleRounds + 1 : 0
    // Recovered jobs wait out a delay before the next attempt.
    environment.advance(120_000)
  }
}

function isParked({ state, blockedReason, lifecycle }: Job): boolean {
  const { roles } = GOLDEN_LIFECYCLES.find(({ name }) => name === lifecycle) ?? {}
  return blockedReason !== null || roles?.get(state) === 'parked'
}

function isIdle({ state, lifecycle, runAt }: Job): boolean {
  const { roles } = GOLDEN_LIFECYCLES.find(({ name }) => name === lifecycle) ?? {}
  return roles?.get(state) === 'idle' || runAt === null
}

async function goOnWithRuns(place: Parameters<typeof openRuns>[0]): Promise<void> {
  const done: string[] = []
  const definition = releaseRun(false, done)
  await using runs = await openRuns({ ...place, runs: [definition] })
  const ids = ['golden-cancelled', 'golden-done', 'golden-standing']
  for (const id of ids) expect(await runs.verify(id)).toEqual([])
  const outcome = await (await runs.resume('golden-standing')).result()
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(done).toEqual([])
  for (const id of ids) expect(await runs.verify(id)).toEqual([])
}
