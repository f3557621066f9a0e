/**
 * `pawl`: for programs that define jobs, enqueue them, work on them and operate them. Everything
 * else has an entry of its own, listed in docs/reference/api. What no entry exports may change in
 * any release.
 */

export type { Duration } from './core/durations.ts'
export {
  CommandInvalid,
  DeadlinePassed,
  JobEnded,
  JobNotFound,
  LeaseLost,
  PawlError,
  StaleFence,
} from './core/errors.ts'
export { RetryAfter, Retryable, Snooze, Terminal, Throttled } from './core/failure.ts'
export type { Job, JobError } from './core/job/job.ts'
export type { Priority } from './core/job/priority.ts'
export type { Lifecycle } from './core/lifecycles/lifecycle.ts'
export type { Logger } from './core/ports.ts'
export type {
  AdmissionOptions,
  DebounceOptions,
  RateLimitOptions,
  SingletonOptions,
} from './engine/admission-options.ts'
export {
  type ApprovalAnswer,
  type ApprovalPayload,
  type ApprovalSignal,
  approval,
} from './engine/approvals.ts'
export { createPawl } from './engine/create-pawl.ts'
export {
  defineJob,
  type JobDefinition,
  type JobOptions,
  type RunnableJob,
} from './engine/define-job.ts'
export {
  type AnySignal,
  defineSignal,
  type InitialSignal,
  type JsonSchemaObject,
  type ReceivedOf,
  type SentOf,
  type Signal,
  type SignalAnswer,
  type SignalOptions,
  type SignalWaitOptions,
} from './engine/define-signal.ts'
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
export type { EnqueuedCount, JobEntry, StreamOptions } from './engine/enqueue-stream.ts'
export {
  AfterMissing,
  AttemptTimeout,
  Cancelled,
  ChildFailed,
  DependencyUnmet,
  EnqueueInterrupted,
  InputInvalid,
  LimitKeyInvalid,
  LimitUnknown,
  ResultNotStored,
  ResultTimeout,
  ShuttingDown,
  Suspended,
} from './engine/errors.ts'
export {
  type AfterGroup,
  type AfterOptions,
  type AfterValues,
  type OneOrList,
  type OutputOfJob,
  type SettledAfter,
  settled,
} from './engine/flows/after.ts'
export {
  type AfterNodes,
  type DependentOptions,
  FlowBuilder,
  type FlowNode,
  type NodeArguments,
  type NodeOptions,
} from './engine/flows/builder.ts'
export type { BatchCallback, BatchOptions, FlowOptions } from './engine/flows/create.ts'
export { type FlowNodesOptions, type FlowPageOptions, Flows } from './engine/flows/flows.ts'
export { BatchHandle, FlowHandle, type FlowStatus } from './engine/flows/handles.ts'
export type { CallbackName } from './engine/flows/items.ts'
export type {
  AttemptContext,
  DependentContext,
  Handler,
  JobContext,
  WaitingContext,
} from './engine/job-context.ts'
export { JobHandle, type SendOptions, type SentSignal } from './engine/job-handle.ts'
export type { AnyJob, AnyValue, JobKey } from './engine/job-types.ts'
export {
  defineLimit,
  type KeyedLimit,
  type LimitBy,
  type LimitOptions,
  type SharedLimit,
} from './engine/limits/define-limit.ts'
export { Limits } from './engine/limits/limits.ts'
export {
  Operator,
  type OperatorIdentity,
} from './engine/operators/operators.ts'
export type { OperatorReport } from './engine/operators/report.ts'
export type { Selection } from './engine/operators/selection.ts'
export type {
  ChildOptions,
  EnqueueOptions,
  InvokeManyOptions,
  InvokeOptions,
  PawlOptions,
  QueueOptions,
} from './engine/options.ts'
export { type ChildOutcome, isSucceeded, type JobOutcome, unwrap } from './engine/outcome.ts'
export { Pawl } from './engine/pawl.ts'
export {
  JobList,
  type JobListOptions,
  type JobPage,
  Jobs,
  type QueueSummary,
  Queues,
  Workers,
} from './engine/reading.ts'
export type { KeepOptions, RetentionOptions } from './engine/retention/options.ts'
export { type FolderArchiveOptions, toFolder } from './engine/retention/to-folder.ts'
export type { RetryOptions, RetrySettings } from './engine/retry-options.ts'
export {
  defineSchedule,
  type ScheduleDefinition,
  type ScheduleOptions,
} from './engine/schedules/define-schedule.ts'
export { type InputOf, type OutputOf, type Schema, type Typed, typed } from './engine/schema.ts'
export type { SignalToken, TokenOptions } from './engine/signal-tokens.ts'
export type { Storable } from './engine/storable.ts'
export type {
  PostgresStoreOptions,
  SqliteStoreOptions,
  StoreOptions,
} from './engine/store-options.ts'
export type { SignalTokenOptions } from './engine/token-options.ts'
export type { TracingOptions } from './engine/tracing/tracing-options.ts'
export type { PawlEvent } from './engine/watching/events.ts'
export type { Metrics } from './engine/watching/metrics.ts'
export type { WorkOptions } from './engine/work-options.ts'
export type { StepContext, StepFunction } from './engine/worker/steps.ts'
export { JobWorker } from './engine/worker/worker.ts'
export { type Environment, systemEnvironment } from './environment/system.ts'
export type {
  FlowFilter,
  FlowInfo,
  FlowKind,
  FlowNodeInfo,
  FlowProgress,
  FlowState,
} from './stores/contract/flows.ts'
export type { RemovedJob } from './stores/contract/retention.ts'
export type {
  DamagedJob,
  JobFilter,
  OnConflict,
  QueueInfo,
  Store,
} from './stores/contract/store.ts'
export {
  BatchClosed,
  FlowNotFound,
  JobRemoved,
  KeyTaken,
  OutcomeUnknown,
  QueueFull,
  RateLimited,
  StoreBusy,
  StoreUnavailable,
} from './stores/errors.ts'
export type { Notice } from './stores/notices.ts'
export { type SqlStatement, type SqlValue, sql } from './stores/user-sql.ts'
export type { SilentJob, WorkerActivity, WorkerInfo } from './stores/worker-info.ts'
