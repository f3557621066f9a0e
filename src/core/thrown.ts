/**
 * What a handler threw, as data that can be stored. The fact that closes an attempt keeps it.
 *
 *   name, message   of the error; `typeof` and a short print for a value that is no error
 *   code            its `code`, for example of Node.js or of PostgreSQL
 *   stack           only the lines with places: the first line repeats the message
 *   fields          the properties in `FIELDS`, which name places and states and no user data
 *   cause, errors   the same for its cause, and for the errors of an `AggregateError`
 *
 * Everything is bounded: each text, the number of errors, the depth, and the sum of all texts.
 * Other properties are not stored. PostgreSQL's `detail` and the parameters of a query contain user
 * data, so both are left out, also where Drizzle writes parameters into its message.
 *
 * No function here throws, whatever it is given. Of values that are no errors no getter is called.
 */

import { toBoundedText } from './bounded-text.ts'

/** An error as data. */
export interface ThrownError {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly stack?: string
  readonly fields?: Readonly<Record<string, string | number>>
  readonly cause?: ThrownError
  readonly errors?: readonly ThrownError[]
}

/** Properties of errors that are stored if they are texts or numbers. */
const FIELDS = [
  'errno',
  'syscall',
  'address',
  'hostname',
  'port',
  'status',
  'statusCode',
  'severity',
  'schema',
  'table',
  'column',
  'constraint',
] as const

const NAME_MAX = 200
const TEXT_OF_ONE_MAX = 2000
const STACK_MAX = 4000
const FRAMES_MAX = 30
const DEPTH_MAX = 5
const ERRORS_MAX = 5
const NODES_MAX = 12
const TEXT_OF_ALL_MAX = 12_000

/** The largest size of a stored error, as JSON. Escapes can triple the length of its texts. */
export const THROWN_MAX = 4 * TEXT_OF_ALL_MAX

/** Changes a text before it is stored. */
export type Redact = (text: string) => string

/** Returns what was thrown as data. Texts are redacted first, and then cut. */
export function describeThrown(thrown: unknown, redact: Redact = (text) => text): ThrownError {
  return new Describer(redact).describe(thrown, 1)
}

class Describer {
  readonly #redact: Redact
  #nodes = NODES_MAX
  #room = TEXT_OF_ALL_MAX
  /** The errors from the root to the current one: a cycle of causes ends when it repeats one. */
  readonly #path: unknown[] = []

  constructor(redact: Redact) {
    this.#redact = redact
  }

