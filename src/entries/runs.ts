/** `pawl/runs`: for programs that define runs, start and resume them, and keep their journals. */
export {
  GuardRefused,
  RewindRefused,
  RunEnded,
  RunExists,
  RunNotFound,
} from '../core/errors.ts'
export type { RunEvent, RunFact } from '../core/run/events.ts'
export {
  defineRunMachine,
  documentationRun,
  type FixLoop,
  type RunMachine,
  type RunMachineSpec,
  type Way,
} from '../core/run/machine.ts'
export type { Artifact, Issue, Run, Validation, WorkItem } from '../core/run/run.ts'
export type { InputOf, Schema } from '../engine/schema.ts'
export type { Environment } from '../environment/system.ts'
export {
  defineRun,
  type Node,
  type Nodes,
  type RunDefinition,
  type RunOptions,
} from '../runs/define-run.ts'
export * from '../runs/errors.ts'
export type { ItemExplanation, RunExplanation } from '../runs/explain.ts'
export type { InputDisk } from '../runs/input-disk.ts'
export type { InputFolder } from '../runs/input-files.ts'
export { exportRun, importRun } from '../runs/journal/bundle.ts'
export * from '../runs/journal/errors.ts'
export { type FolderJournalOptions, openFolderJournal } from '../runs/journal/folder/journal.ts'
export { type Fork, forkRun } from '../runs/journal/fork.ts'
export type * from '../runs/journal/journal.ts'
export { openStoreJournal, type StoreJournalOptions } from '../runs/journal/store/journal.ts'
export type { ListedRun, ListOptions } from '../runs/listing.ts'
export type {
  ArtifactHandle,
  EachOptions,
  Issues,
  ItemContext,
  JobWork,
  RunContext,
  SectionHandle,
  WorkInputs,
  WorkOptions as RunWorkOptions,
} from '../runs/node-context.ts'
export type { RunOutcome } from '../runs/orchestrator.ts'
export type { Rewind } from '../runs/resume-plan.ts'
export type { RefusedEvent as RefusedRunEvent, RunObserver } from '../runs/run-log.ts'
export { openRuns, type RunHandle, Runs, type ShownRun } from '../runs/runs.ts'
export type {
  ResumeOptions,
  RunsOptions,
  StartOptions,
  StartOrResumeOptions,
} from '../runs/runs-options.ts'
export { type HttpSinkOptions, httpSink } from '../runs/telemetry/http-sink.ts'
export type { TelemetryEvent, TelemetrySink } from '../runs/telemetry/telemetry.ts'
