/**
 * The limits and throttles of a job type: what `defineJob` accepts, what is declared to the store,
 * and the keys of a job, which are computed from its checked input when it is enqueued.
 */
import { callable, name as checkName, count, record } from '../../core/checks.ts'
import { type Duration, toMs } from '../../core/durations.ts'
import { DefinitionInvalid, messageOf } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import {
  concurrency as checkConcurrency,
  GATE_MAX,
  gateName,
  LIMIT_KEYS_MAX,
  type LimitKey,
  UNITS_MAX,
  writeKeys,
} from '../../core/limits/keys.ts'
import type { LimitDeclaration } from '../../stores/contract/limits.ts'
import { LimitKeyInvalid } from '../errors.ts'
import type { LimitBy, SharedLimit } from './define-limit.ts'
import { checkVersion } from './rules.ts'

/** How many jobs of a type may run, over all processes. */
export interface TypeLimit {
  readonly limit: number
  /**
   * Increase it with the number: of two releases that run at the same time, the higher one counts.
   * @defaultValue 1
   */
  readonly version?: number
}

/** How many jobs of a type may run for each key, over all processes. */
export interface KeyLimit<Input> {
  /** Names the limit among those of the job type. */
  readonly name: string
  /** Returns the key for the input of a job. Jobs with the same key count together. */
  readonly key: (input: Input) => string
  /**
   * How many may run; with a function, the number of the newest job that was looked at counts for
   * its key.
   */
  readonly limit: number | ((input: Input) => number)
  /**
   * Increase it with the number: of two releases that run at the same time, the higher one counts.
   * @defaultValue 1
   */
  readonly version?: number
}

/** One limit of a job type. */
export type ConcurrencyLimit<Input> =
  | number
  | TypeLimit
  | KeyLimit<Input>
  | SharedLimit
  | LimitBy<Input>

/** How many units may start in a period, over all processes. */
export interface ThrottleOptions<Input, Name extends string = string> {
  /** Names the throttle among those of the job type. */
  readonly name: Name
  /** In every window of `period`, at most so many units start. */
  readonly limit: number
  readonly period: Duration
  /**
   * How many units may start at once. A larger burst costs sustained rate: `limit - burst + 1`
   * units can start in a period without a pause.
   * @defaultValue a tenth of the limit, at least 1
   */
  readonly burst?: number
  /**
   * Returns the key for the input of a job; each key has a throttle of its own.
   * @defaultValue one throttle for all jobs of the type
   */
  readonly key?: (input: Input) => string
  /**
   * How many units the start of a job takes.
   * @defaultValue 1
   */
  readonly units?: number | ((input: Input) => number)
  /**
   * Increase it with the numbers: of two releases that run at the same time, the higher one counts.
   * @defaultValue 1
   */
  readonly version?: number
}

/** One value or several. */
export type OneOrMore<T> = T | readonly T[]

/** The limits of a job type. */
export interface JobLimits {
  readonly declarations: readonly LimitDeclaration[]
  /** The names of its throttles. */
  readonly throttles: readonly string[]
  /** The keys of every job; `undefined` if they depend on the input. */
  readonly fixedKeys: readonly LimitKey[] | undefined
  /** The keys of a job; throws `LimitKeyInvalid` if a function throws or returns no key. */
  keysOf(input: unknown): readonly LimitKey[]
  /** The gate of a throttle for the input of a job; `undefined` if the type has none. */
  throttleGate(name: string, keys: readonly LimitKey[]): string | undefined
}

type KeyFunction = (input: unknown) => LimitKey

/** One limit, throttle or group: what is declared, and the key of a job. */
export interface Part {
  readonly declaration: LimitDeclaration
  readonly key: KeyFunction
  /** The key if it is the same for every input. */
  readonly fixed?: LimitKey
}

const refuse = (field: string, why: string) => new DefinitionInvalid(field, why)

