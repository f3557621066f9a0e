/**
 * `pawl/define`: for programs that only name jobs and build their inputs, such as functions at the
 * edge and pages in a browser. It imports nothing from Node, and no store and no worker.
 */
export type { JsonBounds } from '../core/canonical-json.ts'
export type { Duration } from '../core/durations.ts'
export { DefinitionInvalid, PawlError, ValueInvalid } from '../core/errors.ts'
export { document } from '../core/lifecycles/document.ts'
export { hardened } from '../core/lifecycles/hardened.ts'
export { leased } from '../core/lifecycles/leased.ts'
export type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
export { standard } from '../core/lifecycles/standard.ts'
export { task } from '../core/lifecycles/task.ts'
export { decodeValue, encodeValue } from '../core/values.ts'
export {
  type ApprovalAnswer,
  type ApprovalPayload,
  type ApprovalSignal,
  approval,
} from '../engine/approvals.ts'
export {
  defineJob,
  type JobDefinition,
  type JobOptions,
  type RunnableJob,
} from '../engine/define-job.ts'
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
} from '../engine/define-signal.ts'
export type { Deliver, EffectOptions, Effects, NoEffects } from '../engine/effects/effects.ts'
export {
  type AfterGroup,
  type AfterOptions,
  type AfterValues,
  type OneOrList,
  type OutputOfJob,
  type SettledAfter,
  settled,
} from '../engine/flows/after.ts'
export type {
  AttemptContext,
  DependentContext,
  Handler,
  JobContext,
  WaitingContext,
} from '../engine/job-context.ts'
export type { AnyJob, AnyValue } from '../engine/job-types.ts'
export {
  defineLimit,
  type KeyedLimit,
  type LimitBy,
  type LimitOptions,
  type SharedLimit,
} from '../engine/limits/define-limit.ts'
export type { GroupOptions, RotatingGroup, StrictGroup } from '../engine/limits/group.ts'
export type {
  ConcurrencyLimit,
  JobLimits,
  KeyLimit,
  OneOrMore,
  ThrottleOptions,
  TypeLimit,
} from '../engine/limits/job-limits.ts'
export type { RetryOptions } from '../engine/retry-options.ts'
export { type InputOf, type OutputOf, type Schema, type Typed, typed } from '../engine/schema.ts'
export type { NotStorable, Storable } from '../engine/storable.ts'
