// kill -9 at every crash point of every verb. A child process with a story dies at one point; what
// the file holds then is compared, row by row, with the file of a run that nobody killed; then
// another process goes on from there. Time, chance and ids of the story are fixed, so either the
// verb has happened as a whole, or the file is as it was before.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Fact } from 'pawl/rules'
import { openSqliteStore } from 'pawl/sqlite'
import { CRASH_POINTS } from 'pawl/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mapInLanes, runChild } from '../processes/children.ts'
import {
  allJobs,
  archivedLedgers,
  brokenBy,
  brokenPromises,
  dumpOf,
  integrityOf,
  rowsOf,
} from '../processes/inspect.ts'
import { isProof } from '../support/extent.ts'

const STORY = new URL('./story.mjs', import.meta.url)
const RESUME = new URL('./resume.mjs', import.meta.url)
const START = Date.UTC(2026, 0, 1)

/** Every verb that writes; opening a store and joining the user's transaction write as well. */
const WRITING = [
  ...['open', 'enqueueTx'],
  ...new Set(CRASH_POINTS.map((point) => point.slice(0, point.lastIndexOf('.')))),
].filter((verb) => verb !== 'tend')
const READING = [
  ...['now', 'steps', 'listWorkers', 'get', 'getMany', 'getByKey', 'facts', 'asOf'],
  ...['payloads', 'list', 'counts', 'tail', 'progress', 'nextDue', 'listEffects'],
  ...['listQueues', 'tailEnd', 'audit', 'timeStatus', 'listQueueRecords', 'listMachines'],
  'traces',
]
/** Not in the story: they need damage, two versions of a lifecycle, or a singleton that waits. */
const UNPLAYED = ['isolate', 'setHeldAside', 'migrate', 'tend']
const OTHER = [
  ...['perform', 'performEach', 'look', 'read', 'budget', 'aroundDamage'],
  ...['constructor', 'close', 'onWake'],
]
const POINTS = ['begun', 'written', 'committed']

type Said =
  | { kind: 'point'; step: string; name: string }
  | { kind: 'acknowledged'; step: string; answer?: unknown }
  | { kind: 'delivered'; path: string; key: string; payload: string }

/** A place where a process dies, and the steps before and after which the file may then be. */
interface Place {
  readonly number: number
  readonly name: string
  readonly step: string
}

/** The run that nobody killed. */
interface Reference {
  readonly steps: readonly string[]
  readonly places: readonly Place[]
  /** The file after each step. */
  readonly dumps: ReadonlyMap<string, Record<string, unknown[]>>
}

const folder = mkdtempSync(join(tmpdir(), 'pawl-kill-'))
let reference: Reference

beforeAll(async () => {
  const snapshots = join(folder, 'snapshots')
  mkdirSync(snapshots)
  const { said, code, stderr } = await runChild<Said>(STORY, {
    ...filesOf('reference'),
    snapshots,
    start: START,
  })
  if (code !== 0) throw new Error(stderr)
  const refused = said.filter((one) => JSON.stringify(one).includes('"rejected"'))
  if (refused.length > 0) throw new Error(`the story was refused: ${JSON.stringify(refused)}`)
  const steps = stepsOf(said)
  reference = {
    steps,
    places: said
      .filter((one) => one.kind === 'point')
      .map(({ name, step }, number) => ({ name, step, number }))
      // A declaration looks for jobs that may start now; in the story no job waits for it.
      .filter(({ name }) => !name.startsWith('limits.open.'))
      // In a group every verb passes its point at the same place.
      .filter(
        ({ name, step }, i, all) =>
          all.findIndex((other) => other.name === name && other.step === step) === i,
      ),
    dumps: new Map(steps.map((step) => [step, dumpOf(join(snapshots, `${step}.db`))])),
  }
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the crash points', () => {
  it('exist before, inside and after the transaction of every verb that writes', () => {
    const names = new Set(reference.places.map(({ name }) => name))
    const wanted = WRITING.flatMap((verb) => POINTS.map((point) => `${verb}.${point}`))
    expect(wanted.filter((name) => !names.has(name))).toEqual([])
    const inside = ['commit.working', 'prune.archived']
    expect([...names].sort()).toEqual([...wanted, ...inside].sort())
  })

  it('leave out no verb of the store', async () => {
    await using store = await openSqliteStore({ path: ':memory:' })
    const own = Object.getPrototypeOf(store)
    const shared = Object.getPrototypeOf(own)
    const reading = Object.getPrototypeOf(shared)
    const verbs = [own, shared, reading].flatMap(Object.getOwnPropertyNames)
    const known = [...WRITING, ...READING, ...UNPLAYED, ...OTHER]
    expect(verbs.filter((verb) => !known.includes(verb))).toEqual([])
  })

  it('stand in steps that each are one transaction', () => {
    for (const step of reference.steps) {
      const names = reference.places.filter((place) => place.step === step).map(({ name }) => name)
      const committed = names.findIndex((name) => name.endsWith('.committed'))
      const after = names.slice(committed)
      expect(after.filter((name) => !name.endsWith('.committed'))).toEqual([])
      expect(committed).toBeGreaterThan(0)
    }
  })
})

describe('a process that is killed', { timeout: 60_000 }, () => {
  it.each(WRITING)(
    'in the middle of %s loses nothing and leaves nothing half done',
    async (verb) => {
      const every = reference.places.filter(({ name }) => name.startsWith(`${verb}.`))
      const places = isProof ? every : firstOfEach(every)
      expect(places.length).toBeGreaterThanOrEqual(POINTS.length)
      const deaths = await mapInLanes(places, 3, dieAt)
      const runs = deaths.map(({ path, told }) => ({ path, acknowledged: told }))
      const resumed = await runChild<Said>(RESUME, { runs, start: START })
      expect(resumed).toMatchObject({ code: 0, stderr: '' })
      for (const death of deaths) await expectEnded(death, resumed.said)
    },
  )
})

