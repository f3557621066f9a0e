// How the dashboard is served: which paths, which headers, which callers. Reads dist/dashboard.
import { readdirSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { createPawl } from 'pawl'
import { createHttpApi } from 'pawl/http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HttpBench } from './bench.ts'
import { send } from './client.ts'

const HTML = { accept: 'text/html,application/xhtml+xml' }
const script = readdirSync('dist/dashboard/assets').find((name) => name.endsWith('.js')) ?? ''

const open = (options: object = {}) => HttpBench.open('sqlite::memory:', options)

describe('the page', () => {
  it('is served at / and at every path of it that a browser opens', async () => {
    const { server } = await open()
    const root = await send(server.url, 'GET', '/')
    expect(root.status).toBe(200)
    expect(root.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(root.text).toContain(`src="assets/${script}"`)
    expect(root.text).toContain('<base href="/">')
    for (const path of ['/jobs', '/jobs/1', '/no/such/page']) {
      const deep = await send(server.url, 'GET', path, { headers: HTML })
      expect([deep.status, deep.text], path).toEqual([200, root.text])
    }
  })

  it('does not replace the API: paths of it and clients without HTML get problems', async () => {
    const { server } = await open()
    for (const [path, headers] of [
      ['/jobs', {}],
      ['/api/v1/nothing', HTML],
      ['/assets/nothing.js', HTML],
      ['/assets/../index.html', HTML],
      ['/assets/%2e%2e/index.html', HTML],
    ] as const) {
      const answer = await send(server.url, 'GET', path, { headers })
      expect([answer.status, answer.headers['content-type']], path).toEqual([
        404,
        'application/problem+json',
      ])
    }
    const posted = await send(server.url, 'POST', '/jobs', { headers: HTML })
    expect(posted.status).toBe(404)
    const health = await send(server.url, 'GET', '/healthz', { headers: HTML })
    expect(health.json).toEqual({ status: 'ok' })
  })

  it('has a policy without inline code, other hosts and frames', async () => {
    const { server } = await open()
    const { headers } = await send(server.url, 'GET', '/')
    const policy = headers['content-security-policy'] ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|\*|https?:|data:/)
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['referrer-policy']).toBe('no-referrer')
  })

  it('is not sent again if it is known', async () => {
    const { server } = await open()
    const { headers } = await send(server.url, 'GET', '/')
    const again = await send(server.url, 'GET', '/', {
      headers: { 'if-none-match': headers.etag ?? '' },
    })
    expect([again.status, again.text]).toEqual([304, ''])
    const head = await send(server.url, 'HEAD', '/')
    expect([head.status, head.text]).toEqual([200, ''])
  })

  it('can be switched off', async () => {
    const { server } = await open({ dashboard: false })
    const answer = await send(server.url, 'GET', '/', { headers: HTML })
    expect(answer.status).toBe(404)
  })
})

describe('the base path', () => {
  it('is that of the mount, or what a proxy says', async () => {
    const { server } = await open({ basePath: '/pawl' })
    const origin = new URL(server.url).origin
    for (const path of ['/pawl', '/pawl/', '/pawl/jobs/1']) {
      const { status, text } = await send(origin, 'GET', path, { headers: HTML })
      expect([status, text.includes('<base href="/pawl/">')], path).toEqual([200, true])
    }
    const proxied = { ...HTML, 'x-forwarded-prefix': '/ops/jobs/' }
    const { text } = await send(origin, 'GET', '/', { headers: proxied })
    expect(text).toContain('<base href="/ops/jobs/">')
    const hostile = { ...HTML, 'x-forwarded-prefix': '/"><script>alert(1)</script>' }
    const refused = await send(origin, 'GET', '/', { headers: hostile })
    expect(refused.text).toContain('<base href="/pawl/">')
    expect((await send(origin, 'GET', `/pawl/assets/${script}`)).status).toBe(200)
  })

  it('works through fetch as well', async () => {
    const pawl = await createPawl({ store: 'sqlite::memory:' })
    onTestFinished(() => pawl.close())
    const api = createHttpApi({ pawl, basePath: '/pawl' })
    const page = await api.fetch(new Request('http://localhost/pawl/jobs', { headers: HTML }))
    expect(await page.text()).toContain('<base href="/pawl/">')
    const asset = await api.fetch(new Request(`http://localhost/pawl/assets/${script}`))
    expect(asset.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  })
})

describe('assets', () => {
  it('may be cached without end, and are compressed for clients that accept it', async () => {
    const { server } = await open()
    const path = `/assets/${script}`
    const plain = await send(server.url, 'GET', path)
    expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable')
    const response = await fetch(`${server.url}${path}`, { headers: { 'accept-encoding': 'gzip' } })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(await response.text()).toBe(plain.text)
    const refused = await send(server.url, 'GET', path, {
      headers: { 'accept-encoding': 'gzip;q=0' },
    })
    expect(refused.headers['content-encoding']).toBeUndefined()
    expect(() => gunzipSync(Buffer.from(plain.text))).toThrow()
    const known = { 'if-none-match': plain.headers.etag ?? '' }
    expect((await send(server.url, 'GET', path, { headers: known })).status).toBe(304)
  })
})

describe('access', () => {
  it('needs no token for files without data, and refuses other hosts', async () => {
    const { server } = await open({ host: '0.0.0.0', hosts: ['jobs.example.org'] })
    const base = server.url.replace('0.0.0.0', '127.0.0.1')
    expect((await send(base, 'GET', '/', { headers: HTML })).status).toBe(200)
    const jobs = await send(base, 'GET', '/api/v1/jobs', { headers: HTML })
    expect(jobs.json.code).toBe('E_LOGIN_REQUIRED')
    const foreign = await send(base, 'GET', '/', { headers: { ...HTML, host: 'evil.example' } })
    expect([foreign.status, foreign.json.code]).toEqual([403, 'E_ORIGIN_REFUSED'])
  })

  it('lets another site link to the page, but not load its parts', async () => {
    const { server } = await open()
    const cross = { ...HTML, 'sec-fetch-site': 'cross-site' }
    const opened = { ...cross, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    expect((await send(server.url, 'GET', '/', { headers: opened })).status).toBe(200)
    const framed = { ...cross, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }
    expect((await send(server.url, 'GET', '/', { headers: framed })).status).toBe(403)
    const loaded = { ...cross, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' }
    const answer = await send(server.url, 'GET', `/assets/${script}`, { headers: loaded })
    expect(answer.status).toBe(403)
  })
})
