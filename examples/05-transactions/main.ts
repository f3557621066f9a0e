/**
 * Your own writes and new jobs in one transaction, on Pawl's connection: with plain SQL, with
 * Kysely and with Drizzle. Three orders are placed, each with a job; a fourth fails, and leaves
 * neither.
 *
 *   npm run build && node .build/programs/examples/05-transactions/main.js [--json]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { createPawl, defineJob, typed } from 'pawl'
import { drizzleOn, kyselyOn } from './builders.ts'

interface Tables {
  orders: { id: string }
}

const orders = sqliteTable('orders', { id: text('id').primaryKey() })
const invoice = defineJob({ name: 'invoice', input: typed<{ order: string }>() })

const folder = mkdtempSync(join(tmpdir(), 'pawl-transactions-'))
const pawl = await createPawl({ store: `sqlite:${join(folder, 'shop.db')}` })

await pawl.transaction((tx) => tx.query('CREATE TABLE orders (id TEXT PRIMARY KEY)'))

await pawl.transaction(async (tx) => {
  await tx.query('INSERT INTO orders (id) VALUES (?)', ['plain'])
  await pawl.enqueue(invoice, { order: 'plain' }, { tx })
})

await pawl.transaction(async (tx) => {
  await kyselyOn<Tables>(tx).insertInto('orders').values({ id: 'kysely' }).execute()
  await pawl.enqueue(invoice, { order: 'kysely' }, { tx })
})

await pawl.transaction(async (tx) => {
  await drizzleOn(tx).insert(orders).values({ id: 'drizzle' })
  await pawl.enqueue(invoice, { order: 'drizzle' }, { tx })
})

const refused = await pawl
  .transaction(async (tx) => {
    await pawl.enqueue(invoice, { order: 'plain' }, { tx })
    await kyselyOn<Tables>(tx).insertInto('orders').values({ id: 'plain' }).execute()
  })
  .catch((error: Error) => error.message)

const placed = await pawl.transaction((tx) => drizzleOn(tx).select().from(orders))
const jobs = await pawl.store.counts()
await pawl.close()
rmSync(folder, { recursive: true })

const summary = { orders: placed.map(({ id }) => id).sort(), jobs: jobs.lanes.ready, refused }
console.log(
  process.argv.includes('--json')
    ? JSON.stringify(summary)
    : `Orders: ${summary.orders.join(', ')}. Jobs: ${summary.jobs}. Refused: ${refused}.`,
)
