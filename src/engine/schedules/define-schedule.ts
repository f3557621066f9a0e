/** Schedules: a job type, its input, and when jobs are made. */
import { flag, oneOf, record } from '../../core/checks.ts'
import { type Duration, toMs } from '../../core/durations.ts'
import { CommandInvalid, DefinitionInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { shown } from '../../core/format.ts'
import { findRulesFault, type ScheduleRules } from '../../core/schedule/definition.ts'
import { scheduleName } from '../../core/schedule/keys.ts'
import { OVERLAPS, type Overlap } from '../../core/schedule/overlap.ts'
import { CATCH_UP_MODES, type CatchUp } from '../../core/schedule/plan.ts'
import type { Timing } from '../../core/schedule/ticks.ts'
import { type AnyJob, checkJobType, type JobKey } from '../job-types.ts'
import { ticksOf } from './cron.ts'

const DAY_MS = 86_400_000

/** What every schedule has, whatever its timing. */
export interface ScheduleBase<Input> {
  /** The name of the schedule; it is stored under it. At most 200 characters. */
  readonly name: string
  /** The type of the jobs that it makes. */
  readonly job: JobKey<Input, unknown>
  /**
   * What to do if a job of this schedule has neither ended nor been parked: make none ('skip'), let
   * one tick or all ticks wait ('bufferOne', 'bufferAll'), cancel that job first ('cancelOther'),
   * or make the job at once ('allowAll').
   * @defaultValue `'skip'`
   */
  readonly overlap?: Overlap
  /**
   * How ticks are handled for which no worker made a job within a minute: they are missed ('none'),
   * or a job is made for the last of them ('latest') or for each ('all') that is within `within`.
   * @defaultValue `{ mode: 'latest', within: '1d' }`
   */
  readonly catchUp?:
    | CatchUp['mode']
    | { readonly mode: CatchUp['mode']; readonly within?: Duration }
  /**
   * Delays each job by up to this time, by a delay that depends on name and tick alone.
   * @defaultValue none
   */
  readonly jitter?: Duration
  /**
   * Pauses the schedule when one of its jobs has failed; an operator resumes it.
   * @defaultValue `false`
   */
  readonly pauseOnFailure?: boolean
}

/** When a schedule is due: a cron expression with a time zone, or an interval without one. */
export type ScheduleTiming =
  | {
      /** Five fields, or six with a first one for seconds. */
      readonly cron: string
      /**
       * The time zone of the expression, an IANA name.
       * @defaultValue `'UTC'`
       */
      readonly timezone?: string
      readonly every?: never
    }
  | {
      /** At least a second. Ticks are at the multiples of the interval since 1970 in UTC. */
      readonly every: Duration
      readonly cron?: never
      readonly timezone?: never
    }

/** The input of the jobs; it may be left out only if the job type takes none. */
export type ScheduleInput<Input> = undefined extends Input
  ? { readonly input?: NoInfer<Input> }
  : { readonly input: NoInfer<Input> }

/** The options of `defineSchedule`. */
export type ScheduleOptions<Input> = ScheduleBase<Input> & ScheduleTiming & ScheduleInput<Input>

/** A schedule, for `createPawl({ schedules })` and `pawl.schedules.put`. */
export interface ScheduleDefinition {
  readonly name: string
  readonly job: AnyJob
  readonly input: unknown
  /** As it is stored. */
  readonly rules: ScheduleRules
}

/** Defines a schedule. Throws `DefinitionInvalid` if it could never run as it says. */
export function defineSchedule<Input>(options: ScheduleOptions<Input>): ScheduleDefinition {
  checkFields(options as Options, OPTIONS, { what: 'options', refuse: invalid(options?.name) })
  const { name, job, input } = options as Options & { readonly input?: unknown }
  try {
    const rules = rulesOf(options as Options)
    const fault = findRulesFault(name, rules)
    if (fault !== undefined) throw fault
    if (ticksOf(rules.timing).next(0) !== undefined) return { name, job, input, rules }
    throw new CommandInvalid('cron', `never comes: ${shown(options.cron)} has no date`)
  } catch (error) {
    if (!(error instanceof CommandInvalid)) throw error
    const { field, why } = error.details as { readonly field: string; readonly why: string }
    throw invalid(name)(field, why)
  }
}

interface Options extends ScheduleBase<unknown> {
  readonly input?: unknown
  readonly cron?: string
  readonly timezone?: string
  readonly every?: Duration
}

const OPTIONS: FieldChecks<Options> = {
  name: scheduleName,
  job: unchecked,
  input: unchecked,
  cron: (value: unknown) => (typeof value === 'string' ? undefined : 'must be a text'),
  timezone: (value: unknown) => (typeof value === 'string' ? undefined : 'must be a text'),
  // Durations are checked when they are converted to milliseconds.
  every: unchecked,
  overlap: (value: string) => oneOf(value, OVERLAPS),
  catchUp: (value: string | object) =>
    typeof value === 'string' ? oneOf(value, CATCH_UP_MODES) : record(value),
  jitter: unchecked,
  pauseOnFailure: flag,
}

/** A program has many definitions, so the error names the one that is wrong. */
function invalid(name: unknown): (field: string, why: string, hint?: string) => DefinitionInvalid {
  const isNamed = typeof name === 'string' && name !== ''
  const what = isNamed ? `schedule ${shown(name)}` : 'a schedule without a name'
  return (field, why, hint) => new DefinitionInvalid(what, `${field}: ${why}`, hint)
}

function rulesOf(options: Options): ScheduleRules {
  const { job, overlap = 'skip', jitter = 0, pauseOnFailure = false } = options
  checkJobType(job as AnyJob)
  if ((job as AnyJob).groups !== undefined) {
    throw new CommandInvalid('job', 'must not have `after`: only pawl.flow makes such jobs')
  }
  const { name: type, queue, priority, aheadMs, timeoutMs, policy, lifecycle } = job as AnyJob
  return {
    timing: timingOf(options),
    overlap,
    catchUp: catchUpOf(options.catchUp),
    jitterMs: toMs(jitter, 'jitter'),
    pauseOnFailure,
    job: {
      type,
      queue,
      lifecycle: lifecycle.name,
      lifecycleVersion: lifecycle.version,
      ...(priority !== 0 && { priority }),
      ...(aheadMs > 0 && { aheadMs }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(policy !== undefined && { policy }),
    },
  }
}

function timingOf({ cron, timezone, every }: Options): Timing {
  if (every === undefined) {
    if (cron === undefined) throw new CommandInvalid('cron', 'or every must be given')
    return { kind: 'cron', cron: cron.trim(), timezone: timezone ?? 'UTC' }
  }
  if (cron !== undefined) throw new CommandInvalid('every', 'must not be given together with cron')
  if (timezone === undefined) return { kind: 'every', everyMs: toMs(every, 'every') }
  throw new CommandInvalid('timezone', 'must not be given with every, which follows UTC')
}

const CATCH_UP: FieldChecks<{ mode: string; within?: Duration }> = {
  mode: (value: string) => oneOf(value, CATCH_UP_MODES),
  within: unchecked,
}

function catchUpOf(given: Options['catchUp'] = 'latest'): CatchUp {
  const { mode, within = DAY_MS } =
    typeof given === 'string' ? { mode: given, within: undefined } : given
  if (typeof given === 'object') {
    checkFields(given, CATCH_UP, { what: 'catchUp', prefix: 'catchUp.' })
  }
  return { mode, withinMs: mode === 'none' ? 0 : toMs(within, 'catchUp.within') }
}
