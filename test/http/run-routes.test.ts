// Runs over HTTP, on both databases: reading, starting and resuming them.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createPawl } from 'pawl'
import { openRuns, openStoreJournal, type Runs } from 'pawl/runs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { report } from '../../examples/runs-guide/report-run.ts'
import { routes as read } from '../../src/http/routes/runs.ts'
import { routes as act } from '../../src/http/routes/runs-act.ts'
import { routes as content } from '../../src/http/routes/runs-content.ts'
import { freshFolder } from '../processes/folder.ts'
import { HttpBench } from './bench.ts'
import { STORES } from './places.ts'

const WHY = { reason: 'INC-7' }

/** A server that knows the definition of `report`. */
async function open(place: string): Promise<{ bench: HttpBench; runs: Runs; folder: string }> {
  const pawl = await createPawl({ store: place })
  const journal = openStoreJournal({ store: pawl.store })
  const runs = await openRuns({ journal, pawl, runs: [report] })
  const bench = await HttpBench.open(place, { runs })
  onTestFinished(async () => {
    await runs.close()
    await pawl.close()
  })
  const folder = freshFolder()
  writeFileSync(join(folder, 'a.txt'), 'one two')
  writeFileSync(join(folder, 'b.txt'), 'three')
  return { bench, runs, folder }
}

const start = (folder: string, runId: string) => ({
  definition: 'report',
  input: { folder },
  runId,
})

const ended = (bench: HttpBench, runId: string) =>
  vi.waitUntil(async () => (await bench.get(`/api/v1/runs/${runId}`)).run.run_state === 'done', {
    timeout: 10_000,
  })

