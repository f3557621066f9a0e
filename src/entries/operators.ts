/**
 * `pawl/operators`: for tools that operate jobs and name the types they pass around: selections,
 * reports, explanations. Programs that only call `pawl.operator(…)` need `pawl` alone.
 */
export type { Lane } from '../core/job/lanes.ts'
export type { EffectSelection, EffectsReport } from '../engine/effects/retry-effects.ts'
export type { Explanation } from '../engine/operators/explain.ts'
export type {
  MigrationMove,
  MigrationReport,
  MigrationSelection,
} from '../engine/operators/migrate.ts'
export {
  Operator,
  type OperatorIdentity,
  type OperatorOptions,
} from '../engine/operators/operators.ts'
export type { OperatorReport, Refusal } from '../engine/operators/report.ts'
export type { Selection } from '../engine/operators/selection.ts'
export type { QueueOptions } from '../engine/options.ts'
export type { StuckAction, StuckPolicy } from '../engine/worker/stuck.ts'
export type { EffectFilter, EffectState } from '../stores/outbox-types.ts'
export type { QueueRecord, QueueRecordFilter, QueueSettings } from '../stores/queue-records.ts'
export type { Asker, JobFilter } from '../stores/store.ts'
