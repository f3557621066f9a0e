// The ledger, the migration of jobs and the tokens over HTTP, on both databases.
import { createPawl, defineJob } from 'pawl'
import { describe, expect, it, vi } from 'vitest'
import { routes as ledger } from '../../src/http/routes/ledger.ts'
import { routes as tokens } from '../../src/http/routes/tokens.ts'
import { parcel1, parcel2 } from '../contract/store/parcels.ts'
import { HttpBench } from './bench.ts'
import { STORES } from './places.ts'

const WHY = { reason: 'INC-7' }
const WAIT = { timeout: 10_000 }

const linesOf = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { pos: string; fact: { jobId: string; seq: number } })

async function withFacts(place: () => Promise<string>, jobs: number): Promise<HttpBench> {
  const bench = await HttpBench.open(await place())
  const batch = Array.from({ length: jobs }, (_, i) => ({ type: 'x', input: { password: i } }))
  const { jobs: made } = await bench.post('/api/v1/jobs/batch', { jobs: batch })
  const [{ id }] = made
  await bench.post(`/api/v1/jobs/${id}/cancel`, { reason: '=1+1' })
  return bench
}

describe.each(STORES)('the ledger over HTTP on $name', ({ place }) => {
  it('is exported as lines without payloads, in several parts that fit together', async () => {
    const bench = await withFacts(place, 300)
    const { items } = await bench.get('/api/v1/audit?order=oldest&limit=1000')
    const all = await bench.call('GET', '/api/v1/audit/export', { role: 'read' })
    expect(all.headers['content-type']).toBe('application/x-ndjson')
    expect(linesOf(all.text)).toEqual(items)
    expect(items).toHaveLength(301)
    expect(all.text).not.toContain('password')
    const first = linesOf((await bench.call('GET', '/api/v1/audit/export?limit=200')).text)
    const after = encodeURIComponent(first.at(-1)?.pos as string)
    const rest = await bench.call('GET', `/api/v1/audit/export?after=${after}`)
    expect([...first, ...linesOf(rest.text)]).toEqual(items)
    expect((await bench.call('HEAD', '/api/v1/audit/export')).text).toBe('')
    const wrong = await bench.call('GET', '/api/v1/audit/export?after=nonsense!')
    expect(wrong.status).toBe(400)
  })

  it('is exported for spreadsheets, where no text becomes a formula', async () => {
    const bench = await withFacts(place, 1)
    const path = '/api/v1/audit/export?format=csv&trigger=cancel'
    const { text, headers } = await bench.call('GET', path)
    expect(headers['content-type']).toMatch(/^text\/csv/)
    const [head, line, ...rest] = text.trimEnd().split('\r\n')
    expect([head?.startsWith('pos,job,seq'), line?.includes(",'=1+1,"), rest]).toEqual([
      ...[true, true, []],
    ])
  })

  it('frees the slot of an export that its client does not read to the end', async () => {
    const bench = await withFacts(place, 1)
    for (let i = 0; i < 20; i++) {
      const gone = new AbortController()
      const headers = { authorization: `Bearer ${bench.tokens.read}` }
      const url = `${bench.server.url}/api/v1/audit/export`
      const answer = await fetch(url, { headers, signal: gone.signal })
      expect([200, 503]).toContain(answer.status)
      gone.abort()
    }
    const asks = async () => (await bench.call('GET', '/api/v1/audit/export')).status === 200
    await vi.waitUntil(asks, WAIT)
  })

  it('is verified by its seals, and by a copy of them', async () => {
    const bench = await withFacts(place, 3)
    const { store } = bench.pawl
    expect((await bench.get('/api/v1/seals')).items).toEqual([])
    await vi.waitUntil(async () => (await store.seals.make()) !== undefined, WAIT)
    await bench.post('/api/v1/jobs', { type: 'x' })
    await vi.waitUntil(async () => (await store.seals.make()) !== undefined, WAIT)
    const { items } = await bench.get('/api/v1/seals')
    expect(items.map(({ number }: { number: number }) => number)).toEqual([1, 2])
    const first = await bench.get('/api/v1/seals?limit=1')
    const rest = await bench.get(`/api/v1/seals?after=${first.nextCursor}`)
    expect([...first.items, ...rest.items]).toEqual(items)
    expect((await bench.call('GET', '/api/v1/seals?after=x')).status).toBe(400)
    const clean = { seals: 2, findings: [], more: false }
    expect(await bench.post('/api/v1/seals/verify', {})).toEqual(clean)
    expect(await bench.post('/api/v1/seals/verify', { seals: items })).toEqual(clean)
    const copy = [items[0], { ...items[1], facts: items[1].facts + 1 }]
    const { findings } = await bench.post('/api/v1/seals/verify', { seals: copy })
    expect(findings.map(({ kind }: { kind: string }) => kind)).toContain('seal-changed')
  })
})

