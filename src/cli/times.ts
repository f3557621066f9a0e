/** Reads times and durations of options. */
import { toMs } from '../core/durations.ts'
import { shown } from '../core/format.ts'
import { UsageInvalid } from './errors.ts'

/** Returns milliseconds; throws `UsageInvalid`. */
export function readDuration(text: string, option: string): number {
  try {
    return toMs(text as '1s', option)
  } catch {
    throw new UsageInvalid(
      `--${option} must be a duration such as 30s, 5m or 2h, not ${shown(text)}`,
    )
  }
}

/** Reads a date, or a duration before now. */
export function readPast(text: string, option: string, now: number): number {
  return /^[\d.]+(ms|s|m|h|d)$/.test(text)
    ? now - readDuration(text, option)
    : readDate(text, option)
}

/** Reads a date in ISO 8601; without a time zone it is UTC. */
export function readDate(text: string, option: string): number {
  const iso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/.exec(text)
  const time = iso === null ? Number.NaN : Date.parse(iso[1] && !iso[4] ? `${text}Z` : text)
  if (Number.isFinite(time) && time >= 0) return time
  throw new UsageInvalid(
    `--${option} must be a date such as 2026-11-16T09:30:00Z, not ${shown(text)}`,
  )
}
