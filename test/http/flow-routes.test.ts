// Limits, schedules and retention over HTTP, on both databases.
import { defineJob, defineLimit, typed } from 'pawl'
import { describe, expect, it, vi } from 'vitest'
import { routes as limits } from '../../src/http/routes/limits.ts'
import { routes as retention } from '../../src/http/routes/retention.ts'
import { routes as schedules } from '../../src/http/routes/schedules.ts'
import { HttpBench } from './bench.ts'
import { STORES } from './places.ts'

const WHY = { reason: 'INC-7' }
const openai = defineLimit({ name: 'openai', concurrency: 1 })
const sync = defineJob({
  name: 'sync',
  input: typed<{ tenant: string; secret?: string }>(),
  concurrency: [
    openai,
    { name: 'tenant', key: ({ tenant }: { tenant: string }) => tenant, limit: 5 },
  ],
})
const report = defineJob({ name: 'report', input: typed<{ token?: string } | null>() })

const open = async (place: () => Promise<string>) =>
  HttpBench.open(await place(), {}, [sync, report])

describe.each(STORES)('flow over HTTP on $name', ({ place }) => {
  it('lists limits with what runs and waits, and shows who holds one', async () => {
    const bench = await open(place)
    for (const tenant of ['acme', 'acme', 'b/c']) {
      await bench.post('/api/v1/jobs', { type: 'sync', input: { tenant } })
    }
    const { store } = bench.pawl
    const [held] = await store.claim({ worker: 'w', limit: 3, leaseMs: 60_000, start: true })
    const { items } = await bench.get('/api/v1/limits')
    const names = items.map(({ limit }: { limit: string }) => limit)
    expect(names).toEqual(expect.arrayContaining(['openai', 'sync/tenant']))
    const first = await bench.get('/api/v1/limits?limit=1')
    const rest = await bench.get(`/api/v1/limits?after=${encodeURIComponent(first.nextCursor)}`)
    expect([...first.items, ...rest.items]).toEqual(items)
    const shown = await bench.get('/api/v1/limits/openai')
    expect(shown).toMatchObject({ limit: 'openai', kind: 'concurrency', used: 1, max: 1 })
    expect(shown.holders).toEqual([expect.objectContaining({ id: held?.job.id, worker: 'w' })])
    expect(shown.blocked).toBe(2)
    expect(shown.blockedSince).toEqual(expect.any(Number))
    expect(shown.records[0]).toMatchObject({ action: 'declare', limit: 'openai' })
    const gates = await bench.get('/api/v1/gates?name=sync%2Ftenant')
    const acme = expect.objectContaining({ limit: 'sync/tenant', key: 'acme', used: 1 })
    expect(gates.items).toEqual(expect.arrayContaining([acme]))
    const blocking = await bench.get('/api/v1/gates?waiting=true')
    expect(blocking.items).toEqual([expect.objectContaining({ limit: 'openai' })])
    const key = await bench.get('/api/v1/limits/sync%2Ftenant?key=acme')
    expect(key).toMatchObject({ key: 'acme', used: 1, max: 5 })
  })

  it('sets and resets limits after a dry run, with operator and reason', async () => {
    const bench = await open(place)
    const root = '/api/v1/limits/openai'
    const dry = await bench.post(`${root}/set`, { ...WHY, concurrency: 3, dryRun: true })
    expect(dry).toMatchObject({ dryRun: true, changed: true, before: null, after: 3, record: null })
    expect((await bench.get(root)).max).toBe(1)
    const done = await bench.ok('POST', `${root}/set`, { ...WHY, concurrency: 3 }, 'operate')
    expect(done).toMatchObject({ changed: true, record: { operator: 'operate-owner' } })
    expect(await bench.get(root)).toMatchObject({ max: 3, setting: { overrideNote: 'INC-7' } })
    expect((await bench.post(`${root}/set`, { ...WHY, concurrency: 3 })).changed).toBe(false)
    const keyed = '/api/v1/limits/sync%2Ftenant'
    await bench.post(`${keyed}/set`, { ...WHY, concurrency: 0, key: 'acme' })
    expect((await bench.get(`${keyed}?key=acme`)).max).toBe(0)
    expect((await bench.post(`${root}/reset`, WHY)).changed).toBe(true)
    expect((await bench.get(root)).max).toBe(1)
    const { items } = await bench.get('/api/v1/limit-records?name=openai')
    expect(items.map(({ action }: { action: string }) => action)).toEqual([
      ...['reset', 'set', 'declare'],
    ])
    expect((await bench.get('/api/v1/limit-records?name=sync%2Ftenant&key=acme')).items).toEqual([
      expect.objectContaining({ key: 'acme', limit: 'sync/tenant', action: 'set' }),
    ])
    const unknown = await bench.call('GET', '/api/v1/limits/opneai')
    expect([unknown.status, unknown.json.code]).toEqual([404, 'E_NAME_UNKNOWN'])
    expect(unknown.json.title + unknown.json.hint).toContain('openai')
    for (const concurrency of [-1, 1.5, 1e9]) {
      const body = { ...WHY, concurrency }
      expect((await bench.call('POST', `${root}/set`, { body })).status).toBe(400)
    }
    expect((await bench.call('GET', '/api/v1/limits/a%2Fb%2Fc%2Fd')).status).toBe(400)
  })

  it('audits a limit from the ledger', async () => {
    const bench = await open(place)
    await bench.post('/api/v1/jobs', { type: 'sync', input: { tenant: 'a' } })
    await bench.pawl.store.claim({ worker: 'w', limit: 1, leaseMs: 60_000, start: true })
    const audit = await bench.get('/api/v1/limits/openai/audit?since=0')
    expect(audit).toMatchObject({ complete: true, claims: 1, violationCount: 0 })
    expect(audit.peak.used).toBe(1)
    expect((await bench.call('GET', '/api/v1/limits/none/audit')).status).toBe(404)
  })

  it('stores a schedule, shows its next ticks, and hides secrets of its input', async () => {
    const bench = await open(place)
    const path = `/api/v1/schedules/${encodeURIComponent('a/b "c"')}`
    const put = { ...WHY, type: 'report', cron: '0 3 * * *', input: { token: 'hunter2' } }
    const dry = await bench.post(path, { ...put, dryRun: true })
    expect(dry).toEqual({ dryRun: true, changed: false, schedule: null })
    const made = await bench.ok('POST', path, put, 'operate')
    expect(made).toMatchObject({ changed: true, schedule: { type: 'report', origin: 'program' } })
    expect((await bench.post(path, put)).changed).toBe(false)
    const shown = await bench.call('GET', path)
    expect(shown.json.schedule.timing).toEqual({ kind: 'cron', cron: '0 3 * * *', timezone: 'UTC' })
    expect(shown.json.next).toHaveLength(5)
    expect(shown.json.next[0]).toBe(shown.json.schedule.nextAt)
    expect(shown.json.records[0]).toMatchObject({ action: 'put', operator: 'operate-owner' })
    expect(shown.text).not.toContain('hunter2')
    expect((await bench.get(`${path}/next?limit=2`)).items).toEqual(shown.json.next.slice(0, 2))
    expect((await bench.get('/api/v1/schedules')).items).toHaveLength(1)
    const wrong = [
      { ...put, cron: '61 * * * *' },
      { ...put, everyMs: 1000 },
      { ...put, cron: undefined },
      { ...put, timezone: 'Mars/Base' },
      { ...put, everyMs: 1, cron: undefined },
      { ...put, type: 'report', queue: 'q' },
    ]
    for (const body of wrong) {
      const answer = await bench.call('POST', path, { body })
      expect(answer.status, JSON.stringify(body)).toBe(400)
    }
    const unknown = await bench.call('GET', '/api/v1/schedules/none')
    expect([unknown.status, unknown.json.code]).toEqual([404, 'E_SCHEDULE_NOT_FOUND'])
  })

  it('pauses, resumes, runs, backfills and removes a schedule', async () => {
    const bench = await open(place)
    const path = '/api/v1/schedules/often'
    await bench.post(path, { ...WHY, type: 'report', everyMs: 60_000, jitterMs: 0 })
    expect((await bench.post(`${path}/pause`, WHY)).changed).toBe(true)
    expect((await bench.post(`${path}/pause`, WHY)).changed).toBe(false)
    expect((await bench.get(path)).schedule).toMatchObject({ pausedBy: 'admin-owner' })
    expect((await bench.post(`${path}/resume`, WHY)).record.action).toBe('resume')
    const { job } = await bench.post(`${path}/run-now`, WHY)
    expect((await bench.get(`/api/v1/jobs/${job}`)).job.type).toBe('report')
    const now = bench.pawl.store.now()
    const range = { ...WHY, from: now - 180_000, overlap: 'allowAll' }
    const dry = await bench.post(`${path}/backfill`, { ...range, dryRun: true })
    expect(dry.ticks.length).toBeGreaterThanOrEqual(3)
    expect(dry.jobs).toEqual([])
    const done = await bench.post(`${path}/backfill`, { ...range, to: now })
    expect(done.jobs).toHaveLength(done.ticks.length)
    const ticks = await bench.get('/api/v1/schedule-records?schedule=often&kind=tick&limit=2')
    expect(ticks.items).toEqual([
      expect.objectContaining({ action: 'backfilled', operator: 'admin-owner' }),
      expect.objectContaining({ action: 'backfilled' }),
    ])
    expect(ticks.nextCursor).toEqual(expect.any(String))
    expect((await bench.post(`${path}/remove`, WHY)).record.action).toBe('remove')
    expect((await bench.call('POST', `${path}/pause`, { body: WHY })).status).toBe(404)
  })

  it('counts what retention would remove, and removes it', async () => {
    const bench = await open(place)
    const { id } = await bench.post('/api/v1/jobs', { type: 'report' })
    await bench.post(`/api/v1/jobs/${id}/cancel`, WHY)
    const due = async () => (await bench.get('/api/v1/retention?cancelledMs=1000')).due.removed
    await vi.waitUntil(async () => (await due()) === 1, 10_000)
    expect(await bench.get('/api/v1/retention')).toMatchObject({ active: false, old: 0 })
    const times = { ...WHY, cancelledMs: 1000 }
    const run = (body: object) => bench.post('/api/v1/retention/run', body)
    expect(await run({ ...times, dryRun: true })).toMatchObject({ dryRun: true, removed: 1 })
    expect((await run({ ...times, types: ['sync'] })).removed).toBe(0)
    expect(await run(times)).toMatchObject({ dryRun: false, removed: 1, complete: true })
    expect((await bench.call('GET', `/api/v1/jobs/${id}`)).status).toBe(404)
    const none = await bench.call('POST', '/api/v1/retention/run', {
      body: { ...WHY, types: ['sync'] },
    })
    expect(none.status).toBe(400)
    const operator = { body: times, role: 'operate' } as const
    expect((await bench.call('POST', '/api/v1/retention/run', operator)).status).toBe(403)
  })
})

describe('the table of routes', () => {
  it('has no route of these files that the tests above have not called with success', () => {
    const own = [...limits, ...schedules, ...retention].map(({ operation }) => operation)
    expect(own.filter((operation) => !HttpBench.succeeded.has(operation))).toEqual([])
  })
})
