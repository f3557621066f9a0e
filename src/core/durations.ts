/** Durations: a number of milliseconds, or text such as `'30s'` or `'5m'`. */
import { CommandInvalid, type DefinitionInvalid } from './errors.ts'
import { shown } from './format.ts'
import { DELAY_MAX_MS } from './retry.ts'

const DAY_MS = 86_400_000
const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: DAY_MS, y: 365 * DAY_MS } as const

/** Milliseconds, or a number with a unit. */
export type Duration = number | `${number}${keyof typeof UNITS}`

/**
 * Returns whole milliseconds. Throws `CommandInvalid`, or the given error, if the value is no
 * duration or longer than a year.
 */
export function toMs(
  duration: Duration,
  field: string,
  Invalid: typeof CommandInvalid | typeof DefinitionInvalid = CommandInvalid,
): number {
  const ms = msOf(duration)
  if (Number.isFinite(ms) && ms >= 0 && ms <= DELAY_MAX_MS) return Math.round(ms)
  const form = "must be milliseconds or a text such as '30s', '5m' or '1h', up to a year"
  throw new Invalid(field, `${form}, not ${shown(duration)}`)
}

/** Returns milliseconds; NaN if the value is no duration. */
export function msOf(duration: Duration): number {
  if (typeof duration === 'number') return duration
  return typeof duration === 'string' ? parse(duration) : Number.NaN
}

function parse(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|y)$/.exec(text)
  return match === null ? Number.NaN : Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]
}
