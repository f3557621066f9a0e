// The HTTP API on each store. Enqueueing one job per request with 50 connections, against a bare
// handler that inserts one row in the same store, in a transaction of its own. Claiming over HTTP,
// ten jobs per request, against the same claims by the library. Jobs per second. Client and server
// share the process, on both sides.
import { Agent, createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createPawl, defineJob, type Pawl } from 'pawl'
import { createHttpApi, toNodeHandler } from 'pawl/http'
import { compare, inFolder, type Result, timed } from './measure.ts'
import { inDatabase, withServer } from './postgres-server.ts'

const ROUNDS = 5
const CONNECTIONS = 50
const LOOPS = 4
const AT_ONCE = 10
const invoice = defineJob({ name: 'invoice' })

type WithStore = <T>(work: (name: string) => Promise<T>) => Promise<T>

/** Measures everything, or what has `only` in its name. */
export async function benchHttp(options: { quick: boolean; only?: string }): Promise<Result[]> {
  const onFile: WithStore = (work) =>
    inFolder((folder) => work(`sqlite:${join(folder, 'jobs.db')}`))
  const results = await benchOn('sqlite', onFile, options)
  if (!namesOf('postgres').some((name) => name.includes(options.only ?? ''))) return results
  const others = await withServer((url) =>
    benchOn('postgres', (work) => inDatabase(url, (own) => work(own)), options),
  )
  return [...results, ...others]
}

function namesOf(store: string): [enqueue: string, claim: string] {
  return [
    `${store}: enqueue over HTTP against one row`,
    `${store}: claim over HTTP against library`,
  ]
}

async function benchOn(
  label: string,
  withStore: WithStore,
  { quick, only = '' }: { quick: boolean; only?: string },
): Promise<Result[]> {
  const [enqueue, claim] = namesOf(label)
  const jobs = quick ? 1000 : 5000
  const results: Result[] = []
  const rate = (work: (pawl: Pawl, jobs: number, place: string) => Promise<number>) => () =>
    withStore(async (store) => {
      await using pawl = await createPawl({ store, jobs: [invoice] })
      return (jobs / (await work(pawl, jobs, store))) * 1000
    })
  if (enqueue.includes(only)) {
    results.push(await compare(enqueue, ROUNDS, rate(enqueueByApi), rate(insertByHand)))
  }
  if (claim.includes(only)) {
    results.push(await compare(claim, ROUNDS, rate(claimByApi), rate(claimByLibrary)))
  }
  return results
}

/** A server with the API. The address of its clients is a loopback one, so they need no token. */
async function withApi(pawl: Pawl, work: (port: number) => Promise<number>): Promise<number> {
  await using api = createHttpApi({ pawl, loopback: true })
  // Without `await` the API would be closed before the work begins.
  return await listening(createServer(toNodeHandler(api)), work)
}

async function listening(server: Server, work: (port: number) => Promise<number>) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    return await work((server.address() as AddressInfo).port)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

const BODY = JSON.stringify({ type: 'invoice', input: { order: 7 } })

function enqueueByApi(pawl: Pawl, jobs: number): Promise<number> {
  return withApi(pawl, (port) => timedPosts(port, '/api/v1/jobs', jobs))
}

async function insertByHand(pawl: Pawl, jobs: number, place: string): Promise<number> {
  const insert = `INSERT INTO own_rows (body) VALUES (${place.startsWith('sqlite') ? '?' : '$1'})`
  await pawl.transaction((tx) => tx.query('CREATE TABLE own_rows (body text NOT NULL)'))
  const server = createServer(async (asked, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of asked) chunks.push(chunk as Buffer)
    const body = JSON.stringify(JSON.parse(Buffer.concat(chunks).toString('utf8')))
    await pawl.transaction((tx) => tx.query(insert, [body]))
    response.writeHead(201, { 'content-type': 'application/json' })
    response.end('{"ok":true}')
  })
  return listening(server, (port) => timedPosts(port, '/', jobs))
}

function timedPosts(port: number, path: string, jobs: number): Promise<number> {
  return withAgent(CONNECTIONS, (agent) =>
    timed(async () => {
      let left = jobs
      const loop = async () => {
        while (left-- > 0) await post(agent, port, path, BODY)
      }
      await Promise.all(Array.from({ length: CONNECTIONS }, loop))
    }),
  )
}

async function withAgent<T>(maxSockets: number, work: (agent: Agent) => Promise<T>): Promise<T> {
  const agent = new Agent({ keepAlive: true, maxSockets })
  try {
    return await work(agent)
  } finally {
    agent.destroy()
  }
}

async function claimByApi(pawl: Pawl, jobs: number): Promise<number> {
  await fill(pawl, jobs)
  const body = JSON.stringify({ worker: 'w', limit: AT_ONCE })
  return withApi(pawl, (port) =>
    withAgent(LOOPS, async (agent) => {
      // The first claim of a server also looks for expired leases, which it repeats every second.
      await post(agent, port, '/api/v1/claim', JSON.stringify({ worker: 'w', types: [] }))
      return claimAll(jobs, async () => {
        const text = await post(agent, port, '/api/v1/claim', body)
        return (JSON.parse(text) as { jobs: unknown[] }).jobs.length
      })
    }),
  )
}

async function claimByLibrary(pawl: Pawl, jobs: number): Promise<number> {
  await fill(pawl, jobs)
  const asked = { worker: 'w', limit: AT_ONCE, leaseMs: 30_000, start: true }
  await pawl.store.claim({ ...asked, types: [] })
  return claimAll(jobs, async () => (await pawl.store.claim(asked)).length)
}

function claimAll(jobs: number, claim: () => Promise<number>): Promise<number> {
  return timed(async () => {
    let left = jobs
    const loop = async () => {
      while (left > 0) {
        // Not `left -= await claim()`: that reads `left` before other loops have changed it.
        const claimed = await claim()
        left -= claimed
      }
    }
    await Promise.all(Array.from({ length: LOOPS }, loop))
  })
}

async function fill(pawl: Pawl, jobs: number): Promise<void> {
  const entries = Array.from({ length: jobs }, (_, order) => ({ input: { order } }))
  await pawl.enqueueMany(invoice as never, entries as never)
}

function post(agent: Agent, port: number, path: string, body: string): Promise<string> {
  const headers = { 'content-type': 'application/json', 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const sent = request({ agent, port, path, method: 'POST', headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        if ((response.statusCode ?? 0) < 300) resolve(text)
        else reject(new Error(text))
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
