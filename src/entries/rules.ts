/**
 * `pawl/rules`: for programs that define their own machines and lifecycles, or that read, replay
 * and check ledgers without a store. Everything here is data and pure functions.
 */
export * from '../core/canonical-json.ts'
export * from '../core/errors.ts'
export {
  type AbortReason,
  type ExecutionStatus,
  executionId,
  executionMachine,
} from '../core/execution.ts'
export * from '../core/failure.ts'
export type * from '../core/job/commands.ts'
export { decide } from '../core/job/decide.ts'
export type { Decision } from '../core/job/decision.ts'
export { evolve, fold } from '../core/job/evolve.ts'
export { type Execution, executionsOf, stateOfExecutions } from '../core/job/executions.ts'
export * from '../core/job/facts.ts'
export * from '../core/job/fence.ts'
export * from '../core/job/job.ts'
export * from '../core/job/lanes.ts'
export * from '../core/job/views.ts'
export { document } from '../core/lifecycles/document.ts'
export { hardened } from '../core/lifecycles/hardened.ts'
export * from '../core/lifecycles/index.ts'
export { leased } from '../core/lifecycles/leased.ts'
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
} from '../core/lifecycles/lifecycle.ts'
export { migratedState } from '../core/lifecycles/migration.ts'
export { standard } from '../core/lifecycles/standard.ts'
export { task } from '../core/lifecycles/task.ts'
export { type Analysis, analyse } from '../core/machine/analyse.ts'
export * from '../core/machine/define.ts'
export * from '../core/machine/move.ts'
export { toDot, toMarkdown, toMermaid } from '../core/machine/render.ts'
export * from '../core/promises.ts'
export {
  DEFAULT_POLICY,
  type JobPolicy,
  type PolicyOverrides,
  type RetryPolicy,
  retryDelayBounds,
  retryDelayMs,
} from '../core/retry.ts'
export type * from '../core/run/commands.ts'
export { decideRun, type RefusedTransition, type RunDecision } from '../core/run/decide.ts'
export * from '../core/run/events.ts'
export { evolveRun, foldRun } from '../core/run/evolve.ts'
export {
  defineRunMachine,
  documentationRun,
  type FixLoop,
  type RunMachine,
  type RunMachineSpec,
  type Way,
} from '../core/run/machine.ts'
export type { Artifact, Issue, Run, Validation, WorkItem } from '../core/run/run.ts'
export {
  downstreamOf,
  type Freshness,
  freshnessOf,
  type ItemRequest,
  isUnchanged,
  staleOutputsOf,
} from '../core/run/staleness.ts'
export {
  describeThrown,
  fingerprintOf,
  type Redact,
  type ThrownError,
} from '../core/thrown.ts'
export { decodeValue, encodeValue } from '../core/values.ts'
export { workerMachine } from '../core/worker.ts'
