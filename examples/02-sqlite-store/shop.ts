/** The user's own tables, in the same file as the store. */
import { createRequire } from 'node:module'
import { standard } from 'pawl/rules'
import type { Environment, Store } from 'pawl/sqlite'

interface Database {
  exec(sql: string): void
  prepare(sql: string): { run(...values: string[]): unknown; get(): unknown }
  close(): void
}

/** A shop that takes orders; each gets a job in the same transaction. */
export interface Shop {
  placeOrder(store: Store, environment: Environment, order: string): Promise<void>
  countInvoices(): number
  close(): void
}

/** Opens the shop's tables with whichever SQLite this Node has. */
export function openShop(path: string): Shop {
  const { DatabaseSync } = loadSqlite()
  const database = new DatabaseSync(path)
  database.exec('CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)')
  // A second invoice for an order would be possible here: it is the commit that prevents it.
  database.exec('CREATE TABLE IF NOT EXISTS invoices (order_id TEXT NOT NULL)')
  return {
    async placeOrder(store, environment, order) {
      database.exec('BEGIN IMMEDIATE')
      database.prepare('INSERT INTO orders (id) VALUES (?)').run(order)
      const command = {
        jobId: environment.ids.next(),
        type: 'invoice',
        queue: 'billing',
        key: order,
      }
      const input = JSON.stringify({ order })
      await store.enqueue([{ lifecycle: standard, command, input }], { tx: database })
      database.exec('COMMIT')
    },
    countInvoices() {
      const row = database.prepare('SELECT count(*) AS invoices FROM invoices').get()
      return (row as { invoices: number }).invoices
    },
    close: () => database.close(),
  }
}

function loadSqlite(): { DatabaseSync: new (path: string) => Database } {
  const builtIn = process.getBuiltinModule('node:sqlite') as unknown
  return (builtIn ?? createRequire(import.meta.url)('@photostructure/sqlite')) as never
}