describe.each(STORES)('runs over HTTP on $name', ({ place }) => {
  it('starts a run, which the server works on, and shows what it made', async () => {
    const { bench, folder } = await open(await place())
    expect((await bench.get('/api/v1/run-definitions')).items).toEqual([
      { name: 'report', machine: 'report', version: 1 },
    ])
    const made = await bench.call('POST', '/api/v1/runs', {
      body: start(folder, 'r-1'),
      role: 'operate',
    })
    expect([made.status, made.json]).toEqual([201, { runId: 'r-1' }])
    expect(made.headers.location).toBe('/api/v1/runs/r-1')
    await ended(bench, 'r-1')
    const root = '/api/v1/runs/r-1'
    const { items } = await bench.get(`${root}/items`)
    expect(items.map(({ name }: { name: string }) => name)).toEqual([
      ...['count texts/a.txt', 'count texts/b.txt', 'write report'],
    ])
    expect((await bench.get(`${root}/items?status=failed`)).items).toEqual([])
    const first = await bench.get(`${root}/artifacts?limit=2&stale=false`)
    const rest = await bench.get(`${root}/artifacts?after=${encodeURIComponent(first.nextCursor)}`)
    const names = [...first.items, ...rest.items].map(({ name }: { name: string }) => name)
    expect(names).toContain('report.md')
    expect(new Set(names).size).toBe(names.length)
    const text = await bench.get(`${root}/artifacts/report.md/content`)
    expect(text).toMatchObject({ text: '# Report\n\n3 words.\n', truncated: false, bytes: 19 })
    const short = await bench.get(`${root}/artifacts/report.md/content?limit=3`)
    expect(short).toMatchObject({ text: '# R', truncated: true, bytes: 19 })
    expect((await bench.get(`${root}/issues?status=open`)).items).toEqual([])
    expect(await bench.get(`${root}/verify`)).toEqual({ ok: true, findings: [] })
    const commit = 'a'.repeat(40)
    await bench.post(`${root}/link`, { commit })
    expect((await bench.get(root)).run.commits).toEqual([commit])
  })

  it('refuses a definition that it does not know, a wrong input and a taken id', async () => {
    const { bench, folder } = await open(await place())
    const send = (body: object) => bench.call('POST', '/api/v1/runs', { body })
    const unknown = await send({ ...start(folder, 'r-1'), definition: 'reprot' })
    expect([unknown.status, unknown.json.code]).toEqual([404, 'E_NAME_UNKNOWN'])
    expect((await send(start(folder, '../x'))).status).toBe(400)
    expect((await send({ definition: 'report', orResume: true })).status).toBe(400)
    expect((await send(start(folder, 'r-1'))).status).toBe(201)
    await ended(bench, 'r-1')
    const taken = await send(start(folder, 'r-1'))
    expect([taken.status, taken.json.code]).toEqual([409, 'E_RUN_EXISTS'])
    expect((await send({ ...start(folder, 'r-1'), orResume: true })).status).toBe(201)
    const without = await HttpBench.open(await place())
    const refused = await without.call('POST', '/api/v1/runs', { body: start(folder, 'r-2') })
    expect([refused.status, refused.json.code]).toEqual([404, 'E_NAME_UNKNOWN'])
    expect((await without.get('/api/v1/run-definitions')).items).toEqual([])
  })

  it('forks and resumes a run, and cancels another', async () => {
    const { bench, folder } = await open(await place())
    await bench.post('/api/v1/runs', start(folder, 'r-1'))
    await ended(bench, 'r-1')
    await bench.post('/api/v1/runs/r-1/fork', { at: 4, runId: 'r-2' })
    const explained = await bench.get('/api/v1/runs/r-2/explain?strict=true&paranoid=true')
    expect(explained.runId).toBe('r-2')
    const resumed = await bench.post('/api/v1/runs/r-2/resume', { force: [], paranoid: true })
    expect(resumed).toEqual({ runId: 'r-2' })
    await ended(bench, 'r-2')
    await bench.post('/api/v1/runs/r-1/fork', { at: 4, runId: 'r-3' })
    expect((await bench.post('/api/v1/runs/r-3/cancel', WHY)).answer).toBe('cancelled')
    const dead = await bench.call('POST', '/api/v1/runs/r-3/resume', { body: {} })
    expect([dead.status, dead.json.code]).toEqual([409, 'E_RUN_ENDED'])
    expect((await bench.call('POST', '/api/v1/runs/none/resume', { body: {} })).status).toBe(404)
    const page = await bench.get('/api/v1/runs?order=newest&limit=2')
    expect(page.items.map(({ runId }: { runId: string }) => runId)).toEqual(['r-3', 'r-2'])
    const next = await bench.get(`/api/v1/runs?order=newest&after=${page.nextCursor}`)
    expect(next.items.map(({ runId }: { runId: string }) => runId)).toEqual(['r-1'])
    expect((await bench.get('/api/v1/runs/r-2/events?from=2&limit=1')).items[0].seq).toBe(2)
    expect((await bench.get('/api/v1/runs/r-2/at/1')).run.last_seq).toBe(1)
    expect((await bench.get('/api/v1/runs/r-2/diff')).changes.length).toBeGreaterThan(0)
  })

  it('downloads artifacts and bundles, and imports a bundle elsewhere', async () => {
    const { bench, folder } = await open(await place())
    await bench.post('/api/v1/runs', start(folder, 'r-1'))
    await ended(bench, 'r-1')
    for (let i = 0; i < 8; i++) {
      const head = await bench.call('HEAD', '/api/v1/runs/r-1/artifacts/report.md')
      const whole = await bench.call('GET', '/api/v1/runs/r-1/artifacts/report.md')
      expect([head.status, head.text, whole.text]).toEqual([200, '', '# Report\n\n3 words.\n'])
      expect((await bench.call('GET', '/api/v1/runs/r-1/artifacts/none')).status).toBe(404)
    }
    const { text: bundle } = await bench.call('GET', '/api/v1/runs/r-1/export')
    const other = await HttpBench.open(await place())
    expect(await other.post('/api/v1/runs/import', { bundle })).toEqual({ runId: 'r-1' })
    expect((await other.get('/api/v1/runs/r-1')).run.run_state).toBe('done')
    // The same bundle again changes nothing.
    expect(await other.post('/api/v1/runs/import', { bundle })).toEqual({ runId: 'r-1' })
    const broken = bundle.replace('three', 'trhee').slice(0, -20)
    const refused = await other.call('POST', '/api/v1/runs/import', { body: { bundle: broken } })
    expect(refused.status).toBe(400)
  })
})

describe('the table of routes', () => {
  it('has no route of runs that the tests above have not called with success', () => {
    const own = [...read, ...content, ...act].map(({ operation }) => operation)
    expect(own.filter((operation) => !HttpBench.succeeded.has(operation))).toEqual([])
  })
})
