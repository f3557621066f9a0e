/**
 * JSON as text. Bodies are measured before they are parsed: a small text can make an object that
 * takes seconds to build, or nests so deep that it cannot be written again. Secrets are replaced in
 * the text itself, so that numbers and the order of members stay as they are stored.
 */

/** What a body may contain. */
export interface JsonTextBounds {
  readonly depthMax: number
  /** The largest number of members of all its objects. */
  readonly keysMax: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN = [0x5b, 0x7b]
const CLOSE = [0x5d, 0x7d]
const COLON = 0x3a
const MINUS = 0x2d

/** Returns why a text is refused, or undefined. Stops at the first fault. */
export function jsonFault(text: string, bounds: JsonTextBounds): string | undefined {
  let depth = 0
  let keys = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === QUOTE) i = endOfString(text, i)
    else if (OPEN.includes(unit)) {
      if (++depth > bounds.depthMax) return `is nested deeper than ${bounds.depthMax} levels`
    } else if (CLOSE.includes(unit)) depth--
    else if (unit === COLON) {
      if (++keys > bounds.keysMax) return `has more than ${bounds.keysMax} members`
    } else if (unit === MINUS || isDigit(unit)) {
      const end = endOfNumber(text, i)
      const number = text.slice(i, end)
      if (/^-?\d{16,}$/.test(number) && !Number.isSafeInteger(Number(number))) {
        return 'contains an integer that JavaScript cannot represent exactly; write it as a string'
      }
      i = end - 1
    }
  }
  return undefined
}

/** The text that replaces a value. */
export const REDACTED = '[redacted]'
const REPLACEMENT = `"${REDACTED}"`

/** Replaces the values of members with these names, at any depth. Names are in lower case. */
export function redactJson(text: string, names: ReadonlySet<string>): string {
  const parts: string[] = []
  let copied = 0
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) !== QUOTE) continue
    const end = endOfString(text, i)
    const colon = skipSpace(text, end + 1)
    if (text.charCodeAt(colon) !== COLON || !names.has(nameIn(text.slice(i, end + 1)))) {
      i = end
      continue
    }
    const start = skipSpace(text, colon + 1)
    const stop = endOfValue(text, start)
    parts.push(text.slice(copied, start), REPLACEMENT)
    copied = stop
    i = stop - 1
  }
  return parts.length === 0 ? text : parts.join('') + text.slice(copied)
}

/** The name of a member, which may be written with escapes. */
function nameIn(quoted: string): string {
  const plain = quoted.slice(1, -1)
  if (!plain.includes('\\')) return plain.toLowerCase()
  try {
    return String(JSON.parse(quoted)).toLowerCase()
  } catch {
    return plain.toLowerCase()
  }
}

function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start)
  if (first === QUOTE) return endOfString(text, start) + 1
  let depth = 0
  for (let i = start; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === QUOTE) i = endOfString(text, i)
    else if (OPEN.includes(unit)) depth++
    else if (CLOSE.includes(unit)) {
      if (depth === 0) return i
      if (--depth === 0) return i + 1
    } else if (depth === 0 && text[i] === ',') return i
  }
  return text.length
}

/** The place of the closing quote; the last place of the text if there is none. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === BACKSLASH) i++
    else if (unit === QUOTE) return i
  }
  return text.length - 1
}

function endOfNumber(text: string, start: number): number {
  let i = start + 1
  while (i < text.length && /[\d.eE+-]/.test(text[i] as string)) i++
  return i
}

function skipSpace(text: string, start: number): number {
  let i = start
  while (i < text.length && ' \n\r\t'.includes(text[i] as string)) i++
  return i
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39
}
