// Cron in time zones, on the nights in which clocks change. The expected times are typed by hand
// from the rules of each zone, so that a change of croner, or of the zone data, is noticed.
import { describe, expect, it } from 'vitest'
import { listTicks } from '../../src/core/schedule/ticks.ts'
import { ticksOf } from '../../src/engine/schedules/cron.ts'

/** Ticks between two times, in UTC, without seconds. */
function ticks(cron: string, timezone: string, from: string, to: string): string[] {
  const source = ticksOf({ kind: 'cron', cron, timezone })
  const [after, until] = [Date.parse(`${from}Z`) - 1, Date.parse(`${to}Z`)]
  return listTicks(source, after, until, 10_000).map((tick) =>
    new Date(tick).toISOString().slice(0, 16),
  )
}

interface Night {
  readonly zone: string
  /** A fixed local time in the gap or in the repeated time, as cron. */
  readonly fixed: string
  /** From the evening before to the evening after. */
  readonly from: string
  readonly to: string
  /** When the fixed time runs: once. */
  readonly once: readonly string[]
  /** Each half hour: as much as time passes. */
  readonly halfHours: number
}

/** Gaps: the fixed time does not exist, and runs when the gap ends. */
const GAPS: readonly Night[] = [
  {
    ...{ zone: 'Europe/Berlin', fixed: '30 2 * * *', halfHours: 48 },
    ...{ from: '2026-03-28T12:00', to: '2026-03-29T11:59', once: ['2026-03-29T01:00'] },
  },
  {
    ...{ zone: 'America/New_York', fixed: '30 2 * * *', halfHours: 48 },
    ...{ from: '2026-03-07T17:00', to: '2026-03-08T16:59', once: ['2026-03-08T07:00'] },
  },
  {
    // The gap is from midnight to one.
    ...{ zone: 'Africa/Cairo', fixed: '15 0 * * *', halfHours: 48 },
    ...{ from: '2026-04-23T10:00', to: '2026-04-24T09:59', once: ['2026-04-23T22:00'] },
  },
  {
    // The gap is half an hour, from 02:00 to 02:30.
    ...{ zone: 'Australia/Lord_Howe', fixed: '15 2 * * *', halfHours: 48 },
    ...{ from: '2026-10-03T00:00', to: '2026-10-03T23:59', once: ['2026-10-03T15:30'] },
  },
  {
    ...{ zone: 'America/Santiago', fixed: '30 0 * * *', halfHours: 48 },
    ...{ from: '2026-09-05T16:00', to: '2026-09-06T15:59', once: ['2026-09-06T04:00'] },
  },
]

/** Overlaps: the fixed time comes twice, and runs the first time. */
const OVERLAPS: readonly Night[] = [
  {
    ...{ zone: 'Europe/Berlin', fixed: '30 2 * * *', halfHours: 48 },
    ...{ from: '2026-10-24T12:00', to: '2026-10-25T11:59', once: ['2026-10-25T00:30'] },
  },
  {
    ...{ zone: 'America/New_York', fixed: '30 1 * * *', halfHours: 48 },
    ...{ from: '2026-10-31T17:00', to: '2026-11-01T16:59', once: ['2026-11-01T05:30'] },
  },
  {
    // The hour from 23:00 comes twice.
    ...{ zone: 'Africa/Cairo', fixed: '30 23 * * *', halfHours: 48 },
    ...{ from: '2026-10-29T10:00', to: '2026-10-30T09:59', once: ['2026-10-29T20:30'] },
  },
  {
    // The half hour from 01:30 comes twice.
    ...{ zone: 'Australia/Lord_Howe', fixed: '45 1 * * *', halfHours: 48 },
    ...{ from: '2026-04-04T00:00', to: '2026-04-04T23:59', once: ['2026-04-04T14:45'] },
  },
  {
    ...{ zone: 'America/Santiago', fixed: '30 23 * * *', halfHours: 48 },
    ...{ from: '2026-04-04T16:00', to: '2026-04-05T15:59', once: ['2026-04-05T02:30'] },
  },
]

describe.each([
  ['a gap', GAPS],
  ['an overlap', OVERLAPS],
] as const)('in %s', (_, nights) => {
  it.each(nights)('a fixed time runs once: $zone', ({ fixed, zone, from, to, once }) => {
    expect(ticks(fixed, zone, from, to)).toEqual(once)
  })

  it.each(nights)('steps follow elapsed time: $zone', ({ zone, from, to, halfHours }) => {
    const found = ticks('*/30 * * * *', zone, from, to)
    expect(found).toHaveLength(halfHours)
    const gaps = found.slice(1).map((tick, i) => Date.parse(tick) - Date.parse(found[i] as string))
    expect(new Set(gaps)).toEqual(new Set([30 * 60_000]))
  })

  it.each(nights)('every tick is later than the one before: $zone', ({ zone, from, to }) => {
    for (const cron of ['* * * * *', '0,30 * * * *', '15 */2 * * *', '0 0 * * *']) {
      const found = ticks(cron, zone, from, to).map((tick) => Date.parse(tick))
      expect(found).toEqual([...new Set(found)].toSorted((a, b) => a - b))
    }
  })
})

describe('a zone without changes of clocks', () => {
  it('has the same times all year, also with half hours', () => {
    const year = ticks('30 2 * * *', 'Asia/Kolkata', '2026-01-01T00:00', '2026-12-31T23:59')
    expect(year).toHaveLength(365)
    expect(new Set(year.map((tick) => tick.slice(11)))).toEqual(new Set(['21:00']))
  })
})

describe('a year of a fixed time', () => {
  const zones = ['Europe/Berlin', 'America/New_York', 'Africa/Cairo', 'America/Santiago']
  it.each([...zones, 'Australia/Lord_Howe', 'Asia/Kolkata'])('has one tick a day: %s', (zone) => {
    for (const cron of ['30 2 * * *', '0 0 * * *', '30 23 * * *', '15 1 * * *']) {
      const source = ticksOf({ kind: 'cron', cron, timezone: zone })
      const after = Date.parse('2026-01-01T12:00:00Z')
      const found = listTicks(source, after, after + 365 * 86_400_000, 1000)
      expect(found.length).toBe(365)
      const days = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' })
      expect(new Set(found.map((tick) => days.format(tick))).size).toBe(365)
    }
  })
})

describe('an expression', () => {
  it('has the same ticks from any time before them', () => {
    const source = ticksOf({ kind: 'cron', cron: '30 2 * * *', timezone: 'Europe/Berlin' })
    for (const day of ['2026-03-29T01:00:00Z', '2026-10-25T00:30:00Z']) {
      const tick = Date.parse(day)
      for (let before = 1; before < 86_400_000 / 2; before += 599_999) {
        expect(source.next(tick - before)).toBe(tick)
      }
      expect(source.next(tick)).toBeGreaterThan(tick + 20 * 3_600_000)
    }
  })

  it('of leap days, last days and nicknames is known', () => {
    expect(ticks('0 0 29 2 *', 'UTC', '2026-01-01T00:00', '2029-01-01T00:00')).toEqual([
      '2028-02-29T00:00',
    ])
    expect(ticks('0 0 L * *', 'UTC', '2026-01-01T00:00', '2026-03-01T00:00')).toEqual([
      ...['2026-01-31T00:00', '2026-02-28T00:00'],
    ])
    expect(ticks('@daily', 'UTC', '2026-01-01T00:00', '2026-01-02T00:00')).toHaveLength(2)
    expect(ticks('30 0 12 * * *', 'UTC', '2026-01-01T00:00', '2026-01-02T00:00')).toHaveLength(1)
  })
})
