import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterSuspension,
  aheadOfWall,
  correctionFor,
  fileTimeAt,
  firstBase,
  followWall,
  type HostReading,
  isDisputed,
  isOfBoot,
  isTimeBaseReason,
  leftToLose,
  SLOWED_BY,
  STEP_MS,
  type TimeBase,
} from '../../src/core/time-base.ts'

const BOOT = 'b1'
const WALL = 1_800_000_000_000

function reading(wallMs: number, elapsedMs: number, suspendedMs: number | null = 0): HostReading {
  return { wallMs, elapsedMs, suspendedMs }
}

const start = firstBase(BOOT, reading(WALL, 5000.25), undefined, 'first')

describe('the time of a file', () => {
  it('begins at wall time and runs with the monotonic clock, whatever the wall clock does', () => {
    expect(fileTimeAt(start, 5000.25)).toBe(WALL)
    expect(fileTimeAt(start, 8000.25)).toBe(WALL + 3000)
    expect(leftToLose(start, 8000.25)).toBe(0)
  })

  it('begins not before the last time of the file after a boot, and then runs slower', () => {
    const base = firstBase('b2', reading(WALL - 60_000, 10), WALL, 'boot')
    expect(fileTimeAt(base, 10)).toBe(WALL)
    expect(base.behindMs).toBe(60_000)
    expect(fileTimeAt(base, 10 + 25_000)).toBe(WALL + 25_000 - 1000)
    expect(firstBase('b2', reading(WALL - 500, 10), WALL, 'boot').behindMs).toBe(0)
  })

  it('belongs to one boot: another identity, or a clock that is behind, is another boot', () => {
    expect(isOfBoot(start, BOOT, 5000)).toBe(true)
    expect(isOfBoot(start, 'b2', 9000)).toBe(false)
    expect(isOfBoot(start, BOOT, 100)).toBe(false)
  })

  it('moves forward to a wall clock that is ahead', () => {
    const next = followWall(start, reading(WALL + 601_000, 6000.25, 7))
    expect(next).toMatchObject({ reason: 'forward', movedMs: 600_000, suspendedMs: 7 })
    expect(fileTimeAt(next as TimeBase, 6000.25)).toBe(WALL + 601_000)
  })

  it('runs slower until a wall clock that is behind has caught up, and not for longer', () => {
    const slower = followWall(start, reading(WALL - 29_000, 6000.25)) as TimeBase
    expect(slower).toMatchObject({ reason: 'slower', behindMs: 30_000, movedMs: 0 })
    const endMs = 6000.25 + 30_000 / SLOWED_BY
    expect(isDisputed(slower, reading(WALL - 29_000 + 1000, 7000.25))).toBe(false)
    expect(followWall(slower, reading(WALL - 29_000 + 1000, 7000.25))).toBeUndefined()
    const wallAtEnd = WALL - 29_000 + 30_000 / SLOWED_BY
    expect(aheadOfWall(slower, reading(wallAtEnd, endMs))).toBe(0)
    expect(fileTimeAt(slower, endMs + 1000)).toBe(wallAtEnd + 1000)
    // The wall clock is set forward again before the end.
    const agreed = followWall(slower, reading(WALL + 3000, 8000.25))
    expect(agreed).toMatchObject({ reason: 'agreed', behindMs: 0 })
  })

  it('is told apart from a wall clock that differs by up to a second', () => {
    expect(followWall(start, reading(WALL + STEP_MS, 5000.25))).toBeUndefined()
    expect(followWall(start, reading(WALL - STEP_MS, 5000.25))).toBeUndefined()
  })

  it('goes on as it was when only the machine was suspended', () => {
    const slower = followWall(start, reading(WALL - 30_000, 5000.25)) as TimeBase
    const next = afterSuspension(slower, reading(WALL, 30_000.25, 90_000))
    expect(next).toMatchObject({ reason: 'resumed', suspendedMs: 90_000, behindMs: 29_000 })
    expect(fileTimeAt(next, 30_000.25)).toBe(fileTimeAt(slower, 30_000.25))
  })

  it('is the same for a process whose monotonic clock is faked', () => {
    const base = { ...start, suspendedMs: 400 }
    expect(correctionFor(base, 400, 0)).toBe(0)
    expect(correctionFor(base, 430, 0)).toBe(0)
    expect(correctionFor(base, 400 - 600_000, 0)).toBe(-600_000)
    expect(correctionFor(base, 395 - 600_000, -600_000)).toBe(-600_000)
    expect(correctionFor(base, null, -5)).toBe(0)
    expect(correctionFor({ ...base, suspendedMs: null }, 3, 0)).toBe(0)
  })

  it('never runs backwards and always reaches the wall clock, whatever steps it makes', () => {
    const step = fc.record({
      afterMs: fc.double({ min: 0, max: 100_000, noNaN: true }),
      wallStepMs: fc.integer({ min: -700_000, max: 700_000 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        let base = start
        let elapsedMs = 5000.25
        let wallMs = WALL
        let last = fileTimeAt(base, elapsedMs)
        for (const { afterMs, wallStepMs } of steps) {
          elapsedMs += afterMs
          wallMs += Math.floor(afterMs) + wallStepMs
          base = followWall(base, reading(wallMs, elapsedMs)) ?? base
          const now = fileTimeAt(base, elapsedMs)
          expect(now).toBeGreaterThanOrEqual(last)
          // A wall clock that is ahead is reached at once.
          expect(now - wallMs).toBeGreaterThanOrEqual(-STEP_MS - 1)
          last = now
        }
        elapsedMs += 1e9
        wallMs += 1e9
        expect(Math.abs(fileTimeAt(base, elapsedMs) - wallMs)).toBeLessThanOrEqual(STEP_MS + 1)
      }),
    )
  })
})

it('the reason of a base is one of a list', () => {
  expect(['first', 'repaired', 'oops', ''].map(isTimeBaseReason)).toEqual([
    true,
    true,
    false,
    false,
  ])
})
