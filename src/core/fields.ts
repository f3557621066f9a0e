/**
 * Checks of the objects that callers pass: filters, selections and options. An unknown field is
 * rejected, never ignored: a misspelt condition would select everything, and a misspelt option
 * would silently keep its default. The message lists the known fields.
 *
 * Fields are enumerated with their prototypes, so that an inherited field is checked too.
 */
import { record } from './checks.ts'
import { CommandInvalid, DefinitionInvalid } from './errors.ts'

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
  readonly refuse?: (field: string, why: string) => Error
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
  return names.length === 0 ? 'there are no fields' : `known fields: ${names.join(', ')}`
}

/** Accepts any value, for a field that is checked where it is used. */
export function unchecked(): undefined {
  return undefined
}
