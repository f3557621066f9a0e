/**
 * Jobs on a SQLite file: enqueued in the same transaction as an order, committed in the same
 * transaction as an invoice, and still there after the store was closed and opened again. A worker
 * that comes back after its lease is refused, so each order has one invoice.
 *
 *   npm start            shows it
 *   npm start -- --json  one JSON object as the last line
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkFacts, checkP9, standard } from 'pawl/rules'
import { type CommitTx, type Held, openSqliteStore, type Store } from 'pawl/sqlite'
import { testEnvironment } from 'pawl/testing'
import { renderStory } from './render.ts'
import { openShop } from './shop.ts'

const ORDERS = ['o-1', 'o-2', 'o-3']
const LEASE_MS = 30_000
const folder = mkdtempSync(join(tmpdir(), 'pawl-example-'))
const path = join(folder, 'shop.db')
// Time is played, so that a lease can run out without waiting for it.
const environment = testEnvironment()

/** The commit of an invoice: the row, the result and the effect, or none of them. */
function invoiceOf(held: Held): (tx: CommitTx) => Promise<string> {
  const { order } = JSON.parse(held.input) as { order: string }
  return async (tx) => {
    await tx.query('INSERT INTO invoices (order_id) VALUES (?)', [order])
    tx.effect('email', JSON.stringify({ order }))
    return JSON.stringify({ invoiced: order })
  }
}

function claimOne(store: Store, worker: string): Promise<Held[]> {
  return store.claim({ worker, limit: 1, leaseMs: LEASE_MS, start: true })
}

/** Writes every invoice; says what a worker was told that came back too late. */
async function work(store: Store): Promise<string> {
  // A worker takes the first job and freezes. Its lease runs out, and the job is taken back.
  const [frozen] = await claimOne(store, 'worker-a')
  environment.clock.advance(LEASE_MS)
  await store.recover(10)
  environment.clock.advance(LEASE_MS)
  await store.promote(10)

  for (let held = await claimOne(store, 'worker-b'); held[0] !== undefined; ) {
    await store.commit(held[0], invoiceOf(held[0]))
    held = await claimOne(store, 'worker-b')
  }

  // The frozen worker wakes up and tries to write its invoice, too.
  if (frozen === undefined) return 'nothing was claimed'
  const late = await store.commit(frozen, invoiceOf(frozen))
  return late.kind === 'rejected' ? late.error.code : late.kind
}

async function deliver(store: Store): Promise<number> {
  const effects = await store.claimEffects({ limit: 10, leaseMs: LEASE_MS })
  await store.settleEffects(effects.map((effect) => ({ kind: 'delivered', effect })))
  return effects.length
}

const before = await openSqliteStore({ path, environment })
const shop = openShop(path)
for (const order of ORDERS) await shop.placeOrder(before, environment, order)
const lateCommit = await work(before)
await before.close()

// The file is all that is needed to go on, here or in another process.
const after = await openSqliteStore({ path, environment })
const delivered = await deliver(after)
const { items: jobs } = await after.list({})
const ledgers = await Promise.all(jobs.map(({ id }) => after.facts(id)))
await after.close()

const result = {
  orders: ORDERS.length,
  succeeded: jobs.filter(({ state }) => state === 'succeeded').length,
  attempts: jobs.reduce((sum, { attempt }) => sum + attempt, 0),
  invoices: shop.countInvoices(),
  delivered,
  lateCommit,
  violations: jobs.flatMap((job, i) => {
    const facts = ledgers[i] ?? []
    return [...checkFacts(standard, facts), ...checkP9(job, facts)]
  }),
}
shop.close()
rmSync(folder, { recursive: true })

if (process.argv.includes('--json')) console.log(JSON.stringify(result))
else console.log(renderStory(ledgers, result))

const once = result.succeeded === result.orders && result.invoices === result.orders
process.exitCode = once && result.violations.length === 0 ? 0 : 1
