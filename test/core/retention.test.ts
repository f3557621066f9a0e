import { describe, expect, it } from 'vitest'
import {
  CURSORS_MAX,
  classesOf,
  classesOfAll,
  cursorOf,
  endedWordOf,
  LOOK,
  lastLookOf,
  movePass,
  nextStep,
  PASS_MAX_MS,
  type Passes,
  readPasses,
  STEP_CHARACTERS,
  STEP_MAX,
  STEP_MIN,
  STEP_MS,
  writePasses,
} from '../../src/core/retention.ts'

describe('classes of retention', () => {
  it('join the types that are kept for the same time after the same end', () => {
    const classes = classesOf(
      new Map([
        ['b', { succeeded: 1000, failed: 5000 }],
        ['a', { succeeded: 1000 }],
        ['c', { succeeded: 2000, cancelled: 5000 }],
        ['d', {}],
      ]),
    )
    expect(classes).toEqual([
      { outcome: 'succeeded', keepMs: 1000, types: ['a', 'b'] },
      { outcome: 'failed', keepMs: 5000, types: ['b'] },
      { outcome: 'succeeded', keepMs: 2000, types: ['c'] },
      { outcome: 'cancelled', keepMs: 5000, types: ['c'] },
    ])
  })

  it('of all types have no list of types', () => {
    expect(classesOfAll({ failed: 5 })).toEqual([{ outcome: 'failed', keepMs: 5 }])
  })

  it('take a cancelled job for cancelled, whatever outcome its lifecycle has for it', () => {
    expect(endedWordOf('failed', 'cancelled')).toBe('cancelled')
    expect(endedWordOf('failed', 'terminal')).toBe('failed')
    expect(endedWordOf('cancelled', null)).toBe('cancelled')
    expect(endedWordOf('succeeded', 'cancelled')).toBe('succeeded')
  })
})

describe('the passes of retention', () => {
  const none: Passes = new Map()

  it('are read back as they were written', () => {
    const passes = movePass(movePass(none, 'a', '1:2', 10), 'b', '3:4', 20)
    const read = readPasses(writePasses(passes))
    expect([...read]).toEqual([...passes])
    expect(cursorOf(read, 'a', 30)).toBe('1:2')
    expect(cursorOf(read, 'c', 30)).toBeUndefined()
  })

  it('count as none if the text is damaged', () => {
    for (const text of [undefined, '', '{', '{"a":1}', 'null', '[1,[2],["a","b","c"],["a",1,2]]']) {
      expect(readPasses(text).size).toBe(0)
    }
  })

  it('keep the time of their start, and start again after a day', () => {
    const first = movePass(none, 'a', '1:1', 1000)
    const later = movePass(first, 'a', '2:2', 2000)
    expect(later.get('a')).toEqual({ since: 1000, cursor: '2:2' })
    expect(cursorOf(later, 'a', 1000 + PASS_MAX_MS - 1)).toBe('2:2')
    expect(cursorOf(later, 'a', 1000 + PASS_MAX_MS)).toBeUndefined()
    const again = movePass(later, 'a', '0:1', 1000 + PASS_MAX_MS)
    expect(again.get('a')?.since).toBe(1000 + PASS_MAX_MS)
  })

  it('do not trust a start in the future', () => {
    const passes = movePass(none, 'a', '1:1', 5000)
    expect(cursorOf(passes, 'a', 4999)).toBeUndefined()
  })

  it('are bounded in number; those that were moved longest ago are dropped', () => {
    let passes = none
    for (let i = 0; i < CURSORS_MAX + 1; i++) passes = movePass(passes, `class ${i}`, '1:1', 1)
    passes = movePass(passes, 'class 1', '2:2', 2)
    passes = movePass(passes, 'one more', '1:1', 2)
    expect(passes.size).toBe(CURSORS_MAX)
    expect(['class 0', 'class 1', 'class 2'].map((name) => passes.has(name))).toEqual([
      false,
      true,
      false,
    ])
  })

  it('say when a worker last looked after retention', () => {
    expect(lastLookOf(undefined)).toBeUndefined()
    expect(lastLookOf(writePasses(movePass(none, LOOK, LOOK, 7)))).toBe(7)
  })
})

describe('the size of a step', () => {
  const small = { forMs: STEP_MS / 2, characters: 0 }

  it('doubles up to its maximum while steps are cheap', () => {
    expect(nextStep(50, small)).toBe(100)
    expect(nextStep(STEP_MAX, small)).toBe(STEP_MAX)
  })

  it('is halved after a step that took too long or read too much', () => {
    expect(nextStep(500, { forMs: STEP_MS + 1, characters: 0 })).toBe(250)
    expect(nextStep(500, { forMs: 0, characters: STEP_CHARACTERS + 1 })).toBe(250)
    expect(nextStep(STEP_MIN, { forMs: 1e6, characters: 0 })).toBe(STEP_MIN)
  })

  it('stays after a step of about the right size', () => {
    expect(nextStep(100, { forMs: STEP_MS, characters: 0 })).toBe(100)
    expect(nextStep(100, { forMs: 0, characters: STEP_CHARACTERS })).toBe(100)
  })
})
