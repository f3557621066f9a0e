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
import { encodeWith, quote, tooDeep, tooLarge, utf8Length } from './json-writer.ts'

export { utf8Length }

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
  return encodeWith(undefined, value, bounds)
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
