/**
 * The values of payloads: inputs, results of steps, effects, results and progress. They are stored
 * as canonical JSON. Values that JSON does not have are stored as an object with one member, a tag:
 *
 *   Date               {"@pawl:date":"2026-01-31T09:30:00.000Z"}
 *   bigint             {"@pawl:bigint":"12345678901234567890"}
 *   Map                {"@pawl:map":[["key","value"],["key2","value2"]]}
 *   Set                {"@pawl:set":["one","two"]}
 *   Uint8Array         {"@pawl:bytes":"AAEC"}                             base64 with padding
 *   NaN, ±Infinity     {"@pawl:number":"NaN"}
 *   undefined          {"@pawl:undefined":true}                         a member is omitted
 *
 * A value that JSON has is stored as the same text as by `encode`. The exception is an object that
 * has a key with the prefix `@pawl:`. It is wrapped, and its members are read as they are:
 *
 *   { '@pawl:date': 1 }    {"@pawl:object":{"@pawl:date":1}}
 *
 * What is not read back exactly as it was passed:
 *
 * - A member whose value is `undefined` is omitted, as in JSON. Reading it returns `undefined`.
 * - Minus zero is read as zero.
 * - An instance of a class without methods and accessors is read as a plain object. An instance of
 *   a subclass of Date, Map, Set or Uint8Array (Buffer) is read as an instance of the base class.
 *
 * Everything else is refused with its path: functions, symbols, instances of classes with methods
 * or accessors (`toJSON` is not called: the value that is read would have another type), invalid
 * dates, holes in arrays, circular values and texts with lone surrogates.
 *
 * `{"@pawl:not-stored":{"path":…,"why":…}}` is the result of a job that succeeded with a result
 * that could not be stored. It is never read as a value.
 */
import { DEFAULT_BOUNDS, encode, type JsonBounds } from './canonical-json.ts'
import { ValueInvalid } from './errors.ts'
import {
  type Extension,
  encodeWith,
  spend,
  tooDeep,
  tooLarge,
  type WriteBudget,
  write,
  writeMembers,
} from './json-writer.ts'
import { explainRefusal } from './value-refusals.ts'

const PREFIX = '@pawl:'
const NOT_STORED = `${PREFIX}not-stored`

/** Longer ones take long to convert, in both directions. */
const BIGINT_DIGITS_MAX = 10_000

/** Returns the text of a value. Throws `ValueInvalid` with the path of what cannot be stored. */
export function encodeValue(value: unknown, bounds: JsonBounds = DEFAULT_BOUNDS): string {
  try {
    return encodeWith(TAGS, value, bounds)
  } catch (error) {
    throw explainRefusal(error, value, bounds, (max) => encodeWith(TAGS, value, max))
  }
}

/** Returns the value of a text. Throws `ValueInvalid` if it is not JSON or has an invalid tag. */
export function decodeValue(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ValueInvalid('$', 'is not valid JSON', 'Correct the stored text.')
  }
  // Most texts have no tags. A tag may be written with escapes by other programs.
  if (!text.includes(PREFIX) && !text.includes('\\u00')) return value
  try {
    return revive(value, '$')
  } catch (error) {
    if (error instanceof ValueInvalid) throw error
    throw new ValueInvalid('$', 'is nested too deeply', 'Store it with fewer levels.')
  }
}

/** The stored form of a result that could not be stored. */
export function notStoredText({ path, why }: { path: string; why: string }): string {
  return encode({ [NOT_STORED]: { path, why } })
}

/** Why the result is missing; `undefined` if the text is the text of a value. */
export function notStoredIn(text: string): { path: string; why: string } | undefined {
  if (!text.startsWith(`{"${NOT_STORED}":`)) return undefined
  const note = (JSON.parse(text) as Record<string, Partial<Record<string, unknown>> | null>)[
    NOT_STORED
  ]
  return { path: String(note?.path ?? '$'), why: String(note?.why ?? 'could not be stored') }
}

const TAGS: Extension = {
  isReserved: (key) => key.startsWith(PREFIX),
  wrapper: `${PREFIX}object`,
  write: writeTagged,
}

