/** Checks requests against the schemas of their route. Schemas are compiled when first used. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { brief } from '../core/format.ts'
import { RequestRefused } from './errors.ts'
import type { Route } from './route.ts'
import { type JsonSchema, record } from './schema.ts'

// Lengths are counted in UTF-16 units, as in the core. `logger: false` stops the warning about it.
const ajv = new Ajv2020({ strict: true, ownProperties: true, unicode: false, logger: false })

interface Checks {
  readonly query?: ValidateFunction
  readonly body?: ValidateFunction
}

const compiled = new WeakMap<Route, Checks>()

function checksOf(route: Route): Checks {
  const known = compiled.get(route)
  if (known !== undefined) return known
  const { query, body } = route
  const checks = {
    ...(query && { query: ajv.compile(record({}, query)) }),
    ...(body && { body: ajv.compile(body) }),
  }
  compiled.set(route, checks)
  return checks
}

/** Returns the parameters of a query as values. Throws `RequestRefused`. */
export function readQuery(route: Route, query: string): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  const known = route.query ?? {}
  for (const [key, text] of new URLSearchParams(query)) {
    const schema = Object.hasOwn(known, key) ? known[key] : undefined
    if (schema === undefined) {
      const names = Object.keys(known)
      const list = names.length === 0 ? 'there are none' : `known parameters: ${names.join(', ')}`
      throw new RequestRefused(400, `The parameter "${brief(key)}" is not known; ${list}`)
    }
    if (Object.hasOwn(values, key)) {
      throw new RequestRefused(400, `The parameter "${key}" is given more than once`)
    }
    values[key] = valueIn(schema, text)
  }
  check(checksOf(route).query, values, 'The query')
  return values
}

/** Throws `RequestRefused` if a body does not match the schema of the route. */
export function checkBody(route: Route, body: unknown): void {
  if (route.body === undefined) {
    if (body === undefined) return
    throw new RequestRefused(400, 'The request must not have a body')
  }
  if (body === undefined) throw new RequestRefused(400, 'The request needs a JSON body')
  check(checksOf(route).body, body, 'The body')
}

/** A query has texts only. A text that is not of the wanted type stays one, and is refused. */
function valueIn({ type }: JsonSchema, text: string): unknown {
  if (type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

function check(validate: ValidateFunction | undefined, value: unknown, what: string): void {
  if (validate === undefined || validate(value)) return
  const [error] = validate.errors ?? []
  const { instancePath = '', message = 'is not valid', params = {} } = error ?? {}
  const { additionalProperty, allowedValues } = params as {
    additionalProperty?: string
    allowedValues?: readonly string[]
  }
  const place = instancePath === '' ? '' : ` at ${brief(instancePath)}`
  const extra =
    additionalProperty === undefined
      ? (allowedValues?.map((word) => ` ${word}`).join() ?? '')
      : `: "${brief(additionalProperty)}"`
  throw new RequestRefused(400, `${what}${place} ${message}${extra}`)
}
