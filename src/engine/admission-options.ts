/**
 * The options `rateLimit`, `debounce` and `singleton` of job types. Their keys are functions of the
 * checked input, which run when a job is enqueued.
 */
import {
  type Admission,
  type DebounceRule,
  PERIOD_MAX_MS,
  RATE_MAX,
  type RateRule,
  SINGLETON_MODES,
  type SingletonMode,
} from '../core/admission.ts'
import { callable, name as checkName, count, oneOf } from '../core/checks.ts'
import { type Duration, msOf } from '../core/durations.ts'
import { CommandInvalid, DefinitionInvalid } from '../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { shown } from '../core/format.ts'
import { KeyFunctionFailed } from './errors.ts'

/** Returns the key of an input; jobs of one type with the same key are counted together. */
type KeyOf<Input> = (input: Input) => string

/** At most `limit` jobs are accepted in every window of `period`. */
export interface RateLimitOptions<Input = unknown> {
  /** How many jobs are accepted; `enqueue` throws `RateLimited` for a further one. */
  readonly limit: number
  /** The length of every window, by the clock of the store. */
  readonly period: Duration
  /**
   * The key by which jobs are counted.
   * @defaultValue all jobs of the type together
   */
  readonly key?: KeyOf<Input>
}

/** Several enqueues within a short time become one job, with the last input. */
export interface DebounceOptions<Input = unknown> {
  /** How long the job waits for a further enqueue. */
  readonly period: Duration
  /**
   * How long it waits at most, from the first enqueue.
   * @defaultValue 10 times `period`
   */
  readonly timeout?: Duration
  /**
   * The key of jobs that become one.
   * @defaultValue all jobs of the type together
   */
  readonly key?: KeyOf<Input>
}

/** At most one job of a key has not ended. Parked jobs do not count. */
export interface SingletonOptions<Input = unknown> {
  /**
   * What to do with a further one: return the existing job ('skip'), ask the existing job to stop
   * and start the new one after it ('cancel'), or let one run and one wait, with the last input
   * ('latest').
   */
  readonly mode: SingletonMode
  /**
   * The key of which there is one job.
   * @defaultValue one job of the type
   */
  readonly key?: KeyOf<Input>
}

/** The options together. */
export interface AdmissionOptions<Input = unknown> {
  /**
   * How many jobs are accepted in every window of time; a further enqueue throws `RateLimited`.
   * @defaultValue no limit
   */
  readonly rateLimit?: RateLimitOptions<Input>
  /**
   * Several enqueues within a short time become one job, with the last input. Not together with
   * `singleton`.
   * @defaultValue none
   */
  readonly debounce?: DebounceOptions<Input>
  /**
   * At most one job of a key has not ended. Not together with `debounce`.
   * @defaultValue none
   */
  readonly singleton?: SingletonOptions<Input>
}

/** The rules of a job type. */
export interface AdmissionRules {
  readonly rate?: RateRule & { readonly key: KeyOf<unknown> }
  readonly debounce?: DebounceRule & { readonly key: KeyOf<unknown> }
  readonly singleton?: { readonly mode: SingletonMode; readonly key: KeyOf<unknown> }
}

/** The key of jobs whose type has no function for it. */
const COMMON_KEY = '*'
const TIMEOUT_PERIODS = 10

const RATE: FieldChecks<RateLimitOptions> = {
  limit: (value) => count(value, 1, RATE_MAX),
  period: unchecked,
  key: callable,
}
const DEBOUNCE: FieldChecks<DebounceOptions> = {
  period: unchecked,
  timeout: unchecked,
  key: callable,
}
const SINGLETON: FieldChecks<SingletonOptions> = {
  mode: (value) => oneOf(value, SINGLETON_MODES),
  key: callable,
}

