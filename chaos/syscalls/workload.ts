/**
 * A small life of a SQLite store, in which every kind of write happens: open and migrate, enqueue,
 * claim, commit with rows and an effect, settle, deliver, prune, checkpoint, close. Its system
 * calls fail, or it dies at one. It says on stdout what it was told, and every error that reached
 * it; each line is out when `say` returns. What failed with a typed error is tried again.
 *
 * Argument: JSON of `{ path, archive }`.
 */
import { appendFileSync, writeSync } from 'node:fs'
import { PawlError } from 'pawl'
import { DEFAULT_POLICY, standard } from 'pawl/rules'
import { type Held, openSqliteStore, type Store } from 'pawl/sqlite'
import { openHandle } from '../sqlite-file.ts'
import { bookIn, JOBS, jobIdOf, OwnStatementFailed, type Said } from './story.ts'

const { path, archive } = JSON.parse(process.argv[2] ?? '{}') as { path: string; archive: string }
const TRIES = 4
const LEASE_MS = 60_000
/** Some pages each, so that their writes are many calls. */
const INPUT = JSON.stringify('x'.repeat(3000))

const store = await patiently('open', () => openSqliteStore({ path, busyTimeoutMs: 500 }))
say({ kind: 'done', step: 'open' })
const ids = Array.from({ length: JOBS }, (_, n) => jobIdOf(n))
for (const batch of [ids.slice(0, 3), ids.slice(3)]) {
  await patiently('enqueue', () => enqueue(store, batch))
  for (const id of batch) say({ kind: 'acknowledged', id })
}
const held = await patiently('claim', () => store.claim(request(4)))
for (const one of held.slice(0, 2)) {
  await patiently('commit', () => store.commit(one, bookIn(one.job)))
  say({ kind: 'committed', id: one.job.id })
}
await patiently('settle', () => store.settle(held.slice(2).map(success)))
for (const { job } of held.slice(2)) say({ kind: 'settled', id: job.id })
await deliver()
checkpoint()
await patiently('prune', () =>
  store.prune({ endedBefore: store.now() + 1, limit: 2, archive: keep }),
)
say({ kind: 'done', step: 'prune' })
await patiently('last commit', async () => {
  for (const one of await store.claim(request(1))) await store.commit(one, bookIn(one.job))
})
await patiently('close', () => store.close())
say({ kind: 'done', step: 'close' })

async function enqueue(into: Store, batch: readonly string[]): Promise<void> {
  const items = batch.map((jobId) => ({
    lifecycle: standard,
    command: { jobId, type: 'order', queue: 'main', policy: DEFAULT_POLICY },
    input: INPUT,
  }))
  for (const answer of await into.enqueue(items)) {
    if (answer.kind === 'rejected') throw answer.error
  }
}

function request(limit: number) {
  return { worker: 'worker-1', limit, leaseMs: LEASE_MS, start: true }
}

function success(one: Held) {
  const fence = { attempt: one.job.attempt, claim: one.job.execution?.claim ?? '' }
  return { held: one, command: { kind: 'commit', fence } as const, payload: '"settled"' }
}

async function deliver(): Promise<void> {
  const effects = await patiently('take effects', () =>
    store.claimEffects({ limit: 10, leaseMs: LEASE_MS }),
  )
  for (const { key } of effects) say({ kind: 'delivered', key })
  const reports = effects.map((effect) => ({ kind: 'delivered', effect }) as const)
  await patiently('settle effects', () => store.settleEffects(reports))
}

/** By a handle of the user's own: its errors are not covered by a promise. */
function checkpoint(): void {
  try {
    const users = openHandle(path)
    users.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    users.close()
  } catch {
    // The next one will do.
  }
}

async function keep(lines: string): Promise<void> {
  appendFileSync(archive, lines)
}

/** Tries again after a typed error, as a caller would; any other error ends the process. */
async function patiently<T>(step: string, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      const own = error instanceof OwnStatementFailed ? 'own' : null
      const code = error instanceof PawlError ? error.code : own
      say({ kind: 'error', step, code, message: String(error) })
      if (code === null || tries === TRIES) process.exit(3)
    }
  }
}

function say(said: Said): void {
  writeSync(1, `${JSON.stringify(said)}\n`)
}
