/**
 * What any command may hold. Names, keys and texts come from anybody, so each is bounded and
 * well-formed before it can reach a fact: whatever is accepted here can be stored and read back as
 * it was, in both databases. A check answers with what is wrong, or with nothing.
 */
import { CommandInvalid } from './errors.ts'

/** The longest name, key, tag or operator, in UTF-16 units. */
export const NAME_MAX = 255
/** The longest note of an operator. */
export const NOTE_MAX = 2000
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A field, and what is wrong with it, if anything. */
export type Rule = readonly [field: string, why: string | undefined]

/** The first field that breaks its rule. */
export function findBroken(rules: readonly Rule[]): CommandInvalid | undefined {
  for (const [field, why] of rules) if (why !== undefined) return new CommandInvalid(field, why)
  return undefined
}

/** Whether a check found something wrong. */
export function isBroken(why: string | undefined): why is string {
  return why !== undefined
}

/** Checks a value that may be absent. */
export function optional<T>(
  value: T | undefined,
  check: (value: T) => string | undefined,
): string | undefined {
  return value === undefined ? undefined : check(value)
}

/** Most names are of plain ASCII, and then need no tables of Unicode to be judged. */
const PLAIN_NAME = new RegExp(`^[!-~]{1,${NAME_MAX}}$`)

/** A name: one line, bounded, and not blank. */
export function name(value: string | undefined): string | undefined {
  if (typeof value === 'string' && PLAIN_NAME.test(value)) return undefined
  const why = text(value, NAME_MAX)
  return (
    why ?? (/\p{Cc}/u.test(value as string) ? 'must not contain control characters' : undefined)
  )
}

/** A text: bounded, and not blank. */
export function text(value: string | undefined, max: number): string | undefined {
  if (value === undefined) return 'must not be empty'
  if (typeof value !== 'string') return 'must be a text'
  if (value.trim() === '') return 'must not be empty'
  if (value.length > max) return `must not be longer than ${max} characters`
  // PostgreSQL stores no NUL in a text, and no database a lone surrogate.
  return /\p{Surrogate}|\0/u.test(value) ? 'must be well-formed Unicode without NUL' : undefined
}

/** A UUID in lower case, of any version. */
export function uuid(value: string): string | undefined {
  const isUuid = typeof value === 'string' && UUID.test(value)
  return isUuid ? undefined : 'must be a UUID in lower case'
}

/** Milliseconds since the epoch. */
export function time(value: number): string | undefined {
  return count(value, 0, Number.MAX_SAFE_INTEGER)
}

/** A whole number within bounds, both included. */
export function count(value: number, min: number, max: number): string | undefined {
  // Minus zero would be read back as zero.
  const whole = Number.isSafeInteger(value) && !Object.is(value, -0)
  const fits = whole && value >= min && value <= max
  return fits ? undefined : `must be a whole number from ${min} to ${max}`
}

/** A number from `min` to below `max`. */
export function within(value: number, min: number, max: number): string | undefined {
  return typeof value === 'number' && value >= min && value < max
    ? undefined
    : `must be from ${min} to below ${max}`
}

/** One of a list of words. */
export function oneOf(value: string, words: readonly string[]): string | undefined {
  return words.includes(value) ? undefined : `must be one of ${words.join(', ')}`
}

/** Yes or no. */
export function flag(value: boolean): string | undefined {
  return typeof value === 'boolean' ? undefined : 'must be true or false'
}

/** A text that may be blank: what an error said. */
export function message(value: string, max: number): string | undefined {
  if (typeof value !== 'string') return 'must be a text'
  return value === '' ? undefined : text(`.${value}`, max + 1)
}

/** Something that can be called. */
export function callable(value: unknown): string | undefined {
  return typeof value === 'function' ? undefined : 'must be a function'
}

/** A signal, of this realm or of another. */
export function abortSignal(value: { readonly aborted: boolean }): string | undefined {
  const isSignal = typeof value === 'object' && typeof value?.aborted === 'boolean'
  return isSignal ? undefined : 'must be an AbortSignal'
}

/** A list of at most `max` values, each of which passes a check. */
export function listOf<T>(
  values: readonly T[],
  max: number,
  check: (value: T) => string | undefined,
): string | undefined {
  if (!Array.isArray(values)) return 'must be a list'
  if (values.length > max) return `must not be more than ${max}`
  // A hole is undefined here, and not passed over as by `map`.
  return Array.from(values, (value: T) => check(value)).find(isBroken)
}

/** A plain object. */
export function record(value: object): string | undefined {
  const plain = typeof value === 'object' && value !== null && !Array.isArray(value)
  return plain ? undefined : 'must be an object'
}
