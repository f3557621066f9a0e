import { describe, expect, it } from 'vitest'
import { gateProblems, knownMax, mendGate } from '../../src/core/limits/faults.ts'
import { type Gate, type LimitSetting, newGate } from '../../src/core/limits/gates.ts'

const NOW = Date.parse('2026-11-16T09:00:00Z')
const FAR = 9_000_000_000_000_000
const none = { periodMs: null, burst: null, override: null }
const SETTINGS = new Map<string, LimitSetting>([
  ['shared/a', { name: 'shared/a', max: 2, ...none }],
  ['rate/t/r', { name: 'rate/t/r', max: 10, periodMs: 1000, burst: 1, override: null }],
])
const IDLE = { held: 0, blocks: false }

const gate = (more: Partial<Gate> = {}): Gate => ({ ...newGate('shared/a'), ...more })
const rate = (more: Partial<Gate> = {}): Gate => ({ ...newGate('rate/t/r'), ...more })

describe('a gate', () => {
  it.each([
    ['is idle', gate(), IDLE, []],
    ['counts what runs', gate({ used: 2 }), { held: 2, blocks: false }, []],
    ['counts too many', gate({ used: 2 }), { held: 1, blocks: false }, ['count']],
    ['is full and blocks', gate({ used: 2, waiting: true }), { held: 2, blocks: true }, []],
    ['blocks unknowingly', gate({ used: 2 }), { held: 2, blocks: true }, ['stranded']],
    ['has room and blocks', gate({ waiting: true }), { held: 0, blocks: true }, ['stranded']],
    ['will be looked at', gate({ waiting: true, openAt: NOW }), { held: 0, blocks: true }, []],
    ['never opens', rate({ waiting: true }), { held: 0, blocks: true }, ['stranded']],
    ['opens', rate({ waiting: true, openAt: NOW + 5 }), { held: 0, blocks: true }, []],
    ['opens far away', rate({ openAt: FAR }), IDLE, ['values']],
    ['is closed for ever', rate({ closedUntil: FAR }), IDLE, ['values']],
    ['is paid for never', rate({ tat: FAR }), IDLE, ['values']],
    ['has a job of the future', gate({ askedAt: FAR, asked: 1 }), IDLE, ['values']],
    ['has a negative number', gate({ asked: -1 }), IDLE, ['values']],
    ['has a number too large', gate({ asked: 1_000_001 }), IDLE, ['values']],
    ['has a number of a job', gate({ asked: 1, askedAt: NOW }), IDLE, []],
  ])('that %s has these problems', (_, given, jobs, problems) => {
    expect(gateProblems(given, jobs, SETTINGS, NOW)).toEqual(problems)
    const mended = mendGate(given, jobs, SETTINGS, NOW)
    expect(gateProblems(mended, jobs, SETTINGS, NOW)).toEqual([])
  })

  it('is closed after a repair for as long as a burst takes', () => {
    const mended = mendGate(rate({ tat: FAR }), IDLE, SETTINGS, NOW)
    expect(mended.tat).toBe(NOW * 1000 + 100_000)
    expect(mendGate(gate({ openAt: FAR }), IDLE, SETTINGS, NOW).tat).toBeNull()
  })

  it('has a number that is known for sure unless a job has said it', () => {
    expect(knownMax(gate(), SETTINGS)).toBe(2)
    expect(knownMax(gate({ asked: 2 }), SETTINGS)).toBe(2)
    expect(knownMax(gate({ asked: 5 }), SETTINGS)).toBeUndefined()
    expect(knownMax(rate(), SETTINGS)).toBeUndefined()
    expect(knownMax(gate({ key: 'shared/b' }), SETTINGS)).toBeUndefined()
  })
})
