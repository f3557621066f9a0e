/** Durations as the command line takes them: `90s`, `5m`. Pure. */

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Milliseconds; undefined if the text is no duration. */
export function readDuration(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/.exec(text.trim()) ?? []
  const ms = Number(amount) * (UNITS[unit] ?? Number.NaN)
  return Number.isFinite(ms) ? Math.round(ms) : undefined
}

/** The shortest text of a duration. */
export function writeDuration(ms: number): string {
  const found = Object.entries(UNITS)
    .reverse()
    .find(([, size]) => ms >= size && ms % size === 0)
  const [unit, size] = found ?? ['ms', 1]
  return `${ms / size}${unit}`
}
