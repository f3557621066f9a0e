// What the schema itself refuses, tried with raw SQL by a superuser: not even a mistake in the
// store, or a person with a shell, breaks these promises unseen.
import { FACT_CODES, standard } from 'pawl/rules'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'

const LEASE_MS = 600_000
const OPERATOR = { actor: 'operator', operator: 'ann', note: 'because' } as const

/** What PostgreSQL calls its refusals. */
const TRIGGER = '23000'
const NOT_NULL = '23502'
const UNIQUE = '23505'
const CHECK = '23514'
const WRONG_TYPE = '22P02'

const P1 = { code: TRIGGER, message: 'P1: a job that has not ended is not deleted' }
const P6 = { code: TRIGGER, message: 'P6: a succeeded job never changes' }
const UNCHANGED = { code: TRIGGER, message: 'P8: facts are never changed' }
const KEPT = { code: TRIGGER, message: 'P8: facts are not deleted while their job exists' }

/** Jobs of the store, one in each place that the constraints speak of: their ids, as SQL. */
interface Jobs {
  ready: string
  waiting: string
  held: string
  parked: string
  succeeded: string
  failed: string
  /** Has finished a step and holds its lease. */
  stepped: string
  /** Committed, with an effect that is not delivered. */
  delivering: string
}

const url = sharedPostgres()
const schema = `constraints_${process.pid}`
const { ids } = systemEnvironment()
const raw = new pg.Client({ connectionString: url })
let store: Store
let jobs: Jobs

beforeAll(async () => {
  await raw.connect()
  store = await openPostgresStore({ connectionString: url, schema, connections: 2 })
  await raw.query(`SET search_path = ${schema}`)
  jobs = await fillStore()
})

afterAll(async () => {
  await store.close()
  await raw.query(`DROP SCHEMA ${schema} CASCADE`)
  await raw.end()
})

async function enqueue(queue: string, more: { key?: string; runAt?: number } = {}) {
  const jobId = ids.next()
  const command = { jobId, type: 'mail', queue, ...more }
  await store.enqueue([{ lifecycle: standard, command, input: '{"to":"ann"}' }])
  return jobId
}

async function claim(queue: string): Promise<Held> {
  await enqueue(queue)
  const request = { worker: 'w1', queues: [queue], limit: 1, leaseMs: LEASE_MS, start: true }
  const [held] = await store.claim(request)
  if (held === undefined) throw new Error('nothing was claimed')
  return held
}

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })

async function fillStore(): Promise<Jobs> {
  const ready = await enqueue('ready', { key: 'taken' })
  const waiting = await enqueue('waiting', { runAt: store.now() + LEASE_MS })
  const parked = await enqueue('parked')
  await store.applyCommand([parked], { kind: 'park' }, OPERATOR)
  const failed = await enqueue('failed')
  await store.applyCommand([failed], { kind: 'park' }, OPERATOR)
  await store.applyCommand([failed], { kind: 'discard' }, OPERATOR)
  const held = await claim('held')
  const succeeded = await claim('succeeded')
  const commit = { kind: 'commit', fence: fenceOf(succeeded) } as const
  const stepped = await claim('stepped')
  const step = { kind: 'step', fence: fenceOf(stepped), name: 'send', n: 1 } as const
  await store.settle([
    { held: succeeded, command: commit, payload: '"sent"' },
    { held: stepped, command: step, payload: '"done"' },
  ])
  const delivering = await claim('delivering')
  await store.commit(delivering, (tx) => {
    tx.effect('mail', '{}')
    return '"told"'
  })
  return {
    ready: `'${ready}'`,
    waiting: `'${waiting}'`,
    held: `'${held.job.id}'`,
    parked: `'${parked}'`,
    succeeded: `'${succeeded.job.id}'`,
    failed: `'${failed}'`,
    stepped: `'${stepped.job.id}'`,
    delivering: `'${delivering.job.id}'`,
  }
}

async function columnsOf(table: string): Promise<string[]> {
  const sql = `SELECT column_name AS name FROM information_schema.columns
    WHERE table_schema = $1 AND table_name = $2`
  const { rows } = await raw.query(sql, [schema, table])
  return rows.map(({ name }) => name)
}

/** Tries a statement, which must be refused so. */
async function expectRefused(sql: string, refusal: object | string): Promise<void> {
  const expected = typeof refusal === 'string' ? { code: refusal } : refusal
  await raw.query('BEGIN')
  try {
    await expect(raw.query(sql), sql).rejects.toMatchObject(expected)
  } finally {
    await raw.query('ROLLBACK')
  }
}

