// What the schema itself refuses, tried with raw SQL on a real file through a second connection:
// not even a mistake in the store, or a person with a shell, breaks these promises unseen.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPawl } from 'pawl'
import { FACT_CODES, standard } from 'pawl/rules'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { type Database, loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

const LEASE_MS = 600_000
const OPERATOR = { actor: 'operator', operator: 'ann', note: 'because' } as const

/** Jobs of the store, one in each place that the constraints speak of, by their row numbers. */
interface Jobs {
  ready: number
  waiting: number
  held: number
  parked: number
  succeeded: number
  failed: number
  /** Has finished a step and holds its lease. */
  stepped: number
  /** Committed, with an effect that is not delivered. */
  delivering: number
}

let folder: string
let store: Store
let raw: Database
let jobs: Jobs

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-constraints-'))
  const path = join(folder, 'jobs.db')
  store = await openSqliteStore({ path })
  const { DatabaseSync } = loadDriver()
  raw = new DatabaseSync(path, { timeout: 0 })
  jobs = await fillStore()
})

afterAll(async () => {
  raw.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

let ids = 0

async function enqueue(queue: string, more: { key?: string; runAt?: number } = {}) {
  const jobId = `00000000-0000-7000-8000-${String(++ids).padStart(12, '0')}`
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
    ready: ridOf(ready),
    waiting: ridOf(waiting),
    held: ridOf(held.job.id),
    parked: ridOf(parked),
    succeeded: ridOf(succeeded.job.id),
    failed: ridOf(failed),
    stepped: ridOf(stepped.job.id),
    delivering: ridOf(delivering.job.id),
  }
}

function ridOf(id: string): number {
  const row = raw.prepare('SELECT rid FROM pawl_jobs WHERE id = ?').get(id)
  return (row as { rid: number }).rid
}

/** Everything that the file holds, to see that a refused statement changed nothing. */
function dump(): unknown {
  const tables = ['jobs', 'ledger', 'outbox', 'machines', 'ended_counts']
  return tables.map((table) => raw.prepare(`SELECT * FROM pawl_${table}`).all())
}

/** Tries a statement, which must be refused in these words and leave no trace. */
function expectRefused(sql: string, words: RegExp | string): void {
  raw.exec('BEGIN IMMEDIATE')
  try {
    const before = dump()
    expect(() => raw.prepare(sql).run(), sql).toThrow(words)
    expect(dump()).toEqual(before)
  } finally {
    raw.exec('ROLLBACK')
  }
}

/** Tries a statement, which must succeed and change a row; then takes it back. */
function expectAllowed(sql: string): void {
  raw.exec('BEGIN IMMEDIATE')
  try {
    expect(Number(raw.prepare(sql).run().changes), sql).toBeGreaterThan(0)
  } finally {
    raw.exec('ROLLBACK')
  }
}

const COLUMNS = {
  jobs: ['id', 'lane', 'machine', 'state', 'queue', 'type', 'priority', 'run_at', 'seq'],
  ledger: ['job', 'seq', 'kind', 'at', 'path', 'actor'],
  outbox: ['job', 'type', 'name', 'n', 'payload', 'run_at'],
} as const

/** An INSERT with plain values, but for those that are given; all as SQL. */
function insert(table: keyof typeof COLUMNS, given: Record<string, string | number>): string {
  const plain: Record<string, string | number> = {
    ...{ id: "'new'", lane: 2, machine: 1, state: "'queued'", queue: "'q'", type: "'t'" },
    ...{ priority: 0, run_at: 1, seq: 1, at: 1, path: "'queued'", actor: "'client'" },
    ...{ kind: FACT_CODES.prioritise, job: 999, name: "'e'", n: 1, payload: "'{}'" },
  }
  const base = Object.fromEntries(COLUMNS[table].map((name) => [name, plain[name] ?? 'NULL']))
  const times = table === 'jobs' ? { created_at: 1, updated_at: 1 } : {}
  const row = { ...base, ...times, ...given }
  const [names, values] = [Object.keys(row), Object.values(row)]
  return `INSERT INTO pawl_${table} (${names.join(', ')}) VALUES (${values.join(', ')})`
}

describe('the ledger (P8)', () => {
  it('refuses to change any column of a fact', () => {
    const columns = raw.prepare("SELECT name FROM pragma_table_info('pawl_ledger')").all()
    for (const { name } of columns as { name: string }[]) {
      const sql = `UPDATE pawl_ledger SET "${name}" = "${name}"`
      expectRefused(`${sql} WHERE job = ${jobs.ready}`, 'P8: facts are never changed')
      expectRefused(sql, 'P8: facts are never changed')
    }
  })

  it('refuses to delete facts while their job exists, whatever became of it', () => {
    for (const rid of Object.values(jobs)) {
      const words = 'P8: facts are not deleted while their job exists'
      expectRefused(`DELETE FROM pawl_ledger WHERE job = ${rid}`, words)
      expectRefused(`DELETE FROM pawl_ledger WHERE job = ${rid} AND seq = 1`, words)
    }
    expectRefused('DELETE FROM pawl_ledger', /^P8/)
  })

  it('lets go of the facts of a job that was removed', () => {
    raw.exec('BEGIN IMMEDIATE')
    raw.exec(`DELETE FROM pawl_jobs WHERE rid = ${jobs.failed}`)
    raw.exec(`DELETE FROM pawl_ledger WHERE job = ${jobs.failed}`)
    const left = raw.prepare('SELECT * FROM pawl_ledger WHERE job = ?').all(jobs.failed)
    raw.exec('ROLLBACK')
    expect(left).toEqual([])
  })

  it('refuses a second fact with the same place in the ledger of a job', () => {
    const words = /UNIQUE constraint failed: pawl_ledger.job, pawl_ledger.seq|^P8/
    for (const rid of Object.values(jobs)) {
      expectRefused(insert('ledger', { job: rid, seq: 1 }), words)
    }
  })

  it('refuses a second commit of a job (P3)', () => {
    const fact = { seq: 99, kind: FACT_CODES.commit }
    const words = 'P8: facts are never replaced'
    expectRefused(insert('ledger', { ...fact, job: jobs.succeeded }), words)
    expectRefused(insert('ledger', { ...fact, job: jobs.delivering }), words)
    expectAllowed(insert('ledger', { ...fact, job: jobs.held }))
  })

  it('refuses a second result of the same step, and takes those of others', () => {
    const step = (name: string, n: number) => ({
      job: jobs.stepped,
      seq: 99,
      kind: FACT_CODES.step,
      data: `'${JSON.stringify({ step: { name, n } })}'`,
    })
    expectRefused(insert('ledger', step('send', 1)), 'P8: facts are never replaced')
    expectAllowed(insert('ledger', step('send', 2)))
    expectAllowed(insert('ledger', step('other', 1)))
    expectAllowed(insert('ledger', { ...step('send', 1), job: jobs.held }))
  })

  it('refuses values of another type, and facts without what every fact has', () => {
    expectRefused(insert('ledger', { at: "'soon'" }), /cannot store TEXT value in INTEGER column/)
    expectRefused(insert('ledger', { payload: "x'00'" }), /cannot store BLOB value in TEXT column/)
    for (const column of COLUMNS.ledger) {
      expectRefused(insert('ledger', { [column]: 'NULL' }), `NOT NULL constraint failed`)
    }
  })
})

describe('the row of a job', () => {
  it('is never changed once it has succeeded (P6)', () => {
    const columns = raw.prepare("SELECT name FROM pragma_table_info('pawl_jobs')").all()
    for (const { name } of columns as { name: string }[]) {
      const sql = `UPDATE pawl_jobs SET "${name}" = "${name}" WHERE rid = ${jobs.succeeded}`
      expectRefused(sql, 'P6: a succeeded job never changes')
    }
    expectRefused('UPDATE pawl_jobs SET priority = 0', 'P6: a succeeded job never changes')
  })

  it('can be changed while the job lives, and after it failed, for a redrive', () => {
    for (const rid of Object.values(jobs).filter((rid) => rid !== jobs.succeeded)) {
      expectAllowed(`UPDATE pawl_jobs SET priority = 7 WHERE rid = ${rid}`)
    }
  })

  it('is not deleted before the job has ended (P1)', () => {
    const { succeeded, failed, ...live } = jobs
    const words = 'P1: a job that has not ended is not deleted'
    for (const rid of Object.values(live)) {
      expectRefused(`DELETE FROM pawl_jobs WHERE rid = ${rid}`, words)
    }
    expectRefused('DELETE FROM pawl_jobs', words)
    for (const rid of [succeeded, failed]) {
      expectAllowed(`DELETE FROM pawl_jobs WHERE rid = ${rid}`)
    }
  })

  it('has an id of its own, and a key of its own within its type', () => {
    const sameId = `(SELECT id FROM pawl_jobs WHERE rid = ${jobs.ready})`
    expectRefused(insert('jobs', { id: sameId }), /UNIQUE constraint failed: pawl_jobs.id|^P1/)
    const taken = { type: "'mail'", key: "'taken'" }
    const words = /UNIQUE constraint failed: pawl_jobs.type, pawl_jobs.key|^P1/
    expectRefused(insert('jobs', taken), words)
    expectAllowed(insert('jobs', { ...taken, key: "'free'" }))
    expectAllowed(insert('jobs', { ...taken, type: "'call'" }))
    expectAllowed(insert('jobs', { type: "'mail'" }))
  })

  it('names a lifecycle that the store knows', () => {
    expectRefused(insert('jobs', { machine: 999 }), 'FOREIGN KEY constraint failed')
    expectRefused('DELETE FROM pawl_machines', 'FOREIGN KEY constraint failed')
    const again = `INSERT INTO pawl_machines (name, version, held, definition)
      SELECT name, version, held, definition FROM pawl_machines`
    expectRefused(again, 'UNIQUE constraint failed: pawl_machines.name, pawl_machines.version')
  })

  it('lies in one of the lanes', () => {
    for (const lane of [-1, 8, 99]) {
      expectRefused(insert('jobs', { lane }), 'CHECK constraint failed: lane BETWEEN 0 AND 7')
    }
    for (const lane of [0, 1, 2, 4, 6, 7]) expectAllowed(insert('jobs', { lane }))
  })

  it('has a lease exactly while it is held', () => {
    const words = 'CHECK constraint failed: (lane = 3) = (lease_until IS NOT NULL)'
    const where = `WHERE rid = ${jobs.held}`
    expectRefused(`UPDATE pawl_jobs SET lease_until = NULL ${where}`, words)
    expectRefused(`UPDATE pawl_jobs SET lane = 2 ${where}`, words)
    expectRefused(`UPDATE pawl_jobs SET lease_until = 1 WHERE rid = ${jobs.ready}`, words)
    expectRefused(`UPDATE pawl_jobs SET lane = 3 WHERE rid = ${jobs.ready}`, words)
    expectAllowed(`UPDATE pawl_jobs SET lease_until = 1 ${where}`)
  })

  it('has a claim, a worker and a live attempt while it is held', () => {
    const where = `WHERE rid = ${jobs.held}`
    for (const change of ['claim = NULL', 'worker = NULL', 'status = NULL', "status = 'C'"]) {
      expectRefused(`UPDATE pawl_jobs SET ${change} ${where}`, 'CHECK constraint failed: lane <> 3')
    }
    expectAllowed(`UPDATE pawl_jobs SET status = 'L' ${where}`)
  })

  it('has an outcome and the time of its end exactly when it has ended', () => {
    const words = /CHECK constraint failed: \(lane = 5\) = \((outcome|ended_at) IS NOT NULL\)/
    const ended = `WHERE rid = ${jobs.failed}`
    for (const change of ['outcome = NULL', 'ended_at = NULL', 'lane = 4', 'lane = 2']) {
      expectRefused(`UPDATE pawl_jobs SET ${change} ${ended}`, words)
    }
    for (const change of ["outcome = 'failed'", 'ended_at = 1', 'lane = 5']) {
      expectRefused(`UPDATE pawl_jobs SET ${change} WHERE rid = ${jobs.ready}`, words)
    }
    for (const change of ["outcome = 'failed', lane = 5", 'ended_at = 1, lane = 5']) {
      expectRefused(`UPDATE pawl_jobs SET ${change} WHERE rid = ${jobs.ready}`, words)
    }
    const whole = "lane = 5, outcome = 'failed', ended_at = 1"
    expectAllowed(`UPDATE pawl_jobs SET ${whole} WHERE rid = ${jobs.ready}`)
  })

  it('has a due time while it waits or is ready', () => {
    const words = 'CHECK constraint failed: lane NOT IN (1, 2) OR run_at IS NOT NULL'
    for (const rid of [jobs.ready, jobs.waiting]) {
      expectRefused(`UPDATE pawl_jobs SET run_at = NULL WHERE rid = ${rid}`, words)
    }
    expectAllowed(`UPDATE pawl_jobs SET run_at = NULL WHERE rid = ${jobs.parked}`)
  })

  it('counts nothing below zero, and its facts from one', () => {
    for (const column of ['attempt', 'failures', 'crashes', 'releases']) {
      expectRefused(insert('jobs', { [column]: -1 }), `CHECK constraint failed: ${column} >= 0`)
      expectAllowed(insert('jobs', { [column]: 0 }))
    }
    expectRefused(insert('jobs', { seq: 0 }), 'CHECK constraint failed: seq >= 1')
  })

  it('has what every job has, of the right type', () => {
    for (const column of COLUMNS.jobs.filter((name) => name !== 'run_at')) {
      expectRefused(insert('jobs', { [column]: 'NULL' }), 'NOT NULL constraint failed')
    }
    expectRefused(insert('jobs', { run_at: "'soon'" }), /cannot store TEXT value in INTEGER/)
    expectRefused(insert('jobs', { queue: "x'00'" }), /cannot store BLOB value in TEXT/)
  })
})

describe('the trigger that keeps succeeded jobs (P6)', () => {
  it('compares every column of a job but the time of its last change', () => {
    const find = "SELECT sql FROM sqlite_master WHERE name = 'pawl_succeeded_is_final'"
    const { sql } = raw.prepare(find).get() as { sql: string }
    const columns = raw.prepare('PRAGMA table_info(pawl_jobs)').all() as { name: string }[]
    const missing = columns.filter(({ name }) => !sql.includes(`NEW.${name} `))
    expect(missing.map(({ name }) => name)).toEqual(['updated_at'])
  })
})

describe('the outbox', () => {
  it('holds an effect once, in a known state, with no negative tries', () => {
    const again = { job: jobs.delivering, name: "'mail'", n: 1 }
    const unique = 'UNIQUE constraint failed: pawl_outbox.job, pawl_outbox.name, pawl_outbox.n'
    expectRefused(insert('outbox', again), unique)
    expectAllowed(insert('outbox', { ...again, n: 2 }))
    expectRefused("UPDATE pawl_outbox SET state = 'lost'", 'CHECK constraint failed: state IN')
    expectRefused('UPDATE pawl_outbox SET tries = -1', 'CHECK constraint failed: tries >= 0')
    for (const state of ['pending', 'delivered', 'parked']) {
      expectAllowed(`UPDATE pawl_outbox SET state = '${state}'`)
    }
  })
})

describe.each(['ON', 'OFF'])('with REPLACE, on a connection with recursive_triggers %s', (is) => {
  beforeAll(() => raw.exec(`PRAGMA recursive_triggers = ${is}`))

  const replacing = (...given: Parameters<typeof insert>) =>
    insert(...given).replace('INSERT', 'INSERT OR REPLACE')

  it('no fact is exchanged for another, by whichever key', () => {
    for (const rid of Object.values(jobs)) {
      expectRefused(replacing('ledger', { job: rid, seq: 1 }), 'P8: facts are never replaced')
    }
    const taken = [
      { pos: '(SELECT min(pos) FROM pawl_ledger)', seq: 99 },
      { job: jobs.succeeded, seq: 99, kind: FACT_CODES.commit },
      {
        ...{ job: jobs.stepped, seq: 99, kind: FACT_CODES.step },
        data: `'{"step":{"name":"send","n":1}}'`,
      },
    ]
    for (const given of taken) expectRefused(replacing('ledger', given), /^P8/)
    expectRefused(`UPDATE OR REPLACE pawl_ledger SET seq = 1`, /^P8/)
    expectAllowed(replacing('ledger', { job: jobs.held, seq: 99 }))
  })

  it('no job is exchanged for another by an update, by whichever key', () => {
    const where = `WHERE rid = ${jobs.waiting}`
    const ofReady = `(SELECT id FROM pawl_jobs WHERE rid = ${jobs.ready})`
    const sets = ["type = 'mail', key = 'taken'", `id = ${ofReady}`, `rid = ${jobs.ready}`]
    for (const set of sets) {
      expectRefused(`UPDATE OR REPLACE pawl_jobs SET ${set} ${where}`, /^P1/)
    }
    expectAllowed(`UPDATE OR REPLACE pawl_jobs SET key = 'free' ${where}`)
  })

  it.each([
    ['run_events', `(run, seq, line) VALUES ('r', 1, 'other')`],
    ['quarantined', `VALUES (1, 2, 'o', NULL, 'c', 'w', 'other', 'n')`],
    ['seals', `VALUES (1, 2, 1, 1, 1, 1, 1, 'other', 'c')`],
    ['seal_removals', `VALUES (1, 2, 2, 2, 'other', NULL)`],
    ['queue_records', `(number, at, queue, action, actor) VALUES (1, 2, 'other', 'pause', 'a')`],
    [
      'schedule_records',
      `(number, at, schedule, action, actor) VALUES (1, 2, 'other', 'put', 'a')`,
    ],
  ])('no row of pawl_%s is exchanged for another', (table, values) => {
    raw.exec('BEGIN IMMEDIATE')
    raw.exec(`INSERT INTO pawl_${table} ${values}`)
    const before = raw.prepare(`SELECT * FROM pawl_${table}`).all()
    const replace = `REPLACE INTO pawl_${table} ${values.replace('other', 'changed')}`
    expect(() => raw.exec(replace)).toThrow(/^P8: .* never replaced/)
    expect(raw.prepare(`SELECT * FROM pawl_${table}`).all()).toEqual(before)
    raw.exec('ROLLBACK')
  })
})

describe('with REPLACE into the jobs', () => {
  const replace = (given: Record<string, string | number>) =>
    insert('jobs', given).replace('INSERT', 'INSERT OR REPLACE')
  const idOf = (rid: number) => `(SELECT id FROM pawl_jobs WHERE rid = ${rid})`

  it('live jobs are kept by a connection that asks its triggers', () => {
    raw.exec('PRAGMA recursive_triggers = ON')
    const { succeeded: _succeeded, failed: _failed, ...live } = jobs
    for (const rid of Object.values(live)) expectRefused(replace({ rid }), /^P1/)
    expectRefused(replace({ type: "'mail'", key: "'taken'" }), /^P1/)
  })

  it('a job that another connection has replaced is found by the doctor', async () => {
    raw.exec('PRAGMA recursive_triggers = OFF')
    const statements = [
      () => replace({ rid: jobs.succeeded }),
      () => replace({ id: idOf(jobs.ready) }),
      () => replace({ type: "'mail'", key: "'taken'" }),
    ]
    for (const statement of statements) {
      const path = join(mkdtempSync(join(folder, 'copy-')), 'jobs.db')
      raw.exec(`VACUUM INTO '${path}'`)
      const copy = new (loadDriver().DatabaseSync)(path)
      copy.prepare(statement()).run()
      copy.close()
      const pawl = await createPawl({ store: `sqlite:${path}`, onFindings: 'warn' })
      const { findings } = await pawl.doctor().check({ full: true })
      expect(findings.length).toBeGreaterThan(0)
      await pawl.close()
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
    const [left] = raw.prepare('SELECT count(*) AS n FROM pawl_ledger WHERE job = ?').all(held.ref)
    expect(left).toEqual({ n: 0 })
  })
})
