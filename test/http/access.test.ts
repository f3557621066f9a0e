// Who may use the API: every route without a token, with a wrong role, from another site, and under
// a foreign host name.
import { createToken } from 'pawl/http'
import { describe, expect, it } from 'vitest'
import type { Route } from '../../src/http/route.ts'
import { ROUTES } from '../../src/http/routes/index.ts'
import { ACCESS_ROLES, type AccessRole } from '../../src/stores/contract/tokens.ts'
import { HttpBench } from './bench.ts'
import { send } from './client.ts'
import { STORES } from './places.ts'

const guarded = ROUTES.filter(({ roles }) => roles !== 'public')
const pathOf = ({ path }: Route) => path.replaceAll(/\{\w+\}/g, '1')
const allowedFor = ({ roles }: Route): readonly AccessRole[] =>
  roles === 'public' ? ACCESS_ROLES : [...roles, 'admin']

/** On another address than a loopback one, so that clients on this machine need a token. */
const EVERYWHERE = { host: '0.0.0.0' } as const

async function openEverywhere(store: string, options: object = {}) {
  const bench = await HttpBench.open(store, { ...EVERYWHERE, ...options })
  const base = bench.server.url.replace('0.0.0.0', '127.0.0.1')
  return { bench, base }
}

/** Long enough for every body; no route gets as far as its body. */
const bodyOf = ({ body }: Route) => (body === undefined ? {} : { body: { reason: 'x' } })

describe.each(STORES)('access on $name', ({ place }) => {
  it('refuses every route without a token, and with a wrong one', async () => {
    const { base } = await openEverywhere(await place())
    for (const route of guarded) {
      const answer = await send(base, route.method, pathOf(route), bodyOf(route))
      expect([answer.status, answer.json.code], route.operation).toEqual([401, 'E_LOGIN_REQUIRED'])
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
    }
    for (const authorization of ['Bearer x', 'Basic YTpi', 'Bearer', 'pawl_1']) {
      const answer = await send(base, 'GET', '/api/v1/jobs', { headers: { authorization } })
      expect(answer.status, authorization).toBe(401)
    }
  })

  it('refuses every route to each role that may not use it', async () => {
    const { bench, base } = await openEverywhere(await place())
    for (const route of guarded) {
      for (const role of ACCESS_ROLES.filter((one) => !allowedFor(route).includes(one))) {
        const headers = { authorization: `Bearer ${bench.tokens[role]}` }
        const sent = { headers, ...bodyOf(route) }
        const answer = await send(base, route.method, pathOf(route), sent)
        const what = `${route.operation} as ${role}`
        expect([answer.status, answer.json.code], what).toEqual([403, 'E_ROLE_MISSING'])
      }
    }
    expect(
      guarded.every(
        (route) =>
          !allowedFor(route).includes('read') ||
          route.method === 'GET' ||
          route.path.includes('doctor'),
      ),
    ).toBe(true)
  })
})

const SQLITE = STORES[0].place

describe('requests of browsers', () => {
  it.each([
    [{ origin: 'http://evil.example' }],
    [{ origin: 'null' }],
    [{ origin: 'http://127.0.0.1:1' }],
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ host: 'evil.example' }],
    [{ host: 'evil.example:80', origin: 'http://evil.example' }],
    [{ host: 'a b' }],
  ])(
    'with %j are refused on every route, although the client is on this machine',
    async (headers) => {
      const bench = await HttpBench.open(await SQLITE())
      for (const route of ROUTES) {
        const sent = { headers: headers as unknown as Record<string, string>, ...bodyOf(route) }
        const answer = await send(bench.server.url, route.method, pathOf(route), sent)
        // Node itself refuses a header that is not one.
        expect([400, 403], `${route.operation} ${answer.text}`).toContain(answer.status)
        if (answer.status === 403) expect(answer.json.code).toBe('E_ORIGIN_REFUSED')
        else expect(JSON.stringify(headers)).toContain('a b')
      }
    },
  )

  it('with an absolute target are judged by the Host header', async () => {
    const bench = await HttpBench.open(await SQLITE())
    const headers = { host: 'evil.example' }
    const answer = await send(bench.server.url, 'GET', 'http://127.0.0.1/api/v1/jobs', { headers })
    expect(answer.status).toBe(403)
  })

  it('from the page of the server itself are accepted', async () => {
    const bench = await HttpBench.open(await SQLITE())
    const headers = { origin: bench.server.url, 'sec-fetch-site': 'same-origin' }
    const body = { type: 'x' }
    const answer = await send(bench.server.url, 'POST', '/api/v1/jobs', { headers, body })
    expect(answer.status).toBe(201)
  })

  it('with a form are refused: a page could send one to any site', async () => {
    const bench = await HttpBench.open(await SQLITE())
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const sent = { headers: { 'content-type': type }, body: '{"type":"x"}' }
      expect((await send(bench.server.url, 'POST', '/api/v1/jobs', sent)).status).toBe(415)
    }
  })

  it('under a listed host name are accepted with a token, and under others refused', async () => {
    const { bench, base } = await openEverywhere(await SQLITE(), { hosts: ['Jobs.example.org'] })
    const ask = (host: string, origin: string) => {
      const headers = { host, origin, authorization: `Bearer ${bench.tokens.read}` }
      return send(base, 'GET', '/api/v1/stats', { headers })
    }
    expect((await ask('jobs.example.org', 'https://jobs.example.org')).status).toBe(200)
    expect((await ask('127.0.0.1:1', 'https://jobs.example.org')).status).toBe(200)
    expect((await ask('evil.example', 'https://jobs.example.org')).status).toBe(403)
    expect((await ask('jobs.example.org', 'https://evil.example')).status).toBe(403)
  })
})

