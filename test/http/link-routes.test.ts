// Flows, batches and links of jobs over HTTP, on both databases.
import { describe, expect, it } from 'vitest'
import { routes } from '../../src/http/routes/flows.ts'
import { group, makeFlow, reporting } from '../support/made-flows.ts'
import { HttpBench } from './bench.ts'
import { STORES } from './places.ts'

const WHY = { reason: 'INC-7' }
const LONG = { timeout: 60_000 }
const NOBODY = '00000000-0000-7000-8000-00000000dead'

async function open(place: () => Promise<string>) {
  const types = reporting()
  const bench = await HttpBench.open(await place(), {}, types.jobs)
  return { bench, ...types }
}

/** Waits until a flow is in a state. */
async function untilState(bench: HttpBench, id: string, state: string): Promise<void> {
  await expect
    .poll(async () => (await bench.get(`/api/v1/flows/${id}`)).flow.state, LONG)
    .toBe(state)
}

describe.each(STORES)('flows over HTTP on $name', { timeout: 180_000 }, ({ place }) => {
  it('are listed by state, kind and key, with how far each is', async () => {
    const { bench, nodes, render } = await open(place)
    const { id } = await makeFlow(bench.pawl, nodes, { key: 'report-11' })
    const batch = await makeFlow(bench.pawl, [{ job: render }], { kind: 'batch' })
    const all = await bench.get('/api/v1/flows')
    expect(all.items.map(({ flow }: { flow: { id: string } }) => flow.id)).toEqual([batch.id, id])
    expect(all.items[0].progress).toBeNull()
    const { items } = await bench.get('/api/v1/flows?kind=flow&state=open&progress=true')
    expect(items).toMatchObject([
      {
        flow: { id, kind: 'flow', key: 'report-11', size: 4, state: 'open', open: false },
        progress: { members: 4, live: 4, succeeded: 0, parked: 0 },
      },
    ])
    expect((await bench.get('/api/v1/flows?key=report-11')).items).toHaveLength(1)
    expect((await bench.get('/api/v1/flows?state=done')).items).toEqual([])
    const first = await bench.get('/api/v1/flows?limit=1')
    const rest = await bench.get(`/api/v1/flows?after=${encodeURIComponent(first.nextCursor)}`)
    expect([...first.items, ...rest.items]).toEqual(all.items)
    expect((await bench.call('GET', '/api/v1/flows?state=closed')).status).toBe(400)
  })

  it('show their jobs and a graph, are redriven, and show how they were', async () => {
    const { bench, nodes, repair } = await open(place)
    const { id, jobs } = await makeFlow(bench.pawl, nodes)
    const worker = await bench.pawl.work()
    await untilState(bench, id, 'attention')
    await expect
      .poll(async () => (await bench.get(`/api/v1/flows/${id}`)).progress.succeeded, LONG)
      .toBe(2)
    const { items } = await bench.get(`/api/v1/flows/${id}/nodes`)
    expect(items.map(({ n, job }: { n: number; job: { id: string } }) => [n, job.id])).toEqual(
      jobs.map((job, n) => [n, job]),
    )
    expect(items[3].after).toEqual(nodes[3]?.after)
    const graph = await bench.get(`/api/v1/flows/${id}/graph`)
    const standing = graph.boxes.map((box: { statuses: object }) => box.statuses)
    expect(standing).toEqual([{ succeeded: 1 }, { succeeded: 1 }, { parked: 1 }, { waits: 1 }])
    expect(graph.critical.map(({ n }: { n: number }) => n)).toEqual([2, 3])
    const stuck = await bench.get(`/api/v1/jobs/${jobs[3]}/links`)
    expect(stuck).toMatchObject({ flow: { id }, parent: null, waitsFor: [{ id: jobs[2] }] })
    const cause = await bench.get(`/api/v1/jobs/${jobs[2]}/links`)
    expect(cause).toMatchObject({ waitsFor: [], awaitedBy: [{ id: jobs[3] }], children: [] })
    expect((await bench.get('/api/v1/overview')).attention.parkedFlows).toBe(1)

    // A discarded dependency has failed: its dependent is parked and names it.
    const then = bench.pawl.store.now()
    await bench.post(`/api/v1/jobs/${jobs[2]}/discard`, WHY)
    await expect
      .poll(async () => (await bench.get(`/api/v1/jobs/${jobs[3]}`)).job.blockedReason, LONG)
      .toMatch(/dependency_failed/)
    repair()
    const path = `/api/v1/flows/${id}/redrive`
    const dry = await bench.post(path, { ...WHY, dryRun: true })
    expect(dry).toMatchObject({ dryRun: true, matched: 1, done: 1, sample: [jobs[2]] })
    expect(await bench.post(path, WHY)).toMatchObject({ matched: 1, done: 1, refused: 0 })
    await untilState(bench, id, 'done')
    const { progress } = await bench.get(`/api/v1/flows/${id}`)
    expect(progress).toMatchObject({ members: 4, succeeded: 4, failed: 0, live: 0 })
    const ends = await bench.get(`/api/v1/jobs/${jobs[3]}/links`)
    expect(
      ends.after.map(({ name, ends: all }: { name: string; ends: object[] }) => [name, all]),
    ).toMatchObject([
      ['pages', [{ outcome: 'succeeded' }, { outcome: 'succeeded' }]],
      ['bill', [{ outcome: 'succeeded', result: { text: '{"invoiced":true}' } }]],
    ])
    expect(await bench.post(path, WHY)).toMatchObject({ matched: 0 })

    // Time travel: the same boxes, as they were.
    const past = await bench.get(`/api/v1/flows/${id}/graph?at=${then}`)
    expect(past.boxes.map((box: { statuses: object }) => box.statuses)).toEqual(standing)
    const before = await bench.get(`/api/v1/flows/${id}/nodes?at=${graph.moments[0]}`)
    expect(before.items.every(({ job }: { job: { outcome: null } }) => job.outcome === null)).toBe(
      true,
    )
    expect((await bench.get(`/api/v1/flows/${id}/nodes?at=1`)).items).toEqual([])
    await worker.stop()
  })

  it('are cancelled as a whole, dependents first', async () => {
    const { bench, nodes } = await open(place)
    const { id } = await makeFlow(bench.pawl, nodes)
    const path = `/api/v1/flows/${id}/cancel`
    const dry = await bench.post(path, { ...WHY, dryRun: true })
    expect(dry).toMatchObject({ dryRun: true, matched: 4, done: 4 })
    expect((await bench.get(`/api/v1/flows/${id}`)).progress.live).toBe(4)
    expect(await bench.post(path, WHY)).toMatchObject({ matched: 4, done: 4, refused: 0 })
    const shown = await bench.get(`/api/v1/flows/${id}`)
    expect(shown).toMatchObject({ flow: { state: 'done' }, progress: { cancelled: 4 } })
    const { items } = await bench.get(`/api/v1/jobs?flow=${id}`)
    expect(items.map(({ blockedReason }: { blockedReason: null }) => blockedReason)).toEqual(
      Array(4).fill(null),
    )
    const { items: facts } = await bench.get(`/api/v1/jobs/${items[0].id}/facts`)
    expect(facts.at(-1).fact).toMatchObject({ operator: 'admin-owner', note: 'INC-7' })
    expect(await bench.post(path, WHY)).toMatchObject({ matched: 0 })
  })

  it('take members as batches until they are closed, each once', async () => {
    const { bench, render, report } = await open(place)
    const callback = { job: report, after: [group('members', 'members')] }
    const options = { kind: 'batch', open: true } as const
    const { id } = await makeFlow(bench.pawl, [callback, { job: render }], options)
    const add = `/api/v1/batches/${id}/add`
    const body = { members: [{ type: 'render' }, { type: 'render', input: 7 }], at: 2 }
    const made = await bench.ok('POST', add, body, 'work')
    expect(made).toMatchObject({ flow: { size: 4, open: true } })
    expect(await bench.ok('POST', add, body, 'work')).toMatchObject({ flow: { size: 4 } })
    const race = await bench.call('POST', add, { body: { ...body, members: [{ type: 'report' }] } })
    expect(race.status).toBe(409)
    const worker = await bench.pawl.work()
    await expect
      .poll(async () => (await bench.get(`/api/v1/batches/${id}`)).progress, { timeout: 60_000 })
      .toMatchObject({ members: 3, succeeded: 3 })
    expect((await bench.get(`/api/v1/flows/${id}`)).flow.state).toBe('open')
    const closed = await bench.ok('POST', `/api/v1/batches/${id}/close`, {}, 'work')
    expect(closed.flow).toMatchObject({ open: false })
    await untilState(bench, id, 'done')
    const { items } = await bench.get(`/api/v1/jobs?flow=${id}&type=report`)
    expect(items).toMatchObject([{ state: 'succeeded' }])
    const late = await bench.call('POST', add, { body: { members: [{ type: 'render' }] } })
    expect([late.status, late.json.code]).toEqual([409, 'E_BATCH_CLOSED'])
    await worker.stop()
  })

  it('answer 404 for what does not exist', async () => {
    const { bench, nodes } = await open(place)
    const { id } = await makeFlow(bench.pawl, nodes)
    const paths: [method: string, path: string, body?: object][] = [
      ['GET', `/api/v1/flows/${NOBODY}`],
      ['GET', `/api/v1/flows/${NOBODY}/nodes`],
      ['GET', `/api/v1/flows/${NOBODY}/graph`],
      ['GET', '/api/v1/flows/nonsense'],
      ['POST', `/api/v1/flows/${NOBODY}/cancel`, WHY],
      ['POST', `/api/v1/flows/${NOBODY}/redrive`, WHY],
      ['GET', `/api/v1/batches/${NOBODY}`],
      ['GET', `/api/v1/batches/${id}`],
      ['POST', `/api/v1/batches/${id}/close`, {}],
      ['POST', `/api/v1/batches/${id}/add`, { members: [{ type: 'render' }] }],
      ['GET', `/api/v1/jobs/${NOBODY}/links`],
    ]
    for (const [method, path, body] of paths) {
      const answer = await bench.call(method, path, body === undefined ? {} : { body })
      expect(answer.status, path).toBe(404)
    }
  })
})

describe('the routes of flows', () => {
  it('were all called with success', () => {
    const all = routes.map(({ operation }) => operation)
    expect(all.filter((operation) => !HttpBench.succeeded.has(operation))).toEqual([])
  })
})
