/**
 * The HTTP API as one handler, for any framework and for a server of its own (`node.ts`).
 *
 * A request passes in this order: the route, the headers of browsers, the caller and its roles, the
 * query, the body, the function of the route. A request that is refused has read or written nothing
 * of the store, except the token of its caller.
 */
import { createHash } from 'node:crypto'
import { callable, name as checkName, count, flag, listOf, oneOf, record } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'
import type { Pawl } from '../engine/pawl.ts'
import type { PrometheusMetrics } from '../engine/watching/prometheus.ts'
import { openStoreJournal } from '../runs/journal/store/journal.ts'
import { openRuns, type Runs } from '../runs/runs.ts'
import {
  type AccessRules,
  type Authorize,
  checkHost,
  checkSite,
  type Identity,
  identify,
} from './access.ts'
import { type BodyBounds, readJson } from './body.ts'
import { Dashboard, isForDashboard, opensPage } from './dashboard.ts'
import { RequestRefused } from './errors.ts'
import { type Incoming, type Outgoing, type OutgoingBody, Reply } from './exchange.ts'
import { storeMetricsText } from './gauges.ts'
import { Kept } from './kept.ts'
import { FailedLogins, Slots } from './limits.ts'
import { Maintenance } from './maintenance.ts'
import { openApiOf } from './openapi.ts'
import { censusOf, overviewOf } from './overview.ts'
import { PayloadRules, SECRET_KEYS } from './payloads.ts'
import { problemOf } from './problem.ts'
import { type ApiContext, type Route, WORK } from './route.ts'
import { Router } from './router.ts'
import { ROUTES } from './routes/index.ts'
import { Tokens } from './tokens.ts'
import { checkBody, readQuery } from './validation.ts'

/** The options of the HTTP API. */
export interface HttpApiOptions {
  readonly pawl: Pawl
  /**
   * The runs that the API shows.
   * @defaultValue those in the store of `pawl`
   */
  readonly runs?: Runs
  /**
   * The measurements of this process for `/metrics`; the same as in `createPawl({ metrics })`.
   * @defaultValue only measurements of the store
   */
  readonly metrics?: PrometheusMetrics
  /**
   * The path at which the API is mounted, such as `/pawl`. A prefix that the framework has removed
   * already may be missing in requests.
   * @defaultValue `''`
   */
  readonly basePath?: string
  /**
   * The host names under which clients reach the API; requests with another `Host` are refused.
   * Loopback names are always accepted.
   * @defaultValue any; `serveHttp` on a loopback address accepts loopback names only
   */
  readonly hosts?: readonly string[]
  /**
   * Identifies callers by a log-in of your own. Returns undefined if the caller is not known.
   * @defaultValue none: only tokens are accepted
   */
  readonly authorize?: Authorize
  /**
   * Whether clients on the same machine need no token. Only `toNodeHandler` knows the address of a
   * client, so it has no effect on `fetch`.
   * @defaultValue `false`
   */
  readonly loopback?: boolean
  /**
   * Which job types can be enqueued: those that `pawl` knows, or any.
   * @defaultValue `'known'` if `pawl` has job types, otherwise `'any'`
   */
  readonly types?: 'known' | 'any'
  /**
   * The largest body of a request.
   * @defaultValue 4 MiB
   */
  readonly bodyBytesMax?: number
  /**
   * Members of payloads whose values are replaced in answers, at any depth and in any case.
   * @defaultValue password, secret, token, authorization, cookie, apiKey and similar names
   */
  readonly redactKeys?: readonly string[]
  /**
   * How many characters of a payload an answer shows. The whole payload can be downloaded.
   * @defaultValue 16384
   */
  readonly payloadShownMax?: number
  /**
   * Whether the dashboard is served beside the API, at `/`. Its files contain no data, so they need
   * no token; what it shows comes from the API.
   * @defaultValue `true`
   */
  readonly dashboard?: boolean
}

const NAMES_MAX = 1000
const names = (values: readonly string[]) => listOf(values, NAMES_MAX, checkName)
const positive = (value: number) => count(value, 1, 2 ** 30)

export const OPTIONS: FieldChecks<HttpApiOptions> = {
  pawl: record,
  runs: record,
  metrics: record,
  basePath: basePathFault,
  hosts: names,
  authorize: callable,
  loopback: flag,
  types: (value) => oneOf(value, ['known', 'any']),
  bodyBytesMax: positive,
  redactKeys: names,
  payloadShownMax: positive,
  dashboard: flag,
}

/** The HTTP API of a Pawl. */
export interface HttpApi extends AsyncDisposable {
  /** Answers a request. Never throws. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Answers a request as plain data. Never throws. @internal */
  readonly handle: (request: Incoming) => Promise<Outgoing>
  /** Ends streams and long polls. Does not close `pawl`. */
  readonly close: () => Promise<void>
}

