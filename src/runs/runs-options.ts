/** What `openRuns` and its calls take. */
import { abortSignal } from '../core/checks.ts'
import { type FieldChecks, unchecked } from '../core/fields.ts'
import type { Logger } from '../core/ports.ts'
import type { Pawl } from '../engine/pawl.ts'
import type { Environment } from '../environment/system.ts'
import type { RunDefinition } from './define-run.ts'
import type { InputDisk } from './input-disk.ts'
import type { Journal } from './journal/journal.ts'
import type { RunObserver } from './run-log.ts'
import type { ResumeOptions } from './survey.ts'
import type { TelemetrySink } from './telemetry/telemetry.ts'

/** A kind of run, whatever its input. */
// biome-ignore lint/suspicious/noExplicitAny: what a run takes is an affair of its definition
export type AnyRun = RunDefinition<any>

/** How to open runs. */
export interface RunsOptions {
  /** The folder in which each run has its own; or a journal that is open already. */
  readonly folder?: string
  readonly journal?: Journal
  /** The kinds of run that this process can resume. */
  readonly runs?: readonly AnyRun[]
  /** Where work items are enqueued that jobs do. */
  readonly pawl?: Pawl
  readonly environment?: Environment
  readonly logger?: Logger
  /** Told of what has become durable, and of transitions that were refused. */
  readonly observer?: RunObserver
  /** Where events are sent after they are durable; sent again while that cannot be reached. */
  readonly telemetry?: TelemetrySink
  /** Where telemetry keeps how far it has come; `.telemetry` in the folder of runs if absent. */
  readonly telemetryFolder?: string
  /** The name under which this process works; host and process if absent. */
  readonly worker?: string
  /** Where input files lie; the disk of this machine if absent. */
  readonly disk?: InputDisk
}

/** What may be said of a run when it is started. */
export interface StartOptions<Input> {
  /** An id of the caller's own. */
  readonly runId?: string
  readonly input?: Input
  /** Stops the work; the run can be resumed. */
  readonly signal?: AbortSignal
}

/** What is said of a run that is started, or resumed if it is there. */
export interface StartOrResumeOptions<Input> extends StartOptions<Input>, ResumeOptions {
  readonly runId: string
}

/** The options of `openRuns`. */
export const OPEN_OPTIONS: FieldChecks<RunsOptions> = {
  folder: unchecked,
  journal: unchecked,
  runs: unchecked,
  pawl: unchecked,
  environment: unchecked,
  logger: unchecked,
  observer: unchecked,
  telemetry: unchecked,
  telemetryFolder: unchecked,
  worker: unchecked,
  disk: unchecked,
}

/** The options of `start`. */
export const START_OPTIONS: FieldChecks<StartOptions<unknown>> = {
  runId: unchecked,
  input: unchecked,
  signal: abortSignal,
}
