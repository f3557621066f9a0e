/** Calls the HTTP API. The names and types of operations are generated from the routes. */
import { signal } from '@preact/signals'
import { type Operations, type Problem, ROUTES } from './operations.ts'

export type Operation = keyof Operations
export type Answer<Name extends Operation> = Operations[Name]['answer']
type Part<Name extends Operation, Key extends string> =
  Operations[Name] extends Record<Key, infer Value> ? { readonly [K in Key]: Value } : unknown
type Query<Name extends Operation> =
  Operations[Name] extends Record<'query', infer Value> ? { readonly query?: Value } : unknown
/** What an operation takes: `params` of its path, `query` and `body`. */
export type Request<Name extends Operation> = Part<Name, 'params'> &
  Part<Name, 'body'> &
  Query<Name>

interface Sent {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
}

/** The address below which the dashboard and the API are mounted; ends with `/`. */
export const BASE = document.baseURI

const TOKEN = 'pawl.token'
/** The token of this tab. It is not kept longer than the tab. */
export const token = signal(sessionStorage.getItem(TOKEN) ?? '')

export function setToken(text: string): void {
  token.value = text
  if (text === '') sessionStorage.removeItem(TOKEN)
  else sessionStorage.setItem(TOKEN, text)
}

/** A request that the server refused, or that did not reach it (status 0). */
export class Refused extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string

  constructor(status: number, { title, code, hint }: Pick<Problem, 'title' | 'code' | 'hint'>) {
    super(title)
    this.status = status
    this.code = code
    this.hint = hint
  }
}

export function authorization(): Record<string, string> {
  return token.value === '' ? {} : { authorization: `Bearer ${token.value}` }
}

/** The address of an operation, for links and downloads. */
export function addressOf<Name extends Operation>(name: Name, request: Request<Name>): string {
  const { params = {}, query = {} } = request as Sent
  const [, path = ''] = ROUTES[name].split(' ')
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, key) => encodeURIComponent(params[key] ?? ''))
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()
  return `${BASE}${filled.slice(1)}${search === '' ? '' : `?${search}`}`
}

/** Calls an operation. Throws `Refused`, or the reason of `signal`. */
export async function call<Name extends Operation>(
  name: Name,
  request: Request<Name>,
  abort?: AbortSignal,
): Promise<Answer<Name>> {
  const { body } = request as Sent
  const response = await reach(addressOf(name, request), {
    method: ROUTES[name].split(' ')[0] as string,
    headers: {
      accept: 'application/json',
      ...authorization(),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal: abort ?? null,
  })
  if (!response.ok) throw await refusalOf(response)
  return (await response.json()) as Answer<Name>
}

/** `fetch`, with one kind of error. */
export async function reach(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init)
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new Refused(0, {
      title: 'The server does not answer',
      code: 'UNREACHABLE',
      hint: 'Is `pawl serve` still running?',
    })
  }
}

export async function refusalOf(response: Response): Promise<Refused> {
  const fallback = { title: `The server answered ${response.status}`, code: 'HTTP', hint: '' }
  try {
    return new Refused(response.status, { ...fallback, ...(await response.json()) })
  } catch {
    return new Refused(response.status, fallback)
  }
}
