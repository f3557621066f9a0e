/**
 * Signals: messages to a job that has not ended. A signal is stored before anyone waits for it, and
 * `waitForSignal` receives signals of a name in the order in which they were sent, each once.
 */
import { name as checkName, reservedName } from '../core/checks.ts'
import type { Duration } from '../core/durations.ts'
import { DefinitionInvalid } from '../core/errors.ts'
import { checkDefinition, type FieldChecks, unchecked } from '../core/fields.ts'
import type { InputOf, OutputOf, Schema } from './schema.ts'
import type { IfStorable, Storable } from './storable.ts'

/** The options of `defineSignal`. */
export interface SignalOptions<S extends Schema> {
  /** The name of the signal; it is stored, so it must not change. */
  readonly name: string
  /**
   * The schema of the payload, any Standard Schema, or `typed<T>()`. It is checked when the signal
   * is sent, and again when it is received.
   * @defaultValue any value
   */
  readonly payload?: S
}

/** A kind of signal. */
export interface Signal<Payload = unknown, Received = Payload> {
  readonly name: string
  readonly schema: Schema | undefined
  /** Carry the types of the payload; have no value at run time. */
  readonly '~payload'?: Payload
  readonly '~received'?: Received
}

const SIGNAL: FieldChecks<SignalOptions<Schema>> = { name: unchecked, payload: unchecked }

/** Rejects a schema whose payload cannot be stored. */
type StorableSignal<S extends Schema> = IfStorable<
  InputOf<S>,
  { readonly payload?: Schema<Storable<InputOf<S>>> }
>

/** Defines a signal. */
export function defineSignal<S extends Schema = Schema>(
  options: SignalOptions<S> & StorableSignal<S>,
): Signal<InputOf<S>, OutputOf<S>> {
  checkDefinition('signal', options as SignalOptions<Schema>, SIGNAL)
  const { name, payload: schema } = options as SignalOptions<S>
  const why = checkName(name) ?? reservedName(name)
  if (why !== undefined) throw new DefinitionInvalid('name', why)
  return Object.freeze({ name, schema })
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
  | { readonly kind: 'received'; readonly payload: Received }
  | { readonly kind: 'timeout' }
