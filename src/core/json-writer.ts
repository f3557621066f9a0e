/**
 * Writes canonical JSON; `canonical-json.ts` has its specification. An extension adds forms for
 * values that JSON does not have; `values.ts` has the only one.
 */
import type { JsonBounds } from './canonical-json.ts'
import { ValueInvalid } from './errors.ts'

/** Returns the text of a value. Throws `ValueInvalid` if neither JSON nor the extension has it. */
export function encodeWith(
  extension: Extension | undefined,
  value: unknown,
  bounds: JsonBounds,
): string {
  const budget: WriteBudget = { bytes: bounds.bytesMax, depthMax: bounds.depthMax, extension }
  const text = write(value, '$', 1, budget)
  // A UTF-16 unit takes at most three bytes, so most texts need not be counted.
  const mayBeLarge = text.length * 3 > bounds.bytesMax
  if (mayBeLarge && utf8Length(text) > bounds.bytesMax) throw tooLarge('$', bounds.bytesMax)
  return text
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

/** What is left for a value while it is written. */
export interface WriteBudget {
  /** Characters left. A text never has fewer bytes than characters. */
  bytes: number
  readonly depthMax: number
  readonly extension: Extension | undefined
}

/** Writes values that JSON does not have. */
export interface Extension {
  /** Throws `ValueInvalid` if the value has no form. */
  readonly write: (value: unknown, path: string, depth: number, budget: WriteBudget) => string
  /** Whether an object with this key has to be wrapped, because it would be read as a form. */
  readonly isReserved: (key: string) => boolean
  /** The key of the wrapper. */
  readonly wrapper: string
}

/** Writes one value of a larger one. `depth` is 1 for the whole value. */
export function write(value: unknown, path: string, depth: number, budget: WriteBudget): string {
  switch (typeof value) {
    case 'string':
      return spend(quote(value, path), path, budget)
    case 'boolean':
      return spend(String(value), path, budget)
    case 'number':
      if (Number.isFinite(value)) return spend(JSON.stringify(value), path, budget)
      return writeOther(value, path, depth, budget, 'is not a finite number')
    case 'object':
      if (value === null) return spend('null', path, budget)
      if (depth > budget.depthMax) throw tooDeep(path, budget.depthMax)
      return Array.isArray(value)
        ? writeArray(value, path, depth, budget)
        : writeObject(value, path, depth, budget)
    default: {
      const why = `is ${typeof value}, which JSON cannot represent`
      return writeOther(value, path, depth, budget, why)
    }
  }
}

function writeOther(
  value: unknown,
  path: string,
  depth: number,
  budget: WriteBudget,
  why: string,
): string {
  if (budget.extension === undefined) throw new ValueInvalid(path, why)
  return budget.extension.write(value, path, depth, budget)
}

function writeArray(
  values: readonly unknown[],
  path: string,
  depth: number,
  budget: WriteBudget,
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

function writeObject(value: object, path: string, depth: number, budget: WriteBudget): string {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    return writeOther(value, path, depth, budget, 'is not a plain object')
  }
  return writeMembers(value, path, depth, budget)
}

/** Writes the members of an object, whatever its prototype is. */
export function writeMembers(
  value: object,
  path: string,
  depth: number,
  budget: WriteBudget,
): string {
  if (Object.getOwnPropertySymbols(value).length > 0) {
    throw new ValueInvalid(path, 'has a symbol as a key')
  }
  const keys = Object.keys(value).sort()
  const { extension } = budget
  if (extension === undefined || !keys.some(extension.isReserved)) {
    return writeKeys(value, keys, path, depth, budget)
  }
  if (depth >= budget.depthMax) throw tooDeep(path, budget.depthMax)
  const name = spend(`{${quote(extension.wrapper, path)}:}`, path, budget).slice(0, -1)
  return `${name}${writeKeys(value, keys, path, depth + 1, budget)}}`
}

function writeKeys(
  value: object,
  keys: readonly string[],
  path: string,
  depth: number,
  budget: WriteBudget,
): string {
  let text = ''
  for (const key of keys) {
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

/** Throws `ValueInvalid` for a lone surrogate. */
export function quote(text: string, path: string): string {
  if (PLAIN_TEXT.test(text)) return `"${text}"`
  if (/\p{Surrogate}/u.test(text)) throw new ValueInvalid(path, 'contains a lone surrogate')
  return JSON.stringify(text)
}

/** Rejects a huge value while it is being written, before it fills the memory. */
export function spend(text: string, path: string, budget: WriteBudget): string {
  budget.bytes -= text.length
  if (budget.bytes < 0) throw new ValueInvalid(path, 'makes the value too large')
  return text
}

function isPairAt(text: string, i: number): boolean {
  return (text.codePointAt(i) as number) > 0xffff
}

/** The error for a text that is too long. */
export function tooLarge(path: string, max: number): ValueInvalid {
  return new ValueInvalid(path, `is larger than ${max} bytes`)
}

/** The error for a value with too many levels. */
export function tooDeep(path: string, max: number): ValueInvalid {
  return new ValueInvalid(path, `is nested deeper than ${max} levels`)
}
