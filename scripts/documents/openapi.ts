/** `specs/openapi.json`: the HTTP API, from its table of routes. */
import { openApiOf } from '../../src/http/openapi.ts'
import { ROUTES } from '../../src/http/routes/index.ts'

/** How deep lines are broken: each operation and each schema is one line. */
const DEPTH = 3

/** The whole document. Fully indented, it was a tenth of the package. */
export function openApiDocument(): string {
  return `${jsonOf(openApiOf(ROUTES), DEPTH, '')}\n`
}

function jsonOf(value: unknown, depth: number, indent: string): string {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject || depth === 0) return JSON.stringify(value)
  const inner = `${indent} `
  const lines = Object.entries(value).map(
    ([key, one]) => `${inner}${JSON.stringify(key)}: ${jsonOf(one, depth - 1, inner)}`,
  )
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`
}
