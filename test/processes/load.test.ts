// Several processes on one file. PAWL_TEST_JOBS and PAWL_TEST_SECONDS make the run longer, and
// PAWL_TEST_SEED makes the processes do other things.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job } from 'pawl'
import { DEFAULT_POLICY, type Fact, type JobPolicy, standard } from 'pawl/rules'
import { openSqliteStore, type Store, systemEnvironment } from 'pawl/sqlite'
import { ManualClock } from 'pawl/testing'
import { expect, it } from 'vitest'
import { thorough } from '../support/extent.ts'
import { testSeed as seed } from '../support/seed.ts'
import { withHelpers } from './children.ts'
import { freshFolder } from './folder.ts'
import {
  allJobs,
  archivedLedgers,
  archivedResults,
  brokenBy,
  brokenPromises,
  integrityOf,
  openRaw,
  rowsOf,
} from './inspect.ts'

const LOAD = new URL('./load.mjs', import.meta.url)
const PROCESSES = 4
const DAY_MS = 24 * 60 * 60 * 1000
const jobs = Number(process.env.PAWL_TEST_JOBS ?? thorough(500, 2000))
const seconds = Number(process.env.PAWL_TEST_SECONDS ?? thorough(2, 5))

/** What a process counted. */
interface Load {
  readonly answers: Readonly<Record<string, number>>
  readonly errors: readonly string[]
}

/** Refusals that a caller must expect where others work on the same jobs. */
const EXPECTED = /^(settle|commit|cancel|redrive|recover): (done|same|asked|E_(.*))$/
const RACES = [
  'COMMIT_TOO_SLOW',
  'STALE_FENCE',
  'JOB_NOT_FOUND',
  'COMMITTED',
  'TRANSITION_INVALID',
  'JOB_ENDED',
]

const POLICY: JobPolicy = {
  ...DEFAULT_POLICY,
  retry: { ...DEFAULT_POLICY.retry, max: 50, delayMs: 20 },
  crashesMax: 50,
}

const idOf = (n: number) => `00000000-0000-7000-b000-${String(n).padStart(12, '0')}`

it('four processes that work on the same jobs lose none, commit none twice and see no error', {
  timeout: (seconds + 60) * 1000,
}, async () => {
  const folder = freshFolder()
  const path = join(folder, 'store.db')
  const ids = Array.from({ length: jobs }, (_, n) => idOf(n))
  await fill(path, ids)
  const loads = await withHelpers(LOAD, PROCESSES, (helpers) =>
    Promise.all(
      helpers.map((helper, i) =>
        helper.ask<Load>({
          ...{ kind: 'work', path, ids, seconds, seed: seed * 100 + i },
          ...{ worker: `worker-${i}`, archive: join(folder, `${i}.ndjson`) },
        }),
      ),
    ),
  )
  const context = `seed ${seed}`
  expect(
    loads.flatMap(({ errors }) => errors),
    context,
  ).toEqual([])
  expect(loads.flatMap(({ answers }) => Object.keys(answers)).filter(isOdd), context).toEqual([])
  expect(verbsIn(loads), context).toEqual(['cancel', 'commit', 'recover', 'redrive', 'settle'])
  await judge(path, ids, archivesIn(folder), context)
})

function isOdd(answer: string): boolean {
  const [, , kind, code] = EXPECTED.exec(answer) ?? []
  return kind === undefined || (code !== undefined && !RACES.includes(code))
}

/** The verbs of which each process was answered that something was done. */
function verbsIn(loads: readonly Load[]): string[] {
  const done = loads.flatMap(({ answers }) => Object.keys(answers))
  const verbs = done
    .filter((name) => /: (done|asked)$/.test(name))
    .map((name) => name.split(':')[0])
  return [...new Set(verbs)].sort() as string[]
}

async function fill(path: string, ids: readonly string[]): Promise<void> {
  await using store = await openSqliteStore({ path })
  const users = openRaw(path)
  users.exec('CREATE TABLE user_rows (job TEXT NOT NULL)')
  users.close()
  await store.enqueue(
    ids.map((jobId, i) => ({
      lifecycle: standard,
      command: { jobId, type: 'order', queue: `queue-${i % 3}`, policy: POLICY },
      input: JSON.stringify({ i }),
    })),
  )
}

