// Random damage to random rows, past every constraint, on a ledger that was sealed before. Judged
// by a pristine copy of all rows, never by the doctor itself:
//
//   the doctor never throws, and neither does a repair
//   it never finds clean what differs from the copy in anything but what is volatile
//   no job that was acknowledged is lost by a repair, and none that had succeeded is run again
//   after a repair the store is clean, and a second plan is empty
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sealUp } from '../../src/audit/seal-up.ts'
import type { Job } from '../../src/core/job/job.ts'
import { SeededRandom } from '../../src/testing/seeded-random.ts'
import { thorough } from '../support/extent.ts'
import { freshServerDatabase, ownPostgres } from '../support/postgres/databases.ts'
import { seedOf, testSeed } from '../support/seed.ts'
import { admit, type Clinic, type Kind, liftGuards, openClinic } from './clinic.ts'

const server = ownPostgres()
const ROUNDS = { sqlite: thorough(20, 500), postgres: thorough(10, 100) } as const
const factor = Number(process.env.PAWL_TEST_FUZZ ?? 1)

type Row = Record<string, unknown>
type Table = 'jobs' | 'ledger' | 'outbox'
type Copy = Record<Table, Row[]>

/** What is written without a fact, and so may be anything; and what a store keeps for itself. */
const VOLATILE: Readonly<Record<Table, readonly string[]>> = {
  // The gate that blocks a job means something only while it is blocked; see limits.test.ts.
  jobs: ['lease_until', 'progress', 'cancel_asked_at', 'place', 'blocked_on'],
  // The mark of a creation only repeats the id of the job; names of effects stand nowhere else.
  ledger: ['tx', 'pos', 'creates'],
  outbox: ['eid', 'mark', 'name', 'tries', 'run_at', 'claim', 'error', 'payload', 'type', 'state'],
}
const KEYS: Readonly<Record<Table, string>> = {
  jobs: 'id',
  ledger: 'job, seq',
  outbox: 'job, name, n',
}
const WORDS = ['queued', 'running', 'succeeded', 'x', '', 'null', '{}', '{"a":1}', 'LI', 'C', 'A']
const NUMBERS = [-1, 0, 1, 2, 7, 30, 64, 99, 2 ** 31 - 1]

async function copyOf(clinic: Clinic): Promise<Copy> {
  const read = (table: Table) => clinic.rows<Row>(`SELECT * FROM @${table} ORDER BY ${KEYS[table]}`)
  return { jobs: await read('jobs'), ledger: await read('ledger'), outbox: await read('outbox') }
}

/** The rows of a table as they count. */
function countingOf(table: Table, rows: readonly Row[]): string[] {
  return rows.map((row) => {
    const kept = Object.entries(row).filter(([column]) => !VOLATILE[table].includes(column))
    return JSON.stringify(Object.fromEntries(kept.map(([name, value]) => [name, meant(value)])))
  })
}

/** JSON that says the same is the same. */
function meant(value: unknown): unknown {
  try {
    return JSON.parse(value as string) as unknown
  } catch {
    return value
  }
}

function differs(before: Copy, after: Copy): boolean {
  return (Object.keys(before) as Table[]).some((table) => {
    const [one, other] = [before, after].map((copy) => countingOf(table, copy[table]))
    return JSON.stringify(one) !== JSON.stringify(other)
  })
}

