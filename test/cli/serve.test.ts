// `pawl serve` and `pawl token` as real processes, from the built package.
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { STORES } from '../http/places.ts'
import { Place } from './pawl.ts'
import { serving } from './serving.ts'

describe.each(STORES)('pawl serve on $name', ({ place: store }) => {
  it('enqueues, lists and acts with tokens of the CLI, and ends with 0 on SIGTERM', async () => {
    const place = new Place(await store())
    await place.ok('db', 'migrate')
    const created = ['token', 'create', 'billing', '--role', 'operate', '--expires', '1h']
    const token = (await place.ok(...created)).trim()
    expect(token).toMatch(/^pawl_[0-9a-f]{12}_[\w-]{43}$/)
    const { child, url } = await serving(place, '--host', '0.0.0.0')
    const base = url.replace('0.0.0.0', '127.0.0.1')
    expect((await fetch(`${base}/api/v1/jobs`)).status).toBe(401)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const post = (path: string, body: object) =>
      fetch(`${base}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const { id } = (await (await post('/api/v1/jobs', { type: 'x' })).json()) as { id: string }
    expect((await post(`/api/v1/jobs/${id}/cancel`, { reason: 'INC-7' })).status).toBe(200)
    const [fact] = await place.json<{ operator: string; note: string }>(
      ...['audit', 'list', '--trigger', 'cancel'],
    )
    expect(fact).toMatchObject({ operator: 'billing', note: 'INC-7' })
    expect(await (await fetch(`${base}/metrics`, { headers })).text()).toContain(
      'pawl_jobs_enqueued_total{queue="default",kind="x"} 1',
    )
    const [listed] = await place.json<{ id: string; state: string }>('token', 'list')
    expect(listed).toMatchObject({ name: 'billing', state: 'valid', roles: ['operate'] })
    expect(JSON.stringify(listed)).not.toContain(token.slice(20))
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })
})

describe('pawl serve', () => {
  it('needs no token on this machine, and a token before it serves others', async () => {
    const place = new Place()
    const { url, child } = await serving(place)
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await fetch(`${url}/api/v1/stats`)).status).toBe(200)
    child.kill('SIGTERM')
    await once(child, 'exit')
    const refused = await place.run(['serve', '--port', '0', '--host', '0.0.0.0'])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('E_TOKEN_MISSING')
    expect(refused.stderr).toContain('pawl token create')
  })
})

describe('pawl token', () => {
  it('revokes a token once, and lists it only with --all', async () => {
    const place = new Place()
    await place.ok('db', 'migrate')
    const [made] = await place.json<{ id: string }>('token', 'create', 'ann', '--role', 'read')
    const id = made?.id as string
    expect(await place.ok('token', 'revoke', id)).toBe(`${id} revoked\n`)
    expect(await place.ok('token', 'revoke', id)).toBe(`${id} was already revoked\n`)
    expect(await place.json('token', 'list')).toEqual([])
    const [all] = await place.json<{ state: string }>('token', 'list', '--all')
    expect(all?.state).toBe('revoked by ada')
    const unknown = await place.run(['token', 'revoke', 'aaaaaaaaaaaa'])
    expect([unknown.code, unknown.stderr]).toEqual([4, expect.stringContaining('E_NAME_UNKNOWN')])
  })

  it.each([
    [['create', 'ann'], /A role is required/],
    [['create', 'ann', '--role', 'root'], /must be one of read, operate, work, admin/],
    [['create', 'ann', '--role', 'read', '--expires', 'soon'], /--expires must be a duration/],
    [['create', 'a\nb', '--role', 'read'], /control characters/],
  ])('%j is wrong usage', async (args, why) => {
    const place = new Place()
    await place.ok('db', 'migrate')
    const { code, stderr } = await place.run(['token', ...args])
    expect([code, stderr]).toEqual([2, expect.stringMatching(why)])
  })
})
