/** `dashboard/api/operations.ts`: the HTTP API as types, from its table of routes. */
import { COMPONENTS } from '../../src/http/components.ts'
import { isMedia, type Route } from '../../src/http/route.ts'
import { parametersOf } from '../../src/http/router.ts'
import { ROUTES } from '../../src/http/routes/index.ts'
import type { JsonSchema } from '../../src/http/schema.ts'

/** The whole module. */
export function dashboardTypes(): string {
  const parts = [
    '/** Generated from the routes of the HTTP API: npm run docs:generate. */',
    '// biome-ignore-all format: generated',
    ...Object.entries(COMPONENTS).map(([name, schema]) => {
      return `export type ${name} = ${typeOf(schema, '')}\n`
    }),
    '/** What each operation takes and returns. */',
    `export interface Operations {\n${ROUTES.map(operationOf).join('\n')}\n}\n`,
    '/** The method and the path of each operation. */',
    'export const ROUTES: { readonly [Name in keyof Operations]: string } = {',
    ...ROUTES.map(({ operation, method, path }) => `  ${operation}: '${method} ${path}',`),
    '}',
  ]
  return `${parts.join('\n')}\n`
}

function operationOf(route: Route): string {
  const { operation, query = {}, body, answer, summary } = route
  const params = parametersOf(route).map((name) => `${name}: string`)
  const asked = Object.entries(query).map(([name, schema]) => `${name}?: ${typeOf(schema, '    ')}`)
  const fields = [
    ...(params.length > 0 ? [`params: { ${params.join('; ')} }`] : []),
    ...(asked.length > 0 ? [`query: { ${asked.join('; ')} }`] : []),
    ...(body === undefined ? [] : [`body: ${typeOf(body, '    ')}`]),
    `answer: ${isMedia(answer) ? 'string' : typeOf(answer, '    ')}`,
  ]
  return `  /** ${summary} */\n  ${operation}: {\n    ${fields.join('\n    ')}\n  }`
}

/** A schema as a type. `indent` is that of the line on which the type begins. */
function typeOf(schema: JsonSchema, indent: string): string {
  const { $ref, anyOf, enum: words, const: constant, type } = schema
  if (typeof $ref === 'string') return $ref.slice($ref.lastIndexOf('/') + 1)
  if (Array.isArray(anyOf)) return anyOf.map((one) => typeOf(one, indent)).join(' | ')
  if (Array.isArray(words)) return words.map((word) => `'${word}'`).join(' | ')
  if (constant !== undefined) return JSON.stringify(constant)
  switch (type) {
    case 'string':
      return 'string'
    case 'integer':
    case 'number':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'null':
      return 'null'
    case 'array':
      return `readonly (${typeOf((schema.items ?? {}) as JsonSchema, indent)})[]`
    case 'object':
      return objectOf(schema, indent)
    default:
      return 'unknown'
  }
}

function objectOf(schema: JsonSchema, indent: string): string {
  const properties = schema.properties as Record<string, JsonSchema> | undefined
  if (properties === undefined) {
    const values = schema.additionalProperties
    const isMap = typeof values === 'object' && values !== null
    return `Readonly<Record<string, ${isMap ? typeOf(values as JsonSchema, indent) : 'unknown'}>>`
  }
  const required = (schema.required ?? []) as readonly string[]
  const inner = `${indent}  `
  const lines = Object.entries(properties).map(([name, value]) => {
    const mark = required.includes(name) ? '' : '?'
    return `${inner}readonly ${name}${mark}: ${typeOf(value, inner)}`
  })
  return lines.length === 0 ? 'Record<string, never>' : `{\n${lines.join('\n')}\n${indent}}`
}