function writeTagged(value: unknown, path: string, depth: number, budget: WriteBudget): string {
  switch (typeof value) {
    case 'undefined':
      return tag('undefined', 'true', path, depth, budget)
    case 'number':
      return tag('number', `"${value}"`, path, depth, budget)
    case 'bigint':
      return tag('bigint', `"${digitsOf(value, path)}"`, path, depth, budget)
    case 'object':
      return writeInstance(value as object, path, depth, budget)
    default:
      throw new ValueInvalid(
        path,
        `is a ${typeof value}`,
        'Leave it out, or pass the data that it represents.',
      )
  }
}

/** Writes a tag around a text that is written already. */
function tag(name: string, text: string, path: string, depth: number, budget: WriteBudget): string {
  if (depth > budget.depthMax) throw tooDeep(path, budget.depthMax)
  return spend(`{"${PREFIX}${name}":${text}}`, path, budget)
}

function digitsOf(value: bigint, path: string): string {
  const digits = String(value)
  if (digits.length <= BIGINT_DIGITS_MAX) return digits
  throw new ValueInvalid(path, `is a bigint of more than ${BIGINT_DIGITS_MAX} digits`)
}

function writeInstance(value: object, path: string, depth: number, budget: WriteBudget): string {
  if (value instanceof Date) return tag('date', `"${isoOf(value, path)}"`, path, depth, budget)
  if (value instanceof Map) return writeList('map', [...value], path, depth, budget)
  if (value instanceof Set) return writeList('set', [...value], path, depth, budget)
  if (value instanceof Uint8Array) {
    // Base64 is longer than the bytes, so this is known before the conversion.
    if (value.length > budget.bytes) throw tooLarge(path, budget.bytes)
    return tag('bytes', `"${toBase64(value)}"`, path, depth, budget)
  }
  const why = findBehaviour(value)
  if (why !== undefined) {
    const hint = 'Pass a plain copy of its data, for example { ...row } or row.toJSON().'
    throw new ValueInvalid(path, why, hint)
  }
  return writeMembers(value, path, depth, budget)
}

function writeList(
  name: 'map' | 'set',
  items: readonly unknown[],
  path: string,
  depth: number,
  budget: WriteBudget,
): string {
  if (depth + 1 > budget.depthMax) throw tooDeep(path, budget.depthMax)
  const open = spend(`{"${PREFIX}${name}":`, path, budget)
  const list = write(items, `${path}.${name}`, depth + 1, budget)
  return `${open}${list}${spend('}', path, budget)}`
}

function isoOf(value: Date, path: string): string {
  if (!Number.isNaN(value.getTime())) return value.toISOString()
  throw new ValueInvalid(path, 'is an invalid Date', 'Pass a valid date, or null.')
}

/** What makes an object more than its data; `undefined` for an instance without behaviour. */
function findBehaviour(value: object): string | undefined {
  const name = nameOf(value)
  for (let at = prototypeOf(value); at !== null && !isRoot(at); at = prototypeOf(at)) {
    const names = Reflect.ownKeys(at).filter((key) => key !== 'constructor')
    if (names.length === 0) continue
    const shown = names.slice(0, 3).map(String).join(', ')
    return `is an instance of ${name}, which has methods or accessors (${shown})`
  }
  // Boxed values, errors and the like have their data in slots that no key shows.
  const kind = Object.prototype.toString.call(value).slice(8, -1)
  return kind === 'Object' ? undefined : `is an instance of ${name}`
}

function prototypeOf(value: object): object | null {
  return Object.getPrototypeOf(value) as object | null
}

/** The `Object.prototype` of this or another realm. */
function isRoot(value: object): boolean {
  return prototypeOf(value) === null && Object.hasOwn(value, 'isPrototypeOf')
}

function nameOf(value: object): string {
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name
  return typeof name === 'string' && /^[\w$]{1,80}$/.test(name) ? name : 'a class'
}

/** Replaces the tags in a parsed value by their values, in place. */
function revive(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = revive(value[i], `${path}[${i}]`)
    return value
  }
  const keys = Object.keys(value)
  const [first] = keys
  if (keys.length === 1 && first?.startsWith(PREFIX)) {
    const read = READERS.get(first)
    const content = (value as Record<string, unknown>)[first]
    if (read === undefined) {
      const hint = 'Run a release of Pawl that knows the tag, or correct the stored text.'
      throw new ValueInvalid(path, `has the unknown tag "${first.slice(0, 80)}"`, hint)
    }
    return read(content, path)
  }
  return reviveMembers(value, path)
}

