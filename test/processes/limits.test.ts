// Four processes work on jobs with limits and are killed again and again. At every moment that
// anybody can see, the gates count exactly the jobs that are held, and none holds more than its
// limit; the ledger shows the same in its own order. In the end every job has come to its end.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { thorough } from '../support/extent.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'
import { freshFolder } from './folder.ts'
import { rowsOf } from './inspect.ts'

const PROGRAM = fileURLToPath(new URL('./limits.mjs', import.meta.url))
const PROCESSES = 4
const KEYS = thorough(30, 200)
const JOBS = thorough(1500, 12_000)
const KILLS_MS = thorough(4000, 30_000)

/** The number of each gate. */
const LIMITS: Readonly<Record<string, number>> = {
  'shared/key': 1,
  'shared/three': 3,
  'queue/small': 5,
}
const maxOf = (gate: string) => LIMITS[gate] ?? LIMITS[gate.split('/').slice(0, 2).join('/')] ?? 0

interface Row {
  readonly id: string
  readonly slots: string
}

interface Place {
  readonly args: object
  readonly store: Store
  /** The jobs that are held and the gates, as of one moment. */
  look(): Promise<{ readonly held: readonly Row[]; readonly gates: ReadonlyMap<string, number> }>
  /** The facts of all jobs in the order of the ledger, if it has one. */
  ledger?(): readonly { readonly job: string; readonly kind: number; readonly statuses: string }[]
}

async function onSqlite(): Promise<Place> {
  const path = join(freshFolder(), 'jobs.db')
  const store = await openSqliteStore({ path, durability: 'relaxed' })
  const LOOK = `SELECT id, slots, NULL AS used FROM pawl_jobs WHERE lane = 3 AND slots IS NOT NULL
    UNION ALL SELECT key, NULL, used FROM pawl_gates`
  return {
    args: { path },
    store,
    look: async () => seenIn(rowsOf<Row & { used: number | null }>(path, LOOK)),
    ledger: () =>
      rowsOf(
        path,
        `SELECT pawl_jobs.id AS job, kind, coalesce(statuses, '') AS statuses
         FROM pawl_ledger JOIN pawl_jobs ON rid = job ORDER BY pos`,
      ),
  }
}

async function onPostgres(): Promise<Place> {
  const url = await freshStoreDatabase()
  const schema = 'pawl'
  const store = await openPostgresStore({ connectionString: url, schema })
  const client = await connected(url)
  // A second holder of a key is refused by the server itself.
  await client.query(`CREATE UNIQUE INDEX one_holder ON pawl.jobs (limit_key)
    WHERE lane = 3 AND limit_key LIKE 'shared/key/%'`)
  const LOOK = `SELECT id::text, slots, NULL::bigint AS used FROM pawl.jobs
    WHERE lane = 3 AND slots IS NOT NULL UNION ALL SELECT key, NULL, used FROM pawl.gates`
  return {
    args: { url, schema },
    store,
    look: async () => seenIn((await client.query(LOOK)).rows),
  }
}

function seenIn(rows: readonly (Row & { used: number | string | null })[]) {
  const gates = new Map(
    rows.flatMap(({ id, used }) => (used === null ? [] : ([[id, Number(used)]] as const))),
  )
  return { held: rows.filter(({ used }) => used === null), gates }
}

/** Compares the gates with the jobs that are held, and both with the limits. */
function faultsIn({ held, gates }: Awaited<ReturnType<Place['look']>>): string[] {
  const counted = new Map<string, number>()
  for (const gate of held.flatMap(({ slots }) => slots.split(' '))) {
    counted.set(gate, (counted.get(gate) ?? 0) + 1)
  }
  const over = [...counted].filter(([gate, jobs]) => jobs > maxOf(gate))
  const drifted = [...new Set([...counted.keys(), ...gates.keys()])].filter(
    (gate) => (counted.get(gate) ?? 0) !== (gates.get(gate) ?? 0),
  )
  return [
    ...over.map(([gate, jobs]) => `${jobs} jobs hold ${gate}`),
    ...drifted.map((gate) => `${gate}: ${gates.get(gate)} used, ${counted.get(gate)} held`),
  ]
}

