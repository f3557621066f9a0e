/**
 * Pawl: a durable job and run engine. This is the public surface; what is not exported here may
 * change without notice.
 */
export { sealUp } from './audit/seal-up.ts'
export {
  type SealCopy,
  type SealFinding,
  verifyArchives,
  verifyExport,
  verifySeals,
} from './audit/verify-seals.ts'
export * from './core/canonical-json.ts'
export * from './core/errors.ts'
export {
  type AbortReason,
  type ExecutionStatus,
  executionId,
  executionMachine,
} from './core/execution.ts'
export * from './core/failure.ts'
export type * from './core/job/commands.ts'
export { decide } from './core/job/decide.ts'
export type { Decision } from './core/job/decision.ts'
export { evolve, fold } from './core/job/evolve.ts'
export { type Execution, executionsOf, stateOfExecutions } from './core/job/executions.ts'
export * from './core/job/facts.ts'
export * from './core/job/fence.ts'
export * from './core/job/job.ts'
export * from './core/job/lanes.ts'
export * from './core/job/views.ts'
export { document } from './core/lifecycles/document.ts'
export { hardened } from './core/lifecycles/hardened.ts'
export * from './core/lifecycles/index.ts'
export { leased } from './core/lifecycles/leased.ts'
export {
  type CrashRule,
  defineLifecycle,
  JOB_TRIGGERS,
  type JobTrigger,
  type Lifecycle,
  type LifecycleSpec,
  type Outcome,
  pathOf,
  policyFor,
  type Role,
} from './core/lifecycles/lifecycle.ts'
export { migratedState } from './core/lifecycles/migration.ts'
export { standard } from './core/lifecycles/standard.ts'
export { task } from './core/lifecycles/task.ts'
export { type Analysis, analyse } from './core/machine/analyse.ts'
export * from './core/machine/define.ts'
export * from './core/machine/move.ts'
export { toDot, toMarkdown, toMermaid } from './core/machine/render.ts'
export type * from './core/ports.ts'
export * from './core/promises.ts'
export {
  DEFAULT_POLICY,
  type JobPolicy,
  type PolicyOverrides,
  type RetryPolicy,
  retryDelayBounds,
  retryDelayMs,
} from './core/retry.ts'
export type * from './core/run/commands.ts'
export { decideRun, type RefusedTransition, type RunDecision } from './core/run/decide.ts'
export * from './core/run/events.ts'
export { evolveRun, foldRun } from './core/run/evolve.ts'
export {
  defineRunMachine,
  documentationRun,
  type FixLoop,
  type RunMachine,
  type RunMachineSpec,
  type Way,
} from './core/run/machine.ts'
export type { Artifact, Issue, Run, WorkItem } from './core/run/run.ts'
export {
  downstreamOf,
  type Freshness,
  freshnessOf,
  type ItemRequest,
  isUnchanged,
  staleOutputsOf,
} from './core/run/staleness.ts'
export { workerMachine } from './core/worker.ts'
export type { Patience } from './doctor/checks/check.ts'
export type { RunRecords } from './doctor/checks/runs-are-whole.ts'
export {
  type CheckOptions,
  Doctor,
  type RepairOptions,
  type Report as DoctorReport,
} from './doctor/doctor.ts'
export type { Finding, PromiseId, Remedy, Severity } from './doctor/finding.ts'
export type { Change, Repair } from './doctor/repairs.ts'
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
  SqliteTx,
  Transaction,
  Tx,
} from './engine/effects/effects.ts'
export type { NotifyFunction, NotifyOptions } from './engine/effects/notify.ts'
export type { EffectSelection, EffectsReport } from './engine/effects/retry-effects.ts'
export type { WebhookOptions } from './engine/effects/webhook.ts'
export * from './engine/errors.ts'
export { JobHandle } from './engine/job-handle.ts'
export type { Explanation } from './engine/operators/explain.ts'
export type {
  MigrationMove,
  MigrationReport,
  MigrationSelection,
} from './engine/operators/migrate.ts'
export {
  Operator,
  type OperatorIdentity,
  type OperatorOptions,
} from './engine/operators/operators.ts'
export type { OperatorReport, Refusal } from './engine/operators/report.ts'
export type { Selection } from './engine/operators/selection.ts'
export type { EnqueueOptions, PawlOptions, QueueOptions } from './engine/options.ts'
export type { JobOutcome } from './engine/outcome.ts'
export { type JobKey, Pawl } from './engine/pawl.ts'
export type { RetryOptions } from './engine/retry-options.ts'
export { type InputOf, type OutputOf, type Schema, type Typed, typed } from './engine/schema.ts'
export type * from './engine/watching/events.ts'
export * from './engine/watching/metrics.ts'
export type { WorkOptions } from './engine/work-options.ts'
export type { SlotMove, WorkerState, WorkerTrigger } from './engine/worker/slots.ts'
export type { StepContext, StepFunction } from './engine/worker/steps.ts'
export type { StuckAction, StuckPolicy } from './engine/worker/stuck.ts'
export { JobWorker } from './engine/worker/worker.ts'
export * from './http/errors.ts'
export {
  serveTelemetry,
  type TelemetryServer,
  type TelemetryServerOptions,
} from './http/telemetry-server.ts'
export {
  defineRun,
  type Node,
  type Nodes,
  type RunDefinition,
  type RunOptions,
} from './runs/define-run.ts'
export * from './runs/errors.ts'
export type { ItemExplanation, RunExplanation } from './runs/explain.ts'
export type { InputDisk } from './runs/input-disk.ts'
export type { InputFolder } from './runs/input-files.ts'
export { exportRun, importRun } from './runs/journal/bundle.ts'
export * from './runs/journal/errors.ts'
export { type FolderJournalOptions, openFolderJournal } from './runs/journal/folder/journal.ts'
export { type Fork, forkRun } from './runs/journal/fork.ts'
export type * from './runs/journal/journal.ts'
export { openStoreJournal, type StoreJournalOptions } from './runs/journal/store/journal.ts'
export type { ListedRun, ListOptions } from './runs/listing.ts'
export type { RunOutcome } from './runs/outcome.ts'
export type { Rewind } from './runs/resume-plan.ts'
export type * from './runs/run-context.ts'
export type { RefusedEvent, RunObserver } from './runs/run-log.ts'
export {
  openRuns,
  type RunHandle,
  Runs,
  type ShownRun,
} from './runs/runs.ts'
export type { RunsOptions, StartOptions, StartOrResumeOptions } from './runs/runs-options.ts'
export type { ResumeOptions } from './runs/survey.ts'
export { type HttpSinkOptions, httpSink } from './runs/telemetry/http-sink.ts'
export type { TelemetryEvent, TelemetrySink } from './runs/telemetry/telemetry.ts'
export type { AuditEntry, AuditFilter, AuditOptions } from './stores/audit.ts'
export type { Notice } from './stores/notices.ts'
export type {
  QueueRecord,
  QueueRecordFilter,
  QueueSettings,
} from './stores/queue-records.ts'
export type { Pruning, Removal, Seal, SealTables } from './stores/seals.ts'
