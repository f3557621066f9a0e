// What jobs wait for is what their facts say, whatever somebody writes into the rows of links.
import { LIFECYCLES, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import type { FlowItem } from '../../src/stores/contract/flows.ts'
import type { Held } from '../../src/stores/contract/store.ts'
import { nodeId } from '../../src/stores/derived-ids.ts'
import { type Examined, STORES } from '../stores/examined-stores.ts'

const ANN = { operator: 'ann', reason: 'changed by hand' }
const FLOW = '00000000-0000-7000-8000-0000000f10a0'
const RELINK = 'restore the links'

const item = (queue: string): FlowItem => ({
  lifecycle: standard,
  command: { type: queue, queue },
  input: '1',
})

async function take({ store }: Examined, queue: string): Promise<Held> {
  const request = { worker: 'w', queues: [queue], limit: 1, leaseMs: 600_000, start: true }
  const [held] = await store.claim(request)
  return held as Held
}

const fenceOf = ({ job }: Held) => ({
  attempt: job.attempt,
  claim: job.execution?.claim ?? '',
})

/** `c` waits for `a`, which has ended, and for `b`; `p` waits for one child. */
async function waiting(examined: Examined): Promise<string> {
  const { store, environment } = examined
  const group = { name: 'all', of: [[0, 1]] as const, need: 'success', list: true } as const
  await store.flows.create({
    id: FLOW,
    kind: 'flow',
    nodes: [{ item: item('a') }, { item: item('b') }, { item: item('c'), after: [group] }],
  })
  const command = { jobId: environment.ids.next(), type: 'p', queue: 'p' }
  await store.enqueue([{ lifecycle: standard, command, input: '1' }])
  await store.reportWorker({ id: 'w', state: 'Idle', info: '{"version":"1"}' })
  const parent = await take(examined, 'p')
  const request = { id: parent.job.id, fence: fenceOf(parent), name: 'kids', n: 1 }
  await store.flows.invoke({ ...request, children: [item('kid')] })
  await succeed(examined, 'a')
  await store.flows.wake(100)
  return parent.job.id
}

async function succeed(examined: Examined, queue: string): Promise<void> {
  const held = await take(examined, queue)
  await examined.store.settle([{ held, command: { kind: 'commit', fence: fenceOf(held) } }])
}

const doctorOf = ({ store, environment }: Examined) =>
  new Doctor({ store, environment, lifecycles: LIFECYCLES })

const CASES: readonly [what: string, sql: string][] = [
  ['are lost', 'DELETE FROM @links'],
  ['are open although the job has ended', 'UPDATE @links SET state = 0'],
  ['have arrived although the job has not ended', 'UPDATE @links SET state = 3'],
  ['have failed although the job has not', 'UPDATE @links SET state = 4'],
]

describe.each(STORES)('links of $name', ({ open }) => {
  it('that are sound are not reported', async () => {
    const examined = await open()
    await waiting(examined)
    const found = await doctorOf(examined).check({ full: true })
    expect(found.findings.filter(({ promise }) => promise === 'P19')).toEqual([])
  })

  it.each(CASES)('that %s are reported and restored', async (_, sql) => {
    const examined = await open()
    const parent = await waiting(examined)
    await examined.sql(sql)
    const { store } = examined
    const found = await doctorOf(examined).check({ full: true })
    const told = found.findings.filter(({ promise }) => promise === 'P19')
    expect(told.length).toBeGreaterThan(0)
    for (const { remedy, check } of told) {
      expect([check, remedy]).toEqual(['waiters-are-released', RELINK])
    }
    await doctorOf(examined).repair(ANN)
    const after = await doctorOf(examined).check({ full: true })
    expect(after.findings.filter(({ promise }) => promise === 'P19')).toEqual([])
    expect((await store.get(nodeId(FLOW, 2)))?.state).toBe('created')
    await succeed(examined, 'b')
    await succeed(examined, 'kid')
    await store.flows.wake(100)
    expect((await store.get(nodeId(FLOW, 2)))?.state).toBe('queued')
    expect((await store.get(parent))?.state).toBe('queued')
  })

  it('that were all examined without a release are stuck, and released by a repair', async () => {
    const examined = await open()
    const parent = await waiting(examined)
    const { store } = examined
    await succeed(examined, 'b')
    await succeed(examined, 'kid')
    await examined.sql('UPDATE @links SET state = 3')
    const found = await doctorOf(examined).check({ full: true })
    const told = found.findings.filter(({ promise }) => promise === 'P19')
    expect(told.map(({ what }) => what)).toEqual(
      Array(2).fill('nothing is left that would release it'),
    )
    await doctorOf(examined).repair(ANN)
    expect((await store.get(nodeId(FLOW, 2)))?.state).toBe('queued')
    expect((await store.get(parent))?.state).toBe('queued')
  })
})
