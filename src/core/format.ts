/**
 * Values as text for people. Messages use these forms everywhere; `details` and `--json` have the
 * exact numbers.
 */

const TIME_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const

/** Returns a duration in its largest units: `2h 5m`, `1.2s`, `40ms`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1).replace(/\.0$/, '')}s`
  const parts: string[] = []
  let rest = ms
  for (const [unit, size] of TIME_UNITS) {
    const count = Math.floor(rest / size)
    if (count > 0 && parts.length < 2) parts.push(`${count}${unit}`)
    else if (parts.length > 0) break
    rest -= count * size
  }
  return parts.join(' ')
}

const SIZE_UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const

/** Returns a number of bytes in its largest unit, with 1024 bytes to a KiB: `1.2 MiB`. */
export function size(bytes: number): string {
  if (bytes < 1024) return bytes === 1 ? '1 byte' : `${bytes} bytes`
  let value = bytes
  let unit = -1
  do {
    value /= 1024
    unit++
  } while (value >= 1023.95 && unit < SIZE_UNITS.length - 1)
  return `${value.toFixed(1).replace(/\.0$/, '')} ${SIZE_UNITS[unit]}`
}

const SHOWN_MAX = 40

/** Describes a value that was rejected. Long texts are cut; objects are only named. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > SHOWN_MAX ? `${value.slice(0, SHOWN_MAX)}…` : value)
  }
  if (value === null || value === undefined || typeof value === 'boolean') return String(value)
  return typeof value === 'number' ? numberText(value) : typeName(value)
}

/** Names the type of a value that was rejected, without its content, which may be a secret. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : 'a Date'
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`
}

/** Returns the start of a text if it is long, so that a message stays readable. */
export function brief(text: string, max = 120): string {
  return text.length > max ? `${text.slice(0, max)}…` : text
}

function numberText(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}
