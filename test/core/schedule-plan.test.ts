// Which ticks are due, late or missed: the planner of schedules (P17).
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COUNT_MAX, LATE_MS, missedUntil, planTicks } from '../../src/core/schedule/plan.ts'
import {
  countTicks,
  everyTicks,
  lastTick,
  listTicks,
  type TickSource,
} from '../../src/core/schedule/ticks.ts'

/** The ticks of a list. */
function listed(ticks: readonly number[]): TickSource {
  return { next: (after) => ticks.find((tick) => tick > after) }
}

const MINUTE = 60_000
const times = fc
  .uniqueArray(fc.integer({ min: 0, max: 500_000 }), { maxLength: 60 })
  .map((list) => list.toSorted((a, b) => a - b))

describe('ticks', () => {
  it('of an interval are its multiples, later than the time before', () => {
    expect(everyTicks(MINUTE).next(0)).toBe(MINUTE)
    expect(everyTicks(MINUTE).next(MINUTE - 1)).toBe(MINUTE)
    expect(everyTicks(MINUTE).next(MINUTE)).toBe(2 * MINUTE)
    expect(everyTicks(MINUTE).next(-1)).toBe(0)
    expect(everyTicks(MINUTE).next(8_640_000_000_000_000)).toBeUndefined()
  })

  it('the last tick up to a time is found without reading all of them', () => {
    fc.assert(
      fc.property(times, fc.integer({ min: -1, max: 500_001 }), (list, until) => {
        const expected = list.filter((tick) => tick <= until).at(-1)
        expect(lastTick(listed(list), -1, until)).toBe(expected)
      }),
    )
    let asked = 0
    const every = everyTicks(1000)
    const counted = {
      next(after: number) {
        asked++
        return every.next(after)
      },
    }
    expect(lastTick(counted, 0, 366 * 86_400_000)).toBe(366 * 86_400_000)
    expect(asked).toBeLessThan(100)
  })

  it('are counted and listed up to a number', () => {
    fc.assert(
      fc.property(times, fc.nat(500_000), fc.integer({ min: 1, max: 70 }), (list, until, max) => {
        const within = list.filter((tick) => tick > 0 && tick <= until)
        expect(countTicks(listed(list), 0, until, max)).toBe(Math.min(within.length, max))
        expect(listTicks(listed(list), 0, until, max)).toEqual(within.slice(0, max))
      }),
    )
  })
})

const modes = fc.constantFrom('none', 'latest', 'all')

describe('a plan', () => {
  it('names every tick after the cursor up to now once, and moves the cursor to the last', () => {
    const request = fc.record({
      list: times,
      cursor: fc.nat(300_000),
      passed: fc.nat(300_000),
      mode: modes,
      withinMs: fc.nat(400_000),
      limit: fc.integer({ min: 1, max: 70 }),
    })
    fc.assert(
      fc.property(request, ({ list, cursor, passed, mode, withinMs, limit }) => {
        const ticks = listed(list)
        const now = cursor + passed
        const catchUp = { mode, withinMs }
        const named: number[] = []
        let at = cursor
        let previous: number | null = null
        for (let pass = 0; pass < 100; pass++) {
          const plan = planTicks(ticks, { cursor: at, previous, now, catchUp, limit })
          expect(plan.cursor).toBeGreaterThanOrEqual(at)
          expect(plan.next).toBe(ticks.next(plan.cursor))
          let due = 0
          for (const part of plan.parts) {
            if (part.kind === 'due') {
              due++
              named.push(part.tick)
              expect(part.isLate).toBe(now - part.tick > LATE_MS)
              expect(part.previous ?? -1).toBeLessThan(part.tick)
            } else {
              const range = list.filter((tick) => tick >= part.tick && tick <= part.lastTick)
              expect(part.ticks).toBe(range.length)
              // A tick on time is never missed.
              expect(now - part.lastTick).toBeGreaterThan(LATE_MS)
              named.push(...range)
            }
          }
          expect(due).toBeLessThanOrEqual(limit)
          at = plan.cursor
          previous = named.at(-1) ?? null
          if (plan.next === undefined || plan.next > now) break
        }
        expect(named).toEqual(list.filter((tick) => tick > cursor && tick <= now))
      }),
      { numRuns: 2000 },
    )
  })

  it('follows the policy for late ticks', () => {
    fc.assert(
      fc.property(times, fc.nat(400_000), modes, (list, withinMs, mode) => {
        const now = 500_000
        const late = list.filter((tick) => tick > 0 && now - tick > LATE_MS)
        const onTime = list.filter((tick) => tick > 0 && now - tick <= LATE_MS)
        const recent = late.filter((tick) => now - tick <= withinMs)
        const last = onTime.length > 0 ? [] : recent.filter((tick) => tick === late.at(-1))
        const made = { none: [], latest: last, all: recent }[mode]
        const catchUp = { mode, withinMs }
        const request = { cursor: 0, previous: null, now, catchUp, limit: 1000 }
        const { parts } = planTicks(listed(list), request)
        const due = parts.flatMap((part) => (part.kind === 'due' ? part.tick : []))
        expect(due).toEqual([...made, ...onTime])
      }),
      { numRuns: 2000 },
    )
  })

  it('counts the ticks of a long outage up to a bound', () => {
    const missed = missedUntil(everyTicks(1000), 0, 86_400_000)
    expect(missed).toEqual({
      ...{ kind: 'missed', tick: 1000, lastTick: 86_400_000, ticks: COUNT_MAX },
    })
    expect(missedUntil(listed([]), 0, 5)).toBeUndefined()
    expect(missedUntil(listed([6]), 0, 5)).toBeUndefined()
  })

  it('does nothing if the clock was set back', () => {
    const catchUp = { mode: 'all', withinMs: 0 } as const
    const request = { cursor: 10 * MINUTE, previous: null, now: MINUTE, catchUp, limit: 10 }
    const plan = planTicks(everyTicks(MINUTE), request)
    expect(plan).toEqual({ parts: [], cursor: 10 * MINUTE, next: 11 * MINUTE })
  })
})
