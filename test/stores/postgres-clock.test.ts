// The time of a PostgreSQL store, over answers that take different times to arrive.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DatabaseClock } from '../../src/stores/postgres/clock.ts'
import type { Database } from '../../src/stores/postgres/connect.ts'

/** A database whose clock is ahead of the local one, and whose answers take a while. */
function setUp(ahead: number) {
  let time = 1_000_000
  let aheadNow = ahead
  let [there, back] = [0, 0]
  const session = {
    async query() {
      time += there
      const now = time + aheadNow
      time += back
      return [{ now }]
    },
  }
  const database = { atOnce: (work: (it: unknown) => unknown) => work(session) }
  const clock = new DatabaseClock(database as unknown as Database, { now: () => time })
  return {
    clock,
    pass: (ms: number) => {
      time += ms
    },
    /** How far the clock is from the database's time. */
    error: () => clock.now() - (time + aheadNow),
    step: (ms: number) => {
      aheadNow += ms
    },
    ask: (request: number, answer: number) => {
      ;[there, back] = [request, answer]
      return clock.ask()
    },
  }
}

describe('the time of a PostgreSQL store', () => {
  it('never goes backwards, and is no further off than the quickest answer allows', async () => {
    const delay = fc.nat(240)
    const asked = fc.array(fc.tuple(delay, delay, fc.nat(10_000)), { minLength: 1, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: -1e6, max: 1e6 }), asked, async (ahead, answers) => {
        const { clock, ask, pass, error } = setUp(ahead)
        let [last, quickest] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
        for (const [request, answer, pause] of answers) {
          await ask(request, answer)
          quickest = Math.min(quickest, request + answer)
          pass(pause)
          const now = clock.now()
          expect(now).toBeGreaterThanOrEqual(last)
          last = now
          pass(1000)
          expect(Math.abs(error())).toBeLessThanOrEqual(quickest + 2)
        }
      }),
    )
  })

  it('does not change because an answer was slow on one way', async () => {
    const { clock, ask } = setUp(5000)
    await ask(0, 0)
    const before = clock.now()
    await ask(0, 400)
    expect(clock.now()).toBe(before + 400)
    await ask(400, 0)
    expect(clock.now()).toBe(before + 800)
  })

  it('stands still while the database is a moment behind, then follows it', async () => {
    const { clock, ask, step, pass } = setUp(0)
    await ask(0, 0)
    const before = clock.now()
    step(-500)
    await ask(0, 0)
    expect(clock.now()).toBe(before)
    pass(600)
    expect(clock.now()).toBeGreaterThan(before)
    step(-60_000)
    await ask(0, 0)
    expect(clock.now()).toBeLessThan(before - 50_000)
  })
})
