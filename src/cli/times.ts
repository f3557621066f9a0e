/** Times and lengths of time, as people write them. */
import { toMs } from '../engine/durations.ts'
import { UsageInvalid } from './errors.ts'

/** A duration of an option, in milliseconds. */
export function readDuration(text: string, option: string): number {
  try {
    return toMs(text as '1s', option)
  } catch {
    throw new UsageInvalid(`--${option} must be a duration such as 30s, 5m or 2h`)
  }
}

/** A moment of an option: a date, or a duration before now. */
export function readPast(text: string, option: string, now: number): number {
  return /^[\d.]+(ms|s|m|h|d)$/.test(text)
    ? now - readDuration(text, option)
    : readDate(text, option)
}

/** A date of an option, in ISO 8601; without a zone it is in UTC. */
export function readDate(text: string, option: string): number {
  const iso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/.exec(text)
  const time = iso === null ? Number.NaN : Date.parse(iso[1] && !iso[4] ? `${text}Z` : text)
  if (Number.isFinite(time) && time >= 0) return time
  throw new UsageInvalid(`--${option} must be a date such as 2026-11-16T09:30:00Z`)
}
