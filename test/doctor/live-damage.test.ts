// Any single damaged field of any row, with live workers, on both databases. Whatever it is:
//
//   neighbours in the same queue finish, and so do jobs of other queues, in other workers
//   lists, counts and tails answer, and show what cannot be read as damaged
//   the doctor answers, its repair can be carried out, and afterwards everything is clean
//   no acknowledged job is lost, and none that had succeeded is run again
//
//   runs answer or are named by a typed error, and at least one of the two can be opened
//   what was set aside goes on after the repair
//
// A sample by seed; PAWL_TEST_FUZZ=20 plays twenty times as many, PAWL_TEST_TABLES=runs,seals only
// on these tables.
import { LIFECYCLES } from 'pawl/rules'
import { describe, expect, it, onTestFinished } from 'vitest'
import { PawlError } from '../../src/core/errors.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import type { Pawl } from '../../src/engine/pawl.ts'
import type { PawlEvent } from '../../src/engine/watching/events.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import { openStoreJournal } from '../../src/runs/journal/store/journal.ts'
import { recordsOf } from '../../src/runs/journal/verify.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { SeededRandom } from '../../src/testing/seeded-random.ts'
import { testEnvironment } from '../../src/testing/test-environment.ts'
import { AUTHOR, JournalBench } from '../contract/journal/bench.ts'
import { thorough } from '../support/extent.ts'
import { freshServerDatabase } from '../support/postgres/databases.ts'
import { seedOf } from '../support/seed.ts'
import { admit, type Clinic, type Kind, liftGuards, openClinic } from './clinic.ts'

const ROUNDS = { sqlite: thorough(8, 60), postgres: thorough(3, 24) } as const
const factor = Number(process.env.PAWL_TEST_FUZZ ?? 1)
const PATIENCE_MS = 30_000

const ran: string[] = []
const mail = defineJob({
  name: 'mail',
  run: ({ jobId }) => {
    ran.push(jobId)
    return 'sent'
  },
  effects: { mail: async () => {} },
})
const neighbours = ['context', 'other'].map((queue) =>
  defineJob({ name: `neighbour-${queue}`, queue, run: ({ input }) => input }),
)

type Row = Record<string, unknown>

/** Every table, with the columns by which a row is found again. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  jobs: ['id'],
  ledger: ['job', 'seq'],
  outbox: ['job', 'name', 'n'],
  workers: ['id'],
  queues: ['name'],
  queue_records: ['number'],
  schedules: ['name'],
  schedule_records: ['number'],
  links: ['awaited', 'waiter', 'part'],
  flows: ['id'],
  machines: ['id'],
  ended_counts: ['queue', 'state'],
  duties: ['name'],
  runs: ['id'],
  run_events: ['run', 'seq'],
  run_contents: ['run', 'path'],
  seals: ['number'],
  seal_removals: ['number'],
  pruned: ['number'],
  quarantined: ['number'],
  migrations: ['number'],
}
/** Tables of one kind of store. */
const OWN_TABLES: Readonly<Record<Kind, typeof TABLES>> = {
  sqlite: { time: ['number'] },
  postgres: { store: ['id'] },
}
const WEIGHTED = ['jobs', 'jobs', 'jobs', 'jobs', 'ledger', 'ledger', 'outbox', 'outbox']
const WORDS = ['oops', '', '{', '[1]', '{}', 'null', '"x"', '"\u0000', '{"retry":5}', 'bogus']
const NUMBERS = [-1, 0, 1, 99, 2 ** 31 - 1, -(2 ** 31)]
/** Far ahead, and still a time that can be written down: the year 2200. */
const FAR = '7258118400000'
const HUGE = ['9223372036854775807', '-9223372036854775808', '9007199254740993']

interface Damage {
  readonly table: string
  readonly sql: string
  readonly isGuarded: boolean
}

