// Signals over HTTP, on both databases.
import { defineJob, defineSignal } from 'pawl'
import { hardened } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { routes } from '../../src/http/routes/signals.ts'
import type { WaitAnswer } from '../../src/stores/contract/waits.ts'
import { HttpBench } from './bench.ts'
import { STORES } from './places.ts'

const HOUR = 3_600_000
const NOBODY = '00000000-0000-7000-8000-00000000dead'
const approval = defineSignal({ name: 'approval' })
const strict = defineJob({ name: 'strict', lifecycle: hardened, signals: [approval] })

async function open(place: () => Promise<string>) {
  const bench = await HttpBench.open(await place(), {}, [strict])
  const { id } = await bench.post('/api/v1/jobs', { type: 'order' })
  return { bench, id, path: `/api/v1/jobs/${id}/signals` }
}

/** Claims the only job and lets its attempt wait for an approval. */
async function wait({ pawl: { store } }: HttpBench): Promise<WaitAnswer> {
  const [held] = await store.claim({ worker: 'w1', limit: 1, leaseMs: 60_000, start: true })
  const { id, attempt, execution } = held?.job ?? {}
  return store.waits.wait({
    id: id ?? '',
    fence: { attempt: attempt ?? 0, claim: execution?.claim ?? '' },
    wait: { for: 'signal', name: 'approval', n: 1, until: store.now() + HOUR },
  })
}

describe.each(STORES)('signals over HTTP on $name', ({ place }) => {
  it('are sent once per key, and wake the job that waits for them', async () => {
    const { bench, id, path } = await open(place)
    await wait(bench)
    const { waitsFor } = await bench.get(path)
    expect(waitsFor).toMatchObject({ for: 'signal', name: 'approval', n: 1 })
    expect(waitsFor.until).toBeGreaterThan(bench.pawl.store.now())
    const found = await bench.get('/api/v1/jobs?waitsFor=approval')
    expect(found.items).toMatchObject([{ id, state: 'waiting' }])
    expect((await bench.get('/api/v1/jobs?waitsFor=other')).items).toEqual([])
    const body = { name: 'approval', key: 'mail-7', payload: { by: 'ann', token: 'hunter2' } }
    for (const [role, kind] of [
      ['work', 'sent'],
      ['operate', 'same'],
    ] as const) {
      const answer = await bench.ok('POST', path, body, role)
      expect(answer).toEqual({ kind, key: 'mail-7', job: { id, state: 'queued' } })
    }
    const listed = await bench.call('GET', path, { role: 'read' })
    expect(listed.json).toMatchObject({ items: [{ key: 'mail-7' }], waitsFor: null })
    expect(listed.text).not.toContain('hunter2')
    expect(listed.json.items[0]).not.toHaveProperty('receivedBy')
    expect(await wait(bench)).toMatchObject({
      end: { kind: 'received', payload: '{"by":"ann","token":"hunter2"}' },
    })
    const { items } = await bench.get(path)
    const facts = (await bench.get(`/api/v1/jobs/${id}/facts`)).items.map(
      ({ fact }: { fact: object }) => fact,
    )
    expect(items[0].receivedBy).toBe(facts.length)
    expect(facts).toMatchObject([
      ...[{ trigger: 'create' }, { trigger: 'claim' }, { wait: { name: 'approval' } }],
      { signal: { name: 'approval', key: 'mail-7' }, metadata: { caller: 'work-owner' } },
      { trigger: 'claim' },
      { received: { for: 'signal', name: 'approval', n: 1, signal: 4 } },
    ])
    expect((await bench.post('/api/v1/doctor/check', { full: true })).errors).toBe(0)
  })

  it('use Idempotency-Key as their key, and refuse another payload under it', async () => {
    const { bench, path } = await open(place)
    const send = (payload: unknown, more: object = {}) =>
      bench.call('POST', path, {
        headers: { 'idempotency-key': 'request-1' },
        body: { name: 'approval', payload, ...more },
      })
    const day = { day: { '@pawl:date': '2026-01-31T00:00:00.000Z' } }
    const [first, again, other] = [await send(day), await send(day), await send({ day: 1 })]
    expect([first.json.kind, again.json.kind]).toEqual(['sent', 'same'])
    expect(first.json.key).toBe('request-1')
    expect([other.status, other.json.code]).toEqual([422, 'E_REQUEST_REFUSED'])
    expect((await send(day, { key: 'request-1' })).json.kind).toBe('same')
    expect((await send(day, { key: 'request-2' })).status).toBe(400)
    expect((await send(day, { name: 'other' })).json.kind).toBe('sent')
    const free = { name: 'approval' }
    const keys = [(await bench.post(path, free)).key, (await bench.post(path, free)).key]
    expect(new Set(keys).size).toBe(2)
    const { items } = await bench.get(path)
    const payloads = items.map(({ payload }: { payload: { text: string } }) => payload.text)
    expect(payloads).toEqual([...Array(2).fill(JSON.stringify(day)), 'null', 'null'])
  })

  it('are listed page by page, in the order in which they were sent', async () => {
    const { bench, path } = await open(place)
    const keys = ['a', 'b', 'c', 'd', 'e']
    for (const key of keys) await bench.post(path, { name: 'tick', key })
    const seen: string[] = []
    let after = ''
    do {
      const page = await bench.get(`${path}?limit=2${after}`)
      seen.push(...page.items.map(({ key }: { key: string }) => key))
      after = page.nextCursor === null ? '' : `&after=${page.nextCursor}`
    } while (after !== '')
    expect(seen).toEqual(keys)
    for (const query of ['after=x', 'after=-1', 'limit=0', 'x=1']) {
      expect((await bench.call('GET', `${path}?${query}`)).status, query).toBe(400)
    }
  })

  it('are refused with the status of the error, and nothing is stored', async () => {
    const { bench, path } = await open(place)
    const wrong: [unknown, number][] = [
      [{}, 400],
      [{ name: '' }, 400],
      [{ name: 'pawl.x' }, 400],
      [{ name: 'a\nb' }, 400],
      [{ name: 'approval', key: 'a\u0000' }, 400],
      [{ name: 'approval', payload: '\ud800' }, 400],
      [{ name: 'approval', why: 'x' }, 400],
    ]
    for (const [body, status] of wrong) {
      const answer = await bench.call('POST', path, { body })
      expect([body, answer.status]).toEqual([body, status])
    }
    expect((await bench.get(path)).items).toEqual([])
    const body = { name: 'approval' }
    const send = async (id: string) => {
      const { status, json } = await bench.call('POST', `/api/v1/jobs/${id}/signals`, { body })
      return [status, json.code]
    }
    expect(await send(NOBODY)).toEqual([404, 'E_JOB_NOT_FOUND'])
    expect((await bench.call('GET', `/api/v1/jobs/${NOBODY}/signals`)).status).toBe(404)
    const own = await bench.post('/api/v1/jobs', { type: 'strict' })
    expect(await send(own.id)).toEqual([409, 'E_UNSUPPORTED'])
    const ended = await bench.post('/api/v1/jobs', { type: 'order' })
    await bench.post(`/api/v1/jobs/${ended.id}/cancel`, { reason: 'x' })
    expect(await send(ended.id)).toEqual([409, 'E_JOB_ENDED'])
  })
})

describe('the table of routes', () => {
  it('has no route of signals that the tests above have not called with success', () => {
    const own = routes.map(({ operation }) => operation)
    expect(own.filter((operation) => !HttpBench.succeeded.has(operation))).toEqual([])
  })
})
