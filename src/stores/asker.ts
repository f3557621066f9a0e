/** Who asks a store for something, and the context in which the core decides on it. */
import { NOTE_MAX, name, oneOf, text } from '../core/checks.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Context } from '../core/job/commands.ts'
import { ACTORS } from '../core/job/facts.ts'
import type { Environment } from '../environment/system.ts'
import type { Asker } from './store.ts'

/** Who acts when the store itself does: promotion and recovery. */
export const ENGINE: Asker = { actor: 'engine' }
/** Who reports on attempts. */
export const WORKER: Asker = { actor: 'worker' }
/** Who enqueues, unless said otherwise. */
export const CLIENT: Asker = { actor: 'client' }

const ASKER: FieldChecks<Asker> = {
  actor: (value) => oneOf(value, ACTORS),
  operator: name,
  note: (value) => text(value, NOTE_MAX),
  metadata: unchecked,
  traceId: name,
  spanId: name,
  retriesAhead: unchecked,
}

/** Throws `CommandInvalid` if somebody passes something else than who asks, such as options. */
export function checkAsker(asker: Asker): Asker {
  checkFields(asker, ASKER, { what: 'asker' })
  return asker
}

/** The context of a decision that is made now. */
export function contextOf(
  environment: Environment,
  asker: Asker,
  now: number,
  retriesAhead?: number,
): Context {
  const { actor, operator, note, metadata, traceId, spanId } = asker
  // Field by field, because a spread is what a decision would otherwise spend most of its time on.
  const context: { -readonly [Field in keyof Context]: Context[Field] } = {
    now,
    random: environment.random.next(),
    actor,
  }
  if (retriesAhead !== undefined) context.retriesAhead = retriesAhead
  if (operator !== undefined) context.operator = operator
  if (note !== undefined) context.note = note
  if (metadata !== undefined) context.metadata = metadata
  if (traceId !== undefined) context.traceId = traceId
  if (spanId !== undefined) context.spanId = spanId
  return context
}