/** Folds the ledger: a claim takes a slot of each key, and the fact that closes it frees it. */
function faultsInLedger(
  facts: readonly { job: string; kind: number; statuses: string }[],
  keys: ReadonlyMap<string, readonly string[]>,
): string[] {
  const used = new Map<string, number>()
  const faults: string[] = []
  const add = (job: string, by: number) => {
    for (const gate of keys.get(job) ?? []) {
      const now = (used.get(gate) ?? 0) + by
      used.set(gate, now)
      if (now > maxOf(gate) || now < 0) faults.push(`${gate} has ${now}`)
    }
  }
  for (const { job, kind, statuses } of facts) {
    if (kind === 20) add(job, 1)
    else if (/[CA]/.test(statuses)) add(job, -1)
  }
  return faults
}

async function fill(store: Store): Promise<ReadonlyMap<string, readonly string[]>> {
  await store.limits.declare(Object.entries(LIMITS).map(([name, max]) => ({ name, max })))
  const { ids } = systemEnvironment()
  const keys = new Map<string, readonly string[]>()
  const items = Array.from({ length: JOBS }, (_, n) => {
    const gates =
      n % 3 === 0 ? [`shared/three/${n % 5}`] : n % 3 === 1 ? [`shared/key/${n % KEYS}`] : []
    const jobId = ids.next()
    const queue = n % 10 === 0 ? 'small' : 'main'
    keys.set(jobId, queue === 'small' ? [...gates, 'queue/small'] : gates)
    const limitKeys = gates.map((gate) => ({ gate }))
    const policy = {
      ...standard.policy,
      ...{ crashesMax: 10_000, releasesMax: 10_000 },
      retry: { ...standard.policy.retry, max: 100, delayMs: 20 },
    }
    return {
      lifecycle: standard,
      input: '{}',
      command: { jobId, type: 'example', queue, limitKeys, policy },
    }
  })
  for (let from = 0; from < items.length; from += 500) {
    await store.enqueue(items.slice(from, from + 500))
  }
  return keys
}

let seeds = 0

function start(args: object, ends: boolean): ChildProcess {
  seeds++
  const own = { ...args, worker: `w${seeds}`, seed: seeds, ends }
  return spawn(process.execPath, [PROGRAM, JSON.stringify(own)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

describe.each([
  ['SQLite', onSqlite],
  ['PostgreSQL', onPostgres],
] as const)('on %s', (_name, open) => {
  it('limits hold at every moment while processes are killed', { timeout: 240_000 }, async () => {
    const { args, store, look, ledger } = await open()
    const keys = await fill(store)
    const children = Array.from({ length: PROCESSES }, () => start(args, false))
    const until = performance.now() + KILLS_MS
    let [looks, kills] = [0, 0]
    let next = performance.now() + 700
    try {
      while (performance.now() < until) {
        expect(faultsIn(await look())).toEqual([])
        looks++
        if (performance.now() < next) continue
        next = performance.now() + 300
        const victim = kills++ % PROCESSES
        const child = children[victim] as ChildProcess
        const gone = child.exitCode === null ? once(child, 'exit') : undefined
        child.kill('SIGKILL')
        await gone
        children[victim] = start(args, false)
      }
    } finally {
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return
          const gone = once(child, 'exit')
          child.kill('SIGKILL')
          await gone
        }),
      )
    }
    const last = Array.from({ length: PROCESSES }, () => start(args, true))
    const codes = await Promise.all(last.map(async (child) => (await once(child, 'exit'))[0]))
    expect(codes).toEqual(last.map(() => 0))
    expect(faultsIn(await look())).toEqual([])
    const { ended, parked, ...open_ } = (await store.counts()).lanes
    expect(Object.values(open_).every((jobs) => jobs === 0)).toBe(true)
    expect(ended + parked).toBe(JOBS)
    if (ledger !== undefined) expect(faultsInLedger(ledger(), keys)).toEqual([])
    expect([looks > 20, kills > 5]).toEqual([true, true])
    await store.close()
  })
})
