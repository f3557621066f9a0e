import { standard } from 'pawl/rules'
import { openSqliteStore, systemEnvironment } from 'pawl/sqlite'

const { ids } = systemEnvironment()
await using store = await openSqliteStore({ path: ':memory:' }) // or './jobs.db'

// Accepted and durable when it returns. With `tx`: in your own transaction on the same file.
const command = { jobId: ids.next(), type: 'invoice', queue: 'billing', key: 'order-1' }
await store.enqueue([{ lifecycle: standard, command, input: '{"order":"order-1"}' }])

// A worker takes a lease, prepares, and commits: its own rows, the result and the effects.
const [held] = await store.claim({ worker: 'worker-1', limit: 1, leaseMs: 30_000, start: true })
if (held !== undefined) {
  await store.commit(held, async (tx) => {
    await tx.query('CREATE TABLE IF NOT EXISTS invoices (order_id TEXT)')
    await tx.query('INSERT INTO invoices VALUES (?)', ['order-1'])
    tx.effect('email', '{"to":"ann@example.org"}') // delivered after the commit, with a stable key
    return '{"number":42}'
  })
}

// Effects have leases of their own; the last delivery finishes the job.
const effects = await store.claimEffects({ limit: 10, leaseMs: 30_000 })
await store.settleEffects(effects.map((effect) => ({ kind: 'delivered', effect })))
console.log((await store.getByKey('invoice', 'order-1'))?.state) // succeeded
