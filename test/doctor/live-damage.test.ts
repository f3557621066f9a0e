// Any single damaged field of any row, with live workers, on both databases. Whatever it is:
//
//   neighbours in the same queue finish, and so do jobs of other queues, in other workers
//   lists, counts and tails answer, and show what cannot be read as damaged
//   the doctor answers, its repair can be carried out, and afterwards everything is clean
//   no acknowledged job is lost, and none that had succeeded is run again
//
// A sample by seed; PAWL_TEST_FUZZ=20 plays twenty times as many.
import { LIFECYCLES } from 'pawl'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import { createPawl, type Pawl } from '../../src/engine/pawl.ts'
import type { PawlEvent } from '../../src/engine/watching/events.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Store } from '../../src/stores/store.ts'
import { SeededRandom } from '../../src/testing/seeded-random.ts'
import { freshServerDatabase } from '../support/postgres/databases.ts'
import { admit, type Clinic, type Kind, liftGuards, openClinic } from './clinic.ts'

const ROUNDS = { sqlite: 40, postgres: 15 } as const
const factor = Number(process.env.PAWL_TEST_FUZZ ?? 1)
const first = Number(process.env.PAWL_TEST_SEED ?? 0)
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
const neighbours = ['ward', 'other'].map((queue) =>
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
  machines: ['id'],
  ended_counts: ['queue', 'state'],
  duties: ['name'],
}
const WEIGHTED = ['jobs', 'jobs', 'jobs', 'jobs', 'ledger', 'ledger', 'outbox', 'outbox']
const WORDS = ['oops', '', '{', '[1]', '{}', 'null', '"x"', '"\u0000', '{"retry":5}', 'bogus']
const NUMBERS = [-1, 0, 1, 99, 2 ** 31 - 1, -(2 ** 31)]
const HUGE = ['9223372036854775807', '-9223372036854775808', '9007199254740993']

interface Damage {
  readonly sql: string
  readonly isGuarded: boolean
}

async function damageOf(random: () => number, clinic: Clinic): Promise<Damage | undefined> {
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T
  const table = pick([...WEIGHTED, ...Object.keys(TABLES)])
  const rows = await clinic.rows<Row>(`SELECT * FROM @${table}`)
  if (rows.length === 0) return undefined
  const row = pick(rows)
  const keys = TABLES[table] as readonly string[]
  const quoted = (value: unknown) =>
    typeof value === 'number' ? String(value) : `'${String(value).replaceAll(`'`, `''`)}'`
  const where = keys.map((key) => `${key} = ${quoted(row[key])}`).join(' AND ')
  // The number of a row is no field of it; and all jobs refer to the names of their machine.
  const numbers = table === 'machines' ? ['id', 'name', 'version'] : ['rid', 'pos', 'eid']
  const column = pick(Object.keys(row).filter((name) => !numbers.includes(name)))
  const values = ['NULL', ...WORDS.map(quoted), ...NUMBERS.map(String), ...HUGE]
  const sql = `UPDATE @${table} SET ${column} = ${pick(values)} WHERE ${where}`
  // The bounds of queues and the like are settings: no facts say what they were.
  const isKept = ['jobs', 'ledger', 'outbox'].includes(table)
  return { sql, isGuarded: !isKept || random() < 0.5 }
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
  const patients = await admit(store)
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
  return [...Object.values(patients), ...ids]
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
  const ids = await fill(store, 'ward')
  await store.reportWorker({ id: 'old', state: 'Idle', info: '{}' })
  const succeeded = new Set((await store.list({ state: 'succeeded' })).items.map(({ id }) => id))
  const damage = await damageOf(random, clinic)
  if (damage === undefined) return
  if (!damage.isGuarded) await liftGuards(clinic)
  else if (clinic.kind === 'sqlite') await clinic.damage('PRAGMA ignore_check_constraints = OFF')
  const told = `${name}: ${damage.isGuarded ? '' : 'unguarded '}${damage.sql}`
  try {
    await clinic.damage(damage.sql)
  } catch {
    // A type, key or guard that refuses it.
    return
  }
  ran.length = 0
  const events: PawlEvent[] = []
  const pawls = [await openPawl(store, ['ward'], events), await openPawl(store, ['other'], events)]
  try {
    await expectNeighboursFinish(pawls, events, told)
    await expectAnswers(store, told)
    const doctor = new Doctor({ store, lifecycles: LIFECYCLES, environment: systemEnvironment() })
    await expectRepair(doctor, told)
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
  const left = clean.findings.filter(({ severity }) => severity === 'error')
  expect(left, told).toEqual([])
}

describe.each<Kind>(['sqlite', 'postgres'])('any damaged field on %s', (kind) => {
  it('stops nobody else, and is repaired', async () => {
    onTestFinished(() => {
      ran.length = 0
    })
    for (let round = 0; round < ROUNDS[kind] * factor; round++) {
      await playRound(kind, first + round)
    }
  }, 3_600_000)
})