/** The first step of the story for each crash point; `npm run prove` takes every step. */
function firstOfEach(places: readonly Place[]): Place[] {
  return places.filter(({ name }, i) => places.findIndex((other) => other.name === name) === i)
}

/** What a death left behind. */
interface Death {
  readonly name: string
  readonly path: string
  readonly archive: string
  /** The steps that the dead process had been told of. */
  readonly told: readonly string[]
  readonly said: readonly Said[]
}

/** Dies at a place, and looks at what is left. */
async function dieAt({ number, name, step }: Place): Promise<Death> {
  const files = filesOf(`${number}-${name}`)
  const died = await runChild<Said>(STORY, { ...files, start: START, crashAt: number })
  expect(died, name).toMatchObject({ signal: 'SIGKILL', stderr: '' })

  const told = reference.steps.slice(0, reference.steps.indexOf(step))
  expect(stepsOf(died.said), name).toEqual(told)
  const happened = name.endsWith('.committed') ? step : told.at(-1)
  const expected = happened === undefined ? {} : reference.dumps.get(happened)
  expect(withoutUsers(dumpOf(files.path), happened), name).toEqual(expected)
  expect(integrityOf(files.path), name).toEqual(['ok'])
  await using store = await openSqliteStore({ path: files.path })
  expect(await brokenPromises(store), name).toEqual([])
  return { ...files, name, told, said: died.said }
}

/** The user's own tables are made after opening, apart from the store. */
function withoutUsers(dump: Record<string, unknown[]>, happened: string | undefined) {
  if (happened !== 'open') return dump
  return { user_notes: [], user_rows: [], ...dump }
}

/** Every job has ended or is parked, and its commit made exactly one row of the user's own. */
async function expectEnded(death: Death, resumed: readonly Said[]): Promise<void> {
  const { name, path, archive } = death
  await using store = await openSqliteStore({ path })
  expect(await brokenPromises(store), name).toEqual([])
  const jobs = await allJobs(store)
  const open = jobs.filter((job) => job.outcome === null && job.state !== 'quarantined')
  expect(
    open.map(({ id, state }) => [id, state]),
    name,
  ).toEqual([])

  const ledgers = archivedLedgers(existsSync(archive) ? readFileSync(archive, 'utf8') : '')
  expect([...ledgers.values()].flatMap(brokenBy), name).toEqual([])
  for (const { id } of jobs) ledgers.set(id, await store.facts(id))
  const enqueued = [...ledgers].filter(([, facts]) => !isOfSchedule(facts)).map(([id]) => id)
  expect(enqueued.sort(), name).toEqual(idsOfStory())
  const rows = rowsOf<{ job: string }>(path, 'SELECT job FROM user_rows ORDER BY job')
  const committed = [...ledgers].filter(([, facts]) => isCommittedByUser(facts)).map(([id]) => id)
  expect(
    rows.map(({ job }) => job),
    name,
  ).toEqual(committed.sort())
  expectDelivered(death, resumed)
  expect(integrityOf(path), name).toEqual(['ok'])
}

function isCommittedByUser(facts: readonly Fact[]): boolean {
  const silent = facts[0]?.created?.type.startsWith('silent')
  return !silent && facts.some(({ trigger }) => trigger === 'commit')
}

function isOfSchedule(facts: readonly Fact[]): boolean {
  return facts[0]?.created?.type === 'ticked'
}

/** Every job that the story enqueues, as its unkilled run recorded them. */
function idsOfStory(): string[] {
  const rows = [...reference.dumps.values()].flatMap((dump) =>
    (dump.pawl_jobs ?? []).map((row) => JSON.parse(row as string) as { id: string; type: string }),
  )
  const enqueued = rows.filter(({ type }) => type !== 'ticked')
  return [...new Set(enqueued.map(({ id }) => id))].sort()
}

/** Every effect was delivered, perhaps more than once, but always as the same one. */
function expectDelivered({ name, path, said }: Death, resumed: readonly Said[]): void {
  const payloads = new Map<string, Set<string>>()
  for (const one of [...said, ...resumed]) {
    if (one.kind !== 'delivered' || one.path !== path) continue
    payloads.set(one.key, (payloads.get(one.key) ?? new Set()).add(one.payload))
  }
  const differing = [...payloads.values()].filter(({ size }) => size !== 1)
  expect(differing, name).toEqual([])
  const declared = rowsOf<{ key: string; state: string }>(
    path,
    `SELECT pawl_jobs.id || '/' || name || '/' || n AS key, pawl_outbox.state
     FROM pawl_outbox JOIN pawl_jobs ON pawl_jobs.rid = pawl_outbox.job ORDER BY key`,
  )
  expect(declared.length, name).toBeGreaterThan(0)
  expect(
    declared.filter(({ state }) => state !== 'delivered'),
    name,
  ).toEqual([])
  expect([...payloads.keys()].sort(), name).toEqual(declared.map(({ key }) => key))
}

function stepsOf(said: readonly Said[]): string[] {
  return said.filter((one) => one.kind === 'acknowledged').map(({ step }) => step)
}

function filesOf(name: string): { path: string; archive: string } {
  return { path: join(folder, `${name}.db`), archive: join(folder, `${name}.ndjson`) }
}