/** JSON.parse makes `__proto__` an own member, so the assignment never changes a prototype. */
function reviveMembers(value: object, path: string): object {
  const members = value as Record<string, unknown>
  for (const key of Object.keys(members)) members[key] = revive(members[key], `${path}.${key}`)
  return value
}

type Reader = (content: unknown, path: string) => unknown

const DATE = /^(\d{4}|[+-]\d{6})-(\d\d)-(\d\d)T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/
const NUMBERS = new Map([
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
])

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  [`${PREFIX}date`, readDate],
  [`${PREFIX}bigint`, readBigint],
  [`${PREFIX}number`, readNumber],
  [`${PREFIX}bytes`, readBytes],
  [`${PREFIX}map`, readMap],
  [`${PREFIX}set`, readSet],
  [`${PREFIX}undefined`, readUndefined],
  [`${PREFIX}object`, readObject],
  [NOT_STORED, (_content, path) => refuse(path, 'was not stored')],
])

function refuse(path: string, why: string): never {
  throw new ValueInvalid(path, why, 'Correct the stored text.')
}

function readDate(content: unknown, path: string): Date {
  const match = typeof content === 'string' ? DATE.exec(content) : null
  const date = new Date(match === null ? Number.NaN : (content as string))
  // JavaScript reads 31 February as 3 March.
  const [, , month, day] = match ?? []
  const days = new Date(Date.UTC(2024, Number(month), 0)).getUTCDate()
  if (Number.isNaN(date.getTime()) || Number(day) > days) {
    refuse(path, 'is not a valid "@pawl:date": an ISO 8601 text with a time and a time zone')
  }
  return date
}

function readBigint(content: unknown, path: string): bigint {
  const isDigits = typeof content === 'string' && /^(?:0|-?[1-9]\d*)$/.test(content)
  if (!isDigits || content.length > BIGINT_DIGITS_MAX) {
    refuse(path, `is not a valid "@pawl:bigint": at most ${BIGINT_DIGITS_MAX} decimal digits`)
  }
  return BigInt(content as string)
}

function readNumber(content: unknown, path: string): number {
  const number = NUMBERS.get(content as string)
  return number ?? refuse(path, 'is not a valid "@pawl:number": NaN, Infinity or -Infinity')
}

function readBytes(content: unknown, path: string): Uint8Array {
  const bytes = typeof content === 'string' ? fromBase64(content) : undefined
  return bytes ?? refuse(path, 'is not a valid "@pawl:bytes": base64 with padding')
}

function readMap(content: unknown, path: string): Map<unknown, unknown> {
  const isPair = (item: unknown) => Array.isArray(item) && item.length === 2
  if (!Array.isArray(content) || !content.every(isPair)) {
    refuse(path, 'is not a valid "@pawl:map": a list of pairs')
  }
  const pairs = revive(content, `${path}.map`) as [unknown, unknown][]
  const map = new Map(pairs)
  return map.size === pairs.length ? map : refuse(path, 'has a key of its map twice')
}

function readSet(content: unknown, path: string): Set<unknown> {
  if (!Array.isArray(content)) refuse(path, 'is not a valid "@pawl:set": a list')
  const items = revive(content, `${path}.set`) as unknown[]
  const set = new Set(items)
  return set.size === items.length ? set : refuse(path, 'has an element of its set twice')
}

function readUndefined(content: unknown, path: string): undefined {
  return content === true ? undefined : refuse(path, 'is not a valid "@pawl:undefined": true')
}

function readObject(content: unknown, path: string): object {
  const isObject = typeof content === 'object' && content !== null && !Array.isArray(content)
  if (!isObject) refuse(path, 'is not a valid "@pawl:object": an object')
  return reviveMembers(content as object, path)
}

/** How many bytes are converted at once: each becomes an argument of a call. */
const CHUNK = 8192

function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(at, at + CHUNK))
  }
  return btoa(text)
}

/** Returns `undefined` if the text is not what `toBase64` writes. */
function fromBase64(text: string): Uint8Array | undefined {
  let binary: string
  try {
    binary = atob(text)
  } catch {
    return undefined
  }
  // atob accepts white space and missing padding.
  if (btoa(binary) !== text) return undefined
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}
