// The strip of ticks: days of the schedule's zone, and nights on which clocks change.
import { describe, expect, it } from 'vitest'
import { readDuration, writeDuration } from '../../dashboard/controls/duration.ts'
import { byDay, ZoneFormat } from '../../dashboard/schedules/days.ts'

const HOUR = 3_600_000
const at = (text: string) => Date.parse(text)

describe('days of a zone', () => {
  it('begin at its midnight', () => {
    const berlin = new ZoneFormat('Europe/Berlin')
    const times = [at('2026-11-17T22:30:00Z'), at('2026-11-17T23:30:00Z')]
    const days = byDay(times, (time) => time, berlin)
    expect(days.map(({ title, items }) => [title, items.length])).toEqual([
      ['Tue 17 Nov', 1],
      ['Wed 18 Nov', 1],
    ])
    expect(berlin.time(times[1] ?? 0)).toBe('00:30')
  })

  it('say when the clocks change, at every hour of that day, and on no other day', () => {
    const berlin = new ZoneFormat('Europe/Berlin')
    const shifts = (from: string, hours: number) =>
      new Set(Array.from({ length: hours }, (_, i) => berlin.shiftOn(at(from) + i * HOUR)))
    // 2026-03-29 has 23 hours in Berlin, 2026-10-25 has 25.
    expect(shifts('2026-03-28T23:00:00Z', 23)).toEqual(new Set([60]))
    expect(shifts('2026-10-24T22:00:00Z', 25)).toEqual(new Set([-60]))
    for (const day of ['2026-03-27T23:00:00Z', '2026-03-29T22:00:00Z', '2026-10-25T23:00:00Z']) {
      expect(shifts(day, 24), day).toEqual(new Set([0]))
    }
  })

  it('are those of UTC if the browser does not know the zone', () => {
    expect(new ZoneFormat('Mars/Olympus').zone).toBe('UTC')
    expect(new ZoneFormat(undefined).shiftOn(at('2026-03-29T12:00:00Z'))).toBe(0)
  })
})

describe('durations', () => {
  it('are written as they are read', () => {
    for (const text of ['250ms', '90s', '5m', '3h', '2d']) {
      expect(writeDuration(readDuration(text) ?? 0)).toBe(text)
    }
    for (const text of ['', '5', 'm', '5 weeks', '-3s', '1e3s']) {
      expect(readDuration(text), text).toBeUndefined()
    }
  })
})