/** A literal for a column, of the kind that it holds, but mostly wrong. */
function literal(random: () => number, value: unknown, kind: Kind): string {
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T
  if (random() < 0.15) return 'NULL'
  if (typeof value === 'number') return String(pick([...NUMBERS, value + 1, value - 1]))
  const isUuid = typeof value === 'string' && /^[0-9a-f]{8}-/.test(value)
  if (isUuid && kind === 'postgres')
    return `'00000000-0000-7000-8000-00000000${pick(['dead', 'beef'])}'`
  if (typeof value === 'string' && value.length > 2 && random() < 0.5) {
    const at = Math.floor(random() * value.length)
    const flipped = value.slice(0, at) + pick(['"', 'z', '}', '0']) + value.slice(at + 1)
    return `'${flipped.replaceAll(`'`, `''`)}'`
  }
  return `'${pick(WORDS)}'`
}

/** One statement that damages something. */
function damageOf(random: () => number, clinic: Clinic, copy: Copy): string {
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T
  const table = pick<Table>(['jobs', 'jobs', 'jobs', 'ledger', 'ledger', 'ledger', 'outbox'])
  const row = pick(copy[table])
  const quoted = (value: unknown) => (typeof value === 'number' ? value : `'${value}'`)
  const where = KEYS[table]
    .split(', ')
    .map((key) => `${key} = ${quoted(row[key])}`)
    .join(' AND ')
  if (random() < 0.15) return `DELETE FROM @${table} WHERE ${where}`
  const columns = Object.keys(row).filter((column) => !['rid', 'pos', 'eid', 'tx'].includes(column))
  const column = pick(columns)
  const value = literal(random, row[column], clinic.kind)
  return `UPDATE @${table} SET ${column} = ${value} WHERE ${where}`
}

describe.each<Kind>(['sqlite', 'postgres'])('random damage on %s', (kind) => {
  let clinic: Clinic
  let drop: () => Promise<void>

  beforeAll(async () => {
    const database = kind === 'sqlite' ? undefined : await freshServerDatabase(server.url())
    drop = database?.drop ?? (async () => {})
    clinic = await openClinic(kind, database?.url ?? '')
  })

  afterAll(async () => {
    await clinic.close()
    await drop()
  })

  it('is found, and its repair loses nothing', async () => {
    let caught = 0
    for (let round = 0; round < ROUNDS[kind] * factor; round++) {
      // A store that has been through many rounds is as good as new, and is kept small.
      if (round % 10 === 0) {
        await clinic.close()
        await drop()
        const database = kind === 'sqlite' ? undefined : await freshServerDatabase(server.url())
        drop = database?.drop ?? (async () => {})
        clinic = await openClinic(kind, database?.url ?? '')
        await admit(clinic.store)
      }
      caught += await playRound(clinic, round)
    }
    expect(caught).toBeGreaterThan(ROUNDS[kind] / 2)
  }, 600_000)
})

async function playRound(clinic: Clinic, round: number): Promise<number> {
  const { store, doctor } = clinic
  const random = new SeededRandom(seedOf(round + 1))
  const examinedJobs = await admit(store)
  const acknowledged = await Promise.all(Object.values(examinedJobs).map((id) => store.get(id)))
  for await (const _seal of sealUp(store));
  await liftGuards(clinic)
  const before = await copyOf(clinic)
  const sql = damageOf(() => random.next(), clinic, before)
  const told = `seed ${testSeed}, round ${round}: ${sql}`
  try {
    await clinic.damage(sql)
  } catch {
    // A type or a key that even now refuses it.
    return 0
  }
  const isDamaged = differs(before, await copyOf(clinic))
  const found = await doctor.check({ full: true })
  const seen = found.findings.filter(({ severity, check }) => {
    return severity === 'error' && check !== 'schema-is-as-declared'
  })
  if (isDamaged) expect(seen, told).not.toEqual([])
  const repaired = await doctor.repair({ operator: 'ann', reason: 'fuzz' })
  const failed = repaired.findings.filter(({ check }) => check === 'repairs-are-carried-out')
  expect(failed, told).toEqual([])
  const clean = await doctor.check({ full: true })
  const left = clean.findings.filter(({ severity }) => severity === 'error')
  expect(left, told).toEqual([])
  expect(clean.repairCount, told).toBe(0)
  for (const job of acknowledged as Job[]) {
    const now = await store.get(job.id)
    expect(now?.id, told).toBe(job.id)
    if (job.outcome === 'succeeded') expect(now?.outcome, told).toBe('succeeded')
  }
  return isDamaged ? 1 : 0
}
