// The handler in frameworks: the same answers in each, with the API mounted at a path.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { createPawl } from 'pawl'
import { createHttpApi, createToken, type HttpApi, toNodeHandler } from 'pawl/http'
import { describe, expect, it, onTestFinished } from 'vitest'

type Ask = (path: string, init?: RequestInit) => Promise<Response>

async function listening(server: Server): Promise<Ask> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init)
}

const FRAMEWORKS: Readonly<Record<string, (api: HttpApi) => Promise<Ask>>> = {
  'node:http': (api) => listening(createServer(toNodeHandler(api))),
  Hono: async (api) => {
    const app = new Hono()
    app.mount('/pawl', api.fetch)
    return async (path, init) => app.request(`http://localhost${path}`, init)
  },
  'Express 5': (api) => {
    const app = express()
    app.use('/pawl', toNodeHandler(api))
    app.use(express.json())
    return listening(createServer(app))
  },
  Fastify: async (api) => {
    const app = fastify()
    const handler = toNodeHandler(api)
    app.register((scope, _options, done) => {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', (_request, _body, parsed) => parsed(null))
      scope.all('/pawl/*', (request, reply) => {
        reply.hijack()
        handler(request.raw, reply.raw)
      })
      done()
    })
    await app.ready()
    onTestFinished(() => app.close())
    return listening(app.server)
  },
  // `export const GET = api.fetch` and `export const POST = api.fetch` in a route file.
  'a Next.js route handler': async (api) => {
    const handlers: Record<string, HttpApi['fetch']> = { GET: api.fetch, POST: api.fetch }
    return async (path, init) => {
      const handler = handlers[init?.method ?? 'GET'] as HttpApi['fetch']
      return handler(new Request(`http://localhost${path}`, init))
    }
  },
}

describe.each(Object.entries(FRAMEWORKS))('the API in %s', (_name, mount) => {
  it('answers, refuses, takes bodies, streams and ends its streams', async () => {
    const pawl = await createPawl({ store: 'sqlite::memory:' })
    onTestFinished(() => pawl.close())
    const api = createHttpApi({ pawl, basePath: '/pawl' })
    const request = { name: 'ann', roles: ['admin'], createdBy: 'test' } as const
    const { token } = await createToken(pawl, request)
    const ask = await mount(api)
    const headers = { authorization: `Bearer ${token}` }
    expect((await ask('/pawl/healthz')).status).toBe(200)
    expect((await ask('/pawl/api/v1/jobs')).status).toBe(401)
    const posted = await ask('/pawl/api/v1/jobs', {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'x', input: { a: 1 } }),
    })
    expect(posted.status).toBe(201)
    const { id } = (await posted.json()) as { id: string }
    expect(posted.headers.get('location')).toBe(`/pawl/api/v1/jobs/${id}`)
    const shown = await ask(`/pawl/api/v1/jobs/${id}`, { headers })
    expect(await shown.json()).toMatchObject({ job: { id }, input: { text: '{"a":1}' } })
    const { status } = await ask('/pawl/api/v1/nothing', { headers })
    expect(status).toBe(404)
    const stream = await ask('/pawl/api/v1/stream?after=0', { headers })
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader()
    let text = ''
    while (!text.includes(id)) {
      text += Buffer.from((await reader.read()).value as Uint8Array).toString()
    }
    await api.close()
    while (!(await reader.read()).done);
  })

  it('leaves the globals of the process alone', async () => {
    const before = [globalThis.Request, globalThis.Response]
    const pawl = await createPawl({ store: 'sqlite::memory:' })
    onTestFinished(() => pawl.close())
    const ask = await mount(createHttpApi({ pawl, basePath: '/pawl' }))
    await ask('/pawl/healthz')
    expect([globalThis.Request, globalThis.Response]).toEqual(before)
  })
})
