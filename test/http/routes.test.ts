// Every route of the HTTP API on both databases: what it answers, and what it changes.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Pawl } from 'pawl'
import { openRuns, openStoreJournal } from 'pawl/runs'
import { describe, expect, it, vi } from 'vitest'
import { report } from '../../examples/runs-guide/report-run.ts'
import { routes as ofFlows } from '../../src/http/routes/flows.ts'
import { routes as ofInbox } from '../../src/http/routes/inbox.ts'
import { ROUTES } from '../../src/http/routes/index.ts'
import { routes as ofLedger } from '../../src/http/routes/ledger.ts'
import { routes as ofLimits } from '../../src/http/routes/limits.ts'
import { routes as ofRetention } from '../../src/http/routes/retention.ts'
import { routes as ofRuns } from '../../src/http/routes/runs.ts'
import { routes as onRuns } from '../../src/http/routes/runs-act.ts'
import { routes as inRuns } from '../../src/http/routes/runs-content.ts'
import { routes as ofSchedules } from '../../src/http/routes/schedules.ts'
import { routes as bySignalTokens } from '../../src/http/routes/signal-tokens.ts'
import { routes as ofSignals } from '../../src/http/routes/signals.ts'
import { routes as ofTokens } from '../../src/http/routes/tokens.ts'
import { routes as ofWorkers } from '../../src/http/routes/work.ts'
import { freshFolder } from '../processes/folder.ts'
import { careful, HttpBench, mail } from './bench.ts'
import { STORES } from './places.ts'

const WHY = { reason: 'INC-7' }

