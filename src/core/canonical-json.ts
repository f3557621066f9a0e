/**
 * Canonical JSON: one value, one text, byte for byte. Keys are sorted by UTF-16 code units, there
 * is no white space, and numbers are written as ECMAScript writes them (RFC 8785).
 *
 * What could not be read back as the same value is refused, with its place: numbers that are not
 * finite, lone surrogates, undefined in arrays, functions, symbols, big integers, sparse arrays
 * and objects that are not plain. Two allowances: a property whose value is undefined counts as
 * absent, and minus zero is written as zero, which compares equal to it. Depth and size are
 * bounded, because JSON.parse accepts a depth at which JSON.stringify overflows the stack.
 */
import { ValueInvalid } from './errors.ts'

/** Anything that JSON can say. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json }

/** How large a value may be. */
export interface JsonBounds {
  readonly depthMax: number
  /** The length of the text in UTF-8 bytes. */
  readonly bytesMax: number
}

/** The bounds of a value that names no others: 64 levels, one mebibyte. */
export const DEFAULT_BOUNDS: JsonBounds = { depthMax: 64, bytesMax: 1024 * 1024 }

/** The canonical text of a value; throws `ValueInvalid` for what cannot round-trip. */
export function encode(value: unknown, bounds: JsonBounds = DEFAULT_BOUNDS): string {
  const budget = { bytes: bounds.bytesMax, depthMax: bounds.depthMax }
  const text = write(value, '$', 1, budget)
  // No unit takes more than three bytes, so that most texts need not be counted.
  const mayBeLarge = text.length * 3 > bounds.bytesMax
  if (mayBeLarge && utf8Length(text) > bounds.bytesMax) throw tooLarge('$', bounds.bytesMax)
  return text
}

/** The same for a text that is known to be short. */
export function encodeText(text: string): string {
  return quote(text, '$')
}

/** Reads a JSON text within the bounds; throws `ValueInvalid` where it cannot. */
export function decode(text: string, bounds: JsonBounds = DEFAULT_BOUNDS): Json {
  if (utf8Length(text) > bounds.bytesMax) throw tooLarge('$', bounds.bytesMax)
  if (nestingOf(text) > bounds.depthMax) throw tooDeep('$', bounds.depthMax)
  try {
    return JSON.parse(text) as Json
  } catch {
    throw new ValueInvalid('$', 'is not valid JSON')
  }
}

/** The number of bytes of a text in UTF-8; a lone surrogate counts as its replacement, three. */
export function utf8Length(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    // Two bytes below U+0800, three above; a surrogate pair is two units and four bytes.
    bytes += unit < 0x800 ? 1 : 2
    if (isPairAt(text, i)) i++
  }
  return bytes
}

interface Budget {
  /** Characters left; no text is shorter in bytes than in characters. */
  bytes: number
  readonly depthMax: number
}

function write(value: unknown, path: string, depth: number, budget: Budget): string {
  switch (typeof value) {
    case 'string':
      return spend(quote(value, path), path, budget)
    case 'boolean':
      return spend(String(value), path, budget)
    case 'number':
      if (!Number.isFinite(value)) throw new ValueInvalid(path, 'is not a finite number')
      return spend(JSON.stringify(value), path, budget)
    case 'object':
      if (value === null) return spend('null', path, budget)
      if (depth > budget.depthMax) throw tooDeep(path, budget.depthMax)
      return Array.isArray(value)
        ? writeArray(value, path, depth, budget)
        : writeObject(value, path, depth, budget)
    default:
      throw new ValueInvalid(path, `is ${typeof value}, which JSON does not have`)
  }
}

function writeArray(
  values: readonly unknown[],
  path: string,
  depth: number,
  budget: Budget,
): string {
  const parts: string[] = []
  for (let i = 0; i < values.length; i++) {
    parts.push(write(values[i], `${path}[${i}]`, depth + 1, budget))
  }
  // A name besides the places would be lost.
  if (Object.keys(values).length !== values.length) {
    throw new ValueInvalid(path, 'is not a plain array')
  }
  spend('[]', path, budget)
  return `[${parts.join(',')}]`
}

function writeObject(value: object, path: string, depth: number, budget: Budget): string {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    throw new ValueInvalid(path, 'is not a plain object')
  }
  if (Object.getOwnPropertySymbols(value).length > 0) {
    throw new ValueInvalid(path, 'has a symbol as a key')
  }
  let text = ''
  for (const key of Object.keys(value).sort()) {
    const own: unknown = (value as Record<string, unknown>)[key]
    if (own === undefined) continue
    const name = spend(quote(key, `a key of ${path}`), path, budget)
    const part = `${name}:${write(own, `${path}.${key}`, depth + 1, budget)}`
    text = text === '' ? part : `${text},${part}`
  }
  spend('{}', path, budget)
  return `{${text}}`
}

/** What stands in quotes as it is: ASCII without control characters, quotes and backslashes. */
const PLAIN_TEXT = /^[ !#-[\]-~]*$/

function quote(text: string, path: string): string {
  if (PLAIN_TEXT.test(text)) return `"${text}"`
  if (/\p{Surrogate}/u.test(text)) throw new ValueInvalid(path, 'contains a lone surrogate')
  return JSON.stringify(text)
}

/** Stops a huge value while it is being written, not after it has filled the memory. */
function spend(text: string, path: string, budget: Budget): string {
  budget.bytes -= text.length
  if (budget.bytes < 0) throw new ValueInvalid(path, 'makes the value too large')
  return text
}

/** How deep the brackets of a text nest, without parsing it. */
export function nestingOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (let i = 0; i < text.length; i++) {
    // By units, and strings in one go, because a text may be many megabytes long.
    const unit = text.charCodeAt(i)
    if (unit === UNITS.quote) i = endOfString(text, i)
    else if (unit === UNITS.openArray || unit === UNITS.openObject) {
      deepest = Math.max(deepest, ++depth)
    } else if (unit === UNITS.closeArray || unit === UNITS.closeObject) depth--
  }
  return deepest
}

const UNITS = {
  quote: 0x22,
  backslash: 0x5c,
  openArray: 0x5b,
  closeArray: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const

/** Where the string that begins here ends: at the next quote that is not escaped. */
function endOfString(text: string, start: number): number {
  let end = start
  do end = text.indexOf('"', end + 1)
  while (end >= 0 && isEscaped(text, end))
  return end < 0 ? text.length : end
}

/** Whether an odd number of backslashes stands before a place. */
function isEscaped(text: string, place: number): boolean {
  let first = place
  while (text.charCodeAt(first - 1) === UNITS.backslash) first--
  return (place - first) % 2 === 1
}

function isPairAt(text: string, i: number): boolean {
  return (text.codePointAt(i) as number) > 0xffff
}

function tooLarge(path: string, max: number): ValueInvalid {
  return new ValueInvalid(path, `is larger than ${max} bytes`)
}

function tooDeep(path: string, max: number): ValueInvalid {
  return new ValueInvalid(path, `is nested deeper than ${max} levels`)
}
