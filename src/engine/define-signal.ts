/**
 * Signals: messages to a job that has not ended. A signal is stored before anyone waits for it, and
 * `waitForSignal` receives signals of a name in the order in which they were sent, each once.
 */
import { name as checkName, listOf, record, reservedName } from '../core/checks.ts'
import type { Duration } from '../core/durations.ts'
import { DefinitionInvalid } from '../core/errors.ts'
import { checkDefinition, checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import { shown } from '../core/format.ts'
import { SignalUndeclared } from './errors.ts'
import { type InputOf, jsonSchemaOf, type OutputOf, type Schema } from './schema.ts'
import type { IfStorable, Storable } from './storable.ts'

/** The options of `defineSignal`. */
export interface SignalOptions<S extends Schema, Name extends string = string> {
  /** The name of the signal; it is stored, so it must not change. */
  readonly name: Name
  /**
   * The schema of the payload, any Standard Schema, or `typed<T>()`. It is checked when the signal
   * is sent, and again when it is received.
   * @defaultValue any value
   */
  readonly payload?: S
  /**
   * A JSON Schema of the payload. The inbox of the dashboard makes a form of it.
   * @defaultValue that of the schema, if its library offers one (Standard JSON Schema)
   */
  readonly jsonSchema?: JsonSchemaObject
}

/** A JSON Schema, as an object. */
export type JsonSchemaObject = Readonly<Record<string, unknown>>

/** A kind of signal. Its name is part of its type, so that an undeclared one does not compile. */
export interface Signal<Payload = unknown, Received = Payload, Name extends string = string> {
  readonly name: Name
  readonly schema: Schema | undefined
  /** Undefined if there is none. */
  readonly jsonSchema: JsonSchemaObject | undefined
  /** A signal to send together with `enqueue`; `key` as for `handle.signal`. */
  of(payload: Payload, options?: { readonly key?: string }): InitialSignal<Name>
  /** Carry the types of the payload; have no value at run time. */
  readonly '~payload'?: Payload
  readonly '~received'?: Received
}

// biome-ignore lint/suspicious/noExplicitAny: the definition decides the types of its payload
export type AnySignal = Signal<any, any>

/** The type that `waitForSignal` returns for a signal. */
export type ReceivedOf<G extends AnySignal> =
  G extends Signal<infer _Payload, infer Received> ? Received : never
/** The type that a sender passes. */
export type SentOf<G extends AnySignal> = G extends Signal<infer Payload> ? Payload : never

/** A signal that is sent in the transaction that enqueues its job. */
export interface InitialSignal<Name extends string = string> {
  readonly signal: { readonly name: Name; readonly schema: Schema | undefined }
  readonly payload: unknown
  readonly key: string | undefined
}

const SIGNAL: FieldChecks<SignalOptions<Schema>> = {
  name: unchecked,
  payload: unchecked,
  jsonSchema: record,
}

/** Rejects a schema whose payload cannot be stored. */
type StorableSignal<S extends Schema> = IfStorable<
  InputOf<S>,
  { readonly payload?: Schema<Storable<InputOf<S>>> }
>

/** Defines a signal. */
export function defineSignal<S extends Schema = Schema, const Name extends string = string>(
  options: SignalOptions<S, Name> & StorableSignal<S>,
): Signal<InputOf<S>, OutputOf<S>, Name> {
  checkDefinition('signal', options as SignalOptions<Schema>, SIGNAL)
  const { name, payload: schema, jsonSchema } = options as SignalOptions<S, Name>
  const why = checkName(name) ?? reservedName(name)
  if (why !== undefined) throw new DefinitionInvalid('name', why)
  return Object.freeze({
    name,
    schema,
    jsonSchema: jsonSchema ?? jsonSchemaOf(schema),
    of: (payload: InputOf<S>, options: { readonly key?: string } = {}) => {
      checkFields(options, { key: unchecked }, { what: 'options' })
      return { signal: { name, schema }, payload, key: options.key }
    },
  })
}

/** Throws `SignalUndeclared` if a job type does not declare a signal of this name. */
export function checkDeclared(
  { name, signals }: { readonly name: string; readonly signals: readonly AnySignal[] },
  signal: Pick<AnySignal, 'name'>,
): void {
  const declared = signals.map((one) => one.name)
  if (!declared.includes(signal?.name)) throw new SignalUndeclared(name, signal?.name, declared)
}

/** How many kinds of signals a job type may declare. */
const SIGNALS_MAX = 100

/** Checks the option `signals` of a job type. */
export function declaredSignals(values: readonly AnySignal[]): string | undefined {
  return listOf(values, SIGNALS_MAX, record)
}

/** Two signals of one name could not be told apart. */
export function signalsOf(signals: readonly AnySignal[] = []): readonly AnySignal[] {
  const names = signals.map(({ name }) => name)
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice === undefined) return signals
  throw new DefinitionInvalid('signals', `must not contain ${shown(twice)} twice`)
}

/** The options of `waitForSignal`. */
export interface SignalWaitOptions {
  /**
   * How long to wait. The time counts from the first call, over all attempts.
   * @defaultValue no limit
   */
  readonly timeout?: Duration
}

/** What a wait for a signal returns. */
export type SignalAnswer<Received> =
  | {
      readonly kind: 'received'
      readonly payload: Received
      /** Who sent it, by the ledger: the operator, the caller, or the kind of the sender. */
      readonly by: string
      /** The reason of an operator. */
      readonly note: string | undefined
    }
  | { readonly kind: 'timeout' }
