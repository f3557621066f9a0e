/**
 * What must be true after a system call failed, or a process died at one: the process ended as it
 * should, the file is whole, everything that was acknowledged is there, the story can be told to
 * its end, and then every promise holds.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { type Fact, fold, standard } from 'pawl/rules'
import { type Held, openSqliteStore, type Store, systemEnvironment } from 'pawl/sqlite'
import {
  commitOf,
  type Judged,
  judgeAcknowledged,
  judgeEffects,
  judgeJobs,
  judgeRows,
  readStore,
  type Told as ToldJob,
  type UserRow,
} from '../../sim/checker.ts'
import { EFFECT, TABLE } from '../settings.ts'
import { rowsOf } from '../sqlite-file.ts'
import { bookIn, JOBS, jobIdOf, type Said } from './story.ts'
import type { Place, Point, Told } from './strace.ts'

const HOUR_MS = 3_600_000
const ROUNDS_MAX = 8
const REQUEST = { worker: 'finisher', limit: 100, leaseMs: 60_000, start: true }

/** Judges one point; the place is used up. */
export async function judge(place: Place, point: Point, told: Told): Promise<Judged[]> {
  const found = judgeEnd(point, told)
  const damage = integrityOf(place.path)
  if (damage.length > 0) return [...found, ...damage.map((what) => broken('integrity', what))]
  const { said } = told
  const delivered = new Set(said.flatMap((one) => (one.kind === 'delivered' ? one.key : [])))
  const { jobs, before, now } = await finish(place, delivered)
  const ids = (kinds: readonly Said['kind'][]) =>
    said.flatMap((one) => ('id' in one && kinds.includes(one.kind) ? { id: one.id } : []))
  const asked = new Set(Array.from({ length: JOBS }, (_, n) => jobIdOf(n)))
  const committed = new Set(before.flatMap(({ job, facts }) => (commitOf(facts) ? job.id : [])))
  const uncommitted = ids(['committed', 'settled']).filter(({ id }) => !committed.has(id))
  const rows = rowsOf<UserRow>(place.path, `SELECT job, attempt FROM ${TABLE}`)
  const hasRow = new Set(rows.map(({ job }) => job))
  return [
    ...found,
    ...judgeAcknowledged(before, ids(['acknowledged']), asked),
    ...uncommitted.map(({ id }) => ({ ...broken('P1', 'the commit is gone'), job: id })),
    ...judgeJobs(jobs, now),
    // What was settled without a function has no row; of whom that is, the first process knew.
    ...judgeRows(jobs, rows, ({ id }) => hasRow.has(id) || effectsOf(jobs, id) > 0),
    ...judgeEffects(jobs, delivered, EFFECT),
  ]
}

/** P16: a typed error, a retry, or the death that was ordered. */
function judgeEnd({ call, n, fate }: Point, { hasHit, code, signal, said, stderr }: Told) {
  const end = signal ?? `code ${code}`
  const errors = said.filter((one) => one.kind === 'error')
  const heard = errors.map((one) => `${one.step}: ${one.code}: ${one.message}`)
  if (!hasHit) return [broken('vacuity', `${call} ${n} was never reached`)]
  if (fate === 'SIGKILL') return []
  const untyped = errors.some((one) => one.code === null)
  const isLoud = code === 0 || (code === 3 && errors.length > 0)
  // A call that was interrupted is made again, without an error.
  const isHeard = fate === 'EINTR' && (errors.length > 0 || code !== 0)
  return isLoud && !untyped && !isHeard
    ? []
    : [broken('P16', `ended with ${end}: ${heard.join('; ')} ${stderr}`)]
}

/** Lets a new process, later, do whatever was left; gives everything that ever happened. */
async function finish(place: Place, delivered: Set<string>) {
  let offset = HOUR_MS
  const clock = { now: () => Date.now() + offset }
  const environment = { ...systemEnvironment(), clock }
  const store = await openSqliteStore({ path: place.path, environment })
  try {
    const archived = readArchive(place.archive)
    const before = merged(await readStore(store), archived)
    await enqueueMissing(store, before)
    for (let round = 0; round < ROUNDS_MAX && (await isOpen(store)); round++) {
      await store.recover(100)
      await store.promote(100)
      for (const held of await store.claim(REQUEST)) await commit(store, held)
      const effects = await store.claimEffects({ limit: 100, leaseMs: 60_000 })
      for (const { key } of effects) delivered.add(key)
      await store.settleEffects(effects.map((effect) => ({ kind: 'delivered', effect })))
      offset += HOUR_MS
    }
    return { jobs: merged(await readStore(store), archived), before, now: store.now() }
  } finally {
    await store.close()
  }
}

async function enqueueMissing(store: Store, there: readonly ToldJob[]): Promise<void> {
  const known = new Set(there.map(({ job }) => job.id))
  const missing = Array.from({ length: JOBS }, (_, n) => jobIdOf(n)).filter((id) => !known.has(id))
  const items = missing.map((jobId) => ({
    lifecycle: standard,
    command: { jobId, type: 'order', queue: 'main' },
    input: '{}',
  }))
  await store.enqueue(items)
}

async function isOpen(store: Store): Promise<boolean> {
  const { waiting, ready, held, delivering } = (await store.counts()).lanes
  return waiting + ready + held + delivering > 0
}

async function commit(store: Store, held: Held): Promise<void> {
  const answer = await store.commit(held, bookIn(held.job))
  if (answer.kind === 'rejected') throw answer.error
}

/** The jobs of a store, and those that only an archive has any more. */
function merged(there: readonly ToldJob[], archived: readonly ToldJob[]): ToldJob[] {
  const known = new Set(there.map(({ job }) => job.id))
  return [...there, ...archived.filter(({ job }) => !known.has(job.id))]
}

/** The ledgers of an archive; one that was begun before its process died is not in it yet. */
function readArchive(path: string): ToldJob[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('}'))
  const ledgers = new Map<string, Map<number, Fact>>()
  for (const line of lines) {
    const { fact } = JSON.parse(line) as { fact: Fact }
    const ledger = ledgers.get(fact.jobId) ?? new Map<number, Fact>()
    ledgers.set(fact.jobId, ledger.set(fact.seq, fact))
  }
  return [...ledgers.values()].flatMap((ledger) => {
    const facts = [...ledger.values()].sort((a, b) => a.seq - b.seq)
    const job = fold(facts)
    return job === null ? [] : [{ job, facts }]
  })
}

function effectsOf(jobs: readonly ToldJob[], id: string): number {
  const facts = jobs.find(({ job }) => job.id === id)?.facts ?? []
  return commitOf(facts)?.effects ?? 0
}

/** What SQLite itself finds wrong with a file; a file that was not made yet is in order. */
function integrityOf(path: string): string[] {
  if (!existsSync(path) || statSync(path).size === 0) return []
  try {
    return rowsOf<{ integrity_check: string }>(path, 'PRAGMA integrity_check')
      .map(({ integrity_check }) => integrity_check)
      .filter((text) => text !== 'ok')
  } catch (error) {
    return [String(error)]
  }
}

function broken(promise: string, what: string): Judged {
  return { promise, job: '', what, facts: [] }
}
