/**
 * Checks of the objects that callers pass: filters, selections and options. An unknown field is
 * rejected, never ignored: a misspelt condition would select everything, and a misspelt option
 * would silently keep its default. The message lists the known fields, and the hint names the one
 * that was probably meant.
 *
 * Fields are enumerated with their prototypes, so that an inherited field is checked too.
 */
import { record } from './checks.ts'
import { CommandInvalid, DefinitionInvalid } from './errors.ts'
import { brief } from './format.ts'

/** Returns what is wrong with a value, or `undefined`. */
type FieldCheck = (value: never) => string | undefined

/** One check for every field of `T`. A field without a check does not compile. */
export type FieldChecks<T> = { readonly [Field in keyof Required<T>]: FieldCheck }

/** How a check reports, and how it treats `undefined`. */
interface FieldRules {
  /** The name of the object in messages. */
  readonly what: string
  /** A prefix for the names of fields, such as `filter.`. */
  readonly prefix?: string
  /** Makes the error for a field; `CommandInvalid` if absent. */
  readonly refuse?: (field: string, why: string, hint?: string) => Error
  /** Whether a field that is present but `undefined` is rejected. Conditions must set this. */
  readonly refuseUndefined?: boolean
}

/** Throws for the first field that is unknown or breaks its rule. */
export function checkFields<T extends object>(
  value: T,
  checks: FieldChecks<T>,
  { what, prefix = '', refuseUndefined = false, refuse = commandInvalid }: FieldRules,
): void {
  const why = record(value)
  if (why !== undefined) throw refuse(what, why)
  for (const field in value) {
    const known = Object.hasOwn(checks, field)
    if (!known) {
      const why = `is not known; ${knownFieldsOf(checks)}`
      throw refuse(`${prefix}${field}`, why, hintFor(field, Object.keys(checks)))
    }
    const given = value[field as keyof T]
    if (given === undefined && !refuseUndefined) continue
    const broken = given === undefined ? 'must not be undefined' : findBrokenIn(field, given)
    if (broken !== undefined) throw refuse(`${prefix}${field}`, broken)
  }

  function findBrokenIn(field: string, given: unknown): string | undefined {
    return checks[field as keyof T](given as never)
  }
}

/** Throws `DefinitionInvalid` for the first option that is not known or breaks its rule. */
export function checkDefinition<T extends object>(
  what: string,
  options: T,
  checks: FieldChecks<T>,
): void {
  const refuse = (field: string, why: string, hint?: string) =>
    new DefinitionInvalid(what, `"${field}" ${why}`, hint)
  checkFields(options, checks, { what: 'options', refuse })
}

function commandInvalid(field: string, why: string, hint?: string): CommandInvalid {
  return new CommandInvalid(field, why, hint)
}

function hintFor(field: string, known: readonly string[]): string {
  const meant = nearest(field, known)
  return meant === undefined
    ? `Remove "${brief(field)}", or use a known field.`
    : `Did you mean "${meant}"?`
}

/** Returns the known field that a misspelt one probably means. */
function nearest(field: string, known: readonly string[]): string | undefined {
  const given = field.toLowerCase()
  const isLike = (name: string) => {
    const own = name.toLowerCase()
    if (given.length > 1 && (own.startsWith(given) || own.endsWith(given))) return true
    return given.slice(0, START) === own.slice(0, START) && given.length >= START
  }
  const max = given.length > START ? EDITS_MAX : 1
  return known.find(isLike) ?? known.find((name) => edits(given, name.toLowerCase(), max) <= max)
}

/** Names with the same first four letters are taken for the same, such as retries and retry. */
const START = 4
const EDITS_MAX = 2

/** Returns how many characters must be inserted, removed or replaced; stops above the maximum. */
function edits(from: string, to: string, max: number): number {
  if (Math.abs(from.length - to.length) > max) return max + 1
  if (from === '' || to === '') return from.length + to.length
  if (from[0] === to[0]) return edits(from.slice(1), to.slice(1), max)
  if (max === 0) return 1
  const [a, b] = [from.slice(1), to.slice(1)]
  return 1 + Math.min(edits(a, b, max - 1), edits(a, to, max - 1), edits(from, b, max - 1))
}

function knownFieldsOf(checks: object): string {
  const names = Object.keys(checks)
  return names.length === 0 ? 'there are no fields' : `known fields: ${names.join(', ')}`
}

/** Accepts any value, for a field that is checked where it is used. */
export function unchecked(): undefined {
  return undefined
}
