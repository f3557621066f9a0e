// A store with jobs in every place that a job can be in, a way around all of its guards, and a
// doctor for it. The same for both kinds of store: names of tables are written @jobs, @ledger …
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Lifecycle, Terminal } from 'pawl'
import { classify, LIFECYCLES, standard } from 'pawl/rules'
import { Client } from 'pg'
import { Doctor } from '../../src/doctor/doctor.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

export type Kind = 'sqlite' | 'postgres'

/** A store with a hole in its wall. */
export interface Clinic {
  readonly kind: Kind
  readonly store: Store
  readonly doctor: Doctor
  /** Runs a statement behind the back of the store, past every constraint. */
  damage(sql: string): Promise<void>
  rows<T>(sql: string): Promise<T[]>
  /** The number or id by which other tables know a job, as it stands in a statement. */
  ref(id: string): string
  close(): Promise<void>
}

export async function openClinic(kind: Kind, place: string): Promise<Clinic> {
  return kind === 'sqlite' ? openSqliteClinic() : openPostgresClinic(place)
}

function doctorOf(store: Store): Doctor {
  // Whatever these tests leave lying is not what they are about.
  const thresholds = { dueMs: 3_600_000, stalledMs: 3_600_000, workerMs: 3_600_000 }
  return new Doctor({
    store,
    lifecycles: LIFECYCLES,
    environment: systemEnvironment(),
    thresholds,
  })
}

async function openSqliteClinic(): Promise<Clinic> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-doctor-'))
  const path = join(folder, 'jobs.db')
  const store = await openSqliteStore({ path })
  const { DatabaseSync } = loadDriver()
  const raw = new DatabaseSync(path, { timeout: 5000 })
  raw.exec('PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF')
  const named = (sql: string) => sql.replaceAll('@', 'pawl_')
  return {
    kind: 'sqlite',
    store,
    doctor: doctorOf(store),
    damage: async (sql) => raw.exec(named(sql)),
    rows: async <T>(sql: string) => raw.prepare(named(sql)).all() as T[],
    ref: (id) => `(SELECT rid FROM pawl_jobs WHERE id = '${id}')`,
    close: async () => {
      raw.close()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function openPostgresClinic(url: string): Promise<Clinic> {
  const store = await openPostgresStore({ connectionString: url, connections: 4 })
  const client = new Client({ connectionString: url })
  await client.connect()
  const named = (sql: string) => sql.replaceAll('@', 'pawl.')
  return {
    kind: 'postgres',
    store,
    doctor: doctorOf(store),
    damage: async (sql) => void (await client.query(named(sql))),
    rows: async <T>(sql: string) => (await client.query(named(sql))).rows as T[],
    ref: (id) => `'${id}'`,
    close: async () => {
      await client.end()
      await store.close()
    },
  }
}

/** Takes away every trigger, index and constraint that stands in the way. */
export async function liftGuards({ kind, damage }: Clinic): Promise<void> {
  if (kind === 'sqlite') {
    const triggers = [
      'ledger_is_never_updated',
      'ledger_is_never_deleted',
      'ledger_is_never_replaced',
      'succeeded_is_final',
      'live_jobs_are_not_deleted',
      'jobs_never_replace_others',
    ]
    await damage(triggers.map((name) => `DROP TRIGGER IF EXISTS @${name}`).join('; '))
    await damage('DROP INDEX IF EXISTS @jobs_key; DROP INDEX IF EXISTS @one_commit')
    return
  }
  const triggers = {
    jobs: ['succeeded_is_final', 'live_jobs_are_not_deleted', 'jobs_are_never_truncated'],
    ledger: ['ledger_is_never_updated', 'ledger_is_never_deleted', 'ledger_is_never_truncated'],
  }
  for (const [table, names] of Object.entries(triggers)) {
    for (const name of names) await damage(`DROP TRIGGER IF EXISTS ${name} ON @${table}`)
  }
  await damage('DROP INDEX IF EXISTS @jobs_key; DROP INDEX IF EXISTS @one_commit')
  await damage(`DO $$ DECLARE c record; BEGIN
    FOR c IN SELECT conname, conrelid::regclass::text AS owner FROM pg_constraint
      WHERE connamespace = 'pawl'::regnamespace AND contype = 'c'
        AND conrelid IN ('pawl.jobs'::regclass, 'pawl.outbox'::regclass)
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.owner, c.conname); END LOOP;
  END $$`)
}

/** Takes away what makes ids unique. */
export async function liftUniqueIds({ kind, damage, rows }: Clinic): Promise<void> {
  if (kind === 'postgres') return damage('ALTER TABLE @jobs DROP CONSTRAINT jobs_pkey')
  const [table] = await rows<{ sql: string }>(
    `SELECT sql FROM sqlite_master WHERE name = 'pawl_jobs'`,
  )
  const others = await rows<{ sql: string }>(
    `SELECT sql FROM sqlite_master WHERE tbl_name = 'pawl_jobs' AND type <> 'table' AND sql <> ''`,
  )
  const weaker = (table?.sql ?? '').replace('NOT NULL UNIQUE', 'NOT NULL')
  // Views on the table must not keep it from being renamed.
  await damage(`PRAGMA legacy_alter_table = ON; ${weaker.replace('pawl_jobs', 'weaker')};
    INSERT INTO weaker SELECT * FROM @jobs; DROP TABLE @jobs; ALTER TABLE weaker RENAME TO @jobs;
    ${others.map(({ sql }) => sql).join('; ')}`)
}

/** Jobs in the places that matter, by name. */
export interface Patients {
  readonly ready: string
  readonly waiting: string
  readonly held: string
  readonly parked: string
  readonly failed: string
  readonly succeeded: string
  readonly delivering: string
  readonly keyed: string
}

let number = 0

export function nextId(): string {
  return `00000000-0000-7000-8000-${String(++number).padStart(12, '0')}`
}

async function enqueue(
  store: Store,
  queue: string,
  more: object = {},
  lifecycle: Lifecycle = standard,
) {
  const jobId = nextId()
  const command = { jobId, type: 'mail', queue, ...more }
  const [answer] = await store.enqueue([{ lifecycle, command, input: '{"to":"ann"}' }])
  if (answer?.kind !== 'created') throw new Error(`not created: ${JSON.stringify(answer)}`)
  return jobId
}

async function hold(store: Store, queue: string): Promise<Held> {
  await enqueue(store, queue)
  const request = { worker: 'w1', queues: [queue], limit: 1, leaseMs: 3_600_000, start: true }
  const [held] = await store.claim(request)
  return held as Held
}

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim as string })