describe.each(STORES)('the HTTP API on $name', ({ place }) => {
  it('enqueues a job by the name of its type, and shows it with its facts', async () => {
    const bench = await HttpBench.open(await place())
    const made = await bench.call('POST', '/api/v1/jobs', {
      body: { type: 'mail', input: { to: 'ada', password: 'hunter2' }, tags: ['x'], priority: -1 },
      role: 'work',
    })
    expect(made.status).toBe(201)
    const { id } = made.json
    expect(made.headers.location).toBe(`/api/v1/jobs/${id}`)
    const shown = await bench.get(`/api/v1/jobs/${id}`)
    expect(shown.job).toMatchObject({ id, type: 'mail', queue: 'mails', tags: ['x'], priority: -1 })
    expect(shown.lane).toBe('ready')
    expect(shown.input.text).toBe('{"password":"[redacted]","to":"ada"}')
    const facts = await bench.get(`/api/v1/jobs/${id}/facts?payloads=true`)
    expect(facts.items[0].fact).toMatchObject({ trigger: 'create', actor: 'client' })
    expect(facts.items[0].fact.metadata).toEqual({ caller: 'work-owner' })
    expect(facts.items[0].payload.text).not.toContain('hunter2')
    const input = await bench.call('GET', `/api/v1/jobs/${id}/input`)
    expect(input.text).toBe('{"password":"[redacted]","to":"ada"}')
    expect(input.headers['content-disposition']).toMatch(/^attachment/)
    expect((await bench.call('GET', `/api/v1/jobs/${id}/result`)).status).toBe(404)
  })

  it('checks inputs by the schema of the type, and takes unknown types with a queue', async () => {
    const bench = await HttpBench.open(await place())
    const refused = await bench.call('POST', '/api/v1/jobs', { body: { type: 'mail', input: 1 } })
    expect([refused.status, refused.json.code]).toEqual([422, 'E_INPUT_INVALID'])
    const own = { type: 'mail', input: { to: 'a' }, queue: 'other' }
    expect((await bench.call('POST', '/api/v1/jobs', { body: own })).status).toBe(400)
    const { id } = await bench.post('/api/v1/jobs', { type: 'resize', queue: 'images' })
    expect((await bench.get(`/api/v1/jobs/${id}`)).job.queue).toBe('images')
    const strict = await HttpBench.open(await place(), { types: 'known' })
    const unknown = await strict.call('POST', '/api/v1/jobs', { body: { type: 'resize' } })
    expect([unknown.status, unknown.json.code]).toEqual([404, 'E_NAME_UNKNOWN'])
  })

  it('enqueues many jobs of several types at once, or none of them', async () => {
    const bench = await HttpBench.open(await place())
    const good = { type: 'mail', input: { to: 'ada' } }
    const { jobs } = await bench.post('/api/v1/jobs/batch', { jobs: [good, { type: 'x' }, good] })
    expect(jobs).toHaveLength(3)
    const bad = { jobs: [good, { type: 'mail', input: {} }] }
    expect((await bench.call('POST', '/api/v1/jobs/batch', { body: bad })).status).toBe(422)
    expect((await bench.get('/api/v1/stats')).lanes.ready).toBe(3)
  })

  it('returns the same job for the same Idempotency-Key, and refuses another input', async () => {
    const bench = await HttpBench.open(await place())
    const enqueue = (to: string) => {
      const headers = { 'idempotency-key': 'order-7' }
      return bench.call('POST', '/api/v1/jobs', { headers, body: { type: 'mail', input: { to } } })
    }
    const [first, again, other] = [await enqueue('ada'), await enqueue('ada'), await enqueue('bob')]
    expect([first.status, again.status, other.status]).toEqual([201, 200, 422])
    expect(again.json).toMatchObject({ id: first.json.id, created: false })
    const both = { headers: { 'idempotency-key': 'a' }, body: { type: 'x', key: 'b' } }
    expect((await bench.call('POST', '/api/v1/jobs', both)).status).toBe(400)
    const many = { headers: { 'idempotency-key': 'b' }, body: { jobs: [{ type: 'x' }] } }
    const [one, two] = [
      await bench.call('POST', '/api/v1/jobs/batch', many),
      await bench.call('POST', '/api/v1/jobs/batch', many),
    ]
    expect(two.json.jobs[0].id).toBe(one.json.jobs[0].id)
  })

  it('lists jobs by filter, page by page', async () => {
    const bench = await HttpBench.open(await place())
    const jobs = Array.from({ length: 5 }, (_, i) => ({ type: 'x', tags: [`t${i % 2}`] }))
    await bench.post('/api/v1/jobs/batch', { jobs })
    const seen: string[] = []
    let after = ''
    do {
      const page = await bench.get(`/api/v1/jobs?tag=t0&limit=2${after}`)
      seen.push(...page.items.map(({ id }: { id: string }) => id))
      after = page.nextCursor === null ? '' : `&after=${encodeURIComponent(page.nextCursor)}`
    } while (after !== '')
    expect(new Set(seen).size).toBe(3)
    expect((await bench.get('/api/v1/jobs?lane=parked')).items).toEqual([])
    for (const query of [
      'lane=nowhere',
      'limit=0',
      'limit=1001',
      'x=1',
      'after=!',
      'tag=a&tag=b',
    ]) {
      expect((await bench.call('GET', `/api/v1/jobs?${query}`)).status, query).toBe(400)
    }
  })

  it('answers 304 for a job that has not changed', async () => {
    const bench = await HttpBench.open(await place())
    const { id } = await bench.post('/api/v1/jobs', { type: 'x', hold: true })
    const { headers } = await bench.call('GET', `/api/v1/jobs/${id}/at/1`)
    const known = { headers: { 'if-none-match': headers.etag as string } }
    const same = await bench.call('GET', `/api/v1/jobs/${id}/at/1`, known)
    expect([same.status, same.text]).toEqual([304, ''])
  })

  it('acts on one job in the name of the token, and says why it does not', async () => {
    const bench = await HttpBench.open(await place())
    const { id } = await bench.post('/api/v1/jobs', { type: 'x', delayMs: 3_600_000 })
    const act = (verb: string, body: object) =>
      bench.call('POST', `/api/v1/jobs/${id}/${verb}`, { body, role: 'operate' })
    expect((await act('prioritise', { ...WHY, priority: 5 })).json.done).toBe(1)
    expect((await act('reschedule', { ...WHY, runAt: 0 })).json.done).toBe(1)
    const wrong = await act('discard', WHY)
    expect([wrong.status, wrong.json.code]).toEqual([409, 'E_TRANSITION_INVALID'])
    expect(wrong.json).toMatchObject({ from: 'queued', to: 'failed', allowed: expect.any(Array) })
    expect((await act('quarantine', { ...WHY, dryRun: true })).json).toMatchObject({ dryRun: true })
    expect((await act('quarantine', WHY)).json.done).toBe(1)
    expect((await act('redrive', WHY)).json.done).toBe(1)
    expect((await act('cancel', WHY)).json.done).toBe(1)
    const ended = await act('force', { ...WHY, state: 'failed' })
    expect([ended.status, ended.json.code]).toEqual([409, 'E_JOB_ENDED'])
    expect((await act('copy', WHY)).json.copies).toHaveLength(1)
    const { items } = await bench.get('/api/v1/audit?operator=operate-owner&order=oldest')
    const triggers = items.map(({ fact }: { fact: { trigger: string } }) => fact.trigger)
    expect(triggers).toEqual(['prioritise', 'run-now', 'park', 'redrive', 'cancel', 'create'])
    const other = await act('cancel', { ...WHY, operator: 'eve' })
    expect(other.status).toBe(403)
    expect((await act('cancel', {})).status).toBe(400)
    const missing = '/api/v1/jobs/0198a1b2-0000-7000-8000-000000000001/cancel'
    expect((await bench.call('POST', missing, { body: WHY })).status).toBe(404)
    expect((await bench.get(`/api/v1/jobs/${id}/diff`)).changes.length).toBeGreaterThan(0)
    expect((await bench.get(`/api/v1/jobs/${id}/explain`)).kind).toBe('ended')
    expect((await bench.call('GET', `/api/v1/jobs/${id}/at/99`)).status).toBe(404)
    expect((await bench.call('GET', `/api/v1/jobs/${id}/at/x`)).status).toBe(400)
  })

  it('acts on many jobs by ids and by filter, after a dry run', async () => {
    const bench = await HttpBench.open(await place())
    const jobs = Array.from({ length: 6 }, (_, i) => ({
      type: 'x',
      tags: [`t${i % 2}`],
      hold: true,
    }))
    const made = await bench.post('/api/v1/jobs/batch', { jobs })
    const ids = made.jobs.map(({ id }: { id: string }) => id)
    expect((await bench.post('/api/v1/jobs/submit', { ...WHY, ids })).done).toBe(6)
    const filter = { tag: 't0' }
    const dry = await bench.post('/api/v1/jobs/cancel', { ...WHY, filter, dryRun: true })
    expect(dry).toMatchObject({ dryRun: true, matched: 3, ids: expect.any(Array) })
    const done = await bench.post('/api/v1/jobs/cancel', { ...WHY, filter, among: dry.ids })
    expect(done).toMatchObject({ matched: 3, done: 3 })
    const some = await bench.post('/api/v1/jobs/quarantine', { ...WHY, all: true, limit: 1 })
    expect(some).toMatchObject({ matched: 1, more: true })
    for (const body of [
      {},
      { filter: {} },
      { ids, all: true },
      { ids, limit: 1 },
      { filter: { x: 1 } },
    ]) {
      const refused = await bench.call('POST', '/api/v1/jobs/retry', { body: { ...WHY, ...body } })
      expect(refused.status, JSON.stringify(body)).toBe(400)
    }
    // What is left of the table of commands, by ids that do not exist.
    const none = { ...WHY, ids: ['0198a1b2-0000-7000-8000-000000000001'] }
    for (const verb of ['retry', 'copy', 'redrive', 'discard', 'approve']) {
      expect((await bench.post(`/api/v1/jobs/${verb}`, none)).refused).toBe(1)
    }
    await bench.post('/api/v1/jobs/force', { ...none, state: 'failed' })
    await bench.post('/api/v1/jobs/reschedule', { ...none, runAt: 0 })
    await bench.post('/api/v1/jobs/prioritise', { ...none, priority: 0 })
  })

  it('plays the rest of the commands on one job', async () => {
    const bench = await HttpBench.open(await place())
    const one = async (verb: string, job: object, before: readonly string[] = []) => {
      const { id } = await bench.post('/api/v1/jobs', { type: 'x', ...job })
      for (const first of before) await bench.post(`/api/v1/jobs/${id}/${first}`, WHY)
      return bench.call('POST', `/api/v1/jobs/${id}/${verb}`, { body: { ...WHY, ...ARGS[verb] } })
    }
    const ARGS: Record<string, object> = { force: { state: 'failed' } }
    expect((await one('submit', { hold: true })).json.done).toBe(1)
    expect((await one('retry', { delayMs: 60_000 })).json.done).toBe(1)
    expect((await one('discard', {}, ['quarantine'])).json.done).toBe(1)
    expect((await one('force', {})).json.done).toBe(1)
    const approved = await one('approve', {})
    expect([approved.status, approved.json.code]).toEqual([409, 'E_JOB_NOT_STALLED'])
    await bench.pawl.limitQueue('x', { maxDepth: 0 })
    const full = await bench.call('POST', '/api/v1/jobs', { body: { type: 'x', queue: 'x' } })
    expect([full.status, full.json.code]).toEqual([429, 'E_QUEUE_FULL'])
  })

  it('approves the recovery of a stalled job', async () => {
    const bench = await HttpBench.open(await place(), {}, [mail, careful])
    const { id } = await bench.post('/api/v1/jobs', { type: 'careful' })
    const { store } = bench.pawl
    await store.claim({ worker: 'w', limit: 1, leaseMs: 1, start: true })
    await vi.waitUntil(async () => (await store.recover(10)).length > 0)
    expect((await bench.get(`/api/v1/jobs/${id}`)).explanation.kind).toBe('stalled')
    expect((await bench.post(`/api/v1/jobs/${id}/approve`, WHY)).done).toBe(1)
  })

  it('pauses, resumes and limits queues, and says who did it', async () => {
    const bench = await HttpBench.open(await place())
    const name = encodeURIComponent('a/\'b" \u202e%../')
    await bench.post('/api/v1/jobs', { type: 'x', queue: decodeURIComponent(name) })
    const root = `/api/v1/queues/${name}`
    expect((await bench.post(`${root}/pause`, WHY)).changed).toBe(true)
    expect((await bench.post(`${root}/pause`, WHY)).changed).toBe(false)
    const limits = { maxDepth: 5, maxWaitMs: null }
    expect((await bench.post(`${root}/limit`, { ...WHY, ...limits })).record.action).toBe('limit')
    expect((await bench.call('POST', `${root}/limit`, { body: WHY })).status).toBe(400)
    expect((await bench.post(`${root}/resume`, WHY)).changed).toBe(true)
    const { queue, records } = await bench.get(root)
    expect(queue).toMatchObject({ name: decodeURIComponent(name), maxDepth: 5, workers: 0 })
    expect(records.map(({ operator }: { operator: string }) => operator)).toEqual([
      ...['admin-owner', 'admin-owner', 'admin-owner'],
    ])
    expect((await bench.get('/api/v1/queues')).items).toHaveLength(1)
    expect((await bench.get('/api/v1/queue-records?limit=1')).items).toHaveLength(1)
    expect((await bench.call('GET', '/api/v1/queues/none')).status).toBe(404)
  })

  it('shows workers, effects, numbers, machines, metrics and the document', async () => {
    const bench = await HttpBench.open(await place())
    const worker = await bench.pawl.work({ id: 'w-1' })
    const { id } = await bench.post('/api/v1/jobs', { type: 'mail', input: { to: 'ada' } })
    await bench.pawl.job(id).result()
    expect((await bench.get('/api/v1/workers')).items[0]).toMatchObject({ id: 'w-1', live: true })
    await worker.stop()
    expect((await bench.call('GET', `/api/v1/jobs/${id}/result`)).text).toBe('{"sent":true}')
    expect((await bench.get('/api/v1/effects')).items).toEqual([])
    const keys = { ...WHY, keys: [`${id}/x/0`] }
    expect((await bench.post('/api/v1/effects/retry', keys)).refused).toBe(1)
    expect((await bench.get('/api/v1/stats')).ended).toEqual({ succeeded: 1 })
    const { items } = await bench.get('/api/v1/machines')
    expect(items.map(({ name }: { name: string }) => name)).toContain('standard')
    expect((await bench.get('/api/v1/machines/standard')).initial).toBe('created')
    expect((await bench.call('GET', '/api/v1/machines/none')).status).toBe(404)
    const { text, headers } = await bench.call('GET', '/metrics')
    expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(text).toContain('pawl_jobs{queue="mails",lane="ended"} 1\n')
    expect(text).toContain('pawl_jobs_enqueued_total{queue="mails",kind="mail"} 1\n')
    const prefix = { headers: { 'x-forwarded-prefix': '/ops/pawl' } }
    const document = await bench.call('GET', '/openapi.json', prefix)
    expect(document.json.servers).toEqual([{ url: '/ops/pawl' }])
    expect((await bench.get('/api/v1/whoami')).name).toBe('admin-owner')
    for (const path of ['/healthz', '/readyz']) {
      expect((await bench.call('GET', path, { role: 'none' })).status).toBe(200)
    }
    const head = await bench.call('HEAD', '/healthz', { role: 'none' })
    expect([head.status, head.text]).toEqual([200, ''])
  })

  it('counts for an overview what happens, and what needs a person', async () => {
    const bench = await HttpBench.open(await place(), {}, [mail, careful])
    const { id } = await bench.post('/api/v1/jobs', { type: 'mail', input: { to: 'ada' } })
    const worker = await bench.pawl.work({ queues: ['mails'] })
    await bench.pawl.job(id).result()
    await worker.stop()
    const parked = await bench.post('/api/v1/jobs', { type: 'x', queue: 'nobody' })
    await bench.post(`/api/v1/jobs/${parked.id}/quarantine`, WHY)
    await bench.post('/api/v1/jobs', { type: 'x', queue: 'nobody' })
    await bench.post('/api/v1/queues/paused/pause', WHY)
    await bench.post('/api/v1/jobs', { type: 'careful' })
    const { store } = bench.pawl
    await store.claim({ worker: 'w', limit: 1, leaseMs: 1, start: true, types: ['careful'] })
    await vi.waitUntil(async () => (await store.recover(10)).length > 0)
    const seen = await bench.get('/api/v1/overview')
    expect(seen.lanes).toMatchObject({ ready: 1, parked: 1, ended: 1 })
    expect(seen.ended).toEqual({ succeeded: 1 })
    expect(seen.oldestReadyMs).toBeGreaterThanOrEqual(0)
    expect(seen.recent).toMatchObject({ enqueued: 4, started: 2, succeeded: 1, failed: 0 })
    expect(seen.recent).toMatchObject({ windowMs: 300_000, runMs: { count: expect.any(Number) } })
    expect(seen.attention).toMatchObject({ parkedJobs: 1, stalledJobs: 1, pausedQueues: 1 })
    expect(seen.attention).toMatchObject({ unservedQueues: 1, missedTicks: 0, longBlocked: [] })
    expect(seen.queues.map(({ name }: { name: string }) => name)).toContain('nobody')
    await bench.post('/api/v1/jobs', { type: 'x' })
    // The same numbers for a second.
    const soon = await bench.get('/api/v1/overview')
    if (soon.now !== seen.now) expect(soon.now - seen.now).toBeGreaterThanOrEqual(1000)
    await vi.waitUntil(async () => (await bench.get('/api/v1/overview')).lanes.ready === 2, 10_000)
  })

  it('checks, plans and repairs with the doctor', async () => {
    const bench = await HttpBench.open(await place())
    await bench.post('/api/v1/jobs', { type: 'x' })
    expect((await bench.post('/api/v1/doctor/check', {})).errors).toBe(0)
    expect((await bench.post('/api/v1/doctor/plan', {})).complete).toBe(true)
    const { repaired, after } = await bench.post('/api/v1/doctor/apply', WHY)
    expect([repaired.repairCount, after.errors]).toEqual([0, 0])
  })

  it('shows runs, their events, artifacts and pasts; cancels, forks and exports them', async () => {
    const bench = await HttpBench.open(await place())
    await startRun(bench.pawl)
    const root = '/api/v1/runs/r-1'
    const { items } = await bench.get('/api/v1/runs')
    expect(items).toEqual([expect.objectContaining({ runId: 'r-1', machine: 'report' })])
    expect((await bench.get(root)).run.run_state).toBe('done')
    expect((await bench.get(`${root}/events?from=2&limit=1`)).items[0].seq).toBe(2)
    expect((await bench.get(`${root}/at/1`)).run.last_seq).toBe(1)
    expect((await bench.get(`${root}/diff`)).changes.length).toBeGreaterThan(0)
    expect((await bench.call('GET', `${root}/at/9999`)).status).toBe(404)
    const artifact = await bench.call(
      'GET',
      `${root}/artifacts/${encodeURIComponent('run:definition')}`,
    )
    expect(artifact.text).toContain('report')
    expect((await bench.call('GET', `${root}/artifacts/..%2f..%2fetc`)).status).toBe(404)
    const bundle = await bench.call('GET', `${root}/export`)
    expect(JSON.parse(bundle.text.split('\n')[0] as string).run_id).toBe('r-1')
    const fork = await bench.post(`${root}/fork`, { at: 4, runId: 'r-2' })
    expect(fork).toEqual({ runId: 'r-2' })
    expect((await bench.post('/api/v1/runs/r-2/cancel', WHY)).answer).toBe('cancelled')
    const again = await bench.call('POST', '/api/v1/runs/r-2/cancel', { body: WHY })
    expect([again.status, again.json.code]).toEqual([409, 'E_RUN_ENDED'])
    expect((await bench.get('/api/v1/runs?after=r-1')).items).toHaveLength(1)
    expect((await bench.call('GET', '/api/v1/runs/none')).status).toBe(404)
    expect((await bench.get('/api/v1/runs/r-2/explain')).runId).toBe('r-2')
  })

  it('streams new facts, and goes on after Last-Event-ID', async () => {
    const bench = await HttpBench.open(await place())
    const { id: first } = await bench.post('/api/v1/jobs', { type: 'x' })
    const open = async (headers: Record<string, string>) => {
      const response = await fetch(`${bench.server.url}/api/v1/stream`, {
        headers: { authorization: `Bearer ${bench.tokens.read}`, ...headers },
      })
      expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
      return messagesOf(response)
    }
    const live = await open({})
    const { id } = await bench.post('/api/v1/jobs', { type: 'x' })
    const message = (await live.next()).value
    expect(message?.data).toMatchObject({ jobId: id, seq: 1, trigger: 'create' })
    await live.return(undefined)
    const { items } = await bench.get(`/api/v1/jobs/${first}/facts`)
    const resumed = await open({ 'last-event-id': items[0].pos })
    expect((await resumed.next()).value?.data.jobId).toBe(id)
    await resumed.return(undefined)
    const wrong = { headers: { 'last-event-id': 'nonsense!' } }
    expect((await bench.call('GET', '/api/v1/stream', wrong)).status).toBe(400)
    HttpBench.succeeded.add('streamFacts')
  })
})

