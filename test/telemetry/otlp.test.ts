// What OpenTelemetry sends over OTLP/HTTP, as JSON, to a receiver of our own.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { createPawl, defineJob } from 'pawl'
import { METRICS, OpenTelemetryMetrics, observeStoreMetrics } from 'pawl/telemetry'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { PLACES } from '../engine/processes/places.ts'
import { startTelemetry } from './otel.ts'

const timeout = 30_000

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface Span {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly attributes: readonly Attribute[]
}

interface Point {
  readonly attributes: readonly Attribute[]
  readonly asDouble?: number
  readonly count?: number
  readonly explicitBounds?: readonly number[]
}

interface Measured {
  readonly name: string
  readonly unit?: string
  readonly sum?: { readonly dataPoints: readonly Point[]; readonly isMonotonic: boolean }
  readonly gauge?: { readonly dataPoints: readonly Point[] }
  readonly histogram?: { readonly dataPoints: readonly Point[] }
}

/** A collector: what was sent to each path, as it was parsed. */
async function receiver() {
  const spans: Span[] = []
  const metrics = new Map<string, Measured>()
  const server = createServer(async (request, reply) => {
    const body = JSON.parse(await textOf(request))
    for (const { scopeSpans } of body.resourceSpans ?? []) {
      for (const { scope, spans: own } of scopeSpans) if (scope.name === 'pawl') spans.push(...own)
    }
    for (const { scopeMetrics } of body.resourceMetrics ?? []) {
      for (const { metrics: own } of scopeMetrics) {
        for (const one of own) metrics.set(one.name, one)
      }
    }
    reply.setHeader('content-type', 'application/json').end('{}')
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { spans, metrics, url: `http://127.0.0.1:${port}` }
}

async function textOf(request: IncomingMessage): Promise<string> {
  expect(request.headers['content-type']).toBe('application/json')
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}

const attributeOf = (attributes: readonly Attribute[], name: string) =>
  Object.values(attributes.find(({ key }) => key === name)?.value ?? {})[0]

describe.each(PLACES)('OTLP from $name', ({ place }) => {
  it('has the spans and the measurements of a job', { timeout }, async () => {
    const { spans, metrics, url } = await receiver()
    startTelemetry([new SimpleSpanProcessor(new OTLPTraceExporter({ url: `${url}/v1/traces` }))])
    const exporter = new OTLPMetricExporter({ url: `${url}/v1/metrics` })
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
    const provider = new MeterProvider({ readers: [reader] })
    onTestFinished(() => provider.shutdown())
    const { store } = await place()
    const job = defineJob({ name: 'sent', queue: 'q', run: async () => 'done' })
    const own = new OpenTelemetryMetrics(provider.getMeter('pawl'))
    const pawl = await createPawl({ store, jobs: [job], tracing: true, metrics: own })
    onTestFinished(() => pawl.close())
    const handle = await pawl.enqueue(job, { n: 1 })
    const worker = await pawl.work({ poll: 10 })
    await handle.result()
    await worker.stop()
    const stop = observeStoreMetrics(provider.getMeter('pawl'), pawl)
    await reader.forceFlush()
    stop()
    const wanted = ['send q', 'receive q', 'process q', 'settle q']
    await vi.waitFor(
      () => expect(spans.map(({ name }) => name)).toEqual(expect.arrayContaining(wanted)),
      { timeout: 10_000 },
    )
    const [send, process] = ['send q', 'process q'].map((name) =>
      spans.find((span) => span.name === name),
    )
    expect(process?.links?.map(({ traceId, spanId }) => ({ traceId, spanId }))).toEqual([
      { traceId: send?.traceId, spanId: send?.spanId },
    ])
    expect(attributeOf(process?.attributes ?? [], 'messaging.message.id')).toBe(handle.id)

    const [done] = metrics.get('messaging.client.consumed.messages')?.sum?.dataPoints ?? []
    expect(done?.asDouble).toBe(1)
    expect(attributeOf(done?.attributes ?? [], 'messaging.destination.name')).toBe('q')
    expect(attributeOf(done?.attributes ?? [], 'pawl.outcome')).toBe('done')
    const duration = metrics.get('messaging.process.duration')
    expect(duration?.unit).toBe('s')
    const [took] = duration?.histogram?.dataPoints ?? []
    expect(took).toMatchObject({ count: 1 })
    expect(took?.explicitBounds?.at(-1)).toBe(300)
    expect(metrics.get('messaging.client.operation.duration')).toBeDefined()
    expect(metrics.get('pawl.queue.latency')).toBeDefined()
    const ofQueue = metrics.get('pawl.jobs')?.gauge?.dataPoints ?? []
    const ended = ofQueue.find(({ attributes }) => attributeOf(attributes, 'pawl.lane') === 'ended')
    expect(ended).toMatchObject({ asDouble: 1 })
  })
})

it('every metric has one instrument, with a name that OpenTelemetry accepts', () => {
  const names: string[] = []
  const instrument = { add() {}, record() {} }
  const make = (name: string) => {
    names.push(name)
    return instrument
  }
  const meter = { createCounter: make, createHistogram: make, createGauge: make }
  new OpenTelemetryMetrics(meter)
  expect(names).toHaveLength(Object.keys(METRICS).length)
  expect(new Set(names).size).toBe(names.length)
  for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9_.]{0,254}$/)
})