const BODY: Omit<BodyBounds, 'bytesMax'> = { depthMax: 520, keysMax: 100_000, timeoutMs: 30_000 }
const BODY_BYTES_MAX = 4 * 1024 * 1024
const SHOWN_MAX = 16_384
const TARGET_MAX = 16_384
const REQUESTS_MAX = 256
const STREAMS_MAX = 100
const CLAIMS_MAX = 500
const OVERVIEW_MS = 1000
const DOWNLOADS_MAX = 4
const RUNS_MAX = 100

/** Makes the handler. Throws `CommandInvalid` for unknown or invalid options. */
export function createHttpApi(options: HttpApiOptions): HttpApi {
  checkFields(options, OPTIONS, { what: 'options' })
  if (options.pawl === undefined)
    throw new CommandInvalid('pawl', 'must be what createPawl returns')
  return new Api(options)
}

class Api implements HttpApi {
  readonly #router = new Router(ROUTES)
  readonly #dashboard: Dashboard | undefined
  readonly #basePath: string
  readonly #context: ApiContext
  readonly #rules: AccessRules
  readonly #body: BodyBounds
  readonly #requests = new Slots('requests', REQUESTS_MAX)
  /** Streams, long polls and examinations. */
  readonly #lasting = new Set<AbortController>()
  #isClosed = false
  readonly #forgetCounts: () => void
  readonly #logger: Pawl['internals']['logger']
  #runs: Promise<Runs> | undefined

