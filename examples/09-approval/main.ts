/**
 * A job that asks for an approval, waits for the answer for up to a week, and then sleeps for three
 * days, under a time that the program owns.
 *
 *   npm run build && node .build/programs/examples/09-approval/main.js [--json]
 */
import { defineJob, defineSignal, Terminal, typed } from 'pawl'
import { createTestPawl } from 'pawl/testing'

const asked: string[] = []

const approval = defineSignal({
  name: 'approval',
  payload: typed<{ approved: boolean; by: string }>(),
})
const order = defineJob({
  name: 'order',
  input: typed<{ id: string }>(),
  signals: [approval],
  run: async ({ input, step, sleep, waitForSignal }) => {
    await step('ask', () => asked.push(input.id))
    const answer = await waitForSignal(approval, { timeout: '7d' })
    if (answer.kind === 'timeout') throw new Terminal('there was no answer')
    await sleep('cool-off', '3d')
    return answer.payload.by
  },
})

const t = await createTestPawl({ jobs: [order] })
const answered = await t.pawl.enqueue(order, { id: 'o-1' })
const forgotten = await t.pawl.enqueue(order, { id: 'o-2' })
await t.drain()
const waiting = await t.pawl.explain(answered.id)

// The second call has the key of the first, so it is not stored again.
const ann = { approved: true, by: 'ann' }
const sent = await answered.signal(approval, ann, { key: 'mail-4711' })
const again = await answered.signal(approval, ann, { key: 'mail-4711' })
for (let day = 0; day < 10; day++) {
  await t.drain()
  await t.advance('1d')
}
await t.drain()

const [first, second] = [await answered.result(), await forgotten.result()]
const result = {
  waiting: waiting.says,
  sent: sent.kind,
  again: again.kind,
  asked: asked.length,
  attempts: first.job.attempt,
  by: first.kind === 'succeeded' ? first.output : undefined,
  forgotten: second.kind === 'failed' ? second.error?.message : second.kind,
}
await t.close()
console.log(process.argv.includes('--json') ? JSON.stringify(result) : result)