/** The limits of a job type; `undefined` if it has none. */
export function jobLimitsOf(
  type: string,
  concurrency: OneOrMore<ConcurrencyLimit<never>> | undefined,
  throttle: OneOrMore<ThrottleOptions<never>> | undefined,
  group?: Part,
): JobLimits | undefined {
  const limits = listOf(concurrency).map((one) => limitPart(type, one))
  const throttles = listOf(throttle).map((one) =>
    throttlePart(type, one as ThrottleOptions<unknown>),
  )
  const parts = [...limits, ...throttles, ...(group === undefined ? [] : [group])]
  if (parts.length === 0) return undefined
  if (parts.length > LIMIT_KEYS_MAX) {
    throw refuse(
      'concurrency',
      `must not have more than ${LIMIT_KEYS_MAX} limits, throttles and groups`,
    )
  }
  const names = parts.map(({ declaration }) => declaration.name)
  if (new Set(names).size < names.length) {
    throw refuse('concurrency', 'must not name a limit twice')
  }
  const shared = new SharedKeys()
  const fixed = parts.flatMap((part) => part.fixed ?? [])
  return {
    fixedKeys: fixed.length === parts.length ? shared.keysOf(fixed) : undefined,
    declarations: parts.map(({ declaration }) => declaration),
    throttles: listOf(throttle).map(({ name }) => name),
    keysOf: (input) => shared.keysOf(parts.map(({ key }) => key(input))),
    throttleGate(name, keys) {
      const limit = gateName('rate', type, name)
      return keys.find(({ gate }) => gate === limit || gate.startsWith(`${limit}/`))?.gate
    },
  }
}

function listOf<T>(value: OneOrMore<T> | undefined): readonly T[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value as T]
}

/** Returns the same list for the same keys, so that a store recognises jobs that are alike. */
class SharedKeys {
  readonly #known = new Map<string, readonly LimitKey[]>()

