/** Times and durations as text for people. */

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const

/** Returns a duration in its largest units: `2h 5m`, `1.2s`, `40ms`. */
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
