/** Writes the OpenAPI 3.1 document from the table of routes. */
import { VERSION } from '../environment/version.ts'
import { COMPONENTS } from './components.ts'
import { isMedia, type MediaAnswer, type Route } from './route.ts'
import { parametersOf } from './router.ts'
import { anything, type JsonSchema, text } from './schema.ts'

const PROBLEM_CONTENT = {
  'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
}

const ERRORS: Readonly<Record<number, string>> = {
  404: 'What the request names does not exist.',
  409: 'It is in a state in which the request does not apply.',
  429: 'The queue is full.',
}

/** The whole document, for a server at this base path. */
export function openApiOf(routes: readonly Route[], basePath = ''): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pawl',
      version: VERSION,
      description: 'Durable jobs and runs over HTTP. Times are milliseconds since the epoch.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas: COMPONENTS,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A token: pawl token create.' },
      },
    },
  }
}

function operationOf(route: Route): object {
  const { operation, summary, details, roles, body, path, headers = {} } = route
  const [, , , tag = 'server'] = path.split('/')
  const needed =
    roles === 'public' ? 'Needs no token.' : `Roles: ${[...roles, 'admin'].join(', ')}.`
  const parameters = [
    ...parametersOf(route).map((name) => ({ name, in: 'path', required: true, schema: text() })),
    ...Object.entries(route.query ?? {}).map(([name, schema]) => ({ name, in: 'query', schema })),
    ...Object.entries(headers).map(([name, description]) => ({
      ...{ name, in: 'header', description, schema: text() },
    })),
  ]
  return {
    operationId: operation,
    tags: [path.startsWith('/api/') ? tag : 'server'],
    summary,
    description: [details, needed].filter((part) => part !== undefined).join(' '),
    ...(roles === 'public' && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: json(body) } }),
    responses: responsesOf(route),
  }
}

function responsesOf({ status = 200, answer, errors = [], summary }: Route): object {
  const content = isMedia(answer) ? mediaOf(answer) : json(answer)
  return {
    [status]: { description: summary, content },
    ...Object.fromEntries(
      errors.map((code) => [code, { description: ERRORS[code], content: PROBLEM_CONTENT }]),
    ),
    default: { description: 'The request was refused or failed.', content: PROBLEM_CONTENT },
  }
}

/** A payload is any JSON value; other media are texts or bytes. */
function mediaOf({ media, says }: MediaAnswer): object {
  return { [media]: { schema: media === 'application/json' ? anything(says) : text(says) } }
}

function json(schema: JsonSchema): object {
  return { 'application/json': { schema } }
}
