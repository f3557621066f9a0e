/**
 * Effects: what a job does outside of its database, such as sending a mail. The function of a
 * commit declares effects by name and payload. After the commit, a dispatcher (`dispatcher.ts`)
 * calls the function that the job type defines for that name.
 *
 * Payloads are stored as JSON, so functions receive the value as JSON preserves it.
 */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { callable, name as checkName, reservedName } from '../../core/checks.ts'
import { type Duration, toMs } from '../../core/durations.ts'
import { CommandInvalid, DefinitionInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { DEFAULT_POLICY, mergePolicy, type RetryPolicy } from '../../core/retry.ts'
import { encodeValue } from '../../core/values.ts'
import type { CommitTx } from '../../stores/contract/store.ts'
import type { PostgresTx } from '../../stores/postgres/join.ts'
import type { SqlStatement, SqlValue } from '../../stores/user-sql.ts'
import { EffectUnknown } from '../errors.ts'
import type { JobHandle } from '../job-handle.ts'
import type { AnyJob, JobKey } from '../job-types.ts'
import { checkJobOptions, type EnqueueOptions } from '../options.ts'
import { type RetryOptions, retryOf } from '../retry-options.ts'
import type { Storable } from '../storable.ts'

/** One delivery of an effect. */
export interface Delivery<Payload = unknown> {
  readonly payload: Payload
  /**
   * The same for every delivery of this effect, and unique to it: job id / name / n. Pass it to the
   * receiver as an idempotency key.
   */
  readonly key: string
  /** Aborted when the time-out has passed, or when the process stops. */
  readonly signal: AbortSignal
  readonly jobId: string
  readonly name: string
  /** Starts at 1. A higher number means that an earlier delivery failed or was never reported. */
  readonly tries: number
}

/** Delivers an effect. If it returns, the effect is delivered; if it throws, it is retried. */
export type Deliver<Payload = unknown> = (delivery: Delivery<Payload>) => unknown

/** An effect with options. */
export interface EffectOptions<Payload = unknown> {
  readonly deliver: Deliver<Payload>
  /** Exponential if absent: ten tries within two to four hours. Then the effect is parked. */
  readonly retry?: RetryOptions
  /** How long one delivery may take, up to an hour; 30 seconds if absent. */
  readonly timeout?: Duration
}

// biome-ignore lint/suspicious/noExplicitAny: the function of an effect decides its payload's type
type AnyPayload = any

/** The effects of a job type, by name. */
export type Effects = Readonly<Record<string, Deliver<AnyPayload> | EffectOptions<AnyPayload>>>

/** The payload's type, inferred from the function of the effect. */
export type PayloadOf<Effect> = Effect extends
  | Deliver<infer Payload>
  | { readonly deliver: Deliver<infer Payload> }
  ? Payload
  : never

/** The type of `effects` for a job type that declares none. */
export type NoEffects = Readonly<Record<never, never>>

/** An effect with all defaults applied, checked. */
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
/** How many jobs one commit may enqueue. */
const ENQUEUED_MAX = 10_000
const TIMEOUT_MAX_MS = 60 * 60 * 1000

/** Checks the effects of a job type; throws `DefinitionInvalid`. */
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
    throw new DefinitionInvalid(`effects.${name}`, 'must have a function "deliver"')
  }
  const timeoutMs = toMs(timeout, `effects.${name}.timeout`, DefinitionInvalid)
  if (timeoutMs < 1 || timeoutMs > TIMEOUT_MAX_MS) {
    throw new DefinitionInvalid(`effects.${name}.timeout`, 'must be from 1 ms to an hour')
  }
  const merged = { ...RETRY, ...(retry === undefined ? {} : retryOf(retry)) }
  return { deliver, timeoutMs, retry: mergePolicy(DEFAULT_POLICY, { retry: merged }).retry }
}

