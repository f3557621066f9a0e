/**
 * FM_001, the duplicate retry of the state-model requirements (R1). Worker A leases a job and does
 * not renew the lease. Recovery returns the job to its queue, and worker B commits its effect. Then
 * worker A continues and commits as well.
 *
 * The scenario runs twice on real files with a manual clock, so it takes no time and has the same
 * result every time. The first run uses a temporary copy of this package without its commit
 * boundary (`unfenced.ts`): two effects. The second run uses the package itself: one. Both are
 * counted by SQL in a table of the user. That table has no unique column, so only the commit
 * boundary prevents the second effect.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { executionsOf } from '../../core/job/executions.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { leased } from '../../core/lifecycles/leased.ts'
import type { CommitAnswer, CommitTx, Held, Store } from '../../stores/contract/store.ts'
import { loadDriver } from '../../stores/sqlite/driver.ts'
import { openSqliteStore } from '../../stores/sqlite/store.ts'
import { type TestEnvironment, testEnvironment } from '../../testing/test-environment.ts'
import { copyUnfenced } from './unfenced.ts'

/** The number of effects in both runs, and their steps. */
export interface Fm001 {
  readonly fenceOff: { readonly effects: number }
  readonly fenceOn: { readonly effects: number }
  /** Lines for people. */
  readonly steps: readonly string[]
}

/** A database, with a store and a connection of the user. */
export interface Fm001Place {
  open(environment: TestEnvironment): Promise<Store>
  /** A transaction of the user's own connection. */
  transact<T>(work: (query: (sql: string) => Promise<unknown[]>) => T | Promise<T>): Promise<T>
}

/** The result of one run. */
export interface Fm001Play {
  readonly effects: number
  readonly job: Job
  readonly facts: readonly Fact[]
  readonly steps: readonly string[]
}

const LEASE_MS = 30_000
const CREATE = 'CREATE TABLE fm001_effects (attempt INTEGER NOT NULL)'
const COUNT = 'SELECT count(*) AS effects FROM fm001_effects'

/**
 * Runs FM_001 with the fence off and then on, in a folder that is removed afterwards. `dist` is the
 * built package from which the copy is made.
 */
export async function runFm001({
  directory = tmpdir(),
  dist,
}: {
  readonly directory?: string
  readonly dist?: string
} = {}): Promise<Fm001> {
  const folder = await mkdtemp(join(directory, 'pawl-fm001-'))
  try {
    const copy = await copyUnfenced(join(folder, 'unfenced'), dist)
    const unfenced = (await import(new URL('cli/demo/fm-001.js', copy).href)) as Fm001Player
    const off = await unfenced.playFm001(unfenced.sqlitePlace(join(folder, 'off.db')), 'off')
    const on = await playFm001(sqlitePlace(join(folder, 'on.db')), 'on')
    return {
      fenceOff: { effects: off.effects },
      fenceOn: { effects: on.effects },
      steps: [...off.steps, ...on.steps],
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The functions that the demo calls in the package itself and in the copy. */
interface Fm001Player {
  readonly playFm001: typeof playFm001
  readonly sqlitePlace: typeof sqlitePlace
}

/** Runs FM_001 once. `fence` names the build in the steps. */
export async function playFm001(place: Fm001Place, fence: 'on' | 'off'): Promise<Fm001Play> {
  const environment = testEnvironment()
  await using store = await place.open(environment)
  await place.transact((query) => query(CREATE))
  const steps = [`With the fence ${fence}:`]
  const say = (text: string) => steps.push(`  ${text}`)

  const jobId = environment.ids.next()
  const command = { jobId, type: 'charge', queue: 'default' }
  await store.enqueue([{ lifecycle: leased, command, input: '{}' }])
  const first = await claim(store, 'worker-a')
  say('worker-a leases the job as attempt 1 and stops renewing the lease')
  environment.advance(LEASE_MS)
  await store.recover(1)
  say('the lease expires, and recovery returns the job to its queue')
  environment.advance(((await store.nextDue()) ?? store.now()) - store.now())
  await store.promote(1)
  const second = await claim(store, 'worker-b')
  say('worker-b leases the job as attempt 2 and runs it')
  say(`worker-b commits its effect: ${describe(await store.commit(second, effectOf(second)))}`)
  say('worker-a continues and does not know that its lease has expired')
  say(`worker-a commits its effect: ${describe(await store.commit(first, effectOf(first)))}`)

  const rows = await place.transact((query) => query(COUNT))
  const effects = Number((rows[0] as { effects: number | string }).effects)
  const facts = await store.facts(jobId)
  for (const { attempt, leaseOwner, status, abort } of executionsOf(facts)) {
    say(`the ledger: attempt ${attempt} by ${leaseOwner} ${status}${abort ? ` (${abort})` : ''}`)
  }
  say(`the table of effects: ${effects === 1 ? '1 row' : `${effects} rows`}`)
  return { effects, job: (await store.get(jobId)) as Job, facts, steps }
}

/** The function of the commit: inserts a row into the table of the user. */
function effectOf({ job: { attempt } }: Held): (tx: CommitTx) => Promise<string> {
  return async (tx) => {
    await tx.query(`INSERT INTO fm001_effects (attempt) VALUES (${attempt})`)
    return JSON.stringify({ attempt })
  }
}

async function claim(store: Store, worker: string): Promise<Held> {
  const request = { worker, limit: 1, leaseMs: LEASE_MS, start: true }
  const [held] = await store.claim(request)
  if (held === undefined) throw new Error('the job of the demo is not ready')
  return held
}

function describe(answer: CommitAnswer): string {
  return answer.kind === 'rejected' ? `rejected, ${answer.error.code}` : 'accepted'
}

/** A SQLite file, and a second connection to it that belongs to the user. */
export function sqlitePlace(path: string): Fm001Place {
  return {
    open: (environment) => openSqliteStore({ path, environment }),
    async transact(work) {
      const database = new (loadDriver().DatabaseSync)(path)
      try {
        database.exec('BEGIN IMMEDIATE')
        const query = async (sql: string) => database.prepare(sql).all()
        const result = await work(query)
        database.exec('COMMIT')
        return result
      } finally {
        database.close()
      }
    },
  }
}
