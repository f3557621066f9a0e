// The HTTP API on either database, behind a real server. Every answer is checked against the
// document of the API, and every request that was accepted against the schema of its body.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { createPawl, defineJob, type Pawl } from 'pawl'
import { createToken, type HttpServer, type HttpServerOptions, serveHttp } from 'pawl/http'
import { PrometheusMetrics } from 'pawl/telemetry'
import { onTestFinished } from 'vitest'
import { openApiOf } from '../../src/http/openapi.ts'
import { Router } from '../../src/http/router.ts'
import { ROUTES } from '../../src/http/routes/index.ts'
import { ACCESS_ROLES, type AccessRole } from '../../src/stores/contract/tokens.ts'
import { type Answer, type Sent, send } from './client.ts'

/** A job type with a schema: `to` must be a text. */
export const mail = defineJob({
  name: 'mail',
  queue: 'mails',
  input: {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) =>
        typeof (value as { to?: unknown } | null)?.to === 'string'
          ? { value: value as { to: string } }
          : { issues: [{ message: 'must have "to"' }] },
    },
  },
  run: async () => ({ sent: true }),
})

/** A job type whose expired leases wait for an operator. */
export const careful = defineJob({ name: 'careful', recovery: 'operator' })

interface Operation {
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content: Content }>>
}
type Content = Readonly<Record<string, { readonly schema: object }>>

const document = openApiOf(ROUTES) as {
  paths: Record<string, Record<string, Operation>>
  components: object
}
const ajv = new Ajv2020({ strict: false, logger: false })
const router = new Router(ROUTES)
const compiled = new Map<object, ValidateFunction>()

function faultsOf(schema: object, value: unknown): string | undefined {
  let validate = compiled.get(schema)
  if (validate === undefined) {
    validate = ajv.compile({ ...schema, components: document.components })
    compiled.set(schema, validate)
  }
  return validate(value) ? undefined : ajv.errorsText(validate.errors)
}

export class HttpBench {
  /** The operations that have succeeded in this file. */
  static readonly succeeded = new Set<string>()
  readonly pawl: Pawl
  readonly server: HttpServer
  readonly tokens: Readonly<Record<AccessRole, string>>

  private constructor(pawl: Pawl, server: HttpServer, tokens: Record<AccessRole, string>) {
    this.pawl = pawl
    this.server = server
    this.tokens = tokens
  }

  static async open(
    store: string,
    options: Partial<HttpServerOptions> = {},
    jobs: Parameters<typeof createPawl>[0]['jobs'] = [mail],
  ): Promise<HttpBench> {
    const metrics = new PrometheusMetrics()
    const pawl = await createPawl({ store, metrics, ...(jobs && { jobs }) })
    onTestFinished(() => pawl.close())
    const tokens = {} as Record<AccessRole, string>
    for (const role of ACCESS_ROLES) {
      const request = { name: `${role}-owner`, roles: [role], createdBy: 'test' }
      tokens[role] = (await createToken(pawl, request)).token
    }
    const server = await serveHttp({ pawl, metrics, types: 'any', ...options })
    onTestFinished(() => server.close())
    return new HttpBench(pawl, server, tokens)
  }

  /** Sends a request with the token of a role, or without one. */
  async call(
    method: string,
    target: string,
    { role = 'admin', ...sent }: Sent & { role?: AccessRole | 'none' } = {},
  ): Promise<Answer> {
    const authorization =
      role === 'none' ? {} : { authorization: `Bearer ${this.tokens[role as AccessRole]}` }
    const headers = { ...authorization, ...sent.headers }
    const answer = await send(this.server.url, method, target, { ...sent, headers })
    this.#check(method, target, sent.body, answer)
    return answer
  }

  /** The same; it must succeed. Returns the JSON. */
  async ok(
    method: string,
    target: string,
    body?: unknown,
    role: AccessRole = 'admin',
  ): Promise<Answer['json']> {
    const answer = await this.call(method, target, { role, ...(body !== undefined && { body }) })
    if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.text}`)
    return answer.json
  }

  get(target: string) {
    return this.ok('GET', target)
  }

  post(target: string, body: unknown) {
    return this.ok('POST', target, body)
  }

  #check(method: string, target: string, body: unknown, answer: Answer): void {
    const { status, json } = answer
    const problem = document.paths['/healthz']?.get?.responses.default?.content
    const [path = ''] = target.split('?')
    if (status >= 400) {
      const fault = faultsOf(problem?.['application/problem+json']?.schema as object, json)
      if (fault !== undefined) throw new Error(`${method} ${target}: no problem: ${fault}`)
      return
    }
    const { route } = router.match(method, path)
    HttpBench.succeeded.add(route.operation)
    const operation = document.paths[route.path]?.[route.method.toLowerCase()] as Operation
    const asked = operation.requestBody?.content['application/json']?.schema
    if (asked !== undefined) {
      const fault = faultsOf(asked, typeof body === 'string' ? JSON.parse(body) : body)
      if (fault !== undefined) throw new Error(`${method} ${target} was accepted: ${fault}`)
    }
    const known =
      operation.responses[status === 200 ? (operation.responses[200] ? 200 : 201) : status]
    const schema = known?.content['application/json']?.schema
    if (schema === undefined || json === undefined) return
    const fault = faultsOf(schema, json)
    if (fault !== undefined) throw new Error(`${method} ${target} answered: ${fault}`)
  }
}
