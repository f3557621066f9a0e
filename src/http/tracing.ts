/** The spans of callers: W3C Trace Context in the headers of requests. */
import { readTraceparent, type TraceContext } from '../core/trace.ts'
import type { RouteCall } from './route.ts'

/** The headers of a route whose facts keep the span of the caller, for the document. */
export const TRACE_HEADERS: Readonly<Record<string, string>> = {
  traceparent: 'the span of the caller (W3C Trace Context); the facts of the request keep it',
  tracestate: 'kept with traceparent, if it is not longer than 512 characters',
}

/** The span in which the caller made the request; undefined if it names none that is valid. */
export function traceIn(header: RouteCall['header']): TraceContext | undefined {
  return readTraceparent(header('traceparent'), header('tracestate'))
}
