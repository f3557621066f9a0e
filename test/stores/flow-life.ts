/** A flow, a batch and children from their creation to their end, for tests of statements. */
import { standard } from 'pawl/rules'
import type { FlowItem } from '../../src/stores/contract/flows.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'

const item = (queue: string): FlowItem => ({
  lifecycle: standard,
  input: '{}',
  command: { type: queue, queue },
})

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })

async function take(store: Store, queue: string): Promise<Held> {
  const request = { worker: 'w', queues: [queue], limit: 1, leaseMs: 1000, start: true }
  const [held] = await store.claim(request)
  return held as Held
}

async function succeed(store: Store, queue: string): Promise<void> {
  const held = await take(store, queue)
  await store.settle([{ held, command: { kind: 'commit', fence: fenceOf(held) }, payload: '1' }])
  await store.flows.wake(100)
}

/** Plays every verb of flows; `id` is of a flow, and each of `jobId` of a job. */
export async function playFlows(store: Store, id: string, jobId: string): Promise<void> {
  const { flows } = store
  const group = { name: 'all', of: [0], need: 'success', list: true } as const
  const nodes = [{ item: item('flow-a') }, { item: item('flow-b'), after: [group] }]
  await flows.create({ id, kind: 'flow', key: `k ${id}`, nodes })
  await flows.waitsFor(jobId, 10)
  await flows.awaitedBy(jobId, 10)
  await succeed(store, 'flow-a')
  const held = await take(store, 'flow-b')
  await flows.after(held.job.id)
  await flows.invoke({
    ...{ id: held.job.id, fence: fenceOf(held), name: 'kids', n: 1 },
    children: [item('flow-kid')],
  })
  await flows.list({ state: 'open' })
  await flows.nodes(id)
  await flows.progress(id)
  await succeed(store, 'flow-kid')
  await succeed(store, 'flow-b')
}