  describe(thrown: unknown, depth: number): ThrownError {
    this.#nodes--
    const name = this.#text(nameOf(thrown), NAME_MAX)
    const message = this.#text(messageIn(thrown), TEXT_OF_ONE_MAX)
    const code = codeIn(thrown)
    const stack = framesOf(thrown).join('\n')
    const fields = this.#fieldsOf(thrown)
    this.#path.push(thrown)
    const cause = this.#inner([read(thrown, 'cause')], depth)[0]
    const errors = this.#inner(errorsIn(thrown), depth)
    this.#path.pop()
    return {
      name,
      message,
      ...(code !== undefined && { code: this.#text(code, NAME_MAX) }),
      ...(stack !== '' && { stack: this.#text(stack, STACK_MAX) }),
      ...(fields !== undefined && { fields }),
      ...(cause !== undefined && { cause }),
      ...(errors.length > 0 && { errors }),
    }
  }

  #inner(thrown: readonly unknown[], depth: number): ThrownError[] {
    if (depth >= DEPTH_MAX) return []
    const inner: ThrownError[] = []
    for (const one of thrown.slice(0, ERRORS_MAX)) {
      const isKnown = one === undefined || one === null || this.#path.includes(one)
      if (!isKnown && this.#nodes > 0) inner.push(this.describe(one, depth + 1))
    }
    return inner
  }

  #fieldsOf(thrown: unknown): ThrownError['fields'] {
    const found: Record<string, string | number> = {}
    for (const field of FIELDS) {
      const value = isError(thrown) ? read(thrown, field) : undefined
      if (typeof value === 'number' && Number.isFinite(value)) found[field] = value
      if (typeof value === 'string') found[field] = this.#text(value, NAME_MAX)
    }
    return Object.keys(found).length === 0 ? undefined : found
  }

  /** The texts of all errors together are bounded, so the last ones may be empty. */
  #text(text: string, max: number): string {
    const bounded = toBoundedText(this.#redact(text), Math.min(max, Math.max(0, this.#room)))
    this.#room -= bounded.length
    return bounded
  }
}

/** Returns the name and the message of an error, or a print of any other value. */
export function textOf(thrown: unknown): string {
  return isError(thrown) ? `${nameOf(thrown)}: ${messageIn(thrown)}` : messageIn(thrown)
}

/** Errors of other realms have the same tag, and `instanceof` does not recognise them. */
function isError(thrown: unknown): boolean {
  const ask = () => thrown instanceof Error || tagOf(thrown) === '[object Error]'
  return safely(ask, false)
}

function tagOf(value: unknown): string {
  return Object.prototype.toString.call(value)
}

function nameOf(thrown: unknown): string {
  if (!isError(thrown)) return typeof thrown
  const name = read(thrown, 'name')
  return typeof name === 'string' ? name : UNKNOWN_NAME
}

const UNKNOWN_NAME = 'Error'
const UNKNOWN = 'an error that cannot be described'

function messageIn(thrown: unknown): string {
  if (!isError(thrown)) return safely(() => print(thrown), UNKNOWN)
  const message = read(thrown, 'message')
  return typeof message === 'string' ? withoutParameters(message) : UNKNOWN
}

/** Drizzle's errors have the query and its parameters in their message. */
function withoutParameters(message: string): string {
  return message.startsWith('Failed query: ')
    ? message.replace(/\nparams: [\s\S]*$/, '\nparams: (not stored)')
    : message
}

/** Returns the `code` of an error, or of an object that looks like one. */
function codeIn(thrown: unknown): string | undefined {
  const code = read(thrown, 'code')
  if (typeof code === 'string' && code !== '') return code
  return typeof code === 'number' ? String(code) : undefined
}

function errorsIn(thrown: unknown): readonly unknown[] {
  const errors = isError(thrown) ? read(thrown, 'errors') : undefined
  return safely(() => (Array.isArray(errors) ? errors.slice(0, ERRORS_MAX) : []), [])
}

/** Returns the lines of the stack that name places. */
function framesOf(thrown: unknown): string[] {
  const stack = isError(thrown) ? read(thrown, 'stack') : undefined
  if (typeof stack !== 'string') return []
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line))
  return frames.slice(0, FRAMES_MAX).map((line) => line.trim())
}

/** A property; `undefined` if there is none, or if it cannot be read. */
function read(value: unknown, name: string): unknown {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return isObject ? safely(() => (value as Record<string, unknown>)[name], undefined) : undefined
}

/** A proxy, getter or `toString` that throws must not stop the worker. */
export function safely<T>(ask: () => T, otherwise: T): T {
  try {
    return ask()
  } catch {
    return otherwise
  }
}

const PRINT_DEPTH = 3
const PRINT_ENTRIES = 20
const PRINT_TEXT = 500

/** A short print of a value, as JSON as far as JSON can show it. A text is printed as it is. */
function print(value: unknown): string {
  return typeof value === 'string' ? value : printed(value, 1)
}

function printed(value: unknown, depth: number): string {
  if (typeof value === 'string') return JSON.stringify(toBoundedText(value, PRINT_TEXT))
  if (typeof value === 'function') return '[function]'
  if (typeof value !== 'object' || value === null) return String(value)
  if (isError(value)) return JSON.stringify(toBoundedText(textOf(value), PRINT_TEXT))
  if (value instanceof Date) return String(value.getTime())
  if (ArrayBuffer.isView(value)) return '[binary]'
  const isList = Array.isArray(value)
  if (depth > PRINT_DEPTH) return isList ? '[…]' : '{…}'
  const keys = Object.keys(value)
  const entries = keys.slice(0, PRINT_ENTRIES).map((key) => {
    const text = ownText(value, key, depth)
    return isList ? text : `${JSON.stringify(toBoundedText(key, PRINT_TEXT))}:${text}`
  })
  if (keys.length > PRINT_ENTRIES) entries.push('…')
  return isList ? `[${entries.join(',')}]` : `{${entries.join(',')}}`
}

/** Getters are not called: they may have effects. */
function ownText(value: object, key: string, depth: number): string {
  const own = Object.getOwnPropertyDescriptor(value, key)
  return own !== undefined && 'value' in own ? printed(own.value, depth + 1) : '[getter]'
}

/**
 * Returns a key by which failures are grouped: the same for the same job type, name, codes and
 * place. The place is the first line of the stack outside of packages and of Node.js, without its
 * column and without the folder of the program. If there is none, the message counts, without
 * numbers, ids and quoted texts.
 */
export function fingerprintOf(type: string, thrown: ThrownError): string {
  const chain = [thrown, ...causesOf(thrown)].map(({ name, code }) => `${name} ${code ?? ''}`)
  return hashOf([type, ...chain, placeOf(thrown) ?? patternOf(thrown.message)].join('\n'))
}

/** Returns the causes of an error, the nearest first. */
export function causesOf(thrown: ThrownError): ThrownError[] {
  const causes: ThrownError[] = []
  for (let one = thrown.cause; one !== undefined; one = one.cause) causes.push(one)
  return causes
}

/** Returns a message on one line, with the codes of the error and of its causes. */
export function chainOf(failure: {
  readonly message: string
  readonly code?: string
  readonly thrown?: ThrownError
}): string {
  const { message, code, thrown } = failure
  const causes = thrown === undefined ? [] : causesOf(thrown)
  const all = [
    withCode(message, code),
    ...causes.map((one) => withCode(`${one.name}: ${one.message}`, one.code)),
    ...(thrown?.errors ?? []).map((one) => withCode(`${one.name}: ${one.message}`, one.code)),
  ]
  return all.join(' ← ')
}

function withCode(text: string, code: string | undefined): string {
  return code === undefined || text.includes(code) ? text : `${text} (${code})`
}

function placeOf({ stack = '' }: ThrownError): string | undefined {
  for (const line of stack.split('\n')) {
    const place = /^at (?:(.*) \()?(.+?):(\d+):\d+\)?$/.exec(line)
    if (place === null || /node_modules|node:/.test(line)) continue
    const [, call = '', file = '', row] = place
    const end = file
      .replace(/[?#].*$/, '')
      .split(/[\\/]/)
      .slice(-2)
      .join('/')
    return `${call.replace(/^async /, '')} ${end}:${row}`
  }
  return undefined
}

function patternOf(message: string): string {
  const [line = ''] = message.split('\n')
  return line.replaceAll(/'[^']*'|"[^"]*"|`[^`]*`|[0-9a-f]{8}[0-9a-f-]*|\d+/gi, '#')
}

/** cyrb53: 53 bits. It only has to tell groups apart, and the core has no cryptography. */
function hashOf(text: string): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    high = Math.imul(high ^ unit, 2654435761)
    low = Math.imul(low ^ unit, 1597334677)
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  const hash = 4294967296 * (2097151 & low) + (high >>> 0)
  return hash.toString(16).padStart(14, '0')
}
