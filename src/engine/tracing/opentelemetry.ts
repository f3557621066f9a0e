/**
 * The interface to `@opentelemetry/api`, an optional peer dependency: only what Pawl uses of it. It
 * is loaded if `tracing` is an option of `createPawl` or `openRuns`, and by nothing else. Without
 * an SDK, the interface does nothing.
 */
import { VERSION } from '../../environment/version.ts'
import { DriverMissing } from '../../stores/errors.ts'
import type { TracingOptions } from './tracing-options.ts'

/** What identifies a span. */
export interface OtelSpanContext {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
  readonly isRemote?: boolean
  readonly traceState?: { serialize(): string }
}

/** The value of an attribute. */
type AttributeValue = string | number | boolean

/** Attributes by name. */
export type Attributes = Readonly<Record<string, AttributeValue>>

/** A span of OpenTelemetry. */
export interface OtelSpan {
  spanContext(): OtelSpanContext
  setAttributes(attributes: Attributes): unknown
  setStatus(status: { code: number; message?: string }): unknown
  recordException(error: { name: string; message: string; stack?: string }): void
  end(endTime?: number): void
}

/** How a span begins. */
interface OtelSpanOptions {
  readonly kind: number
  readonly attributes: Attributes
  readonly links: { readonly context: OtelSpanContext }[]
  readonly root?: boolean
  readonly startTime?: number
}

/** Makes spans. */
interface OtelTracer {
  startSpan(name: string, options: OtelSpanOptions, context: unknown): OtelSpan
}

/** `@opentelemetry/api`, as far as it is used. */
interface OtelApi {
  readonly ROOT_CONTEXT: unknown
  readonly trace: {
    getTracer(name: string, version: string): OtelTracer
    setSpan(context: unknown, span: OtelSpan): unknown
    setSpanContext(context: unknown, span: OtelSpanContext): unknown
    getSpanContext(context: unknown): OtelSpanContext | undefined
  }
  readonly context: {
    active(): unknown
    with<T>(context: unknown, work: () => T): T
  }
  createTraceState(text: string): { serialize(): string }
  isSpanContextValid(context: OtelSpanContext): boolean
}

/** The API, and the tracer to use. */
export interface LoadedTracing {
  readonly api: OtelApi
  readonly tracer: OtelTracer
  readonly isParent: boolean
}

/** Loads the API; `undefined` if tracing is not wanted. Throws `DriverMissing`. */
export async function loadTracing(
  option: boolean | TracingOptions | undefined,
): Promise<LoadedTracing | undefined> {
  if (option === undefined || option === false) return undefined
  const { parent = false, tracerProvider } = option === true ? {} : option
  const api = await loadApi()
  const source = tracerProvider ?? api.trace
  return { api, tracer: source.getTracer('pawl', VERSION) as OtelTracer, isParent: parent }
}

async function loadApi(): Promise<OtelApi> {
  try {
    return (await import('@opentelemetry/api')) as unknown as OtelApi
  } catch (cause) {
    const hint = 'Install it (npm install @opentelemetry/api), or leave out the option "tracing".'
    throw new DriverMissing('@opentelemetry/api', 'Tracing needs OpenTelemetry', hint, cause)
  }
}