/** Tries statements, the last of which must succeed and change a row; then takes all back. */
async function expectAllowed(...statements: readonly string[]): Promise<void> {
  await raw.query('BEGIN')
  try {
    let changed: number | null = 0
    for (const sql of statements) changed = (await raw.query(sql)).rowCount
    expect(changed, statements.at(-1)).toBeGreaterThan(0)
  } finally {
    await raw.query('ROLLBACK')
  }
}

const COLUMNS = {
  jobs: ['id', 'lane', 'machine', 'state', 'queue', 'type', 'priority', 'run_at', 'seq'],
  ledger: ['job', 'tx', 'seq', 'kind', 'at', 'path', 'actor'],
  outbox: ['job', 'type', 'name', 'n', 'payload', 'run_at'],
} as const

/** An INSERT with plain values, but for those that are given; all as SQL. */
function insert(table: keyof typeof COLUMNS, given: Record<string, string | number>): string {
  const plain: Record<string, string | number> = {
    ...{ id: 'gen_random_uuid()', lane: 2, machine: 1, state: "'queued'", queue: "'q'" },
    ...{ type: "'t'", priority: 0, run_at: 1, seq: 1, at: 1, path: "'queued'", actor: "'client'" },
    ...{
      kind: FACT_CODES.prioritise,
      job: 'gen_random_uuid()',
      tx: 1,
      name: "'e'",
      n: 1,
      payload: "'{}'",
    },
  }
  const base = Object.fromEntries(COLUMNS[table].map((name) => [name, plain[name] ?? 'NULL']))
  const times = table === 'jobs' ? { created_at: 1, updated_at: 1 } : {}
  const row = { ...base, ...times, ...given }
  const [names, values] = [Object.keys(row), Object.values(row)]
  return `INSERT INTO ${table} (${names.join(', ')}) VALUES (${values.join(', ')})`
}

describe('the ledger (P8)', () => {
  it('refuses to change any column of a fact', async () => {
    for (const name of await columnsOf('ledger')) {
      const sql = `UPDATE ledger SET "${name}" = "${name}"`
      await expectRefused(`${sql} WHERE job = ${jobs.ready}`, UNCHANGED)
      await expectRefused(sql, UNCHANGED)
    }
  })

  it('refuses to exchange a fact for another by an insert that meets it', async () => {
    const met = `${insert('ledger', { job: jobs.ready, seq: 1 })} ON CONFLICT (job, seq)`
    await expectRefused(`${met} DO UPDATE SET payload = 'forged'`, UNCHANGED)
  })

  it('refuses to delete facts while their job exists, whatever became of it', async () => {
    for (const id of Object.values(jobs)) {
      await expectRefused(`DELETE FROM ledger WHERE job = ${id}`, KEPT)
      await expectRefused(`DELETE FROM ledger WHERE job = ${id} AND seq = 1`, KEPT)
    }
    await expectRefused('DELETE FROM ledger', KEPT)
  })

  it('refuses to be emptied', async () => {
    await expectRefused('TRUNCATE ledger', KEPT)
    await expectRefused('TRUNCATE ledger RESTART IDENTITY CASCADE', KEPT)
    await expectRefused('TRUNCATE outbox, ledger', KEPT)
  })

  it('lets go of the facts of a job that was removed', async () => {
    const gone = [`DELETE FROM jobs WHERE id = ${jobs.failed}`]
    await expectAllowed(...gone, `DELETE FROM ledger WHERE job = ${jobs.failed}`)
  })

  it('refuses a second fact with the same place in the ledger of a job', async () => {
    for (const id of Object.values(jobs)) {
      const refusal = { code: UNIQUE, constraint: 'ledger_pkey' }
      await expectRefused(insert('ledger', { job: id, seq: 1 }), refusal)
    }
  })

  it('refuses a second commit of a job (P3)', async () => {
    const fact = { seq: 99, kind: FACT_CODES.commit }
    const refusal = { code: UNIQUE, constraint: 'one_commit' }
    await expectRefused(insert('ledger', { ...fact, job: jobs.succeeded }), refusal)
    await expectRefused(insert('ledger', { ...fact, job: jobs.delivering }), refusal)
    await expectAllowed(insert('ledger', { ...fact, job: jobs.held }))
  })

  it('refuses a second result of the same step, and takes those of others', async () => {
    const step = (name: string, n: number) => ({
      job: jobs.stepped,
      seq: 99,
      kind: FACT_CODES.step,
      data: `'${JSON.stringify({ step: { name, n } })}'`,
    })
    const refusal = { code: UNIQUE, constraint: 'one_step' }
    await expectRefused(insert('ledger', step('send', 1)), refusal)
    await expectAllowed(insert('ledger', step('send', 2)))
    await expectAllowed(insert('ledger', step('other', 1)))
    await expectAllowed(insert('ledger', { ...step('send', 1), job: jobs.held }))
  })

  it('refuses values of another type, and facts without what every fact has', async () => {
    await expectRefused(insert('ledger', { at: "'soon'" }), WRONG_TYPE)
    await expectRefused(insert('ledger', { claim: "'nobody'" }), WRONG_TYPE)
    for (const column of COLUMNS.ledger) {
      await expectRefused(insert('ledger', { [column]: 'NULL' }), NOT_NULL)
    }
  })
})

