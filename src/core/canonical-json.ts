/**
 * Canonical JSON: equal values have equal texts, byte for byte.
 *
 * - Object keys are sorted by UTF-16 code units.
 * - There is no white space.
 * - Numbers are written as ECMAScript writes them (RFC 8785).
 * - A property whose value is `undefined` is omitted.
 * - Minus zero is written as `0`.
 *
 * `encode` rejects every other value that would not be read back as the same value, and names its
 * path: numbers that are not finite, lone surrogates, `undefined` in arrays, functions, symbols,
 * big integers, sparse arrays and objects that are not plain.
 *
 * Depth and size are bounded: JSON.parse accepts a depth at which JSON.stringify overflows the
 * stack.
 */
import { ValueInvalid } from './errors.ts'

/** A value that JSON can represent. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json }

export interface JsonBounds {
  readonly depthMax: number
  /** The maximum length of the text in UTF-8 bytes. */
  readonly bytesMax: number
}

/** Used if the caller passes no bounds: 64 levels, 1 MiB. */
export const DEFAULT_BOUNDS: JsonBounds = { depthMax: 64, bytesMax: 1024 * 1024 }

/** Returns the canonical text of a value. Throws `ValueInvalid` if the value cannot round-trip. */
export function encode(value: unknown, bounds: JsonBounds = DEFAULT_BOUNDS): string {
  const budget = { bytes: bounds.bytesMax, depthMax: bounds.depthMax }
  const text = write(value, '$', 1, budget)
  // A UTF-16 unit takes at most three bytes, so most texts need not be counted.
  const mayBeLarge = text.length * 3 > bounds.bytesMax
  if (mayBeLarge && utf8Length(text) > bounds.bytesMax) throw tooLarge('$', bounds.bytesMax)
  return text
}

/** Encodes a string that is known to be short: no size check. */
export function encodeText(text: string): string {
  return quote(text, '$')
}

/** Parses a JSON text. Throws `ValueInvalid` if it is not JSON, too large or too deep. */
export function decode(text: string, bounds: JsonBounds = DEFAULT_BOUNDS): Json {
  if (utf8Length(text) > bounds.bytesMax) throw tooLarge('$', bounds.bytesMax)
  if (nestingOf(text) > bounds.depthMax) throw tooDeep('$', bounds.depthMax)
  try {
    return JSON.parse(text) as Json
  } catch {
    throw new ValueInvalid('$', 'is not valid JSON')
  }
}

/** Returns the length of a text in UTF-8 bytes. A lone surrogate counts as U+FFFD: three bytes. */
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
  /** Characters left. A text never has fewer bytes than characters. */
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
      throw new ValueInvalid(path, `is ${typeof value}, which JSON cannot represent`)
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
  // JSON would lose a named property of the array.
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

/** Texts that need no escaping: ASCII without control characters, quotes and backslashes. */
const PLAIN_TEXT = /^[ !#-[\]-~]*$/

function quote(text: string, path: string): string {
  if (PLAIN_TEXT.test(text)) return `"${text}"`
  if (/\p{Surrogate}/u.test(text)) throw new ValueInvalid(path, 'contains a lone surrogate')
  return JSON.stringify(text)
}

/** Rejects a huge value while it is being written, before it fills the memory. */
function spend(text: string, path: string, budget: Budget): string {
  budget.bytes -= text.length
  if (budget.bytes < 0) throw new ValueInvalid(path, 'makes the value too large')
  return text
}

/** Returns how deep the brackets of a text nest, without parsing it. */
export function nestingOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (let i = 0; i < text.length; i++) {
    // Compares code units and skips whole strings: a text may be many megabytes long.
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

/** Returns the index of the closing quote of the string that starts at `start`. */
function endOfString(text: string, start: number): number {
  let end = start
  do end = text.indexOf('"', end + 1)
  while (end >= 0 && isEscaped(text, end))
  return end < 0 ? text.length : end
}

/** Returns true if an odd number of backslashes precedes the character at `place`. */
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
