/** Durations: a number of milliseconds, or text such as `'30s'` or `'5m'`. */
import { DefinitionInvalid } from '../core/errors.ts'
import { DELAY_MAX_MS } from '../core/retry.ts'

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Milliseconds, or a number with a unit. */
export type Duration = number | `${number}${keyof typeof UNITS}`

/**
 * Returns whole milliseconds. Throws `DefinitionInvalid` if the value is malformed or over a year.
 */
export function toMs(duration: Duration, field: string): number {
  const ms = typeof duration === 'number' ? duration : parse(duration)
  if (Number.isFinite(ms) && ms >= 0 && ms <= DELAY_MAX_MS) return Math.round(ms)
  const form = "must be milliseconds or a text such as '30s', '5m' or '1h', up to a year"
  throw new DefinitionInvalid(field, form)
}

function parse(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text)
  return match === null ? Number.NaN : Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]
}
