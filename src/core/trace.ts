/**
 * Trace contexts as W3C Trace Context defines them, and the trace of facts.
 *
 *   traceparent   00-<trace id, 32 hex digits>-<span id, 16 hex digits>-<flags, 2 hex digits>
 *   tracestate    a list of vendors' texts, at most 512 characters; passed on unread
 *
 * A fact that was written inside a span keeps the ids of that span. Every other fact belongs to the
 * trace of its job: the trace id is the job's id without dashes, and the span id is made of the
 * last 8 digits of that id and the number of the fact. So both follow from the key of a fact. They
 * need no room in the ledger, and a SQL client can compute them.
 */
import type { Fact } from './job/facts.ts'

/** The span in which something was done. */
export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  /** 1 if absent: the span is sampled. */
  readonly traceFlags?: number
  readonly traceState?: string
}

/** The longest tracestate that is kept. A longer one is dropped, as the standard allows. */
export const TRACE_STATE_MAX = 512

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const SAMPLED = 1
/** Visible characters of ASCII and spaces, as the standard allows. */
const TRACE_STATE = /^[\x20-\x7e]+$/

/**
 * Reads the headers of a request. Returns `undefined` if `traceparent` is absent or not valid: the
 * standard says that a receiver then ignores both.
 */
export function readTraceparent(
  traceparent: string | null | undefined,
  tracestate?: string | null,
): TraceContext | undefined {
  const [, version, traceId, spanId, flags, rest] = TRACEPARENT.exec(traceparent ?? '') ?? []
  if (version === undefined || traceId === undefined || spanId === undefined) return undefined
  // Later versions may have more fields; version ff is not valid.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  const isSampled = (Number.parseInt(flags as string, 16) & SAMPLED) === SAMPLED
  const state = tracestate ?? ''
  const hasState = state.length <= TRACE_STATE_MAX && TRACE_STATE.test(state)
  return {
    traceId,
    spanId,
    ...(!isSampled && { traceFlags: 0 }),
    ...(hasState && { traceState: state }),
  }
}

/** Writes the header `traceparent` of a context. */
export function traceparentOf({ traceId, spanId, traceFlags = SAMPLED }: TraceContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

/** Returns the ids of the span in which a fact was written; see above if there was none. */
export function traceOf({ jobId, seq, traceId, spanId }: TracedFact): Required<SpanIds> {
  const own = jobId.replaceAll('-', '')
  return {
    traceId: traceId ?? own,
    spanId: spanId ?? own.slice(-8) + seq.toString(16).padStart(8, '0'),
  }
}

type SpanIds = Pick<Fact, 'traceId' | 'spanId'>
type TracedFact = Pick<Fact, 'jobId' | 'seq'> & SpanIds

/** Returns the fact with both ids. */
export function withTrace(fact: Fact): Fact {
  if (fact.traceId !== undefined && fact.spanId !== undefined) return fact
  return { ...fact, ...traceOf(fact) }
}

/** Returns the fact as the ledger keeps it: without ids that follow from its key. */
export function withoutOwnTrace(fact: Fact): Fact {
  const { traceId, spanId, ...rest } = fact
  const own = traceOf(rest)
  return traceId === own.traceId && spanId === own.spanId ? rest : fact
}

/** The context that a fact keeps; `undefined` if it was not written inside a span. */
export function contextIn(fact: {
  readonly traceId?: unknown
  readonly spanId?: unknown
  readonly traceFlags?: unknown
  readonly traceState?: unknown
}): TraceContext | undefined {
  const { traceId, spanId, traceFlags, traceState } = fact
  const ids = { traceId: String(traceId), spanId: String(spanId) }
  const state = typeof traceState === 'string' ? traceState : undefined
  return readTraceparent(traceparentOf(traceFlags === 0 ? { ...ids, traceFlags } : ids), state)
}