/** A transaction of the store's database, as the function of `pawl.transaction` receives it. */
export interface Transaction {
  /**
   * Runs one SQL statement and returns its rows. Use the tag `sql` for a statement that works on
   * both databases, or a text with the placeholders of the database (`?` or `$1`) and its values.
   */
  query(sql: string | SqlStatement, values?: readonly SqlValue[]): Promise<unknown[]>
  /**
   * The driver's handle inside this transaction, for query builders: a `DatabaseSync` of
   * `node:sqlite` on SQLite, a client of `pg` on PostgreSQL. It rejects statements that end the
   * transaction, and all statements after its end.
   */
  readonly raw: unknown
}

/**
 * A handle of the SQLite library that Pawl uses. Handles of better-sqlite3 have no method `open`,
 * so the compiler rejects them.
 */
export interface SqliteTx {
  open(): void
  exec(sql: string): void
  prepare(sql: string): unknown
}

/** A transaction in which jobs can be enqueued: one that Pawl opened, or your own. */
export type JoinableTx = Transaction | SqliteTx | PostgresTx

/** What the function of a commit receives: a transaction of the store's database. */
export interface Tx<E = Effects> extends Transaction {
  /**
   * Declares an effect, which is delivered after the commit. Its key is job id / name / n, where n
   * counts the effects of that name. Throws `EffectUnknown` if the job type does not define the
   * effect; the commit then fails.
   */
  effect<Name extends keyof E & string>(
    name: Name,
    ...payload: undefined extends PayloadOf<E[Name]>
      ? [Storable<PayloadOf<E[Name]>>?]
      : [Storable<PayloadOf<E[Name]>>]
  ): void
  /**
   * Enqueues a job in this transaction. It exists if and only if the commit succeeds. If the job is
   * rejected, the commit fails, also if the function ignores the exception.
   */
  enqueue<Input, Output>(
    definition: JobKey<Input, Output>,
    input: Input,
    options?: Omit<EnqueueOptions, 'tx'>,
  ): Promise<JobHandle<Output>>
}

/** Enqueues a job in the transaction of a commit. */
export type EnqueueInside = (
  definition: AnyJob,
  input: unknown,
  options: Omit<EnqueueOptions, 'tx'>,
) => Promise<JobHandle>

/** What the `tx` of a commit is built from. */
interface TxParts {
  /** The name of the job type. */
  readonly name: string
  readonly effects: ReadonlyMap<string, unknown>
  readonly bounds: JsonBounds
  readonly enqueueInside: EnqueueInside
}

/**
 * Replaces the store's `effect`, which takes JSON text, by the one that handlers call, and adds
 * `enqueue`. The object stays the same, because the store recognises it when jobs are enqueued in
 * the transaction.
 */
export function toHandlerTx(
  storeTx: CommitTx,
  { name: type, effects, bounds, enqueueInside }: TxParts,
): { readonly tx: Tx; readonly assertSound: () => Promise<void> } {
  let refused: EffectUnknown | undefined
  const enqueued: Promise<JobHandle>[] = []
  const declare = storeTx.effect
  const effect: Tx['effect'] = (name, payload?: unknown) => {
    if (!effects.has(name)) {
      refused = new EffectUnknown(type, name)
      throw refused
    }
    declare(name, encodeValue(payload, bounds))
  }
  const enqueue: Tx['enqueue'] = async (definition, input, options = {}) => {
    if (enqueued.length >= ENQUEUED_MAX) {
      throw new CommandInvalid('enqueue', `must not be called more than ${ENQUEUED_MAX} times`)
    }
    checkJobOptions(options)
    const made = enqueueInside(definition, input, options)
    enqueued.push(made)
    return (await made) as JobHandle<never>
  }
  return {
    tx: Object.assign(storeTx, { effect, enqueue }),
    /** Throws every refusal again, so that a handler that caught it cannot commit. */
    async assertSound() {
      await Promise.all(enqueued)
      if (refused !== undefined) throw refused
    },
  }
}
