/** The jobs of a small shop, which main.ts tests. */
import { defineJob, Retryable, typed } from 'pawl'

/** Whoever takes the money. */
export interface Bank {
  charge(order: string, key: string): Promise<void>
}

/** A letter to a customer. */
export const thank = defineJob({
  name: 'thank',
  input: typed<{ order: string }>(),
  run: ({ input }) => ({ thanked: input.order }),
})

/** Takes the money of an order, then books it; the letter comes an hour later. */
export const invoice = (bank: Bank, sendLater: (order: string) => Promise<unknown>) =>
  defineJob({
    name: 'invoice',
    input: typed<{ order: string }>(),
    retry: { max: 2, delay: '1m', jitter: 0 },
    run: async ({ input: { order }, jobId, commit }) => {
      await bank.charge(order, jobId).catch((error: Error) => {
        throw new Retryable(error.message, 'unavailable')
      })
      await sendLater(order)
      return commit(async (tx) => {
        await tx.query('INSERT INTO invoices (order_id) VALUES (?)', [order])
        return { invoiced: order }
      })
    },
  })