async function damageOf(random: () => number, clinic: Clinic): Promise<Damage | undefined> {
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T
  const tables = { ...TABLES, ...OWN_TABLES[clinic.kind] }
  const only = process.env.PAWL_TEST_TABLES?.split(',')
  const table = pick(only ?? [...WEIGHTED, ...Object.keys(tables)])
  const rows = await clinic.rows<Row>(`SELECT * FROM @${table}`)
  if (rows.length === 0) return undefined
  const row = pick(rows)
  const keys = tables[table] as readonly string[]
  const quoted = (value: unknown) =>
    typeof value === 'number' ? String(value) : `'${String(value).replaceAll(`'`, `''`)}'`
  const where = keys.map((key) => `${key} = ${quoted(row[key])}`).join(' AND ')
  // The number of a row is no field of it.
  const numbers = ['rid', 'pos', 'eid']
  const column = pick(Object.keys(row).filter((name) => !numbers.includes(name)))
  // What another row has is sound by itself, and wrong here.
  const borrowed = pick(rows)[column]
  const values = ['NULL', ...WORDS.map(quoted), ...NUMBERS.map(String), ...HUGE, FAR, FAR]
  if (borrowed !== row[column] && !(borrowed instanceof Uint8Array)) {
    values.push(...Array.from({ length: 4 }, () => quoted(borrowed)))
  }
  const sql = `UPDATE @${table} SET ${column} = ${pick(values)} WHERE ${where}`
  // The bounds of queues and the like are settings: no facts say what they were.
  const isKept = ['jobs', 'ledger', 'outbox'].includes(table)
  return { table, sql, isGuarded: !isKept || random() < 0.5 }
}

/** Past the triggers of the table, which are there again afterwards. */
async function inflict(clinic: Clinic, { table, sql, isGuarded }: Damage): Promise<void> {
  const { kind, damage, rows } = clinic
  if (['jobs', 'ledger', 'outbox'].includes(table)) {
    if (!isGuarded) await liftGuards(clinic)
    else if (kind === 'sqlite') await damage('PRAGMA ignore_check_constraints = OFF')
    return damage(sql)
  }
  if (kind === 'postgres') {
    await damage('SET session_replication_role = replica')
    return damage(sql)
  }
  const triggers = await rows<{ name: string; sql: string }>(
    `SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '@${table}'`,
  )
  for (const { name } of triggers) await damage(`DROP TRIGGER ${name}`)
  try {
    await damage(sql)
  } finally {
    for (const trigger of triggers) await damage(trigger.sql)
  }
}

async function openPawl(store: Store, queues: string[], events: PawlEvent[]): Promise<Pawl> {
  const pawl = await createPawl({ store, jobs: [mail, ...neighbours] })
  const onEvent = (event: PawlEvent) => {
    if (event.type !== 'state') events.push(event)
  }
  const options = { concurrency: 2, poll: '50ms', recover: '100ms', lease: '5s' } as const
  await pawl.work({ id: `w-${queues[0]}`, queues, ...options, checkup: '500ms', onEvent })
  return pawl
}

async function openAll(kind: Kind) {
  const database = kind === 'sqlite' ? undefined : await freshServerDatabase()
  const clinic = await openClinic(kind, database?.url ?? '')
  const close = async () => {
    await clinic.close()
    await database?.drop()
  }
  return { clinic, close }
}

/** One more of everything: jobs in every place, an expired lease, one that is due in a moment. */
async function fill(store: Store, queue: string): Promise<string[]> {
  const examinedJobs = await admit(store)
  const ids: string[] = []
  for (const more of [{ tags: ['a', 'b'] }, { key: `k-${queue}` }, { runAt: store.now() + 300 }]) {
    const jobId = systemEnvironment().ids.next()
    const command = { jobId, type: 'mail', queue, ...more }
    const lifecycle = LIFECYCLES[ids.length] as (typeof LIFECYCLES)[0]
    await store.enqueue([{ lifecycle, command, input: '{"to":"bob"}' }])
    ids.push(jobId)
  }
  await store.claim({ worker: 'dead', queues: [queue], limit: 1, leaseMs: 1, start: true })
  await store.pauseQueue(`paused-${queue}`, { actor: 'operator', operator: 'ann', note: 'x' })
  await store.limitQueue(`bounded-${queue}`, { maxDepth: 5, maxWaitMs: 60_000 })
  await store.seals.make()
  await store.prune({ endedBefore: store.now() + 1, limit: 1 })
  await store.examination.note('note', 'content', 'why', { operator: 'ann', note: 'x' })
  await store.examination.takeDuty('rounds-of-old', 'w-old', 1)
  const journal = openStoreJournal({ store })
  const again = async () => journal
  const bench = new JournalBench(testEnvironment(), { journal, again, advance: () => {} })
  await bench.example('run-a')
  await bench.example('run-b')
  return [...Object.values(examinedJobs), ...ids]
}

async function playRound(kind: Kind, seed: number): Promise<void> {
  const source = new SeededRandom(seed + 1)
  const random = () => source.next()
  const { clinic, close } = await openAll(kind)
  try {
    await playOn(clinic, random, `seed ${seed} on ${kind}`)
  } catch (error) {
    throw new Error(`seed ${seed} on ${kind}: ${error}`, { cause: error })
  } finally {
    await close()
  }
}

async function playOn(clinic: Clinic, random: () => number, name: string): Promise<void> {
  const { store } = clinic
  const ids = await fill(store, 'context')
  await store.reportWorker({ id: 'old', state: 'Idle', info: '{}' })
  const succeeded = new Set((await store.list({ state: 'succeeded' })).items.map(({ id }) => id))
  const damage = await damageOf(random, clinic)
  if (damage === undefined) return
  const told = `${name}: ${damage.isGuarded ? '' : 'unguarded '}${damage.sql}`
  try {
    await inflict(clinic, damage)
  } catch {
    // A type, key or guard that refuses it.
    return
  }
  ran.length = 0
  const events: PawlEvent[] = []
  const pawls = [
    await openPawl(store, ['context'], events),
    await openPawl(store, ['other'], events),
  ]
  try {
    await expectNeighboursFinish(pawls, events, told)
    await expectAnswers(store, told)
    await expectRunsAnswer(store, damage.table, told)
    const runs = [recordsOf(openStoreJournal({ store }), 'the store', AUTHOR)]
    const environment = systemEnvironment()
    const doctor = new Doctor({ store, lifecycles: LIFECYCLES, environment, runs })
    await expectRepair(doctor, told)
    await expectDamagedGoOn(store, told)
  } finally {
    // Pawl closes the store that it works on: the clinic needs it no longer.
    await Promise.all(pawls.map((pawl) => pawl.close()))
  }
  const rerun = ran.filter((id) => succeeded.has(id))
  expect(rerun, told).toEqual([])
  expect(ids.length).toBeGreaterThan(0)
}

async function expectNeighboursFinish(pawls: Pawl[], events: PawlEvent[], told: string) {
  const [pawl] = pawls as [Pawl]
  const handles = await Promise.all(
    [...neighbours, ...neighbours].map((job, input) => pawl.enqueue(job, input)),
  )
  const results = handles.map((handle) => handle.result({ timeout: PATIENCE_MS }))
  const errors = () => events.flatMap((event) => (event.type === 'error' ? [event.error] : []))
  await Promise.all(results).catch((error) => {
    throw new Error(`${told}: ${error}; ${errors().slice(0, 3).map(String).join('; ')}`)
  })
}

async function expectAnswers(store: Store, told: string): Promise<void> {
  const asked = {
    list: () => store.list({}, { limit: 100 }),
    byTag: () => store.list({ tag: 'a' }),
    byError: () => store.list({ error: 'address' }),
    counts: () => store.counts(),
    queues: () => store.listQueues(),
    workers: () => store.listWorkers(),
    effects: () => store.listEffects({}),
    audit: () => store.audit({}, { limit: 1000 }),
    tail: () => store.tail(undefined, 1000),
    prune: () => store.prune({ endedBefore: 1, limit: 10 }),
    promote: () => store.promote(100),
    recover: () => store.recover(100),
    shed: () => store.shed(100),
    nextDue: () => store.nextDue(),
  }
  for (const [verb, ask] of Object.entries(asked)) {
    await ask().catch((error: unknown) => {
      throw new Error(`${told}: ${verb} failed: ${error}`)
    })
  }
}

async function expectRepair(doctor: Doctor, told: string): Promise<void> {
  await doctor.check({ full: true })
  const repaired = await doctor.repair({ operator: 'ann', reason: 'fuzz' })
  const failed = repaired.findings.filter(({ check }) => check === 'repairs-are-carried-out')
  expect(failed, told).toEqual([])
  const clean = await doctor.check({ full: true })
  const left = clean.findings.filter(({ severity, advice }) => severity === 'error' && !advice)
  expect(left, told).toEqual([])
}

/** Every run answers or is named by a typed error; at most one of the two is damaged. */
async function expectRunsAnswer(store: Store, table: string, told: string): Promise<void> {
  const journal = openStoreJournal({ store })
  const found = await journal.list()
  const named = ['run-a', 'run-b'].filter((id) => found.includes(id))
  expect(named.length, told).toBeGreaterThanOrEqual(table === 'runs' ? 1 : 2)
  const failed = new Set<string>()
  for (const id of found) {
    const asked = [
      () => journal.peek(id),
      async () => (await journal.read(id)).replay(),
      () => journal.verify(id),
      async () => (await journal.open(id, AUTHOR)).close(),
    ]
    for (const ask of asked) {
      try {
        await ask()
      } catch (error) {
        expect(error, `${told}: run ${id}`).toBeInstanceOf(PawlError)
        expect(`${error}`, `${told}: run ${id}`).toContain(id)
        failed.add(id)
      }
    }
  }
  expect(named.filter((id) => !failed.has(id)).length, told).toBeGreaterThanOrEqual(1)
}

/** What was set aside is not set aside any more. */
async function expectDamagedGoOn(store: Store, told: string): Promise<void> {
  const { items, damaged = [] } = await store.list({}, { limit: 1000 })
  expect(damaged, told).toEqual([])
  expect(
    items.filter(({ blockedReason }) => blockedReason === 'damaged'),
    told,
  ).toEqual([])
}

describe.each<Kind>(['sqlite', 'postgres'])('any damaged field on %s', (kind) => {
  it('stops nobody else, and is repaired', async () => {
    onTestFinished(() => {
      ran.length = 0
    })
    for (let round = 0; round < ROUNDS[kind] * factor; round++) {
      await playRound(kind, seedOf(round))
    }
  }, 3_600_000)
})
