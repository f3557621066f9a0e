/**
 * Makes spans. An exception of the SDK never reaches the work inside a span: it is logged, and the
 * work goes on without the span.
 */
import type { Clock, Logger } from '../../core/ports.ts'
import { TRACE_STATE_MAX, type TraceContext } from '../../core/trace.ts'
import { harmless } from '../watching/hooks.ts'
import type { Attributes, LoadedTracing, OtelSpan, OtelSpanContext } from './opentelemetry.ts'

/** The kinds of spans, by their numbers in OpenTelemetry. */
const SPAN_KINDS = { internal: 0, client: 2, producer: 3, consumer: 4 } as const

const ERROR_STATUS = 2
/** OpenTelemetry drops links beyond this number by default. */
const LINKS_MAX = 128

/** How a span begins. */
export interface SpanStart {
  readonly name: string
  readonly kind: keyof typeof SPAN_KINDS
  readonly attributes: Attributes
  /**
   * `active`: inside the span in which the caller runs, if there is one. `none`: the first span of
   * a trace. Otherwise inside this span.
   */
  readonly parent?: 'active' | 'none' | TraceContext | undefined
  readonly links?: readonly TraceContext[]
  /** In milliseconds since the epoch; now if absent. */
  readonly startedAt?: number
}

/** What a span says of an error. The texts are redacted already. */
export interface SpanError {
  readonly type: string
  readonly message: string
  readonly stack?: string | undefined
}

/** A span that has begun. */
export class ActiveSpan {
  /** The ids of the span; `undefined` if no SDK made one. */
  readonly trace: TraceContext | undefined
  readonly #tracing: LoadedTracing
  readonly #guard: Guard
  readonly #span: OtelSpan | undefined
  readonly #context: unknown

  constructor(tracing: LoadedTracing, guard: Guard, span: OtelSpan | undefined, around: unknown) {
    this.#tracing = tracing
    this.#guard = guard
    this.#span = span
    const { api } = tracing
    this.#context = span === undefined ? around : api.trace.setSpan(around, span)
    const ids = span?.spanContext()
    this.trace = ids !== undefined && api.isSpanContextValid(ids) ? toTrace(ids) : undefined
  }

  /** Runs a function in this span: spans that it makes are children of this one. */
  run<T>(work: () => T): T {
    return this.#tracing.api.context.with(this.#context, work)
  }

  set(attributes: Attributes): void {
    this.#guard(() => this.#span?.setAttributes(attributes))
  }

  fail({ type, message, stack }: SpanError): void {
    this.#guard(() => {
      const error = { name: type, message, ...(stack !== undefined && { stack }) }
      this.#span?.recordException(error)
      this.#span?.setAttributes({ 'error.type': type })
      this.#span?.setStatus({ code: ERROR_STATUS, message })
    })
  }

  end(endedAt?: number): void {
    this.#guard(() => this.#span?.end(endedAt))
  }
}

type Guard = (work: () => unknown) => void

/** Makes the spans of one Pawl. */
export class Tracer {
  readonly isParent: boolean
  readonly #tracing: LoadedTracing
  readonly #guard: Guard

  constructor(tracing: LoadedTracing, ports: { readonly clock: Clock; readonly logger: Logger }) {
    this.#tracing = tracing
    this.isParent = tracing.isParent
    this.#guard = harmless('tracing', (work: () => unknown) => work(), ports)
  }

  start(asked: SpanStart): ActiveSpan {
    const { tracer } = this.#tracing
    const around = this.#contextOf(asked.parent)
    const { name, kind, attributes, startedAt } = asked
    const links = (asked.links ?? []).slice(0, LINKS_MAX)
    let span: OtelSpan | undefined
    this.#guard(() => {
      const options = {
        kind: SPAN_KINDS[kind],
        attributes,
        links: links.map((trace) => ({ context: this.#toOtel(trace) })),
        ...(asked.parent === 'none' && { root: true }),
        ...(startedAt !== undefined && { startTime: startedAt }),
      }
      span = tracer.startSpan(name, options, around)
    })
    return new ActiveSpan(this.#tracing, this.#guard, span, around)
  }

  /** Runs a function inside a span that ends with it. */
  async during<T>(
    asked: SpanStart,
    work: (span: ActiveSpan) => Promise<T>,
    describe: (error: unknown) => SpanError = describeError,
  ): Promise<T> {
    const span = this.start(asked)
    try {
      return await span.run(() => work(span))
    } catch (error) {
      span.fail(describe(error))
      throw error
    } finally {
      span.end()
    }
  }

  /** The span in which the caller runs; `undefined` if there is none. */
  active(): TraceContext | undefined {
    const { api } = this.#tracing
    const ids = api.trace.getSpanContext(api.context.active())
    return ids !== undefined && api.isSpanContextValid(ids) ? toTrace(ids) : undefined
  }

  /** How later work refers to the span that caused it: as its parent, or by a link. */
  after(cause: TraceContext | undefined): Pick<SpanStart, 'parent' | 'links'> {
    if (cause === undefined) return { parent: 'none' }
    return this.isParent ? { parent: cause } : { parent: 'none', links: [cause] }
  }

  #contextOf(parent: SpanStart['parent']): unknown {
    const { api } = this.#tracing
    if (parent === undefined || parent === 'active') return api.context.active()
    if (parent === 'none') return api.ROOT_CONTEXT
    return api.trace.setSpanContext(api.ROOT_CONTEXT, this.#toOtel(parent))
  }

  #toOtel({ traceId, spanId, traceFlags = 1, traceState }: TraceContext): OtelSpanContext {
    const ids = { traceId, spanId, traceFlags, isRemote: true }
    const { api } = this.#tracing
    return traceState === undefined ? ids : { ...ids, traceState: api.createTraceState(traceState) }
  }
}

function toTrace({ traceId, spanId, traceFlags, traceState }: OtelSpanContext): TraceContext {
  const state = traceState?.serialize() ?? ''
  return {
    traceId,
    spanId,
    ...((traceFlags & 1) === 0 && { traceFlags: 0 }),
    ...(state !== '' && state.length <= TRACE_STATE_MAX && { traceState: state }),
  }
}

/** Errors of Pawl itself: their texts contain no payload. */
export function describeError(error: unknown): SpanError {
  const { code, name, message } = (error ?? {}) as { [Field in string]?: unknown }
  const type = typeof code === 'string' ? code : typeof name === 'string' ? name : 'Error'
  return { type, message: typeof message === 'string' ? message : '' }
}
