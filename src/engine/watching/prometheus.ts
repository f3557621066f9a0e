/**
 * Collects measurements in memory and writes them in the text format of Prometheus, version 0.0.4.
 * Series are found by their raw label values; they are escaped only when the text is written.
 *
 * The number of series is bounded: names of queues and job types come from users. Measurements of
 * further series are not recorded, and `pawl_metrics_dropped_total` counts them.
 */
import {
  METRICS,
  type Metric,
  type MetricLabels,
  type MetricName,
  type Metrics,
  SECONDS_BOUNDS,
} from './metrics.ts'

/** One value of a gauge that is computed when the text is written. */
export interface Sample {
  readonly labels: MetricLabels
  readonly value: number
}

interface Histogram {
  readonly counts: number[]
  sum: number
  count: number
}

interface Series<T> {
  readonly labels: readonly string[]
  value: T
}

const SERIES_MAX = 10_000
const BOUNDS = SECONDS_BOUNDS

/** Metrics that can be written as text. Pass it to `createPawl` and to the HTTP API. */
export class PrometheusMetrics implements Metrics {
  readonly #numbers = new Map<MetricName, Map<string, Series<number>>>()
  readonly #histograms = new Map<MetricName, Map<string, Series<Histogram>>>()
  #series = 0
  #dropped = 0

  count(name: MetricName, labels: MetricLabels, by = 1): void {
    const series = this.#find(this.#numbers, name, labels, () => 0)
    if (series !== undefined) series.value += by
  }

  gauge(name: MetricName, labels: MetricLabels, value: number): void {
    const series = this.#find(this.#numbers, name, labels, () => 0)
    if (series !== undefined) series.value = value
  }

  observe(name: MetricName, labels: MetricLabels, value: number): void {
    const empty = () => ({ counts: BOUNDS.map(() => 0), sum: 0, count: 0 })
    const histogram = this.#find(this.#histograms, name, labels, empty)?.value
    if (histogram === undefined) return
    histogram.sum += value
    histogram.count++
    const bucket = BOUNDS.findIndex((bound) => value <= bound)
    if (bucket >= 0) (histogram.counts[bucket] as number)++
  }

  /** The text of all measurements so far. */
  text(): string {
    const names = Object.keys(METRICS) as MetricName[]
    const dropped = {
      kind: 'counter',
      labels: [],
      help: 'Measurements of too many series.',
    } as const
    return [
      ...names.map((name) => this.#textOf(name, METRICS[name])),
      metricText('pawl_metrics_dropped_total', dropped, [{ labels: {}, value: this.#dropped }]),
    ].join('')
  }

  #textOf(name: MetricName, metric: Metric): string {
    const lines = headOf(name, metric)
    for (const { labels, value } of this.#numbers.get(name)?.values() ?? []) {
      lines.push(`${name}${labelsText(metric.labels, labels)} ${value}`)
    }
    for (const { labels, value } of this.#histograms.get(name)?.values() ?? []) {
      lines.push(...histogramLines(name, metric, labels, value))
    }
    return `${lines.join('\n')}\n`
  }

  #find<T>(
    all: Map<MetricName, Map<string, Series<T>>>,
    name: MetricName,
    labels: MetricLabels,
    empty: () => T,
  ): Series<T> | undefined {
    const names: readonly string[] = METRICS[name].labels
    const values = names.map((label) => String(labels[label] ?? ''))
    const key = values.join('\0')
    let known = all.get(name)
    if (known === undefined) {
      known = new Map()
      all.set(name, known)
    }
    const there = known.get(key)
    if (there !== undefined) return there
    if (this.#series >= SERIES_MAX) {
      this.#dropped++
      return undefined
    }
    this.#series++
    const series = { labels: values, value: empty() }
    known.set(key, series)
    return series
  }
}

/** The text of one metric with the given values. */
export function metricText(name: string, metric: Metric, samples: readonly Sample[]): string {
  const lines = samples.map(({ labels, value }) => {
    const values = metric.labels.map((label) => String(labels[label] ?? ''))
    return `${name}${labelsText(metric.labels, values)} ${value}`
  })
  return `${[...headOf(name, metric), ...lines].join('\n')}\n`
}

function headOf(name: string, { help, kind }: Metric): string[] {
  const text = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return [`# HELP ${name} ${text}`, `# TYPE ${name} ${kind}`]
}

function histogramLines(
  name: string,
  { labels: names }: Metric,
  labels: readonly string[],
  { counts, sum, count }: Histogram,
): string[] {
  let below = 0
  const own = labelsText(names, labels)
  const withBound = (bound: string) => labelsText([...names, 'le'], [...labels, bound])
  return [
    ...BOUNDS.map((bound, i) => {
      below += counts[i] as number
      return `${name}_bucket${withBound(String(bound))} ${below}`
    }),
    `${name}_bucket${withBound('+Inf')} ${count}`,
    `${name}_sum${own} ${sum}`,
    `${name}_count${own} ${count}`,
  ]
}

function labelsText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return ''
  return `{${names.map((name, i) => `${name}="${escaped(values[i] as string)}"`).join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