/** One job in each place. */
export async function admit(store: Store): Promise<Patients> {
  const queue = `context-${++number}`
  const toFail = await hold(store, queue)
  const failure = classify(new Terminal('no such address'))
  await store.settle([{ held: toFail, command: { kind: 'fail', fence: fenceOf(toFail), failure } }])
  const done = await hold(store, queue)
  await store.commit(done, () => '"done"')
  const delivering = await hold(store, queue)
  await store.commit(delivering, (tx) => {
    tx.effect('mail', '{"to":"ann"}')
    return '"sent"'
  })
  const parked = await enqueue(store, queue)
  await store.applyCommand(
    [parked],
    { kind: 'park' },
    { actor: 'operator', operator: 'ann', note: 'wait' },
  )
  const held = await hold(store, queue)
  return {
    ready: await enqueue(store, `${queue}-b`),
    waiting: await enqueue(store, `${queue}-b`, { runAt: store.now() + 3_600_000 }),
    held: held.job.id,
    parked,
    failed: toFail.job.id,
    succeeded: done.job.id,
    delivering: delivering.job.id,
    keyed: await enqueue(store, `${queue}-b`, { key: `k-${number}` }),
  }
}

/** Many jobs, most of them ended. */
export async function fill(store: Store, count: number): Promise<void> {
  for (let done = 0; done < count; done += 500) {
    const items = Array.from({ length: Math.min(500, count - done) }, () => ({
      lifecycle: LIFECYCLES[number % LIFECYCLES.length] as Lifecycle,
      command: { jobId: nextId(), type: 'bulk', queue: `bulk-${number % 3}` },
      input: `{"n":${number}}`,
    }))
    await store.enqueue(items)
    const request = { worker: 'w2', types: ['bulk'], limit: 450, leaseMs: 3_600_000, start: true }
    const claimed = await store.claim(request)
    await store.settle(
      claimed.map((held) => ({
        held,
        command: { kind: 'commit', fence: fenceOf(held) } as const,
        payload: '"ok"',
      })),
    )
  }
}
