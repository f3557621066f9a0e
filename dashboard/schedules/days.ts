/** Ticks by days of the schedule's time zone, and the nights on which its clocks change. Pure. */

export interface Day<Item> {
  /** `Tue 17 Nov`. */
  readonly title: string
  /** How many minutes the clocks go forward on this day; negative if they go back. */
  readonly shiftMinutes: number
  readonly items: readonly Item[]
}

/** Formats times of one zone; UTC if this browser does not know the zone. */
export class ZoneFormat {
  readonly zone: string
  readonly #day: Intl.DateTimeFormat
  readonly #time: Intl.DateTimeFormat
  readonly #parts: Intl.DateTimeFormat

  constructor(zone: string | undefined) {
    this.zone = isKnown(zone) ? zone : 'UTC'
    const own = { timeZone: this.zone } as const
    this.#day = new Intl.DateTimeFormat('en-GB', {
      ...own,
      ...{ weekday: 'short', day: 'numeric', month: 'short' },
    })
    this.#time = new Intl.DateTimeFormat('en-GB', {
      ...own,
      ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' },
    })
    this.#parts = new Intl.DateTimeFormat('en-GB', {
      ...own,
      ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
      ...{ hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' },
    })
  }

  day(at: number): string {
    return this.#day.format(at)
  }

  /** The time of day; seconds only if there are any. */
  time(at: number): string {
    return this.#time.format(at).replace(/:00$/, '')
  }

  /** The local time as if it were UTC. */
  local(at: number): number {
    const found = this.#parts.formatToParts(at)
    const part = (name: string) => Number(found.find(({ type }) => type === name)?.value ?? 0)
    const [year, month, day] = [part('year'), part('month') - 1, part('day')]
    return Date.UTC(year, month, day, part('hour'), part('minute'), part('second'))
  }

  /** By how many minutes the clocks are changed on the day of a time. */
  shiftOn(at: number): number {
    const ofDay = this.local(at) % DAY_MS
    const start = at - ofDay
    return Math.round((this.#offset(start + DAY_MS) - this.#offset(start)) / 60_000)
  }

  #offset(at: number): number {
    const whole = Math.floor(at / 1000) * 1000
    return this.local(whole) - whole
  }
}

const DAY_MS = 86_400_000

function isKnown(zone: string | undefined): zone is string {
  if (zone === undefined) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}

/** Groups items by day. They must be sorted by time. */
export function byDay<Item>(
  items: readonly Item[],
  atOf: (item: Item) => number,
  format: ZoneFormat,
): readonly Day<Item>[] {
  const days: { title: string; shiftMinutes: number; items: Item[] }[] = []
  for (const item of items) {
    const title = format.day(atOf(item))
    const last = days.at(-1)
    if (last?.title === title) last.items.push(item)
    else days.push({ title, shiftMinutes: format.shiftOn(atOf(item)), items: [item] })
  }
  return days
}