/** Tested in files of their own, each with this check. */
const ELSEWHERE = [
  ...[...ofWorkers, ...ofLimits, ...ofSchedules, ...ofRetention],
  ...[...ofRuns, ...inRuns, ...onRuns, ...ofLedger, ...ofTokens, ...ofSignals],
  ...[...ofFlows, ...ofInbox, ...bySignalTokens],
  ...ROUTES.filter(({ operation }) =>
    ['migrateJobs', 'rejectJob', 'rejectJobs'].includes(operation),
  ),
]

describe('the table of routes', () => {
  it('has no route that the tests above have not called with success', () => {
    const all = ROUTES.map(({ operation }) => operation)
    expect(new Set(all).size).toBe(all.length)
    const own = ROUTES.filter((route) => !ELSEWHERE.includes(route)).map(
      ({ operation }) => operation,
    )
    expect(own.filter((operation) => !HttpBench.succeeded.has(operation))).toEqual([])
  })
})

async function startRun(pawl: Pawl): Promise<void> {
  const folder = freshFolder()
  writeFileSync(join(folder, 'a.txt'), 'one two')
  await using runs = await openRuns({ journal: openStoreJournal({ store: pawl.store }), pawl })
  const handle = await runs.start(report, { runId: 'r-1', input: { folder } })
  await handle.result()
}

interface Message {
  readonly id: string
  readonly data: { readonly jobId: string; readonly seq: number; readonly trigger: string }
}

async function* messagesOf(response: Response): AsyncGenerator<Message, undefined> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const [id] = /^id: .*$/m.exec(text.slice(0, end)) ?? []
      const [data] = /^data: .*$/m.exec(text.slice(0, end)) ?? []
      text = text.slice(end + 2)
      if (id !== undefined && data !== undefined) {
        yield { id: id.slice(4), data: JSON.parse(data.slice(6)) }
      }
    }
  }
  return undefined
}
