/**
 * Measurements through a meter of OpenTelemetry: the catalogue `METRICS` with other names.
 *
 * The messaging conventions of OpenTelemetry have names for some of them. Those that they do not
 * have are named like the metric of Prometheus, with dots and without units: counter
 * `pawl_leases_expired_total` is `pawl.leases.expired`. The conventions are not stable yet, so all
 * their names are in this file.
 */
import {
  METRICS,
  type Metric,
  type MetricLabels,
  type MetricName,
  type Metrics,
  SECONDS_BOUNDS,
} from './metrics.ts'

/** An instrument that adds. */
interface Adding {
  add(value: number, attributes: Readonly<Record<string, string>>): void
}

/** An instrument that records. */
interface Recording {
  record(value: number, attributes: Readonly<Record<string, string>>): void
}

interface InstrumentOptions {
  readonly description: string
  readonly unit?: string
  readonly advice?: { readonly explicitBucketBoundaries: number[] }
}

/** A meter of `@opentelemetry/api`, as far as it is used. */
export interface MeterLike {
  createCounter(name: string, options: InstrumentOptions): Adding
  createHistogram(name: string, options: InstrumentOptions): Recording
  createGauge(name: string, options: InstrumentOptions): Recording
}

/** Names of the conventions. */
const CONVENTIONS: Partial<Record<MetricName, string>> = {
  pawl_jobs_enqueued_total: 'messaging.client.sent.messages',
  pawl_executions_total: 'messaging.client.consumed.messages',
  pawl_execution_duration_seconds: 'messaging.process.duration',
  pawl_store_operation_duration_seconds: 'messaging.client.operation.duration',
}

/** Attributes of the conventions, by the label. Others are `pawl.<label>`. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  queue: 'messaging.destination.name',
  kind: 'pawl.job.kind',
}

/** Returns the name of the instrument of a metric. */
export function instrumentName(name: string): string {
  const own = name.replace(/_(total|seconds)$/, '').replaceAll('_', '.')
  return CONVENTIONS[name as MetricName] ?? own
}

/** Sends measurements to a meter. Pass it to `createPawl` as `metrics`. */
export class OpenTelemetryMetrics implements Metrics {
  readonly #counters = new Map<MetricName, Adding>()
  readonly #recorders = new Map<MetricName, Recording>()

  /** Makes one instrument for each metric of `METRICS`. */
  constructor(meter: MeterLike) {
    for (const [key, metric] of Object.entries(METRICS)) {
      const name = key as MetricName
      const options = optionsOf(name, metric)
      if (metric.kind === 'counter') {
        this.#counters.set(name, meter.createCounter(instrumentName(name), options))
      } else if (metric.kind === 'histogram') {
        this.#recorders.set(name, meter.createHistogram(instrumentName(name), options))
      } else this.#recorders.set(name, meter.createGauge(instrumentName(name), options))
    }
  }

  count(name: MetricName, labels: MetricLabels, by = 1): void {
    this.#counters.get(name)?.add(by, attributesOf(labels))
  }

  observe(name: MetricName, labels: MetricLabels, value: number): void {
    this.#recorders.get(name)?.record(value, attributesOf(labels))
  }

  gauge(name: MetricName, labels: MetricLabels, value: number): void {
    this.#recorders.get(name)?.record(value, attributesOf(labels))
  }
}

function optionsOf(name: MetricName, { help, kind }: Metric) {
  return {
    description: help,
    ...(name.endsWith('_seconds') && { unit: 's' }),
    ...(kind === 'histogram' && { advice: { explicitBucketBoundaries: [...SECONDS_BOUNDS] } }),
  }
}

/** Returns the attributes of a measurement. */
export function attributesOf(labels: MetricLabels): Record<string, string> {
  const entries = Object.entries(labels).map(([label, value]) => {
    return [ATTRIBUTES[label] ?? `pawl.${label}`, value] as const
  })
  return { 'messaging.system': 'pawl', ...Object.fromEntries(entries) }
}