function archivesIn(folder: string): string {
  const paths = Array.from({ length: PROCESSES }, (_, i) => join(folder, `${i}.ndjson`))
  return paths.map((path) => (existsSync(path) ? readFileSync(path, 'utf8') : '')).join('')
}

/** Nothing is lost, nothing is twice, and what is left can be brought to an end. */
async function judge(path: string, ids: readonly string[], archive: string, context: string) {
  expect(integrityOf(path), context).toEqual(['ok'])
  const archived = archivedLedgers(archive)
  const environment = { ...systemEnvironment(), clock: new ManualClock(Date.now() + DAY_MS) }
  await using store = await openSqliteStore({ path, environment })
  expect(await brokenPromises(store), context).toEqual([])
  await expectAccounted(path, store, ids, archived, context)
  await expectOneRowEach(path, store, archivedResults(archive), context)
  await drain(store, environment.clock)
  const left = await allJobs(store)
  expect(
    left.filter((job) => !isSettled(job)).map(({ id }) => id),
    context,
  ).toEqual([])
  expect(await brokenPromises(store), context).toEqual([])
}

/** Every job is in the store, or was archived whole before it was removed. */
async function expectAccounted(
  path: string,
  store: Store,
  ids: readonly string[],
  archived: ReadonlyMap<string, readonly Fact[]>,
  context: string,
): Promise<void> {
  const left = await allJobs(store)
  const kept = new Set(left.map(({ id }) => id))
  const removed = [...archived].filter(([id]) => !kept.has(id))
  expect([...kept, ...removed.map(([id]) => id)].sort(), context).toEqual(ids)
  const open = removed.filter(([, facts]) => facts.at(-1)?.outcome === undefined)
  expect(
    open.map(([id]) => id),
    context,
  ).toEqual([])
  expect(
    removed.flatMap(([, facts]) => brokenBy(facts)),
    context,
  ).toEqual([])
  expect(removed.length, context).toBeGreaterThan(0)

  await expectCounted(path, store, left, removed, context)
}

/** A job has a row of the user's own if a user's function committed it, and then exactly one. */
async function expectOneRowEach(
  path: string,
  store: Store,
  archived: ReadonlyMap<string, string | null>,
  context: string,
): Promise<void> {
  const results = new Map(archived)
  for (const { id } of await allJobs(store)) {
    const result = (await store.payloads(id))?.result
    if (result !== undefined) results.set(id, result)
  }
  const byUser = [...results].filter(([, result]) => result === '"user"').map(([id]) => id)
  const rows = rowsOf<{ job: string }>(path, 'SELECT job FROM user_rows ORDER BY job')
  expect(
    rows.map(({ job }) => job),
    context,
  ).toEqual(byUser.sort())
  expect(rows.length, context).toBeGreaterThan(0)
}

/** The roll-up of ended jobs and the records of retention say what there is, and what was. */
async function expectCounted(
  path: string,
  store: Store,
  left: readonly Job[],
  removed: readonly (readonly [string, readonly Fact[]])[],
  context: string,
): Promise<void> {
  const ended: Record<string, number> = {}
  for (const { outcome, state } of left) {
    if (outcome !== null) ended[state] = (ended[state] ?? 0) + 1
  }
  expect((await store.counts()).ended, context).toEqual(ended)
  const [pruned] = rowsOf(path, 'SELECT sum(jobs) AS jobs, sum(facts) AS facts FROM pawl_pruned')
  const facts = removed.reduce((sum, [, { length }]) => sum + length, 0)
  expect(pruned, context).toEqual({ jobs: removed.length, facts })
}

const isSettled = (job: Job) => job.outcome !== null || job.state === 'quarantined'

/** A day later every lease has run out and every job is due: one worker finishes them all. */
async function drain(store: Store, clock: ManualClock): Promise<void> {
  for (let round = 0; round < 1000; round++) {
    await store.recover(1000)
    await store.promote(1000)
    const held = await store.claim({ worker: 'last', limit: 500, leaseMs: 60_000, start: true })
    await store.settle(
      held.map((one) => {
        const fence = { attempt: one.job.attempt, claim: one.job.execution?.claim ?? '' }
        return { held: one, command: { kind: 'commit', fence }, payload: '"drained"' }
      }),
    )
    const { lanes } = await store.counts()
    if (lanes.waiting + lanes.ready + lanes.held === 0) return
    clock.advance(1000)
  }
}
