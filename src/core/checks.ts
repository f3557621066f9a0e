/**
 * Checks of single values in commands. Callers choose names, keys and texts freely, so each is
 * checked before it can reach a fact. Both databases can store every accepted value and return it
 * unchanged.
 *
 * A check returns what is wrong as a text, or `undefined` if the value is valid. The text shows a
 * rejected number or word. Of names, texts and objects it shows only the length or the type: they
 * may be secrets.
 */
import { CommandInvalid } from './errors.ts'
import { shown, typeName } from './format.ts'

/** The maximum length of a name, key, tag or operator, in UTF-16 units. */
export const NAME_MAX = 255
/** The maximum length of an operator's note, in UTF-16 units. */
export const NOTE_MAX = 2000
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export type Rule = readonly [field: string, why: string | undefined]

/** Returns an error for the first field that breaks its rule. */
export function findBroken(rules: readonly Rule[]): CommandInvalid | undefined {
  for (const [field, why] of rules) if (why !== undefined) return new CommandInvalid(field, why)
  return undefined
}

export function isBroken(why: string | undefined): why is string {
  return why !== undefined
}

export function optional<T>(
  value: T | undefined,
  check: (value: T) => string | undefined,
): string | undefined {
  return value === undefined ? undefined : check(value)
}

/** Most names are plain ASCII. This pattern accepts them without the slower Unicode checks. */
const PLAIN_NAME = new RegExp(`^[!-~]{1,${NAME_MAX}}$`)

/** Checks a name: one line, at most `NAME_MAX` long, not blank. */
export function name(value: string | undefined): string | undefined {
  if (typeof value === 'string' && PLAIN_NAME.test(value)) return undefined
  const why = text(value, NAME_MAX)
  return (
    why ?? (/\p{Cc}/u.test(value as string) ? 'must not contain control characters' : undefined)
  )
}

/** Checks a text: at most `max` long, not blank. */
export function text(value: string | undefined, max: number): string | undefined {
  if (value === undefined) return 'must not be empty'
  if (typeof value !== 'string') return `must be a string, not ${typeName(value)}`
  if (value.trim() === '') return 'must not be empty'
  if (value.length > max) return `must not be longer than ${max} characters; it has ${value.length}`
  // PostgreSQL rejects NUL in a text. Neither database keeps a lone surrogate unchanged.
  return /\p{Surrogate}|\0/u.test(value) ? 'must be well-formed Unicode without NUL' : undefined
}

/** Checks a UUID in lower case, of any version. */
export function uuid(value: string): string | undefined {
  const isUuid = typeof value === 'string' && UUID.test(value)
  return isUuid ? undefined : `must be a UUID in lower case, not ${shown(value)}`
}

/** Checks a time in milliseconds since the epoch. */
export function time(value: number): string | undefined {
  return count(value, 0, Number.MAX_SAFE_INTEGER)
}

/** Checks a whole number from `min` to `max`, both included. */
export function count(value: number, min: number, max: number): string | undefined {
  // Minus zero would be read back as zero.
  const whole = Number.isSafeInteger(value) && !Object.is(value, -0)
  const fits = whole && value >= min && value <= max
  return fits ? undefined : `must be a whole number from ${min} to ${max}, not ${shown(value)}`
}

/** Checks a number from `min` up to, but not including, `max`. */
export function within(value: number, min: number, max: number): string | undefined {
  return typeof value === 'number' && value >= min && value < max
    ? undefined
    : `must be at least ${min} and less than ${max}, not ${shown(value)}`
}

export function oneOf(value: string, words: readonly string[]): string | undefined {
  return words.includes(value)
    ? undefined
    : `must be one of ${words.join(', ')}, not ${shown(value)}`
}

export function flag(value: boolean): string | undefined {
  return typeof value === 'boolean' ? undefined : `must be true or false, not ${shown(value)}`
}

/** Checks the message of an error: a text that may be blank. */
export function message(value: string, max: number): string | undefined {
  if (typeof value !== 'string') return `must be a string, not ${typeName(value)}`
  return value === '' ? undefined : text(`.${value}`, max + 1)
}

export function callable(value: unknown): string | undefined {
  return typeof value === 'function' ? undefined : `must be a function, not ${typeName(value)}`
}

/** Accepts signals of other realms too, which `instanceof` would reject. */
export function abortSignal(value: { readonly aborted: boolean }): string | undefined {
  const isSignal = typeof value === 'object' && typeof value?.aborted === 'boolean'
  return isSignal ? undefined : `must be an AbortSignal, not ${typeName(value)}`
}

/** Checks a list of at most `max` values, each with `check`. */
export function listOf<T>(
  values: readonly T[],
  max: number,
  check: (value: T) => string | undefined,
): string | undefined {
  if (!Array.isArray(values)) return `must be an array, not ${typeName(values)}`
  if (values.length > max) {
    return `must not have more than ${max} entries; it has ${values.length}`
  }
  // `Array.from` passes holes to the check as `undefined`; `map` would skip them.
  return Array.from(values, (value: T) => check(value)).find(isBroken)
}

export function record(value: object): string | undefined {
  const plain = typeof value === 'object' && value !== null && !Array.isArray(value)
  return plain ? undefined : `must be an object, not ${typeName(value)}`
}

/** The beginning of the names that Pawl itself uses in the outbox, such as those of notices. */
const RESERVED = 'pawl.'

/** Checks the name of a job type, a queue or an effect against the names that Pawl uses. */
export function reservedName(name: string): string | undefined {
  return name.startsWith(RESERVED) ? `must not begin with "${RESERVED}"` : undefined
}
