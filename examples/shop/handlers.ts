/** The code of the shop's jobs, for the worker and for tests. */
import { createReadStream } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Delivery, Retryable, type RunnableJob, sql } from 'pawl'
import { charge, importProducts, render, stock } from './jobs.ts'
import { drawReceipt } from './receipt.ts'

/** What the shop needs from outside. */
export interface Services {
  /** Fails now and then. The same key never takes the money twice. */
  readonly bank: { charge(order: string, key: string): Promise<string> }
  readonly mail: { send(to: string, text: string, key: string): Promise<void> }
  /** Where receipts are written. */
  readonly folder: string
}

const CHUNK = 500

/** The job types with their code. */
export function handlersOf({ bank, mail, folder }: Services): RunnableJob[] {
  const chargeOrder = charge.implement(
    async ({ input: { order }, step, commit }) => {
      // A step that succeeded is not repeated: a later failure does not charge again.
      const id = await step('bank', ({ key }) =>
        bank.charge(order, key).catch((error: Error) => {
          throw new Retryable(error.message, 'unavailable')
        }),
      )
      // The order, the mail and the next job become true together, or not at all.
      return commit(async (tx) => {
        const [row] = (await tx.query(
          sql`UPDATE orders SET state = 'paid' WHERE id = ${order} RETURNING email`,
        )) as { email: string }[]
        tx.effect('receipt', { to: row?.email ?? '', order })
        await tx.enqueue(render, { order })
        return { charge: id }
      })
    },
    {
      effects: {
        receipt: ({ payload, key }: Delivery<{ to: string; order: string }>) =>
          mail.send(payload.to, `Thank you for order ${payload.order}.`, key),
      },
    },
  )

  const renderReceipt = render.implement(async ({ input: { order }, commit }) => {
    const file = join(folder, `${order}.svg`)
    // Written under another name first: a reader never sees half of a file.
    await writeFile(`${file}.part`, drawReceipt(order))
    await rename(`${file}.part`, file)
    return commit(async (tx) => {
      await tx.query(sql`UPDATE orders SET file = ${file} WHERE id = ${order}`)
      return { file }
    })
  })

  const readProducts = importProducts.implement(async ({ input, enqueue, progress, signal }) => {
    let products: { sku: string; name: string }[] = []
    let done = 0
    // A repeated attempt enqueues the same jobs again, and gets those that exist.
    const flush = async () => {
      signal.throwIfAborted()
      await enqueue(stock, { products })
      done += products.length
      products = []
      progress({ done })
    }
    for await (const line of createInterface({ input: createReadStream(input.file) })) {
      const [sku = '', name = ''] = line.split(',')
      products.push({ sku, name })
      if (products.length === CHUNK) await flush()
    }
    if (products.length > 0) await flush()
    return { products: done }
  })

  const writeProducts = stock.implement(({ input, commit }) =>
    commit(async (tx) => {
      for (const { sku, name } of input.products) {
        await tx.query(sql`INSERT INTO products (sku, name) VALUES (${sku}, ${name})
          ON CONFLICT (sku) DO UPDATE SET name = excluded.name`)
      }
    }),
  )

  return [chargeOrder, renderReceipt, readProducts, writeProducts] as RunnableJob[]
}