  constructor(options: HttpApiOptions) {
    const { pawl, basePath = '', bodyBytesMax = BODY_BYTES_MAX } = options
    const { jobs, logger, environment } = pawl.internals
    const maintenance = new Maintenance(pawl.store, environment)
    const counted = new Kept(() => censusOf(pawl), environment.clock, 0)
    const census = () => counted.get()
    const computeOverview = () => overviewOf(pawl, census)
    const overview = new Kept(computeOverview, environment.clock, OVERVIEW_MS)
    this.#forgetCounts = () => counted.forget()
    this.#basePath = basePath
    this.#dashboard = (options.dashboard ?? true) ? new Dashboard() : undefined
    this.#logger = logger
    this.#body = { ...BODY, bytesMax: bodyBytesMax }
    this.#rules = {
      tokens: new Tokens(pawl.store),
      authorize: options.authorize,
      hosts: options.hosts?.map((host) => host.toLowerCase()),
      loopback: options.loopback ?? false,
      failures: new FailedLogins(() => pawl.store.now()),
    }
    const { redactKeys = SECRET_KEYS, payloadShownMax = SHOWN_MAX } = options
    this.#context = {
      pawl,
      runs: () => this.#openRuns(options),
      payloads: new PayloadRules(redactKeys, payloadShownMax),
      metrics: async () => `${options.metrics?.text() ?? ''}${await storeMetricsText(pawl)}`,
      census,
      overview: () => overview.get(),
      document: (base) => JSON.stringify(openApiOf(ROUTES, base)),
      anyType: (options.types ?? (jobs.size > 0 ? 'known' : 'any')) === 'any',
      maintenance,
      streams: new Slots('streams', STREAMS_MAX),
      claims: new Slots('claims', CLAIMS_MAX),
      examinations: new Slots('examinations', 1),
      downloads: new Slots('downloads', DOWNLOADS_MAX),
      runSlots: new Slots('runs', RUNS_MAX),
    }
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    const url = new URL(request.url)
    const { status, headers, body } = await this.handle({
      method: request.method,
      target: `${url.pathname}${url.search}`,
      // A request that was made by a program has no Host header; its address names the host.
      header: (name) =>
        request.headers.get(name) ?? (name === 'host' ? url.host : undefined) ?? undefined,
      body: (request.body as AsyncIterable<Uint8Array> | null) ?? undefined,
      peer: undefined,
      signal: request.signal,
    })
    return new Response(isWhole(body) ? (body as string | undefined) : streamOf(body), {
      status,
      headers,
    })
  }

  readonly handle = async (request: Incoming): Promise<Outgoing> => {
    try {
      return withSafeHeaders(await this.#answer(request))
    } catch (error) {
      return withSafeHeaders(problemOf(error, this.#logger))
    }
  }

  readonly close = async (): Promise<void> => {
    this.#isClosed = true
    for (const ending of [...this.#lasting]) ending.abort()
    await (await this.#runs)?.close()
  };

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #answer(request: Incoming): Promise<Outgoing> {
    const { path, query } = this.#targetOf(request)
    const page = await this.#pageFor(request, path)
    if (page !== undefined) return page
    const { route, params } = this.#router.match(request.method, path)
    checkSite(request, this.#rules.hosts)
    const { roles } = route
    const identity = roles === 'public' ? PUBLIC : await identify(request, path, roles, this.#rules)
    const run = async (signal: AbortSignal) => {
      const values = readQuery(route, query)
      const body = await readJson(request, this.#body)
      checkBody(route, body)
      const basePath = this.#basePathFor(request)
      const own = {
        identity,
        params,
        query: values,
        body,
        header: request.header,
        signal,
        basePath,
        isHead: request.method === 'HEAD',
      }
      const answer = await route.run({ ...this.#context, ...own })
      // A client sees what it has changed. Claims and reports of workers are too many for that.
      if (route.method !== 'GET' && route.roles !== WORK) this.#forgetCounts()
      return replyOf(route, answer, request)
    }
    return route.lasts ? this.#last(request, run) : this.#requests.hold(() => run(request.signal))
  }

  /** A file of the dashboard, unless the path is one of the API. */
  async #pageFor(request: Incoming, path: string): Promise<Outgoing | undefined> {
    if (this.#dashboard === undefined || !isForDashboard(request, path)) return undefined
    if (this.#router.has(path)) return undefined
    const check = opensPage(request, path) ? checkHost : checkSite
    check(request, this.#rules.hosts)
    return this.#dashboard.answer(request, path, this.#basePathFor(request))
  }

  /**
   * Runs a request that `close` ends. Not `AbortSignal.any`: in Node 20 its signal may be collected
   * as garbage before it is aborted.
   */
  async #last(
    request: Incoming,
    run: (signal: AbortSignal) => Promise<Outgoing>,
  ): Promise<Outgoing> {
    // A client that waits for jobs would otherwise get an empty answer, and ask again at once.
    if (this.#isClosed) throw new RequestRefused(503, 'The API is closed')
    const ending = new AbortController()
    const end = () => ending.abort()
    const forget = () => {
      request.signal.removeEventListener('abort', end)
      this.#lasting.delete(ending)
    }
    request.signal.addEventListener('abort', end)
    this.#lasting.add(ending)
    if (request.signal.aborted) end()
    try {
      const reply = await run(ending.signal)
      if (isWhole(reply.body)) forget()
      else ending.signal.addEventListener('abort', forget)
      return reply
    } catch (error) {
      forget()
      throw error
    }
  }

  /** The path without the base path, and the query. An absolute target names a host: ignored. */
  #targetOf({ target }: Incoming): { path: string; query: string } {
    if (target.length > TARGET_MAX) throw new RequestRefused(414, 'The address is too long')
    const [, full = '', query = ''] =
      /^(?:[a-z][a-z0-9+.-]*:\/\/[^/?#]*)?(\/[^?#]*)(?:\?([^#]*))?/i.exec(target) ?? []
    const base = this.#basePath
    const isBelow = base !== '' && full.startsWith(`${base}/`)
    const isMount = base !== '' && full === base
    return { path: isMount ? '/' : isBelow ? full.slice(base.length) : full, query }
  }

  /** A proxy that removes a prefix from paths says so. */
  #basePathFor({ header }: Incoming): string {
    const prefix = (header('x-forwarded-prefix') ?? '').replace(/\/$/, '')
    return prefix !== '' && basePathFault(prefix) === undefined ? prefix : this.#basePath
  }

  #openRuns({ runs, pawl }: HttpApiOptions): Promise<Runs> {
    if (runs !== undefined) return Promise.resolve(runs)
    if (this.#isClosed) throw new RequestRefused(503, 'The API is closed')
    this.#runs ??= openRuns({ journal: openStoreJournal({ store: pawl.store }), pawl })
    return this.#runs
  }
}

const PUBLIC: Identity = { name: 'public', roles: [] }

function isWhole(body: OutgoingBody | undefined): body is string | Uint8Array | undefined {
  return body === undefined || typeof body === 'string' || body instanceof Uint8Array
}

function basePathFault(path: string): string | undefined {
  const isPath = typeof path === 'string' && path.length <= 200 && /^(\/[\w.~-]+)*$/.test(path)
  const isSafe = isPath && !/\/\.{1,2}(\/|$)/.test(path)
  return isSafe ? undefined : 'must be empty or a path such as /pawl, without / at its end'
}

function replyOf(route: Route, answer: unknown, request: Incoming): Outgoing {
  const isHead = request.method === 'HEAD'
  if (answer instanceof Reply) {
    const { status, headers, body } = answer
    return { status, headers, body: isHead ? undefined : body }
  }
  const body = JSON.stringify(answer)
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (route.method === 'GET') {
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`
    headers.etag = etag
    headers['cache-control'] = 'no-cache'
    const known = (request.header('if-none-match') ?? '').split(',').map((one) => one.trim())
    if (known.includes(etag) || known.includes(`W/${etag}`)) {
      return { status: 304, headers, body: undefined }
    }
  }
  return { status: route.status ?? 200, headers, body: isHead ? undefined : body }
}

/** No answer may be stored by others, shown as a page, or guessed to be of another type. */
function withSafeHeaders({ status, headers, body }: Outgoing): Outgoing {
  const safe = {
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  }
  return { status, headers: { ...safe, ...headers }, body }
}

/** The parts of a body as a stream, which ends the iteration when the client is gone. */
function streamOf(parts: AsyncIterable<string | Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value)
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}
