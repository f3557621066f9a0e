/** Points in time as text for people. */
import { span } from '../core/format.ts'

/** Returns the distance of a time from now: `3m ago`, `in 20s`. */
export function relative(time: number, now: number): string {
  return time <= now ? `${span(now - time)} ago` : `in ${span(time - now)}`
}

/** Returns a time in UTC. A number that is not a valid time is returned as it is. */
export function stamp(time: number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString()
}

/** Returns a time in UTC and its distance from now. */
export function moment(time: number, now: number): string {
  return `${stamp(time)} (${relative(time, now)})`
}