describe('a client on this machine', () => {
  it('needs no token on a loopback address, and says who it is', async () => {
    const bench = await HttpBench.open(await SQLITE())
    const body = { reason: 'x', operator: 'ada' }
    expect((await send(bench.server.url, 'POST', '/api/v1/queues/q/pause', { body })).status).toBe(
      200,
    )
    const { records } = (await send(bench.server.url, 'GET', '/api/v1/queues/q')).json
    expect(records[0].operator).toBe('ada')
  })

  it.each(['x-forwarded-for', 'forwarded', 'via'])(
    'needs one if it came through a proxy: %s',
    async (name) => {
      const bench = await HttpBench.open(await SQLITE())
      const answer = await send(bench.server.url, 'GET', '/api/v1/jobs', {
        headers: { [name]: 'x' },
      })
      expect(answer.status).toBe(401)
    },
  )

  it('cannot start a server for other machines before there is a token', async () => {
    const bench = await HttpBench.open(await SQLITE())
    for (const { id } of await bench.pawl.store.tokens.list(10)) {
      await bench.pawl.store.tokens.revoke(id, 'test')
    }
    const { serveHttp } = await import('pawl/http')
    const started = serveHttp({ pawl: bench.pawl, host: '0.0.0.0' })
    await expect(started).rejects.toMatchObject({ code: 'E_TOKEN_MISSING' })
  })
})

describe('tokens', () => {
  it('that are revoked or expired are refused', async () => {
    const { bench, base } = await openEverywhere(await SQLITE())
    const { store } = bench.pawl
    const make = (more: object) =>
      createToken(bench.pawl, { name: 'ann', roles: ['read'], createdBy: 'test', ...more })
    const ask = (token: string) =>
      send(base, 'GET', '/api/v1/stats', { headers: { authorization: `Bearer ${token}` } })
    const [live, dead] = [await make({}), await make({})]
    const old = await make({ expiresAt: store.now() })
    await store.tokens.revoke(dead.id, 'test')
    expect((await ask(live.token)).status).toBe(200)
    expect((await ask(dead.token)).status).toBe(401)
    expect((await ask(old.token)).status).toBe(401)
    expect((await ask(`${live.token.slice(0, -1)}x`)).status).toBe(401)
  })

  it('are limited: after ten wrong ones only known ones are accepted', async () => {
    const { bench, base } = await openEverywhere(await SQLITE())
    const ask = (token: string) =>
      send(base, 'GET', '/api/v1/stats', { headers: { authorization: `Bearer ${token}` } })
    expect((await ask(bench.tokens.read)).status).toBe(200)
    for (let i = 0; i < 10; i++) expect((await ask(`wrong-${i}`)).status).toBe(401)
    const blocked = await ask('wrong-11')
    expect([blocked.status, blocked.json.code]).toEqual([429, 'E_LOGINS_LIMITED'])
    expect(Number(blocked.headers['retry-after'])).toBeGreaterThan(0)
    expect((await ask(bench.tokens.read)).status).toBe(200)
  })

  it('do not occur in answers, lists or log lines', async () => {
    const { bench, base } = await openEverywhere(await SQLITE())
    const secret = bench.tokens.admin.slice('pawl_0123456789ab_'.length)
    const headers = { authorization: `Bearer ${bench.tokens.admin}` }
    for (const route of ROUTES.filter(({ method, lasts }) => method === 'GET' && !lasts)) {
      expect((await send(base, 'GET', pathOf(route), { headers })).text).not.toContain(secret)
    }
    const stored = JSON.stringify(await bench.pawl.store.tokens.list(10))
    expect(stored).not.toContain(secret)
  })
})

describe('the authorize hook', () => {
  it('identifies callers by a log-in of the user, next to tokens', async () => {
    const authorize = ({ header }: { header: (name: string) => string | undefined }) =>
      header('Cookie') === 'session=ada' ? { name: 'ada', roles: ['read'] as const } : undefined
    const { bench, base } = await openEverywhere(await SQLITE(), { authorize })
    const ask = (headers: Record<string, string>, path = '/api/v1/whoami') =>
      send(base, 'GET', path, { headers })
    expect((await ask({ cookie: 'session=ada' })).json).toEqual({ name: 'ada', roles: ['read'] })
    expect((await ask({ cookie: 'session=eve' })).status).toBe(401)
    const token = { authorization: `Bearer ${bench.tokens.work}` }
    expect((await ask(token)).json.name).toBe('work-owner')
    expect((await ask(token, '/api/v1/jobs')).status).toBe(403)
  })
})
