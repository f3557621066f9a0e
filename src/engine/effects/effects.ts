/**
 * Effects: what a job does to the world outside of its database. They are declared in a commit, by
 * name and with a payload, and delivered after it by a dispatcher (`dispatcher.ts`), which calls
 * the function that the kind of job has under this name.
 *
 * A payload is remembered as JSON, so that what is delivered is what JSON made of it.
 */
import { encode, type JsonBounds } from '../../core/canonical-json.ts'
import { callable, name as checkName } from '../../core/checks.ts'
import { DefinitionInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { DEFAULT_POLICY, mergePolicy, type RetryPolicy } from '../../core/retry.ts'
import { reservedName } from '../../stores/notices.ts'
import type { PostgresTx } from '../../stores/postgres/join.ts'
import type { CommitTx } from '../../stores/store.ts'
import { type Duration, toMs } from '../durations.ts'
import { EffectUnknown } from '../errors.ts'
import { type RetryOptions, retryOf } from '../retry-options.ts'

/** One delivery of an effect. */
export interface Delivery<Payload = unknown> {
  readonly payload: Payload
  /**
   * The same for every delivery of this effect, and for no other: job id / name / n. Give it to the
   * receiver as its idempotency key.
   */
  readonly key: string
  /** Aborted when the time is up, or when the process stops. */
  readonly signal: AbortSignal
  readonly jobId: string
  readonly name: string
  /** From 1. Above that, an earlier delivery failed, or was made and never heard of again. */
  readonly tries: number
}

/** Delivers an effect; it is delivered when this returns, and tried again where it throws. */
export type Deliver<Payload = unknown> = (delivery: Delivery<Payload>) => unknown

/** An effect with more to be said of it than its function. */
export interface EffectOptions<Payload = unknown> {
  readonly deliver: Deliver<Payload>
  /** Exponential if absent: ten tries within two to four hours. Then the effect is parked. */
  readonly retry?: RetryOptions
  /** How long one delivery may take, up to an hour; 30 seconds if absent. */
  readonly timeout?: Duration
}

// biome-ignore lint/suspicious/noExplicitAny: what an effect takes is an affair of its function
type Whatever = any

/** The effects of a kind of job, by their names. */
export type Effects = Readonly<Record<string, Deliver<Whatever> | EffectOptions<Whatever>>>

/** What an effect takes, as its function says; anything where it does not say. */
export type PayloadOf<Effect> = Effect extends
  | Deliver<infer Payload>
  | { readonly deliver: Deliver<infer Payload> }
  ? Payload
  : never

/** No effects at all. */
export type NoEffects = Readonly<Record<never, never>>

/** An effect as it was defined, complete and checked. */
export interface EffectDefinition {
  readonly deliver: Deliver
  readonly retry: RetryPolicy
  readonly timeoutMs: number
}

const RETRY: RetryPolicy = {
  max: 9,
  backoff: 'exponential',
  delayMs: 1000,
  factor: 3,
  delayMaxMs: 60 * 60 * 1000,
  jitter: 1,
}
const TIMEOUT_MS = 30_000
const TIMEOUT_MAX_MS = 60 * 60 * 1000

/** The effects of a kind of job, checked. */
export function effectsOf(effects: Effects | undefined): ReadonlyMap<string, EffectDefinition> {
  const entries = Object.entries(effects ?? {}).map(([name, effect]) => {
    const why = checkName(name) ?? reservedName(name)
    if (why !== undefined) throw new DefinitionInvalid('effects', why)
    return [name, definitionOf(name, effect)] as const
  })
  return new Map(entries)
}

const EFFECT: FieldChecks<EffectOptions> = {
  deliver: callable,
  retry: unchecked,
  timeout: unchecked,
}

function definitionOf(name: string, effect: Effects[string]): EffectDefinition {
  const options = typeof effect === 'function' ? { deliver: effect } : effect
  checkFields((options ?? {}) as EffectOptions, EFFECT, {
    what: `effects.${name}`,
    prefix: `effects.${name}.`,
    refuse: (field, why) => new DefinitionInvalid(field, why),
  })
  const { deliver, retry, timeout = TIMEOUT_MS } = (options ?? {}) as Partial<EffectOptions>
  if (typeof deliver !== 'function') {
    throw new DefinitionInvalid(`effects.${name}`, 'must have a function that delivers it')
  }
  const timeoutMs = toMs(timeout, `effects.${name}.timeout`)
  if (timeoutMs < 1 || timeoutMs > TIMEOUT_MAX_MS) {
    throw new DefinitionInvalid(`effects.${name}.timeout`, 'must be from 1 ms to an hour')
  }
  const merged = { ...RETRY, ...(retry === undefined ? {} : retryOf(retry)) }
  return { deliver, timeoutMs, retry: mergePolicy(DEFAULT_POLICY, { retry: merged }).retry }
}

/** A transaction on the database of the store, as the function of `pawl.transaction` gets it. */
export interface Transaction {
  /** Runs a statement of your own; returns its rows. */
  query(sql: string, values?: readonly (string | number | null)[]): Promise<unknown[]>
  /**
   * The driver's own handle in this transaction, for query builders: on SQLite a `DatabaseSync` of
   * `node:sqlite`, on PostgreSQL a client of `pg`. It can neither end the transaction nor outlive
   * it.
   */
  readonly raw: unknown
}

/**
 * A handle of the SQLite library that Pawl uses. Handles of better-sqlite3 have no method `open`
 * and are refused by the compiler.
 */
export interface SqliteTx {
  open(): void
  exec(sql: string): void
  prepare(sql: string): unknown
}

/** A transaction that jobs can join: one that Pawl has opened, or one of your own. */
export type JoinableTx = Transaction | SqliteTx | PostgresTx

/** What the function of a commit works with: a transaction on the database of the store. */
export interface Tx<E = Effects> extends Transaction {
  /**
   * Declares an effect, to be delivered once the commit is true; its key is job id / name / n,
   * where n counts the effects of one name. Throws `EffectUnknown` where nobody could deliver it,
   * and the commit fails.
   */
  effect<Name extends keyof E & string>(
    name: Name,
    ...payload: undefined extends PayloadOf<E[Name]> ? [PayloadOf<E[Name]>?] : [PayloadOf<E[Name]>]
  ): void
}

/** The transaction of the store behind each one that a handler was given. */
const behind = new WeakMap<object, CommitTx>()

/** What the store knows as its transaction, where it was one of ours that was given. */
export function storeTxOf(tx: unknown): unknown {
  return typeof tx === 'object' && tx !== null ? (behind.get(tx) ?? tx) : tx
}

/** A transaction as handlers see it, and how to know that it must not be committed. */
export function openTx(
  inner: CommitTx,
  type: string,
  known: ReadonlyMap<string, unknown>,
  bounds: JsonBounds,
): { readonly tx: Tx; readonly assertSound: () => void } {
  let refused: EffectUnknown | undefined
  const tx: Tx = {
    query: (sql, values) => inner.query(sql, values),
    raw: inner.raw,
    effect(name, payload) {
      if (!known.has(name)) {
        refused = new EffectUnknown(type, name)
        throw refused
      }
      inner.effect(name, encode(payload ?? null, bounds))
    },
  }
  behind.set(tx, inner)
  return {
    tx,
    assertSound() {
      if (refused !== undefined) throw refused
    },
  }
}
