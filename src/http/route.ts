/**
 * Routes are data: method, path, roles, schemas and function. The router, the checks of requests,
 * `openapi.json` and the tests are built from them. A resource is one file in `routes/`.
 */

import type { Pawl } from '../engine/pawl.ts'
import type { Runs } from '../runs/runs.ts'
import type { AccessRole } from '../stores/contract/tokens.ts'
import type { Identity } from './access.ts'
import type { Slots } from './limits.ts'
import type { Maintenance } from './maintenance.ts'
import type { Census } from './overview.ts'
import type { PayloadRules } from './payloads.ts'
import type { JsonSchema } from './schema.ts'

/** What all routes work with. */
export interface ApiContext {
  readonly pawl: Pawl
  readonly runs: () => Promise<Runs>
  readonly payloads: PayloadRules
  /** The text of `/metrics`. */
  readonly metrics: () => Promise<string>
  /** Counts of all jobs and queues; in a large store, as they were up to ten seconds ago. */
  readonly census: () => Promise<Census>
  /** The numbers of `/api/v1/overview`. */
  readonly overview: () => Promise<unknown>
  /** The text of `/openapi.json`, for a base path. */
  readonly document: (basePath: string) => string
  /** Whether a job type may be enqueued that this process does not know. */
  readonly anyType: boolean
  readonly maintenance: Maintenance
  readonly streams: Slots
  readonly claims: Slots
  /** One check or repair of the doctor at a time. */
  readonly examinations: Slots
  /** Contents of artifacts that are in memory. */
  readonly downloads: Slots
  /** Runs that this process works on because a client asked for it. */
  readonly runSlots: Slots
}

/** One call of a route. */
export interface RouteCall extends ApiContext {
  readonly identity: Identity
  readonly params: Readonly<Record<string, string>>
  /** The parameters of the query, converted and checked. */
  // biome-ignore lint/suspicious/noExplicitAny: the schema of the route has checked them
  readonly query: Readonly<Record<string, any>>
  // biome-ignore lint/suspicious/noExplicitAny: the schema of the route has checked it
  readonly body: any
  readonly header: (name: string) => string | undefined
  /** Aborted when the client is gone, and in a route that `lasts` when the API is closed. */
  readonly signal: AbortSignal
  /** The path before `/api`, as the client sees it. */
  readonly basePath: string
  /** Whether only the headers of the answer are sent. */
  readonly isHead: boolean
}

/** The form of an answer that is not JSON. */
export interface MediaAnswer {
  readonly media: string
  readonly says: string
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** `/api/v1/jobs/{id}`: a segment in braces is a parameter. */
  readonly path: string
  /** The name of the operation in `openapi.json`. */
  readonly operation: string
  readonly summary: string
  readonly details?: string
  /** Who may call it: those with one of these roles, and `admin`. Everybody if `public`. */
  readonly roles: readonly AccessRole[] | 'public'
  readonly query?: Readonly<Record<string, JsonSchema>>
  readonly body?: JsonSchema
  /** Further headers that the route reads, for the document. */
  readonly headers?: Readonly<Record<string, string>>
  /** The status of a success; 200 if absent. */
  readonly status?: number
  readonly answer: JsonSchema | MediaAnswer
  /** Which errors it can answer with, besides those of all routes. */
  readonly errors?: readonly (404 | 409 | 429)[]
  /** It stays open for long, so it does not count as a running request. */
  readonly lasts?: true
  /** Returns the answer, or a `Reply`. */
  readonly run: (call: RouteCall) => Promise<unknown>
}

/** Roles that may read. */
export const READ: readonly AccessRole[] = ['read', 'operate']
/** Roles that may change jobs, effects, queues and runs. */
export const OPERATE: readonly AccessRole[] = ['operate']
/** Roles that may enqueue jobs. */
export const ENQUEUE: readonly AccessRole[] = ['operate', 'work']
/** Roles that may claim and report jobs. */
export const WORK: readonly AccessRole[] = ['work']
/** Only `admin`. */
export const ADMIN: readonly AccessRole[] = []

export function isMedia(answer: Route['answer']): answer is MediaAnswer {
  return 'media' in answer
}

/** Of routes that answer with counts of the whole store. */
export const SHARED_COUNTS =
  'If counting takes 20 ms or more, the counts are shared by all clients for 20 times as long, ' +
  'at most for 10 seconds. A change by a client of this server is seen at once.'

/** A cursor of a list. */
export const AFTER: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  description: 'the `nextCursor` of the page before',
}

const PAGE_MAX = 1000
const PAGE_DEFAULT = 100

/** The parameters of a list. */
export const PAGING: Readonly<Record<string, JsonSchema>> = {
  after: AFTER,
  limit: {
    type: 'integer',
    minimum: 1,
    maximum: PAGE_MAX,
    description: `how many entries; ${PAGE_DEFAULT} if absent`,
  },
}

/** The page that a query asks for. */
export function pageOf({ query }: Pick<RouteCall, 'query'>): { limit: number; after?: string } {
  const { limit = PAGE_DEFAULT, after } = query
  return { limit, ...(after !== undefined && { after }) }
}
