// Failures of clocks and timers that other engines had, each named by what must not happen here.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'

const DAY_MS = 86_400_000

describe('with the clock and the timers of the machine', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('a delay longer than the timers of the platform can count does not pass at once', () => {
    const { timers } = systemEnvironment()
    const passed: string[] = []
    timers.after(40 * DAY_MS, () => passed.push('40 days'))
    const taken = timers.after(90 * DAY_MS, () => passed.push('90 days'))
    vi.advanceTimersByTime(40 * DAY_MS - 1)
    expect(passed).toEqual([])
    vi.advanceTimersByTime(1)
    expect(passed).toEqual(['40 days'])
    // Also when it is on its second round it can be taken back.
    taken.cancel()
    vi.advanceTimersByTime(365 * DAY_MS)
    expect(passed).toEqual(['40 days'])
  })

  it('a step of the wall clock, forward or back, ends no lease and revives none', () => {
    const { clock, ids } = systemEnvironment()
    const before = clock.now()
    const firstId = ids.next()
    for (const stepMs of [DAY_MS, -2 * DAY_MS]) {
      vi.setSystemTime(Date.now() + stepMs)
      expect(Math.abs(clock.now() - before)).toBeLessThan(60_000)
      expect(ids.next() > firstId).toBe(true)
    }
  })
})
