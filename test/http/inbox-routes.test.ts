// The inbox and waits of workers over HTTP, on both databases.
import { approval, defineJob, defineSignal, typed } from 'pawl'
import { describe, expect, it } from 'vitest'
import { HttpBench } from './bench.ts'
import { STORES } from './places.ts'

const answer = defineSignal({
  name: 'answer',
  payload: typed<{ text: string }>(),
  jsonSchema: { type: 'object', properties: { text: { type: 'string' } } },
})
const order = defineJob({ name: 'order', input: typed<unknown>(), signals: [approval, answer] })
const HOUR = 3_600_000

async function claimed(bench: HttpBench): Promise<{ id: string; lease: string; waits: unknown[] }> {
  const body = { worker: 'w1', leaseMs: 60_000 }
  const { jobs } = await bench.ok('POST', '/api/v1/claim', body, 'work')
  return jobs[0]
}

const waitOf = (bench: HttpBench, body: object) =>
  bench.call('POST', '/api/v1/leases/wait', { role: 'work', body })

describe.each(STORES)('waiting over HTTP on $name', ({ place }) => {
  const open = async () => HttpBench.open(await place(), {}, [order])

  it('a worker waits, and the same wait is answered when it is over', async () => {
    const bench = await open()
    const { id } = await bench.post('/api/v1/jobs', { type: 'order', input: { n: 1 } })
    const first = await claimed(bench)
    expect(first.waits).toEqual([])
    const wait = { for: 'signal', name: 'approval', timeoutMs: HOUR }
    const suspended = await waitOf(bench, { lease: first.lease, ...wait })
    expect(suspended.json).toMatchObject({ kind: 'suspended', id, state: 'waiting' })
    // The reply may be lost: the same request is answered in the same way.
    const again = await waitOf(bench, { lease: first.lease, ...wait })
    expect(again.json).toMatchObject({ kind: 'suspended', id })
    await bench.post(`/api/v1/jobs/${id}/reject`, { reason: 'no' })
    const second = await claimed(bench)
    expect(second.waits).toMatchObject([{ for: 'signal', name: 'approval', n: 1 }])
    const over = await waitOf(bench, { lease: second.lease, ...wait })
    const end = { kind: 'received', payload: { approved: false }, by: 'admin-owner', note: 'no' }
    expect(over.json).toMatchObject({ kind: 'over', end })
    expect((await waitOf(bench, { lease: second.lease, ...wait })).json.end).toEqual(end)
    const late = await waitOf(bench, { lease: first.lease, for: 'sleep', name: 's', timeoutMs: 1 })
    expect([late.status, late.json.code]).toEqual([409, 'E_STALE_FENCE'])
    const nap = await waitOf(bench, { lease: second.lease, for: 'sleep', name: 's', timeoutMs: 0 })
    expect(nap.json).toMatchObject({ kind: 'over', end: { kind: 'passed' } })
    const lease = second.lease
    for (const wrong of [
      { lease, for: 'sleep', name: 's' },
      { lease, for: 'nothing', name: 's', timeoutMs: 1 },
      { lease, for: 'sleep', name: 's', timeoutMs: 1, until: 1 },
      { lease, for: 'sleep', name: '', timeoutMs: 1 },
    ]) {
      expect((await waitOf(bench, wrong)).status).toBe(400)
    }
    await bench.ok('POST', '/api/v1/leases/commit', { lease: second.lease }, 'work')
    expect((await bench.post('/api/v1/doctor/check', { full: true })).errors).toBe(0)
  })

  it('the inbox lists what waits for people, the longest wait first, with its form', async () => {
    const bench = await open()
    const ids: string[] = []
    for (const [i, wait] of [
      { for: 'signal', name: 'approval' },
      { for: 'signal', name: 'answer', timeoutMs: HOUR },
      { for: 'sleep', name: 'nap', timeoutMs: HOUR },
    ].entries()) {
      const input = { i, password: 'hunter2' }
      ids.push((await bench.post('/api/v1/jobs', { type: 'order', input, key: `k${i}` })).id)
      await waitOf(bench, { lease: (await claimed(bench)).lease, ...wait })
    }
    const seen = await bench.call('GET', '/api/v1/inbox', { role: 'read' })
    expect(seen.text).not.toContain('hunter2')
    expect(seen.json).toMatchObject({ total: 2, more: false })
    expect(seen.json.items).toMatchObject([
      { job: { id: ids[0], key: 'k0' }, signal: 'approval', isApproval: true, until: null },
      { job: { id: ids[1] }, signal: 'answer', isApproval: false, schema: answer.jsonSchema },
    ])
    const some = await bench.get('/api/v1/inbox?waitsFor=answer&type=order&limit=1')
    expect(some.items).toHaveLength(1)
    const body = { name: 'answer', payload: { text: 'yes' }, reason: 'asked', key: 'a' }
    await bench.post(`/api/v1/jobs/${ids[1]}/signals`, body)
    const { signals } = await bench.pawl.store.waits.history(ids[1] ?? '')
    expect(signals).toMatchObject([{ by: 'admin-owner', note: 'asked' }])
    expect((await bench.get('/api/v1/inbox')).total).toBe(1)
    const unknown = await bench.call('POST', `/api/v1/jobs/${ids[0]}/signals`, {
      body: { name: 'misspelt' },
    })
    expect([unknown.status, unknown.json.code]).toEqual([422, 'E_SIGNAL_UNDECLARED'])
    const many = { filter: { waitsFor: 'approval' }, reason: 'no' }
    expect(await bench.post('/api/v1/jobs/reject', many)).toMatchObject({ matched: 1, done: 1 })
    expect((await bench.get('/api/v1/inbox')).items).toEqual([])
  })
})

describe('the table of routes', () => {
  it('has no route of waits and answers that the tests above have not called with success', () => {
    const own = ['showInbox', 'waitFor', 'rejectJob', 'rejectJobs']
    expect(own.filter((operation) => !HttpBench.succeeded.has(operation))).toEqual([])
  })
})
