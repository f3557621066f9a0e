/**
 * `pawl`: for programs that define jobs, enqueue them, work on them and operate them. Everything
 * else has an entry of its own, listed in docs/reference/api. What no entry exports may change in
 * any release.
 */
export {
  CommandInvalid,
  JobEnded,
  JobNotFound,
  LeaseLost,
  PawlError,
  StaleFence,
} from './core/errors.ts'
export { RetryAfter, Retryable, Terminal } from './core/failure.ts'
export type { Job, JobError } from './core/job/job.ts'
export type { Lifecycle } from './core/lifecycles/lifecycle.ts'
export type { Logger } from './core/ports.ts'
export { createPawl } from './engine/create-pawl.ts'
export {
  defineJob,
  type Handler,
  type JobContext,
  type JobDefinition,
  type JobOptions,
  type RunnableJob,
} from './engine/define-job.ts'
export type { Duration } from './engine/durations.ts'
export type {
  Deliver,
  Delivery,
  EffectOptions,
  Effects,
  JoinableTx,
  NoEffects,
  PayloadOf,
  Transaction,
  Tx,
} from './engine/effects/effects.ts'
export type { NotifyFunction, NotifyOptions } from './engine/effects/notify.ts'
export type { WebhookOptions } from './engine/effects/webhook.ts'
export {
  AttemptTimeout,
  Cancelled,
  DeadlinePassed,
  InputInvalid,
  ResultTimeout,
  ShuttingDown,
} from './engine/errors.ts'
export { JobHandle } from './engine/job-handle.ts'
export {
  Operator,
  type OperatorIdentity,
} from './engine/operators/operators.ts'
export type { OperatorReport } from './engine/operators/report.ts'
export type { Selection } from './engine/operators/selection.ts'
export type { EnqueueOptions, PawlOptions, QueueOptions } from './engine/options.ts'
export type { JobOutcome } from './engine/outcome.ts'
export { type JobKey, Pawl } from './engine/pawl.ts'
export type { RetryOptions } from './engine/retry-options.ts'
export { type InputOf, type OutputOf, type Schema, type Typed, typed } from './engine/schema.ts'
export type { PawlEvent } from './engine/watching/events.ts'
export type { Metrics } from './engine/watching/metrics.ts'
export type { WorkOptions } from './engine/work-options.ts'
export type { StepContext, StepFunction } from './engine/worker/steps.ts'
export { JobWorker } from './engine/worker/worker.ts'
export { type Environment, systemEnvironment } from './environment/system.ts'
export {
  KeyTaken,
  OutcomeUnknown,
  QueueFull,
  StoreBusy,
  StoreUnavailable,
} from './stores/errors.ts'
export type { Notice } from './stores/notices.ts'
export type { JobFilter, OnConflict, Store } from './stores/store.ts'
