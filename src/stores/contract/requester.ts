/** Who asks a store for something, and the context in which the core decides on it. */
import { count, NOTE_MAX, name, oneOf, text } from '../../core/checks.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Context } from '../../core/job/commands.ts'
import { ACTORS } from '../../core/job/facts.ts'
import { TRACE_STATE_MAX, type TraceContext } from '../../core/trace.ts'
import type { Environment } from '../../environment/system.ts'
import type { Requester } from './store.ts'

/** The requester of what the store does by itself: promotion and recovery. */
export const ENGINE: Requester = { actor: 'engine' }
/** Who reports on attempts. */
export const WORKER: Requester = { actor: 'worker' }
/** Who reports inside a span. */
export function workerIn(trace: TraceContext | undefined): Requester {
  return trace === undefined ? WORKER : { ...WORKER, ...trace }
}
/** Who enqueues, unless said otherwise. */
export const CLIENT: Requester = { actor: 'client' }

const ASKER: FieldChecks<Requester> = {
  actor: (value) => oneOf(value, ACTORS),
  operator: name,
  note: (value) => text(value, NOTE_MAX),
  metadata: unchecked,
  traceId: name,
  spanId: name,
  traceFlags: (value) => count(value, 0, 1),
  traceState: (value) => text(value, TRACE_STATE_MAX),
  retriesAhead: unchecked,
}

/**
 * Throws `CommandInvalid` if the value is not a requester, for example if it is an options object.
 */
export function checkRequester(requester: Requester): Requester {
  checkFields(requester, ASKER, { what: 'requester' })
  return requester
}

/** The context of a decision that is made now. */
export function contextOf(
  environment: Environment,
  requester: Requester,
  now: number,
  retriesAhead?: number,
): Context {
  const { actor, operator, note, metadata, traceId, spanId } = requester
  // Field by field: a spread would take most of the time of a decision.
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
  if (requester.traceFlags !== undefined) context.traceFlags = requester.traceFlags
  if (requester.traceState !== undefined) context.traceState = requester.traceState
  return context
}
