/** The door of `node:http`: a handler for any server on it, and a server of its own. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { name as checkName, count } from '../core/checks.ts'
import { checkFields } from '../core/fields.ts'
import { LOOPBACK_HOSTS } from './access.ts'
import { createHttpApi, type HttpApi, type HttpApiOptions, OPTIONS } from './api.ts'
import { TokenMissing } from './errors.ts'
import type { Incoming, Outgoing } from './exchange.ts'
import { tokenStateOf } from './tokens.ts'

/** Where `serveHttp` listens, and the options of the API. */
export interface HttpServerOptions extends Omit<HttpApiOptions, 'loopback'> {
  /**
   * The address. On another one than a loopback address, every request needs a token.
   * @defaultValue `'127.0.0.1'`
   */
  readonly host?: string
  /**
   * The port; 0 chooses a free one.
   * @defaultValue 0
   */
  readonly port?: number
}

/** A server that listens. */
export interface HttpServer extends AsyncDisposable {
  readonly url: string
  readonly api: HttpApi
  /** Stops listening, ends streams and waits for running requests. */
  close(): Promise<void>
}

const HEADERS_MS = 10_000
const REQUEST_MS = 60_000
const CONNECTIONS_MAX = 1000
const HEADER_BYTES_MAX = 16 * 1024

/**
 * A handler for `node:http` and the frameworks on it. It needs the raw body: mount it before any
 * parser of bodies.
 */
export function toNodeHandler(api: HttpApi): RequestListener {
  return (request, response) => {
    void answer(api, request, response)
  }
}

/** Starts a server. Resolves when it listens. Throws `TokenMissing` if it would need a token. */
export async function serveHttp(options: HttpServerOptions): Promise<HttpServer> {
  const port = (value: number) => count(value, 0, 65_535)
  const { loopback: _, ...known } = OPTIONS
  checkFields(options, { ...known, host: checkName, port }, { what: 'options' })
  const { host = '127.0.0.1', port: wanted = 0, ...own } = options
  const isLocal = LOOPBACK_HOSTS.includes(host)
  if (!isLocal) await checkProtected(own, host)
  const names = isLocal ? [] : undefined
  const hosts = own.hosts ?? names
  const api = createHttpApi({ ...own, loopback: isLocal, ...(hosts && { hosts }) })
  const limits = { requestTimeout: REQUEST_MS, headersTimeout: HEADERS_MS }
  const handler = toNodeHandler(api)
  let open = 0
  const server = createServer({ ...limits, maxHeaderSize: HEADER_BYTES_MAX }, (asked, response) => {
    open++
    let isOpen = true
    const end = () => {
      if (isOpen) open--
      isOpen = false
    }
    response.once('finish', end)
    response.once('close', end)
    handler(asked, response)
  })
  server.maxConnections = CONNECTIONS_MAX
  await listen(server, host, wanted)
  const { port: used } = server.address() as AddressInfo
  const close = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    await api.close()
    await ended(server, () => open, closed)
  }
  const shown = host.includes(':') ? `[${host}]` : host
  const base = own.basePath ?? ''
  return { url: `http://${shown}:${used}${base}`, api, close, [Symbol.asyncDispose]: close }
}

const LOOK_MS = 20
const DRAIN_MS = 10_000

/**
 * Waits until all answers are sent, but not for clients that keep their connections open. A client
 * that does not read its answer is cut off after some seconds.
 */
async function ended(server: Server, open: () => number, closed: Promise<void>): Promise<void> {
  const until = Date.now() + DRAIN_MS
  const look = setInterval(() => {
    if (open() === 0 || Date.now() > until) server.closeAllConnections()
  }, LOOK_MS)
  await closed
  clearInterval(look)
}

/** The newest tokens are looked at: one that is valid is enough. */
const TOKENS_SEEN = 1000

async function checkProtected({ pawl, authorize }: HttpApiOptions, host: string): Promise<void> {
  if (authorize !== undefined) return
  const now = pawl.store.now()
  const tokens = await pawl.store.tokens.list(TOKENS_SEEN)
  const isValid = tokens.some((token) => tokenStateOf(token, now) === 'valid')
  if (isValid) return
  throw new TokenMissing(
    host,
    'Create one (pawl token create NAME --role read), or listen on 127.0.0.1.',
  )
}

async function answer(
  api: HttpApi,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const outgoing = await api.handle(incomingOf(request, gone.signal))
  try {
    await write(request, response, outgoing)
  } catch {
    // The status is sent already, so the client only sees that the answer is not complete.
    response.destroy()
  }
}

function incomingOf(request: IncomingMessage, signal: AbortSignal): Incoming {
  const { headers, method = 'GET', socket } = request
  const hasBody =
    headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0
  return {
    method,
    target: request.url ?? '/',
    header: (name) => {
      const value = headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
    body: hasBody ? request : undefined,
    peer: socket.remoteAddress,
    signal,
  }
}

async function write(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Outgoing,
): Promise<void> {
  if (response.destroyed) return
  // A body that was not read to its end would be read as the next request.
  const isLeft = !request.complete
  response.writeHead(status, isLeft ? { ...headers, connection: 'close' } : headers)
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) {
    response.end(body)
    return
  }
  response.flushHeaders()
  for await (const part of body) {
    if (response.destroyed) return
    if (!response.write(part)) await drained(response)
  }
  response.end()
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      response.off('drain', end)
      response.off('close', end)
      resolve()
    }
    response.on('drain', end)
    response.on('close', end)
    if (response.destroyed) end()
  })
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