describe('the row of a job', () => {
  it('is never changed once it has succeeded (P6)', async () => {
    for (const name of await columnsOf('jobs')) {
      const sql = `UPDATE jobs SET "${name}" = "${name}" WHERE id = ${jobs.succeeded}`
      await expectRefused(sql, P6)
    }
    await expectRefused('UPDATE jobs SET priority = 0', P6)
  })

  it('takes, once it has succeeded, the number of a fact that notes a repair, alone', async () => {
    const noted = `UPDATE jobs SET seq = seq + 1, updated_at = updated_at + 1`
    await expectAllowed(`${noted} WHERE id = ${jobs.succeeded}`)
    // A constraint refuses slots of a job that is not held, before the trigger is asked.
    const typed = ['lane', 'claim', 'lease_until', 'id', 'retry_of', 'slots', 'flow']
    const free = ['seq', 'updated_at', 'place', ...typed]
    const others = (await columnsOf('jobs')).filter((name) => !free.includes(name))
    const changes = others.map((name) => `"${name}" = ${OTHER[name] ?? 77}`)
    const ids = ['id = gen_random_uuid()', 'claim = gen_random_uuid()', 'flow = id']
    for (const change of [...changes, ...ids]) {
      await expectRefused(`${noted}, ${change} WHERE id = ${jobs.succeeded}`, P6)
    }
  })

  it('can be changed while the job lives, and after it failed, for a redrive', async () => {
    for (const id of Object.values(jobs).filter((id) => id !== jobs.succeeded)) {
      await expectAllowed(`UPDATE jobs SET priority = 7 WHERE id = ${id}`)
    }
  })

  it('is not deleted before the job has ended (P1)', async () => {
    const { succeeded, failed, ...live } = jobs
    for (const id of Object.values(live)) {
      await expectRefused(`DELETE FROM jobs WHERE id = ${id}`, P1)
    }
    await expectRefused('DELETE FROM jobs', P1)
    await expectRefused('TRUNCATE jobs', P1)
    await expectRefused('TRUNCATE jobs, outbox CASCADE', P1)
    for (const id of [succeeded, failed]) {
      await expectAllowed(`DELETE FROM jobs WHERE id = ${id}`)
    }
  })

  it('has an id of its own, and a key of its own within its type', async () => {
    const sameId = `(SELECT id FROM jobs WHERE id = ${jobs.ready})`
    await expectRefused(insert('jobs', { id: sameId }), { code: UNIQUE, constraint: 'jobs_pkey' })
    const taken = { type: "'mail'", key: "'taken'" }
    await expectRefused(insert('jobs', taken), { code: UNIQUE, constraint: 'jobs_key' })
    await expectAllowed(insert('jobs', { ...taken, key: "'free'" }))
    await expectAllowed(insert('jobs', { ...taken, key: "'Taken'" }))
    await expectAllowed(insert('jobs', { ...taken, type: "'call'" }))
    await expectAllowed(insert('jobs', { type: "'mail'" }))
  })

  it('is of a lifecycle that stands there once', async () => {
    const again = `INSERT INTO machines (name, version, held, definition)
      SELECT name, version, held, definition FROM machines`
    await expectRefused(again, UNIQUE)
  })

  it('lies in one of the lanes', async () => {
    const refusal = { code: CHECK, constraint: 'jobs_lane_check' }
    for (const lane of [-1, 8, 99]) await expectRefused(insert('jobs', { lane }), refusal)
    for (const lane of [0, 1, 2, 4, 6, 7]) await expectAllowed(insert('jobs', { lane }))
  })

  it('has a lease exactly while it is held', async () => {
    const where = `WHERE id = ${jobs.held}`
    await expectRefused(`UPDATE jobs SET lease_until = NULL ${where}`, CHECK)
    await expectRefused(`UPDATE jobs SET lane = 2 ${where}`, CHECK)
    await expectRefused(`UPDATE jobs SET lease_until = 1 WHERE id = ${jobs.ready}`, CHECK)
    await expectRefused(`UPDATE jobs SET lane = 3 WHERE id = ${jobs.ready}`, CHECK)
    await expectAllowed(`UPDATE jobs SET lease_until = 1 ${where}`)
  })

  it('has a claim, a worker and a live attempt while it is held', async () => {
    const where = `WHERE id = ${jobs.held}`
    for (const change of ['claim = NULL', 'worker = NULL', 'status = NULL', "status = 'C'"]) {
      await expectRefused(`UPDATE jobs SET ${change} ${where}`, CHECK)
    }
    await expectAllowed(`UPDATE jobs SET status = 'L' ${where}`)
  })

  it('has an outcome and the time of its end exactly when it has ended', async () => {
    for (const change of ['outcome = NULL', 'ended_at = NULL', 'lane = 4', 'lane = 2']) {
      await expectRefused(`UPDATE jobs SET ${change} WHERE id = ${jobs.failed}`, CHECK)
    }
    const halves = ["outcome = 'failed', lane = 5", 'ended_at = 1, lane = 5']
    for (const change of ["outcome = 'failed'", 'ended_at = 1', 'lane = 5', ...halves]) {
      await expectRefused(`UPDATE jobs SET ${change} WHERE id = ${jobs.ready}`, CHECK)
    }
    const whole = "lane = 5, outcome = 'failed', ended_at = 1"
    await expectAllowed(`UPDATE jobs SET ${whole} WHERE id = ${jobs.ready}`)
  })

  it('has a due time while it waits or is ready', async () => {
    for (const id of [jobs.ready, jobs.waiting]) {
      await expectRefused(`UPDATE jobs SET run_at = NULL WHERE id = ${id}`, CHECK)
    }
    await expectAllowed(`UPDATE jobs SET run_at = NULL WHERE id = ${jobs.parked}`)
  })

  it('counts nothing below zero, and its facts from one', async () => {
    for (const column of ['attempt', 'failures', 'crashes', 'releases']) {
      const refusal = { code: CHECK, constraint: `jobs_${column}_check` }
      await expectRefused(insert('jobs', { [column]: -1 }), refusal)
      await expectAllowed(insert('jobs', { [column]: 0 }))
    }
    await expectRefused(insert('jobs', { seq: 0 }), { code: CHECK, constraint: 'jobs_seq_check' })
  })

  it('has what every job has, of the right type', async () => {
    for (const column of COLUMNS.jobs.filter((name) => name !== 'run_at')) {
      await expectRefused(insert('jobs', { [column]: 'NULL' }), NOT_NULL)
    }
    await expectRefused(insert('jobs', { run_at: "'soon'" }), WRONG_TYPE)
    await expectRefused(insert('jobs', { id: "'one'" }), WRONG_TYPE)
  })
})

