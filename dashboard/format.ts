/** Numbers and times as text. */
const THIN = '\u202f'

/** A whole number with thin separators: `48 210`. */
export function count(value: number): string {
  return String(Math.round(value)).replaceAll(/\B(?=(\d{3})+$)/g, THIN)
}

/** A number for navigation: exact below 10,000, then rounded: `1.2 M`. */
export function rounded(value: number): string {
  if (value < 10_000) return count(value)
  const [size, unit] = value < 1e6 ? [1e3, 'k'] : value < 1e9 ? [1e6, 'M'] : [1e9, 'G']
  const part = value / size
  return `${part < 10 ? part.toFixed(1) : Math.round(part)}${THIN}${unit}`
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** A duration in one unit: `41 s`, `4 min`, `310 ms`. */
export function span(ms: number): string {
  const length = Math.abs(ms)
  if (length < 1000) return `${Math.round(length)}${THIN}ms`
  if (length < 10_000) return `${(length / 1000).toFixed(1).replace(/\.0$/, '')}${THIN}s`
  const [unit, size] = UNITS.find(([, one]) => length >= one) ?? ['s', 1000]
  return `${Math.floor(length / size)}${THIN}${unit}`
}

/** How long ago, or until when: `2 h ago`, `in 5 s`. */
export function relative(at: number, now: number): string {
  const ms = at - now
  if (Math.abs(ms) < 1000) return 'now'
  return ms < 0 ? `${span(ms)} ago` : `in ${span(ms)}`
}

/** The exact time, in this time zone and in UTC, for a hover. */
export function exact(at: number): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  return `${localTime(date)} here, ${date.toISOString()}`
}

/** Date and time of day with milliseconds, in this time zone. */
function localTime(date: Date): string {
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(two).join('-')
  return `${day} ${clock(date.getTime())}`
}

/** The time of day with milliseconds, in this time zone: `14:03:02.418`. */
export function clock(at: number): string {
  const date = new Date(at)
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')
  return `${parts}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

/** `1 job`, `12 jobs`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`
}
