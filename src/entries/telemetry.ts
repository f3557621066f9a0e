/**
 * `pawl/telemetry`: for programs that watch Pawl: the kinds of events, the metrics that are made of
 * them, and the local server that collects events of runs.
 */
export type { Logger, LogLevel } from '../core/ports.ts'
export type * from '../engine/watching/events.ts'
export * from '../engine/watching/metrics.ts'
export type { SlotMove, WorkerState, WorkerTrigger } from '../engine/worker/slots.ts'
export {
  serveTelemetry,
  type TelemetryServer,
  type TelemetryServerOptions,
} from '../http/telemetry-server.ts'
export type { TimeChange } from '../stores/store-time.ts'
