/**
 * The order of claims within a queue: by priority, then by due time, then by age. Smaller numbers
 * come first, so that jobs with a small number can keep those with a larger one waiting without
 * end. `{ ahead: '2m' }` cannot: such a job has the priority 0 and is treated as if it had been due
 * two minutes earlier. A job that was due two minutes before it comes first.
 *
 * Only the order changes. A job never starts before its due time, and waiting times are measured
 * from the due time.
 */
import { type Duration, toMs } from '../durations.ts'
import { CommandInvalid, type DefinitionInvalid } from '../errors.ts'
import { checkFields, unchecked } from '../fields.ts'
import { shown } from '../format.ts'

/** A job can be at most a day ahead: a job of priority 0 waits at most that much longer. */
export const AHEAD_MAX_MS = 86_400_000

/** A number, of which smaller ones are claimed first; or a time by which a job is ahead. */
export type Priority = number | { readonly ahead: Duration }

/** A priority as it is stored. */
export interface ReadPriority {
  readonly priority: number
  /** 0 for a priority that is a number. */
  readonly aheadMs: number
}

/** Throws `CommandInvalid`, or the given error, if the value is neither a number nor a time. */
export function readPriority(
  value: Priority,
  Invalid: typeof CommandInvalid | typeof DefinitionInvalid = CommandInvalid,
): ReadPriority {
  if (typeof value === 'number') return { priority: value, aheadMs: 0 }
  if (typeof value !== 'object' || value === null || !('ahead' in value)) {
    throw new Invalid('priority', `must be a whole number or { ahead: '2m' }, not ${shown(value)}`)
  }
  checkFields(
    value,
    { ahead: unchecked },
    {
      what: 'priority',
      prefix: 'priority.',
      refuse: (field, why) => new Invalid(field, why),
    },
  )
  const aheadMs = toMs(value.ahead, 'priority.ahead', Invalid)
  if (aheadMs <= AHEAD_MAX_MS) return { priority: 0, aheadMs }
  throw new Invalid('priority.ahead', 'must not be more than a day')
}

/** The time by which jobs with the same number are ordered. */
export function orderAt(job: { readonly runAt: number | null; readonly aheadMs: number }): number {
  return (job.runAt as number) - job.aheadMs
}
