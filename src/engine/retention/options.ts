/** The options of retention and their checks. Uses nothing of Node: `pawl/define` loads it. */
import { callable } from '../../core/checks.ts'
import { type Duration, msOf } from '../../core/durations.ts'
import { CommandInvalid, DefinitionInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { shown } from '../../core/format.ts'
import { ENDED_WORDS, KEEP_MAX_MS, type KeepTimes } from '../../core/retention.ts'

/** How long ended jobs are kept. Parked jobs have not ended and are always kept. */
export interface KeepOptions {
  /**
   * How long jobs are kept that succeeded; false for without limit.
   * @defaultValue without limit; for a job type, that of `createPawl`
   */
  readonly succeeded?: Duration | false
  /**
   * The same for jobs that failed.
   * @defaultValue without limit; for a job type, that of `createPawl`
   */
  readonly failed?: Duration | false
  /**
   * The same for jobs that were cancelled.
   * @defaultValue without limit; for a job type, that of `createPawl`
   */
  readonly cancelled?: Duration | false
}

/** How long ended jobs and their keys are kept. Workers remove what is older. */
export interface RetentionOptions extends KeepOptions {
  /**
   * For how long the key of a removed job stays taken, counted from the end of the job.
   * @defaultValue none: the key is free when its job is removed
   */
  readonly keys?: Duration
  /**
   * Receives the facts of jobs as lines of NDJSON, before the jobs are removed. If it rejects, they
   * are kept. `toFolder` makes one that writes files.
   * @defaultValue none
   */
  readonly archive?: (lines: string) => Promise<void>
}

/** How long jobs of one type are kept, in milliseconds; null for without limit. */
export type OwnKeepTimes = { readonly [Word in keyof KeepTimes]?: number | null }

const KEEP: FieldChecks<KeepOptions> = {
  succeeded: unchecked,
  failed: unchecked,
  cancelled: unchecked,
}

const RETENTION: FieldChecks<RetentionOptions> = { ...KEEP, keys: unchecked, archive: callable }

type Invalid = typeof CommandInvalid | typeof DefinitionInvalid

/** Checks the retention of a job type; throws `DefinitionInvalid`. */
export function ownKeepTimesOf(options: KeepOptions | undefined): OwnKeepTimes | undefined {
  if (options === undefined) return undefined
  const refuse = (field: string, why: string, hint?: string) =>
    new DefinitionInvalid(field, why, hint)
  checkFields(options, KEEP, { what: 'retention', prefix: 'retention.', refuse })
  return timesOf(options, DefinitionInvalid)
}

/** Checks the option `retention` of `createPawl`; throws `CommandInvalid`. */
export function checkRetention(options: RetentionOptions): undefined {
  checkFields(options, RETENTION, { what: 'retention', prefix: 'retention.' })
  timesOf(options, CommandInvalid)
  if (options.keys !== undefined) keepMsOf('keys', options.keys, CommandInvalid)
  return undefined
}

/** The times of options, in milliseconds. */
export function timesOf(options: KeepOptions, Invalid: Invalid): OwnKeepTimes {
  const given = ENDED_WORDS.flatMap((word) => {
    const time = options[word]
    if (time === undefined) return []
    return [[word, time === false ? null : keepMsOf(word, time, Invalid)] as const]
  })
  return Object.fromEntries(given)
}

/** Retention is for history: a shorter time could remove a job before its result is read. */
const KEEP_MIN_MS = 1000

/** A time to keep something, in milliseconds. */
export function keepMsOf(field: string, time: Duration, Invalid: Invalid): number {
  const ms = msOf(time)
  if (ms >= KEEP_MIN_MS && ms <= KEEP_MAX_MS) return Math.round(ms)
  const form = "must be a time such as '1h', '7d' or '1y', from one second to 100 years"
  throw new Invalid(`retention.${field}`, `${form}, not ${shown(time)}`)
}
