/**
 * Checks of the objects that callers pass: filters, selections and options. A field that is not
 * known is refused and never ignored: a misspelt condition would otherwise select everything, and a
 * misspelt option would silently keep its default. The message names the fields that are known.
 *
 * Fields are read by name and enumerated with their prototypes, so that an inherited field is
 * checked like an own one.
 */
import { record } from './checks.ts'
import { CommandInvalid, DefinitionInvalid } from './errors.ts'

/** Returns what is wrong with a value, or `undefined`. */
type FieldCheck = (value: never) => string | undefined

/** One check for every field of `T`; a field that is added to `T` does not compile without one. */
export type FieldChecks<T> = { readonly [Field in keyof Required<T>]: FieldCheck }

/** How a check reports, and what it makes of `undefined`. */
interface FieldRules {
  /** What the object is called in messages. */
  readonly what: string
  /** Put before the names of fields, such as `filter.`. */
  readonly prefix?: string
  /** The error for a field; `CommandInvalid` if absent. */
  readonly refuse?: (field: string, why: string) => Error
  /** Whether a field that is there, and `undefined`, is refused. For conditions it must be. */
  readonly refuseUndefined?: boolean
}

/** Throws for the first field that is not known or breaks its rule. */
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
      throw refuse(`${prefix}${field}`, `is not known; ${knownFieldsOf(checks)}`)
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
  const refuse = (field: string, why: string) => new DefinitionInvalid(what, `"${field}" ${why}`)
  checkFields(options, checks, { what: 'options', refuse })
}

function commandInvalid(field: string, why: string): CommandInvalid {
  return new CommandInvalid(field, why)
}

function knownFieldsOf(checks: object): string {
  const names = Object.keys(checks)
  return names.length === 0 ? 'there are no fields' : `known are ${names.join(', ')}`
}

/** Accepts any value: for a field that is checked where it is used. */
export function unchecked(): undefined {
  return undefined
}
