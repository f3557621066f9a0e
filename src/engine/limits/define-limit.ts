/** Limits that jobs of several types share: one definition, one number. */
import { name as checkName, flag, record, reservedName } from '../../core/checks.ts'
import { DefinitionInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { concurrency as checkConcurrency, gateName } from '../../core/limits/keys.ts'
import { checkVersion } from './rules.ts'

/** The options of `defineLimit`. */
export interface LimitOptions {
  /** The name of the limit; what runs under it is stored under this name. */
  readonly name: string
  /** How many jobs may run at once, over all processes; with `keyed`, for each key. */
  readonly concurrency: number
  /**
   * If true, jobs name a key with `by`, and each key has its own count.
   * @defaultValue `false`
   */
  readonly keyed?: boolean
  /**
   * Increase it with the number: of two releases that run at the same time, the higher one counts.
   * @defaultValue 1
   */
  readonly version?: number
}

/** A limit for all jobs that name it. */
export interface SharedLimit {
  readonly name: string
  readonly concurrency: number
  readonly version: number
  readonly keyed: false
  /** The name under which the store keeps it. */
  readonly limit: string
}

/** A limit for the jobs that name it with the same key. */
export interface KeyedLimit extends Omit<SharedLimit, 'keyed'> {
  readonly keyed: true
  /**
   * The limit under the key that the function returns for the input of a job. The compiler cannot
   * infer the input here, so the function has to name its type. `{ limit, key }` is the same and
   * needs no type.
   */
  by<Input>(key: (input: Input) => string): LimitBy<Input>
}

/** A keyed limit, with the function that returns the key. */
export interface LimitBy<Input> {
  readonly limit: KeyedLimit
  readonly key: (input: Input) => string
}

const OPTIONS: FieldChecks<LimitOptions> = {
  name: unchecked,
  concurrency: unchecked,
  keyed: flag,
  version: unchecked,
}

/** Defines a limit for jobs that name it with a key. */
export function defineLimit(options: LimitOptions & { readonly keyed: true }): KeyedLimit
/** Defines a limit for all jobs that name it. */
export function defineLimit(options: LimitOptions & { readonly keyed?: false }): SharedLimit
/** Defines a limit that jobs of several types can share. */
export function defineLimit(options: LimitOptions): SharedLimit | KeyedLimit {
  const why = record(options)
  if (why !== undefined) throw new DefinitionInvalid('a limit', why)
  const { name: own } = options
  const what = checkName(own) === undefined ? `limit "${own}"` : 'a limit without a name'
  const refuse = (field: string, fault: string) => {
    return new DefinitionInvalid(what, `${field}: ${fault}`)
  }
  checkFields(options, OPTIONS, { what: 'limit', refuse })
  const { name, concurrency, keyed = false, version = 1 } = options
  const named = checkName(name) ?? reservedName(name)
  if (named !== undefined) throw refuse('name', named)
  const counted = checkConcurrency(concurrency)
  if (counted !== undefined) throw refuse('concurrency', counted)
  checkVersion(version, refuse)
  const base = { name, concurrency, version, limit: gateName('shared', name) }
  if (!keyed) return { ...base, keyed }
  const limit: KeyedLimit = { ...base, keyed, by: (key) => ({ limit, key }) }
  return limit
}
