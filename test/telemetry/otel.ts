// OpenTelemetry as a program sets it up, with spans that are kept in memory.
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { onTestFinished } from 'vitest'

/** Registers a provider and a context manager for one test; returns the finished spans. */
export function startTelemetry(processors: readonly SpanProcessor[] = []): {
  readonly spans: () => ReadableSpan[]
  readonly named: (name: string) => ReadableSpan[]
} {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter), ...processors],
  })
  const manager = new AsyncLocalStorageContextManager().enable()
  context.setGlobalContextManager(manager)
  trace.setGlobalTracerProvider(provider)
  onTestFinished(async () => {
    trace.disable()
    context.disable()
    await provider.shutdown()
  })
  const spans = () => exporter.getFinishedSpans()
  return { spans, named: (name) => spans().filter((span) => span.name === name) }
}

/** The ids of a span. */
export function idsOf(span: ReadableSpan | undefined) {
  const { traceId, spanId } = span?.spanContext() ?? {}
  return { traceId, spanId }
}

/** The ids of the spans that a span has links to. */
export function linksOf(span: ReadableSpan | undefined) {
  return span?.links.map(({ context: { traceId, spanId } }) => ({ traceId, spanId }))
}

/** The id of the parent of a span. */
export function parentOf(span: ReadableSpan | undefined): string | undefined {
  return span?.parentSpanContext?.spanId
}
