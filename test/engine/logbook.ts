// Keeps what a program would get to see: log lines and measurements.
import type { Logger } from 'pawl'
import type { LogLevel } from 'pawl/telemetry'
import type { MetricLabels, MetricName, Metrics } from '../../src/engine/watching/metrics.ts'

/** One log line. */
interface Line {
  readonly level: LogLevel
  readonly fields: Readonly<Record<string, unknown>>
  readonly msg: string
}

/** A logger that keeps its lines. */
export function keptLog(): { readonly lines: Line[]; readonly logger: Logger } {
  const lines: Line[] = []
  const at =
    (level: LogLevel): Logger['info'] =>
    (fields, msg) =>
      void lines.push({ level, fields, msg })
  const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { lines, logger }
}

/** One measurement. */
interface Measurement {
  readonly how: 'count' | 'observe' | 'gauge'
  readonly name: MetricName
  readonly labels: MetricLabels
  readonly value: number
}

/** Metrics that keep what they are told. */
export class KeptMetrics implements Metrics {
  readonly all: Measurement[] = []

  count(name: MetricName, labels: MetricLabels, by = 1): void {
    this.all.push({ how: 'count', name, labels, value: by })
  }

  observe(name: MetricName, labels: MetricLabels, value: number): void {
    this.all.push({ how: 'observe', name, labels, value })
  }

  gauge(name: MetricName, labels: MetricLabels, value: number): void {
    this.all.push({ how: 'gauge', name, labels, value })
  }

  /** Every measurement of one name, without the name. */
  of(wanted: MetricName): Omit<Measurement, 'name'>[] {
    return this.all.flatMap(({ name, ...rest }) => (name === wanted ? [rest] : []))
  }

  /** What a gauge shows at the end, by the values of its labels. */
  shown(wanted: MetricName): Record<string, number> {
    const values = this.of(wanted).map(
      ({ labels, value }) => [Object.values(labels).join(' '), value] as const,
    )
    return Object.fromEntries(values)
  }
}