describe.each(STORES)('machines over HTTP on $name', ({ place }) => {
  it('migrate the jobs of earlier versions, after a look at what would change', async () => {
    const store = await place()
    const carry = defineJob({ name: 'carry', lifecycle: parcel1 })
    {
      await using old = await createPawl({ store, jobs: [carry] })
      for (let i = 0; i < 3; i++) await old.enqueue(carry, {})
      await using _next = await createPawl({ store, lifecycles: [parcel2] })
    }
    const bench = await HttpBench.open(store)
    const path = '/api/v1/machines/parcel/migrate'
    const moves = [
      { from: { version: 1, state: 'packed' }, to: { version: 2, state: 'ready' }, jobs: 3 },
    ]
    const dry = await bench.post(path, { ...WHY, to: 2, dryRun: true })
    expect(dry).toMatchObject({ dryRun: true, matched: 3, done: 3, moves })
    expect((await bench.get('/api/v1/audit?trigger=migrate')).items).toEqual([])
    const done = await bench.post(path, { ...WHY, to: 2 })
    expect(done).toMatchObject({ dryRun: false, matched: 3, done: 3, refused: 0, more: false })
    const { items } = await bench.get('/api/v1/audit?trigger=migrate')
    const who = items.map(({ fact }: { fact: Record<string, string> }) => fact.operator)
    expect(who).toEqual(['admin-owner', 'admin-owner', 'admin-owner'])
    expect((await bench.post(path, { ...WHY, to: 2 })).matched).toBe(0)
    expect((await bench.call('POST', path, { body: { to: 2 } })).status).toBe(400)
    const unknown = await bench.call('POST', path, { body: { ...WHY, to: 9 } })
    expect([unknown.status, unknown.json.code]).toEqual([409, 'E_LIFECYCLE_UNKNOWN'])
  })
})

describe.each(STORES)('tokens over HTTP on $name', ({ place }) => {
  it('are created, used, listed without their secrets, and revoked', async () => {
    const bench = await HttpBench.open(await place())
    const asked = { name: 'billing', roles: ['work'], lifeMs: 60_000 }
    const created = await bench.call('POST', '/api/v1/tokens', { body: asked })
    expect([created.status, created.headers['cache-control']]).toEqual([201, 'no-store'])
    const { token, id, ...info } = created.json
    expect(info).toMatchObject({ name: 'billing', createdBy: 'admin-owner', state: 'valid' })
    const role = { headers: { authorization: `Bearer ${token}` }, role: 'none' } as const
    expect((await bench.call('GET', '/api/v1/whoami', role)).json.name).toBe('billing')
    const list = await bench.call('GET', '/api/v1/tokens')
    expect(list.json.items[0]).toEqual({ id, ...info })
    expect(list.text).not.toContain(token)
    expect(await bench.post(`/api/v1/tokens/${id}/revoke`, {})).toEqual({ id, changed: true })
    expect(await bench.post(`/api/v1/tokens/${id}/revoke`, {})).toEqual({ id, changed: false })
    const [revoked] = (await bench.get('/api/v1/tokens')).items
    expect(revoked).toMatchObject({ state: 'revoked', revokedBy: 'admin-owner' })
    const missing = await bench.call('POST', '/api/v1/tokens/0123456789ab/revoke', { body: {} })
    expect(missing.status).toBe(404)
  })

  it('are refused without roles, with unknown or repeated ones, and to others', async () => {
    const bench = await HttpBench.open(await place())
    for (const roles of [[], ['root'], ['read', 'read'], undefined]) {
      const body = { name: 'eve', roles }
      expect((await bench.call('POST', '/api/v1/tokens', { body })).status).toBe(400)
    }
    const body = { name: 'eve', roles: ['admin'] }
    for (const role of ['read', 'operate', 'work'] as const) {
      const refused = await bench.call('POST', '/api/v1/tokens', { body, role })
      expect([refused.status, refused.json.code]).toEqual([403, 'E_ROLE_MISSING'])
    }
    const other = { ...body, operator: 'ada' }
    expect((await bench.call('POST', '/api/v1/tokens', { body: other })).status).toBe(403)
    const names = (await bench.get('/api/v1/tokens')).items.map((one: { name: string }) => one.name)
    expect(names).not.toContain('eve')
  })
})

describe('the tables of these routes', () => {
  it('have no route that the tests above have not called with success', () => {
    const own = [...ledger, ...tokens].map(({ operation }) => operation)
    const missing = [...own, 'migrateJobs'].filter((one) => !HttpBench.succeeded.has(one))
    expect(missing).toEqual([])
  })
})
