/** A month's statements as flows and a batch, for pictures of the dashboard. */
import { defineJob, typed } from 'pawl'
import type { TestPawl } from 'pawl/testing'

type Pass = (ms: number) => void

/** Job types of flows. Invoices fail while `isBroken` returns true. */
export function flowTypes(pass: Pass, isBroken: () => boolean) {
  const render = defineJob({
    name: 'render-page',
    queue: 'pages',
    input: typed<{ page: number }>(),
    run: ({ input }) => {
      pass(300 + 700 * (input.page % 4))
      return { page: input.page }
    },
  })
  const invoice = defineJob({
    name: 'invoice',
    queue: 'pages',
    input: typed<{ month: string }>(),
    retry: { max: 0 },
    run: ({ input }) => {
      pass(1200)
      if (isBroken()) throw new Error('The bank does not answer')
      return { invoiced: input.month }
    },
  })
  const statement = defineJob({
    name: 'write-statement',
    queue: 'pages',
    input: typed<{ month: string }>(),
    after: { pages: [render], bill: invoice },
    run: ({ after }) => {
      pass(2400)
      return { pages: after.pages.length }
    },
  })
  const publish = defineJob({
    name: 'publish',
    queue: 'pages',
    input: typed<{ month: string }>(),
    after: { text: statement },
    run: () => {
      pass(150)
    },
  })
  const index = defineJob({
    name: 'index-archive',
    queue: 'pages',
    input: typed<{ month: string }>(),
    run: () => pass(50),
  })
  return { render, invoice, statement, publish, index }
}

/** One flow that is done, one that needs a person, and a large batch that is under way. */
export async function makeFlows(
  { pawl, drain }: Pick<TestPawl, 'pawl' | 'drain'>,
  types: ReturnType<typeof flowTypes>,
  setBroken: (isBroken: boolean) => void,
): Promise<void> {
  const { render, invoice, statement, publish, index } = types
  for (const month of ['2026-10', '2026-11']) {
    setBroken(month === '2026-11')
    await pawl.flow(
      (f) => {
        const pages = [0, 1, 2, 3].map((page) => f.add(render, { page }))
        const bill = f.add(invoice, { month })
        const text = f.add(statement, { month }, { after: { pages, bill } })
        return f.add(publish, { month }, { after: { text } })
      },
      { key: `statements ${month}` },
    )
    await drain()
  }
  const inputs = Array.from({ length: 1000 }, (_, page) => ({ page }))
  await pawl.batch(render, inputs, {
    key: 'archive of 2025',
    onSuccess: [index, { month: '2025' }],
  })
}
