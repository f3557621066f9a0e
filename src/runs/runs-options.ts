/** The options of `openRuns` and of the methods of `Runs`. */
import { abortSignal, count, flag, listOf, name, record, text } from '../core/checks.ts'
import { type FieldChecks, unchecked } from '../core/fields.ts'
import type { Logger } from '../core/ports.ts'
import type { Pawl } from '../engine/pawl.ts'
import { checkTracing, type TracingOptions } from '../engine/tracing/tracing-options.ts'
import type { Metrics } from '../engine/watching/metrics.ts'
import type { Environment } from '../environment/system.ts'
import type { RunDefinition } from './define-run.ts'
import type { InputDisk } from './input-disk.ts'
import type { EventRange, Journal } from './journal/journal.ts'
import type { RunObserver } from './run-log.ts'
import type { TelemetrySink } from './telemetry/telemetry.ts'

/** A run definition with any type of input. */
// biome-ignore lint/suspicious/noExplicitAny: the type of the input is known to its definition
export type AnyRun = RunDefinition<any>

/** The options of `openRuns`. */
export interface RunsOptions {
  /**
   * The folder with one folder for each run. Set either this or `journal`.
   * @defaultValue none
   */
  readonly folder?: string
  /**
   * An open journal, for example of runs in a store.
   * @defaultValue none
   */
  readonly journal?: Journal
  /**
   * The definitions of the runs that this process can resume.
   * @defaultValue `[]`
   */
  readonly runs?: readonly AnyRun[]
  /**
   * The Pawl on which work items with `job` are enqueued.
   * @defaultValue none
   */
  readonly pawl?: Pawl
  /**
   * The clock, timers, random numbers and ids; tests replace them.
   * @defaultValue those of the process
   */
  readonly environment?: Environment
  /**
   * Receives log lines: a message and its fields.
   * @defaultValue none
   */
  readonly logger?: Logger
  /**
   * Receives events after they are durable, and refused transitions.
   * @defaultValue none
   */
  readonly observer?: RunObserver
  /**
   * Receives events after they are durable. Events are sent again if the sink fails.
   * @defaultValue none
   */
  readonly telemetry?: TelemetrySink
  /**
   * The folder for telemetry's cursors.
   * @defaultValue `.telemetry` in the folder of runs
   */
  readonly telemetryFolder?: string
  /**
   * Makes spans of OpenTelemetry; needs the package `@opentelemetry/api`. True for the provider
   * that is registered globally.
   * @defaultValue `false`
   */
  readonly tracing?: boolean | TracingOptions
  /**
   * Receives measurements; `METRICS` lists their names.
   * @defaultValue none
   */
  readonly metrics?: Metrics
  /**
   * The name of this process in events.
   * @defaultValue host name and process id
   */
  readonly worker?: string
  /**
   * Reads input files.
   * @defaultValue the disk of this machine
   */
  readonly disk?: InputDisk
}

/** The options of `start`. */
export interface StartOptions<Input> {
  /** The id of the run. Default: a new id. */
  readonly runId?: string
  readonly input?: Input
  /** Stops the work. The run can be resumed. */
  readonly signal?: AbortSignal
}

/** The options of `resume` and `explain`. */
export interface ResumeOptions {
  /** Keys of finished work items to run again. */
  readonly force?: readonly string[]
  /** Runs stale items again even if their inputs turn out to be unchanged. */
  readonly strict?: boolean
  /** Reads every input file and artifact again, even if its size and times have not changed. */
  readonly paranoid?: boolean
}

/** The options of `startOrResume`. */
export interface StartOrResumeOptions<Input> extends StartOptions<Input>, ResumeOptions {
  readonly runId: string
}

const RUNS_MAX = 10_000
const path = (value: string) => text(value, PATH_MAX)
const PATH_MAX = 4096

/** The options of `openRuns`. */
export const OPEN_OPTIONS: FieldChecks<RunsOptions> = {
  folder: path,
  journal: record,
  runs: (values: readonly object[]) => listOf(values, RUNS_MAX, record),
  pawl: record,
  environment: record,
  logger: record,
  observer: record,
  telemetry: record,
  telemetryFolder: path,
  tracing: checkTracing,
  metrics: record,
  worker: name,
  disk: record,
}

const seq = (value: number) => count(value, 0, Number.MAX_SAFE_INTEGER)

/** The range of `events`. */
export const EVENT_RANGE: FieldChecks<EventRange> = { from: seq, to: seq }

/** The options of `start`. */
export const START_OPTIONS: FieldChecks<StartOptions<unknown>> = {
  runId: unchecked,
  input: unchecked,
  signal: abortSignal,
}

/** How many work items one call can force. */
const FORCED_MAX = 10_000

export const SURVEY_OPTIONS: FieldChecks<ResumeOptions> = {
  force: (value) => listOf(value, FORCED_MAX, unchecked),
  strict: flag,
  paranoid: flag,
}
