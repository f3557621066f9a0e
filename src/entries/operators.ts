/**
 * `pawl/operators`: types for tools that operate jobs: selections, reports, explanations. Programs
 * that only call `pawl.operator(…)` need only `pawl`.
 */
export type { Lane } from '../core/job/lanes.ts'
export type { EffectSelection, EffectsReport } from '../engine/effects/retry-effects.ts'
export type { LimitReference, LimitState, SetLimitOptions } from '../engine/limits/limits.ts'
export type { Explanation } from '../engine/operators/explain.ts'
export type { Obstacle } from '../engine/operators/explain-limits.ts'
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
export type { ClassReport } from '../engine/retention/pass.ts'
export type {
  RetentionReport,
  RetentionStatus,
  RunRetentionOptions,
} from '../engine/retention/run.ts'
export type {
  ScheduleBase,
  ScheduleInput,
  ScheduleOptions,
  ScheduleTiming,
} from '../engine/schedules/define-schedule.ts'
export type { ScheduleContext } from '../engine/schedules/schedule-context.ts'
export {
  type BackfillOptions,
  type BackfillReport,
  type ScheduleInfo,
  Schedules,
} from '../engine/schedules/schedules.ts'
export type { StuckAction, StuckPolicy } from '../engine/worker/stuck.ts'
export type {
  Blockage,
  DeclaredLimit,
  GateDrift,
  GateFilter,
  GateHolder,
  GateInfo,
  LimitDeclaration,
  LimitInfo,
  LimitRecord,
  LimitRecordFilter,
  LimitTables,
  LimitValues,
} from '../stores/contract/limits.ts'
export type { EffectFilter, EffectState } from '../stores/contract/outbox.ts'
export type { ScheduleRecord, ScheduleRecordFilter } from '../stores/contract/schedules.ts'
export type { JobFilter, Requester } from '../stores/contract/store.ts'
export type { OutcomeWord } from '../stores/ends.ts'
export type { QueueRecord, QueueRecordFilter, QueueSettings } from '../stores/queue-records.ts'
