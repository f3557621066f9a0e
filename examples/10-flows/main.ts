/**
 * A report that comes after its pages and a bill, a page that fails and is redriven, a handler that
 * invokes jobs, and a batch, under a time that the program owns.
 *
 *   npm run build && node .build/programs/examples/10-flows/main.js [--json]
 */
import { defineJob, isSucceeded, settled, Terminal, typed, unwrap } from 'pawl'
import { createTestPawl } from 'pawl/testing'

let isInkThere = false

const render = defineJob({
  name: 'render',
  input: typed<{ page: number }>(),
  run: ({ input }) => {
    if (input.page === 2 && !isInkThere) throw new Terminal('there is no ink')
    return `page ${input.page}`
  },
})
const bill = defineJob({
  name: 'bill',
  input: typed<{ cents: number }>(),
  run: ({ input }) => input,
})
const mail = defineJob({ name: 'mail', run: () => Promise.reject(new Terminal('no such address')) })
const report = defineJob({
  name: 'report',
  input: typed<{ month: string }>(),
  after: { pages: [render], bill, mail: settled(mail) },
  run: ({ input, after }) => ({
    month: input.month,
    pages: after.pages,
    cents: after.bill.cents,
    mail: after.mail.kind,
  }),
})
const book = defineJob({
  name: 'book',
  input: typed<{ pages: number[] }>(),
  run: async ({ input, invoke, invokeMany }) => {
    const inputs = input.pages.map((page) => ({ page }))
    const pages = await invokeMany('pages', render, inputs, { concurrency: 2 })
    const paid = unwrap(await invoke('bill', bill, { cents: pages.length * 10 }))
    return { printed: pages.filter(isSucceeded).length, cents: paid.cents }
  },
})
const publish = defineJob({ name: 'publish', input: typed<string>(), run: ({ input }) => input })

const t = await createTestPawl({ jobs: [render, bill, mail, report, book, publish] })

// A flow: the jobs and their order are known beforehand.
const flow = await t.pawl.flow(
  (f) => {
    const pages = [1, 2, 3].map((page) => f.add(render, { page }))
    const paid = f.add(bill, { cents: 300 })
    const sent = f.add(mail, null)
    return f.add(report, { month: '11' }, { after: { pages, bill: paid, mail: sent } })
  },
  { key: 'report-11' },
)
await t.drain()
const stuck = await flow.result()
const why = await t.pawl.explain(flow.jobs[5]?.id as string)

// The cause is removed and redriven. The report goes on by itself.
isInkThere = true
await t.pawl.flows.redrive(flow.id, { name: 'ann', reason: 'there is ink again' })
await t.drain()
const done = await flow.result()

// Children: known only while the handler runs. A batch: many jobs of one type, then one more.
const printed = await t.pawl.enqueue(book, { pages: [4, 5, 6] })
const inputs = [7, 8].map((page) => ({ page }))
const batch = await t.pawl.batch(render, inputs, { onSuccess: [publish, 'all pages'] })
await t.drain()
const [made, published] = [await printed.result(), await batch.callbacks.onSuccess?.result()]

const result = {
  stuck: stuck.kind === 'parked' ? stuck.reason : stuck.kind,
  command: why.command,
  report: done.kind === 'succeeded' ? done.output : done.kind,
  book: made.kind === 'succeeded' ? made.output : made.kind,
  published: published?.kind === 'succeeded' ? published.output : published?.kind,
  members: (await batch.progress()).succeeded,
}
await t.close()
console.log(process.argv.includes('--json') ? JSON.stringify(result) : result)
