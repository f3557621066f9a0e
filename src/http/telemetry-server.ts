/**
 * The local telemetry API, version 1:
 *
 *   POST /api/v1/telemetry/events   events as lines of JSON, or one array of them, at most 1000 and
 *                                   1 MiB: 202 { accepted, duplicates }; all of them, or none
 *   GET  /api/v1/telemetry/events?run=&trace=&commit=&after=&limit=
 *                                   200 { items, nextCursor }, in the order of arrival; 400 for an
 *                                   unknown, empty or repeated parameter
 *
 * By default the server listens on the loopback address. On another address it needs a token, which
 * every request must send: `Authorization: Bearer <token>`. Without a token, only requests with a
 * loopback host name are accepted, so that a web page cannot reach the server through a domain of
 * its own. Errors are problem+json (RFC 9457) with a stable code.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { nestingOf } from '../core/canonical-json.ts'
import { name as checkName, count, NOTE_MAX, text } from '../core/checks.ts'
import { PawlError } from '../core/errors.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'
import { size } from '../core/format.ts'
import { type StoredEvent, TelemetryEvents } from '../stores/telemetry-events.ts'
import { RequestRefused, TokenMissing } from './errors.ts'

export interface TelemetryServerOptions {
  /** The SQLite file of events; created if it does not exist. */
  readonly path: string
  /** 127.0.0.1 if absent. */
  readonly host?: string
  /** A free port if absent or 0. */
  readonly port?: number
  readonly token?: string
}

export interface TelemetryServer extends AsyncDisposable {
  readonly url: string
  close(): Promise<void>
}

const OPTIONS: FieldChecks<TelemetryServerOptions> = {
  path: (value) => text(value, NOTE_MAX),
  host: checkName,
  port: (value) => count(value, 0, 65_535),
  token: checkName,
}

const PATH = '/api/v1/telemetry/events'
const BODY_BYTES_MAX = 1024 * 1024
const EVENTS_MAX = 1000
const PAGE_MAX = 1000
const DEPTH_MAX = 16
const REQUEST_MS = 10_000
const CONNECTIONS_MAX = 64
const LOOPBACK = ['127.0.0.1', '::1', 'localhost']

/** Starts the server. Resolves when it listens. */
export async function serveTelemetry(options: TelemetryServerOptions): Promise<TelemetryServer> {
  checkFields(options, OPTIONS, { what: 'options' })
  const { path, host = '127.0.0.1', port = 0, token } = options
  if (token === undefined && !LOOPBACK.includes(host)) throw new TokenMissing(host)
  if (token !== undefined && token.length < 16) throw new TokenMissing(host)
  const events = new TelemetryEvents(path)
  const server = createServer({ requestTimeout: REQUEST_MS }, (request, response) => {
    answer({ events, token }, request).then(
      ({ status, body }) => reply(response, status, body),
      (error) => refuse(response, error),
    )
  })
  server.maxConnections = CONNECTIONS_MAX
  await listen(server, host, port)
  const { port: own } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
    events.close()
  }
  const shown = host.includes(':') ? `[${host}]` : host
  return { url: `http://${shown}:${own}`, close, [Symbol.asyncDispose]: close }
}

interface Parts {
  readonly events: TelemetryEvents
  readonly token: string | undefined
}

async function answer(
  { events, token }: Parts,
  request: IncomingMessage,
): Promise<{ status: number; body: object }> {
  checkAccess(request, token)
  const url = new URL(request.url ?? '/', 'http://localhost')
  if (url.pathname !== PATH)
    throw new RequestRefused(404, `The path ${url.pathname} does not exist`)
  if (request.method === 'GET') return { status: 200, body: events.find(queryOf(url)) }
  if (request.method !== 'POST') throw new RequestRefused(405, 'The method must be GET or POST')
  checkParameters(url, [])
  // A form of a web page cannot send these types without a CORS preflight.
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/(json|x-ndjson)\b/.test(type)) {
    throw new RequestRefused(415, 'The body must be application/json or application/x-ndjson')
  }
  const sent = eventsOf(await bodyOf(request))
  const accepted = events.add(sent)
  return { status: 202, body: { accepted, duplicates: sent.length - accepted } }
}

