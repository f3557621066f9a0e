/** The tables of the shop, and what its web process does with them. */
import { type Job, type Pawl, sql } from 'pawl'
import { charge, importProducts } from './jobs.ts'

const TABLES = [
  sql`CREATE TABLE IF NOT EXISTS orders
    (id TEXT PRIMARY KEY, email TEXT NOT NULL, state TEXT NOT NULL, file TEXT)`,
  sql`CREATE TABLE IF NOT EXISTS products (sku TEXT PRIMARY KEY, name TEXT NOT NULL)`,
]

/** An order as the shop stores it. */
export interface Order {
  readonly id: string
  readonly email: string
  readonly state: 'new' | 'paid'
  readonly file: string | null
}

/** Creates the tables that are missing. */
export async function createTables(pawl: Pawl): Promise<void> {
  await pawl.transaction(async (tx) => {
    for (const table of TABLES) await tx.query(table)
  })
}

/** Stores an order and its job in one transaction. The same order again changes nothing. */
export async function placeOrder(pawl: Pawl, id: string, email: string): Promise<string> {
  return pawl.transaction(async (tx) => {
    await tx.query(sql`INSERT INTO orders (id, email, state) VALUES (${id}, ${email}, 'new')
      ON CONFLICT (id) DO NOTHING`)
    const job = await pawl.enqueue(charge, { order: id }, { tx, key: id })
    return job.id
  })
}

/** Reads an order; undefined if there is none. */
export async function findOrder(pawl: Pawl, id: string): Promise<Order | undefined> {
  const rows = await pawl.transaction((tx) =>
    tx.query(sql`SELECT id, email, state, file FROM orders WHERE id = ${id}`),
  )
  return rows[0] as Order | undefined
}

/** Starts the import of a file of products. */
export async function startImport(pawl: Pawl, file: string): Promise<string> {
  return (await pawl.enqueue(importProducts, { file })).id
}

/** How far an import is: its own state, how many products are read and how many are written. */
export async function importStatus(pawl: Pawl, id: string): Promise<object | undefined> {
  const job = await pawl.jobs.get(id)
  if (job === undefined) return undefined
  const [row] = (await pawl.transaction((tx) =>
    tx.query(sql`SELECT count(*) AS written FROM products`),
  )) as { written: number | string }[]
  return { state: job.state, read: await readBy(pawl, job), written: Number(row?.written ?? 0) }
}

/** The progress of a running import; the result of one that has succeeded. */
async function readBy(pawl: Pawl, { id, outcome }: Job): Promise<number> {
  const handle = pawl.job<{ products: number }>(id)
  if (outcome === null) {
    const progress = (await handle.progress()) as { done: number } | undefined
    return progress?.done ?? 0
  }
  const result = await handle.result()
  return result.kind === 'succeeded' ? result.output.products : 0
}
