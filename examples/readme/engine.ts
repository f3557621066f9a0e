import { createPawl, defineJob, typed } from 'pawl'

const invoice = defineJob({
  name: 'invoice',
  queue: 'billing',
  input: typed<{ orderId: string }>(), // or any Standard Schema: Zod, Valibot, ArkType …
  retry: { max: 3, delay: '1s' },
  timeout: '30s',
  async run({ input, step, commit, signal }) {
    const body = await step('render', () => render(input.orderId, signal)) // kept across retries
    return commit(async (tx) => {
      // Once, ever: your rows, the result and the effects in one transaction.
      await tx.query('CREATE TABLE IF NOT EXISTS invoices (order_id TEXT, body TEXT)')
      await tx.query('INSERT INTO invoices VALUES (?, ?)', [input.orderId, body])
      tx.effect('email', { body }) // delivered after the commit, with a stable key
      return { invoiced: input.orderId }
    })
  },
  effects: { email: ({ payload, key }) => console.log(`mail ${key}:`, payload) },
})

// The store: 'sqlite:./jobs.db', 'postgres://…', or in memory for a try.
await using pawl = await createPawl({ store: 'sqlite::memory:', jobs: [invoice] })
await pawl.work({ concurrency: 20 })
const job = await pawl.enqueue(invoice, { orderId: 'o-1' }, { key: 'o-1' })
const outcome = await job.result({ timeout: '1m' }) // succeeded | failed | cancelled | parked
if (outcome.kind === 'succeeded') console.log(outcome.output.invoiced) // o-1

async function render(orderId: string, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted() // aborted when the lease is lost, the job is cancelled or time is up
  return `Invoice for ${orderId}`
}