function checkAccess({ headers }: IncomingMessage, token: string | undefined): void {
  if (token !== undefined) {
    const given = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? ''
    const [a, b] = [given, token].map((text) => createHash('sha256').update(text).digest())
    if (!timingSafeEqual(a as Buffer, b as Buffer))
      throw new RequestRefused(401, 'The token is missing or wrong')
    return
  }
  const host = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  if (!LOOPBACK.includes(host))
    throw new RequestRefused(403, 'The host header must be 127.0.0.1, ::1 or localhost')
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > BODY_BYTES_MAX)
      throw new RequestRefused(413, `The body is larger than ${size(BODY_BYTES_MAX)}`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function eventsOf(body: string): StoredEvent[] {
  const texts = body.trimStart().startsWith('[') ? [body] : body.split('\n').filter(Boolean)
  const values = texts.flatMap((text) => {
    if (nestingOf(text) > DEPTH_MAX)
      throw new RequestRefused(400, `The body is nested deeper than ${DEPTH_MAX} levels`)
    try {
      return JSON.parse(text) as unknown
    } catch {
      throw new RequestRefused(400, 'The body is not JSON')
    }
  })
  if (values.length > EVENTS_MAX)
    throw new RequestRefused(413, `The body has more than ${EVENTS_MAX} events`)
  return values.map((value, i) => {
    const why = faultOf(value)
    if (why !== undefined) throw new RequestRefused(400, `Event ${i + 1}: ${why}`)
    return value as StoredEvent
  })
}

function faultOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return 'it is not an object'
  const event = value as Partial<Record<string, unknown>>
  for (const field of ['run_id', 'type', 'ts', 'trace_id']) {
    const why = checkName(event[field] as string)
    if (why !== undefined) return `"${field}" ${why}`
  }
  const id = event.event_id
  if (typeof id !== 'string' || id === '' || id.length > 1024) return '"event_id" is missing'
  const { data } = event
  return typeof data === 'object' && data !== null ? undefined : '"data" must be an object'
}

const PARAMETERS = ['run', 'trace', 'commit', 'after', 'limit']

/** Rejects unknown, empty and repeated parameters: ignoring one would return more events. */
function checkParameters({ searchParams }: URL, known: readonly string[]): void {
  for (const field of new Set(searchParams.keys())) {
    if (!known.includes(field)) {
      const names = known.length === 0 ? 'there are none' : `known parameters: ${known.join(', ')}`
      throw new RequestRefused(400, `The parameter "${field}" is not known; ${names}`)
    }
    const values = searchParams.getAll(field)
    if (values.length > 1) throw new RequestRefused(400, `"${field}" is given more than once`)
    const why = checkName(values[0])
    if (why !== undefined) throw new RequestRefused(400, `"${field}" ${why}`)
  }
}

function queryOf(url: URL) {
  checkParameters(url, PARAMETERS)
  const text = (field: string) => url.searchParams.get(field) ?? undefined
  const whole = (field: string, fallback: number, min: number, max: number) => {
    const given = text(field)
    if (given === undefined) return fallback
    const number = /^\d{1,15}$/.test(given) ? Number(given) : -1
    if (number >= min && number <= max) return number
    throw new RequestRefused(400, `"${field}" must be a whole number from ${min} to ${max}`)
  }
  const [run, trace, commit] = [text('run'), text('trace'), text('commit')]
  return {
    ...(run !== undefined && { run }),
    ...(trace !== undefined && { trace }),
    ...(commit !== undefined && { commit }),
    after: whole('after', 0, 0, Number.MAX_SAFE_INTEGER),
    limit: whole('limit', 100, 1, PAGE_MAX),
  }
}

function refuse(response: ServerResponse, error: unknown): void {
  const status = error instanceof RequestRefused ? error.status : 500
  const code = error instanceof PawlError ? error.code : 'E_UNEXPECTED'
  // Unexpected errors may contain internal data, so clients do not see them.
  const detail = error instanceof PawlError ? error.message : 'Internal error'
  reply(response, status, { type: 'about:blank', status, title: detail, code }, 'problem+json')
}

function reply(response: ServerResponse, status: number, body: object, kind = 'json'): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, {
    'content-type': `application/${kind}`,
    'cache-control': 'no-store',
    // A rejected body is not read to its end.
    ...(status >= 400 && { connection: 'close' }),
  })
  response.end(JSON.stringify(body))
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
}
