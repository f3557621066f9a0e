// Workers over HTTP on both databases: claims, leases, reports, and what a lost lease may not do.
import { request } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import { ROUTES } from '../../src/http/routes/index.ts'
import { routes } from '../../src/http/routes/work.ts'
import { HttpBench } from './bench.ts'
import { STORES } from './places.ts'

const WHY = { reason: 'INC-7' }

async function claimed(bench: HttpBench, more: object = {}) {
  const { jobs } = await bench.ok('POST', '/api/v1/claim', { worker: 'py', ...more }, 'work')
  return jobs[0]
}

const tell = (bench: HttpBench, verb: string, body: object) =>
  bench.call('POST', `/api/v1/leases/${verb}`, { body, role: 'work' })

describe.each(STORES)('workers over HTTP on $name', ({ place }) => {
  it('claim a job, record steps, renew the lease and commit', async () => {
    const bench = await HttpBench.open(await place())
    const input = { day: { '@pawl:date': '2026-01-31T00:00:00.000Z' } }
    const { id } = await bench.post('/api/v1/jobs', { type: 'resize', input, tags: ['a'] })
    const job = await claimed(bench, { types: ['resize'], leaseMs: 60_000 })
    expect(job).toMatchObject({ id, type: 'resize', attempt: 1, tags: ['a'], input, steps: [] })
    const { lease } = job
    expect((await tell(bench, 'step', { lease, name: 'a', result: { n: 1 } })).json.kind).toBe(
      'done',
    )
    expect((await tell(bench, 'step', { lease, name: 'a', result: 2 })).json.kind).toBe('same')
    const beat = { beats: [{ lease, progress: { done: 0.5 } }] }
    expect((await tell(bench, 'heartbeat', beat)).json).toEqual({ lost: [], cancelling: [] })
    expect((await bench.get(`/api/v1/jobs/${id}`)).progress.text).toBe('{"done":0.5}')
    const done = await tell(bench, 'commit', { lease, result: { ok: true } })
    expect(done.json).toMatchObject({ kind: 'done', outcome: 'succeeded' })
    const again = await tell(bench, 'commit', { lease, result: { ok: false } })
    expect([200, 409]).toContain(again.status)
    expect((await bench.call('GET', `/api/v1/jobs/${id}/result`)).text).toBe('{"ok":true}')
    expect((await bench.post('/api/v1/doctor/check', { full: true })).errors).toBe(0)
  })

  it('commit effects in the same transaction, once', async () => {
    const bench = await HttpBench.open(await place())
    const { id } = await bench.post('/api/v1/jobs', { type: 'resize' })
    const { lease } = await claimed(bench)
    const effects = [{ name: 'mail', payload: { to: 'ada' } }, { name: 'mail' }]
    expect((await tell(bench, 'commit', { lease, effects, result: 1 })).json.kind).toBe('done')
    expect((await tell(bench, 'commit', { lease, effects, result: 2 })).json.kind).toBe('same')
    const { items } = await bench.get(`/api/v1/effects?jobId=${id}`)
    expect(items.map(({ payload }: { payload: { text: string } }) => payload.text).sort()).toEqual([
      ...['null', '{"to":"ada"}'],
    ])
  })

  it('get the steps of earlier attempts after a failure', async () => {
    const bench = await HttpBench.open(await place())
    const { id } = await bench.post('/api/v1/jobs', { type: 'resize' })
    const first = await claimed(bench)
    await tell(bench, 'step', { lease: first.lease, name: 'a', result: [1] })
    const failure = {
      message: 'no route',
      name: 'OSError',
      code: 'E1',
      stack: 'at x',
      retryAfterMs: 0,
    }
    const failed = await tell(bench, 'fail', { lease: first.lease, ...failure })
    expect(failed.json.state).toBe('retrying')
    const second = await claimed(bench, { waitMs: 10_000 })
    expect(second).toMatchObject({ id, attempt: 2, steps: [{ name: 'a', n: 1, result: [1] }] })
    const { job } = await bench.get(`/api/v1/jobs/${id}`)
    expect(job.error).toMatchObject({ message: 'OSError: no route', name: 'OSError', code: 'E1' })
    const terminal = { lease: second.lease, message: 'bad', kind: 'validation' }
    expect((await tell(bench, 'fail', terminal)).json.outcome).toBe('failed')
  })

  it('change nothing with a lease that another worker has taken over', async () => {
    const bench = await HttpBench.open(await place())
    const { id } = await bench.post('/api/v1/jobs', { type: 'resize' })
    const lost = await claimed(bench, { leaseMs: 1 })
    await vi.waitUntil(async () => (await bench.pawl.store.recover(10)).length > 0)
    await bench.post(`/api/v1/jobs/${id}/retry`, WHY)
    const { lease } = await claimed(bench, { waitMs: 10_000 })
    for (const [verb, more] of Object.entries({
      step: { name: 'a' },
      commit: { result: 1 },
      fail: { message: 'x' },
      release: {},
      snooze: { delayMs: 1 },
      cancel: {},
    })) {
      const answer = await tell(bench, verb, { lease: lost.lease, ...more })
      expect([verb, answer.status, answer.json.code]).toEqual([verb, 409, 'E_STALE_FENCE'])
    }
    const effects = [{ name: 'mail' }]
    expect((await tell(bench, 'commit', { lease: lost.lease, effects })).status).toBe(409)
    const beats = [{ lease: lost.lease }, { lease }]
    expect((await tell(bench, 'heartbeat', { beats })).json.lost).toEqual([lost.lease])
    expect((await tell(bench, 'commit', { lease })).status).toBe(200)
    const { items } = await bench.get(`/api/v1/jobs/${id}/facts`)
    const commits = items.filter(
      (one: { fact: { trigger: string } }) => one.fact.trigger === 'commit',
    )
    expect(commits).toHaveLength(1)
    expect((await bench.post('/api/v1/doctor/check', { full: true })).errors).toBe(0)
  })

  it('release, snooze and cancel jobs', async () => {
    const bench = await HttpBench.open(await place())
    const { id } = await bench.post('/api/v1/jobs', { type: 'resize' })
    const first = await claimed(bench)
    expect((await tell(bench, 'release', { lease: first.lease })).json.state).toBe('queued')
    const second = await claimed(bench)
    const snoozed = await tell(bench, 'snooze', { lease: second.lease, delayMs: 3_600_000 })
    expect(snoozed.json.state).toBe('scheduled')
    await bench.post(`/api/v1/jobs/${id}/reschedule`, { ...WHY, runAt: 0 })
    const { lease } = await claimed(bench)
    expect((await bench.post(`/api/v1/jobs/${id}/cancel`, WHY)).asked).toBe(1)
    const beat = await tell(bench, 'heartbeat', { beats: [{ lease }] })
    expect(beat.json).toEqual({ lost: [], cancelling: [lease] })
    expect((await tell(bench, 'cancel', { lease })).json.outcome).toBe('cancelled')
  })

  it('begin a job that they have claimed for later, and report counters and progress', async () => {
    const bench = await HttpBench.open(await place())
    const { id } = await bench.post('/api/v1/jobs', { type: 'resize' })
    const { lease, started } = await claimed(bench, { start: false })
    expect(started).toBe(false)
    expect((await tell(bench, 'commit', { lease })).json.code).toBe('E_TRANSITION_INVALID')
    expect((await tell(bench, 'start', { lease })).json.kind).toBe('done')
    const both = { lease, delayMs: 1, runAt: 1 }
    expect((await tell(bench, 'snooze', both)).status).toBe(400)
    expect((await tell(bench, 'snooze', { lease })).status).toBe(400)
    const report = { lease, usage: { tokens: 7 }, progress: { done: 1 } }
    expect((await tell(bench, 'commit', report)).json.outcome).toBe('succeeded')
    const shown = await bench.get(`/api/v1/jobs/${id}`)
    expect([shown.progress.text, shown.result]).toEqual(['{"done":1}', null])
    const { items } = await bench.get(`/api/v1/jobs/${id}/facts`)
    expect(items.at(-1).fact.usage).toEqual({ tokens: 7 })
  })

  it('continue the trace of who enqueued the job, and the facts keep their spans', async () => {
    const bench = await HttpBench.open(await place())
    const [trace, state] = [(span: string) => `00-${'a'.repeat(32)}-${span}-01`, 'vendor=1']
    const spans = ['1', '2', '3', '4'].map((digit) => digit.repeat(16)) as [string, ...string[]]
    const sent = (i: number) => ({ traceparent: trace(spans[i] as string), tracestate: state })
    const body = { type: 'resize' }
    const { id } = (await bench.call('POST', '/api/v1/jobs', { body, headers: sent(0) })).json
    const untold = await claimed(bench)
    expect([untold.traceparent, untold.tracestate]).toEqual([null, null])
    await tell(bench, 'release', { lease: untold.lease })
    const { lease, traceparent, tracestate } = await claimed(bench, { trace: true })
    expect([traceparent, tracestate]).toEqual([trace(spans[0]), state])
    const reports: [string, object][] = [
      ['step', { name: 'a', result: 1 }],
      ['commit', { effects: [{ name: 'mail' }] }],
    ]
    for (const [i, [verb, own]] of reports.entries()) {
      const report = { body: { lease, ...own }, headers: sent(i + 1), role: 'work' as const }
      expect((await bench.call('POST', `/api/v1/leases/${verb}`, report)).status).toBe(200)
    }
    const { items } = await bench.get(`/api/v1/jobs/${id}/facts`)
    const kept = items.map(({ fact }: { fact: Record<string, string> }) => [
      fact.trigger,
      fact.traceId === 'a'.repeat(32) ? fact.spanId : 'its own',
    ])
    expect(kept).toEqual([
      ['create', spans[0]],
      ...['claim', 'release', 'claim'].map((trigger) => [trigger, 'its own']),
      ['step', spans[1]],
      ['commit', spans[2]],
    ])
  })

  it('are told to come back later when the API is closed, instead of finding no jobs', async () => {
    const bench = await HttpBench.open(await place())
    await bench.server.api.close()
    const answer = await bench.call('POST', '/api/v1/claim', { body: { worker: 'py' } })
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1'])
  })

  it('wait for a job, and get it when it comes', async () => {
    const bench = await HttpBench.open(await place())
    expect(await claimed(bench)).toBe(undefined)
    const waiting = claimed(bench, { waitMs: 30_000 })
    const { id } = await bench.post('/api/v1/jobs', { type: 'resize' })
    expect((await waiting).id).toBe(id)
    const later = claimed(bench, { waitMs: 30_000 })
    const delayed = await bench.post('/api/v1/jobs', { type: 'resize', delayMs: 50 })
    expect((await later).id).toBe(delayed.id)
  })

  it('leave no lease behind if they disconnect while they wait', async () => {
    const bench = await HttpBench.open(await place())
    const gone = request(`${bench.server.url}/api/v1/claim`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${bench.tokens.work}`,
        'content-type': 'application/json',
      },
    })
    gone.on('error', () => {})
    const sent = new Promise<void>((resolve) => {
      gone.end(JSON.stringify({ worker: 'gone', waitMs: 30_000 }), () => resolve())
    })
    await sent
    gone.destroy()
    const { id } = await bench.post('/api/v1/jobs', { type: 'resize' })
    expect((await claimed(bench, { waitMs: 10_000 })).id).toBe(id)
  })

  it('report themselves, and are removed', async () => {
    const bench = await HttpBench.open(await place())
    const info = { queues: ['a'], types: ['resize'], running: 1, concurrency: 2 }
    const body = { activity: 'working', ...info }
    expect(await bench.post('/api/v1/workers/py-1', body)).toMatchObject({ reportEveryMs: 5000 })
    const [worker] = (await bench.get('/api/v1/workers')).items
    expect(worker).toMatchObject({ id: 'py-1', live: true, activity: 'working', ...info })
    await bench.ok('DELETE', '/api/v1/workers/py-1')
    expect((await bench.get('/api/v1/workers')).items).toEqual([])
  })

  it('are refused with forged leases, and with values that cannot be stored', async () => {
    const bench = await HttpBench.open(await place())
    await bench.post('/api/v1/jobs', { type: 'resize' })
    const { lease } = await claimed(bench)
    const forge = (text: string) => Buffer.from(text).toString('base64url')
    const forged = ['x', forge('1~a'), forge('1~1~x~1~'), forge("1~' OR 1=1~x~y~z")]
    for (const wrong of forged) {
      expect([400, 409]).toContain((await tell(bench, 'commit', { lease: wrong })).status)
    }
    const other = forge(`1~1~0198a1b2-0000-7000-8000-000000000001~1~claim`)
    const gone = await tell(bench, 'commit', { lease: other })
    expect([gone.status, gone.json.code]).toEqual([404, 'E_JOB_NOT_FOUND'])
    const lone = await tell(bench, 'commit', { lease, result: '\ud800' })
    expect([lone.status, lone.json.code]).toEqual([400, 'E_VALUE_INVALID'])
    expect((await tell(bench, 'commit', { lease, effects: [{ name: 'pawl.x' }] })).status).toBe(400)
    expect((await tell(bench, 'commit', { lease })).status).toBe(200)
  })
})

describe('the table of routes', () => {
  it('has no route of workers that the tests above have not called with success', () => {
    // inbox-routes.test.ts calls the route for waits.
    const own = routes.map(({ operation }) => operation).filter((one) => one !== 'waitFor')
    expect(own.filter((operation) => !HttpBench.succeeded.has(operation))).toEqual([])
    expect(ROUTES).toEqual(expect.arrayContaining([...routes]))
  })
})
