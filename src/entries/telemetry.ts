/**
 * `pawl/telemetry`: for monitoring: events, metrics that are computed from them, and the local
 * server that collects events of runs.
 */
export type { Logger, LogLevel } from '../core/ports.ts'
export type { ThrownError } from '../core/thrown.ts'
export type { TraceContext } from '../core/trace.ts'
export type { Pawl } from '../engine/pawl.ts'
export type * from '../engine/watching/events.ts'
export type { FailureInfo } from '../engine/watching/failures.ts'
export { type JsonLoggerOptions, jsonLogger } from '../engine/watching/json-logger.ts'
export * from '../engine/watching/metrics.ts'
export { type MeterLike, OpenTelemetryMetrics } from '../engine/watching/opentelemetry-metrics.ts'
export { PrometheusMetrics } from '../engine/watching/prometheus.ts'
export type { Leftover } from '../engine/worker/handed.ts'
export type { SlotMove, WorkerState, WorkerTrigger } from '../engine/worker/slots.ts'
export {
  type ObservingMeter,
  observeStoreMetrics,
  STORE_METRICS,
  storeMetricsText,
} from '../http/gauges.ts'
export {
  serveTelemetry,
  type TelemetryServer,
  type TelemetryServerOptions,
} from '../http/telemetry-server.ts'
export type { TimeChange } from '../stores/store-time.ts'
