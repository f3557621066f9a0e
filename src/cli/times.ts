/** Times and lengths of time, as people read and write them. */
import { toMs } from '../engine/durations.ts'
import { UsageInvalid } from './errors.ts'

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const

/** A length of time in its largest units: `2h 5m`, `1.2s`, `40ms`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`
  const parts: string[] = []
  let rest = ms
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size)
    if (count > 0 && parts.length < 2) parts.push(`${count}${unit}`)
    else if (parts.length > 0) break
    rest -= count * size
  }
  return parts.join(' ')
}

/** How far away a time is: `3m ago`, `in 20s`. */
export function relative(time: number, now: number): string {
  return time <= now ? `${span(now - time)} ago` : `in ${span(time - now)}`
}

/** A time in UTC; a number that is no time is shown as it is. */
export function stamp(time: number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString()
}

/** A time and how far away it is. */
export function moment(time: number, now: number): string {
  return `${stamp(time)} (${relative(time, now)})`
}

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