  keysOf(keys: readonly LimitKey[]): readonly LimitKey[] {
    const text = writeKeys(keys) ?? ''
    const known = this.#known.get(text)
    if (known !== undefined) return known
    if (this.#known.size >= SHARED_MAX) this.#known.clear()
    this.#known.set(text, keys)
    return keys
  }
}

const SHARED_MAX = 1000

function limitPart(type: string, option: ConcurrencyLimit<never>): Part {
  if (typeof option === 'number') return typeLimit(type, { limit: option })
  const why = record(option)
  if (why !== undefined) throw refuse('concurrency', why)
  if ('keyed' in option) return sharedPart(option)
  if (typeof option.limit === 'object') return keyedPart(type, option as LimitBy<unknown>)
  return 'key' in option || 'name' in option
    ? keyLimit(type, option as KeyLimit<unknown>)
    : typeLimit(type, option)
}

const TYPE_LIMIT: FieldChecks<TypeLimit> = { limit: unchecked, version: unchecked }

function typeLimit(type: string, option: TypeLimit): Part {
  checkFields(option, TYPE_LIMIT, { what: 'concurrency', refuse })
  const name = gateName('type', type)
  const { limit: max, version = 1 } = option
  checkNumbers(max, version)
  return fixedPart({ name, max, version })
}

/** A limit whose key does not depend on the input. */
function fixedPart(declaration: LimitDeclaration): Part {
  const fixed = { gate: declaration.name }
  return { declaration, key: () => fixed, fixed }
}

const KEY_LIMIT: FieldChecks<KeyLimit<unknown>> = {
  name: checkName,
  key: callable,
  limit: unchecked,
  version: unchecked,
}

function keyLimit(type: string, option: KeyLimit<unknown>): Part {
  checkFields(option, KEY_LIMIT, { what: 'concurrency', refuse })
  const { name, key, limit, version = 1 } = option
  checkOwnName(name)
  if (typeof key !== 'function') throw refuse('key', 'must be a function of the input')
  const full = gateName('job', type, name)
  const isFunction = typeof limit === 'function'
  if (!isFunction) checkNumbers(limit, version)
  else checkVersion(version, refuse)
  return {
    declaration: { name: full, max: isFunction ? null : limit, version },
    key: (input) => {
      const of = { type, limit: name }
      const gate = gateWith('job', [type, name], evaluate(of, 'key', key, input), of)
      if (!isFunction) return { gate }
      const max = evaluate(of, 'limit', limit, input)
      const why = checkConcurrency(max)
      if (why !== undefined) throw new LimitKeyInvalid(type, name, `its limit ${why}`)
      return { gate, max }
    },
  }
}

function sharedPart(limit: SharedLimit): Part {
  if (limit.keyed !== false) {
    throw refuse('concurrency', `must name a key of the limit ${limit.name}: use its \`by\``)
  }
  const { limit: name, concurrency: max, version } = limit
  return fixedPart({ name, max, version })
}

const LIMIT_BY: FieldChecks<LimitBy<unknown>> = { limit: record, key: callable }

function keyedPart(type: string, option: LimitBy<unknown>): Part {
  checkFields(option, LIMIT_BY, { what: 'concurrency', refuse })
  const { limit, key } = option
  if (limit.keyed !== true) {
    throw refuse('limit', 'must be what defineLimit returns for `keyed: true`')
  }
  if (typeof key !== 'function') throw refuse('key', 'must be a function of the input')
  const { limit: name, name: own, concurrency: max, version } = limit
  const of = { type, limit: own }
  return {
    declaration: { name, max, version },
    key: (input) => ({ gate: gateWith('shared', [own], evaluate(of, 'key', key, input), of) }),
  }
}

const THROTTLE: FieldChecks<ThrottleOptions<unknown>> = {
  name: checkName,
  limit: unchecked,
  period: unchecked,
  burst: unchecked,
  key: callable,
  units: unchecked,
  version: unchecked,
}

function throttlePart(type: string, option: ThrottleOptions<unknown>): Part {
  const shape = record(option)
  if (shape !== undefined) throw refuse('throttle', shape)
  checkFields(option, THROTTLE, { what: 'throttle', refuse })
  const { name, limit, period, burst, key, units = 1, version = 1 } = option
  checkOwnName(name)
  checkVersion(version, refuse)
  const periodMs = toMs(period, 'period', DefinitionInvalid)
  const rules = [
    ['limit', count(limit, 1, UNITS_MAX)],
    ['period', periodMs > 0 ? undefined : 'must be longer than 0 ms'],
    ['burst', burst === undefined ? undefined : count(burst, 1, limit)],
    ['units', typeof units === 'function' ? undefined : count(units, 1, limit)],
  ] as const
  for (const [field, why] of rules) if (why !== undefined) throw refuse(`throttle ${field}`, why)
  const full = gateName('rate', type, name)
  const of = { type, limit: name }
  const keyOf = (gate: string, taken: number) => (taken === 1 ? { gate } : { gate, units: taken })
  return {
    ...(key === undefined && typeof units === 'number' && { fixed: keyOf(full, units) }),
    declaration: {
      name: full,
      max: limit,
      periodMs,
      version,
      ...(burst !== undefined && { burst }),
    },
    key: (input) => {
      const gate =
        key === undefined
          ? full
          : gateWith('rate', [type, name], evaluate(of, 'key', key, input), of)
      const taken = typeof units === 'function' ? evaluate(of, 'units', units, input) : units
      const why = count(taken, 1, limit)
      if (why !== undefined) throw new LimitKeyInvalid(type, name, `its units: ${why}`)
      return keyOf(gate, taken)
    },
  }
}

function checkOwnName(name: string): void {
  const why = checkName(name)
  if (why !== undefined) throw refuse('name', why)
}

function checkNumbers(max: number, version: number): void {
  const why = checkConcurrency(max)
  if (why !== undefined) throw refuse('concurrency', why)
  checkVersion(version, refuse)
}

interface OfLimit {
  readonly type: string
  readonly limit: string
}

/** Calls a function of the user. */
export function evaluate<T>(
  { type, limit }: OfLimit,
  what: string,
  work: (input: unknown) => T,
  input: unknown,
): T {
  try {
    return work(input)
  } catch (error) {
    throw new LimitKeyInvalid(type, limit, `its function \`${what}\` threw: ${messageOf(error)}`)
  }
}

/** Returns the gate of a key; throws `LimitKeyInvalid` if the key cannot be one. */
export function gateWith(
  kind: 'job' | 'shared' | 'rate' | 'strict' | 'group',
  names: readonly string[],
  key: string,
  { type, limit }: OfLimit,
): string {
  const why = checkName(key)
  if (why !== undefined) throw new LimitKeyInvalid(type, limit, `its key ${why}`)
  const gate = gateName(kind, ...names, key)
  if (gate.length <= GATE_MAX) return gate
  throw new LimitKeyInvalid(type, limit, `its key makes a name of over ${GATE_MAX} characters`)
}