/** Checks the options of a job type; throws `DefinitionInvalid`. */
export function admissionRulesOf(options: AdmissionOptions<never>): AdmissionRules | undefined {
  const { rateLimit, debounce, singleton } = options as AdmissionOptions
  if (debounce !== undefined && singleton !== undefined) {
    throw new DefinitionInvalid('debounce', 'must not be given together with singleton')
  }
  const rules = {
    ...(rateLimit !== undefined && { rate: rateOf(rateLimit) }),
    ...(debounce !== undefined && { debounce: debounceOf(debounce) }),
    ...(singleton !== undefined && { singleton: singletonOf(singleton) }),
  }
  return Object.keys(rules).length === 0 ? undefined : rules
}

function check<T extends object>(what: string, options: T, checks: FieldChecks<T>): void {
  const refuse = (field: string, why: string, hint?: string) =>
    new DefinitionInvalid(field, why, hint)
  checkFields(options, checks, { what, prefix: `${what}.`, refuse })
}

function rateOf(options: RateLimitOptions) {
  check('rateLimit', options, RATE)
  const { limit, period, key = common } = options
  const why = count(limit, 1, RATE_MAX)
  if (why !== undefined) throw new DefinitionInvalid('rateLimit.limit', why)
  return { limit, periodMs: periodOf('rateLimit.period', period), key }
}

function debounceOf(options: DebounceOptions) {
  check('debounce', options, DEBOUNCE)
  const { period, timeout, key = common } = options
  const periodMs = periodOf('debounce.period', period)
  const most = Math.min(periodMs * TIMEOUT_PERIODS, PERIOD_MAX_MS)
  const timeoutMs = timeout === undefined ? most : periodOf('debounce.timeout', timeout)
  if (timeoutMs < periodMs) {
    throw new DefinitionInvalid('debounce.timeout', 'must not be shorter than period')
  }
  return { periodMs, timeoutMs, key }
}

function singletonOf(options: SingletonOptions) {
  check('singleton', options, SINGLETON)
  const { mode, key = common } = options
  const why = oneOf(mode, SINGLETON_MODES)
  if (why !== undefined) throw new DefinitionInvalid('singleton.mode', why)
  return { mode, key }
}

function common(): string {
  return COMMON_KEY
}

function periodOf(field: string, period: Duration): number {
  const ms = msOf(period)
  if (ms >= 1 && ms <= PERIOD_MAX_MS) return Math.round(ms)
  const form = "must be a time such as '10s' or '1h', from one millisecond to a year"
  throw new DefinitionInvalid(field, `${form}, not ${shown(period)}`)
}

/** The times of a job that admission decides. */
interface OwnTimes {
  readonly runAt: number | undefined
  readonly hold: boolean | undefined
}

/**
 * What a job with this checked input is subject to. Throws `KeyFunctionFailed` if a function throws
 * or returns no key, and `CommandInvalid` for options that admission decides itself.
 */
export function admissionOf(
  type: string,
  rules: AdmissionRules | undefined,
  input: unknown,
  { runAt, hold }: OwnTimes,
): Admission | undefined {
  if (rules === undefined) return undefined
  const { rate, debounce, singleton } = rules
  if (debounce !== undefined || singleton !== undefined) {
    const what = debounce === undefined ? 'singleton' : 'debounce'
    const why = `must not be given for a job type with ${what}, which decides when the job runs`
    if (runAt !== undefined && debounce !== undefined) throw new CommandInvalid('delay', why)
    if (hold === true) throw new CommandInvalid('hold', why)
  }
  const keyed = <Rule extends { readonly key: KeyOf<unknown> }>(what: string, rule: Rule) => ({
    ...rule,
    key: keyOf(type, what, rule.key, input),
  })
  return {
    ...(rate && { rate: keyed('rateLimit', rate) }),
    ...(debounce && { debounce: keyed('debounce', debounce) }),
    ...(singleton && { singleton: keyed('singleton', singleton) }),
  }
}

function keyOf(type: string, what: string, find: KeyOf<unknown>, input: unknown): string {
  let key: string
  try {
    key = find(input)
  } catch (cause) {
    throw new KeyFunctionFailed(type, what, `threw ${String(cause)}`, cause)
  }
  const why = checkName(key)
  if (why !== undefined) throw new KeyFunctionFailed(type, what, `returned a key that ${why}`)
  return key
}