/** A value that the succeeded job does not have, where 77 is no value of the column. */
const OTHER: Readonly<Record<string, string>> = {
  ...{ state: "'queued'", queue: "'x'", type: "'x'", status: "'C'", worker: "'x'" },
  ...{ outcome: "'failed'", reason: "'x'", error: "'{}'", blocked_reason: "'x'" },
  ...{ progress: "'1'", key: "'x'", limit_key: "'x'", tags: "'[]'", policy: "'{}'" },
}

describe('the outbox', () => {
  it('holds an effect once, in a known state, with no negative tries', async () => {
    const again = { job: jobs.delivering, name: "'mail'", n: 1 }
    await expectRefused(insert('outbox', again), UNIQUE)
    await expectAllowed(insert('outbox', { ...again, n: 2 }))
    await expectRefused("UPDATE outbox SET state = 'lost'", CHECK)
    await expectRefused('UPDATE outbox SET tries = -1', CHECK)
    for (const state of ['pending', 'delivered', 'parked']) {
      await expectAllowed(`UPDATE outbox SET state = '${state}'`)
    }
  })
})

describe('the happy path', () => {
  it('is open: a job is accepted, claimed, committed and removed by retention', async () => {
    const held = await claim('happy')
    const command = { kind: 'commit', fence: fenceOf(held) } as const
    const { answers } = await store.settle([{ held, command, payload: '1' }])
    expect(answers.map(({ kind }) => kind)).toEqual(['done'])
    const facts = await store.facts(held.job.id)
    expect(facts.map(({ trigger }) => trigger)).toEqual(['create', 'claim', 'commit'])

    expect(await store.prune({ endedBefore: store.now() + 1, limit: 100 })).toBe(3)
    expect(await store.get(held.job.id)).toBeUndefined()
    const { rows } = await raw.query('SELECT * FROM ledger WHERE job = $1', [held.job.id])
    expect(rows).toEqual([])
  })
})
