// Definitions, keys, overlap and jitter of schedules.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CommandInvalid } from '../../src/core/errors.ts'
import { DEFAULT_POLICY } from '../../src/core/retry.ts'
import {
  decodeBuffer,
  decodeIds,
  decodeRules,
  encodeBuffer,
  encodeRules,
  findRulesFault,
  type ScheduleRules,
} from '../../src/core/schedule/definition.ts'
import { jitterOf } from '../../src/core/schedule/jitter.ts'
import {
  isReservedKey,
  parseScheduleKey,
  runKey,
  SCHEDULE_NAME_MAX,
  scheduleName,
  tickKey,
} from '../../src/core/schedule/keys.ts'
import { BUFFER_MAX, chooseOverlap } from '../../src/core/schedule/overlap.ts'

const JOB = { type: 't', queue: 'q', lifecycle: 'standard', lifecycleVersion: 1 }
const RULES: ScheduleRules = {
  timing: { kind: 'cron', cron: '* * * * *', timezone: 'UTC' },
  overlap: 'skip',
  catchUp: { mode: 'latest', withinMs: 1000 },
  jitterMs: 0,
  pauseOnFailure: false,
  job: JOB,
}
const FULL: ScheduleRules = {
  ...RULES,
  timing: { kind: 'every', everyMs: 1000 },
  job: { ...JOB, priority: -3, aheadMs: 1000, timeoutMs: 5, policy: DEFAULT_POLICY },
}

const with_ = (fields: object): ScheduleRules => ({ ...RULES, ...fields })

describe('a definition', () => {
  it('is read as it was written', () => {
    for (const rules of [RULES, FULL]) expect(decodeRules(encodeRules(rules))).toEqual(rules)
  })

  it('has one text, whatever the order of its fields', () => {
    const { job, ...rest } = RULES
    expect(encodeRules({ job, ...rest })).toBe(encodeRules(RULES))
  })

  it('is damaged if it is no JSON, of another form, or breaks a rule', () => {
    const text = encodeRules(RULES)
    for (const bad of ['', '{', 'null', '{}', text.replace('"form":1', '"form":2')]) {
      expect(decodeRules(bad)).toBeUndefined()
    }
    expect(decodeRules(text.replace('"skip"', '"stop"'))).toBeUndefined()
  })

  it.each([
    ['timing', with_({ timing: null })],
    ['timing', with_({ timing: { kind: 'sun', cron: 'x', timezone: 'x' } })],
    ['cron', with_({ timing: { kind: 'cron', cron: '', timezone: 'UTC' } })],
    ['timezone', with_({ timing: { kind: 'cron', cron: '* * * * *' } })],
    ['every', with_({ timing: { kind: 'every', everyMs: 999 } })],
    ['overlap', with_({ overlap: 'x' })],
    ['catchUp', with_({ catchUp: 'all' })],
    ['catchUp.mode', with_({ catchUp: { mode: 'x', withinMs: 0 } })],
    ['catchUp.within', with_({ catchUp: { mode: 'all', withinMs: -1 } })],
    ['jitter', with_({ jitterMs: 0.5 })],
    ['pauseOnFailure', with_({ pauseOnFailure: 1 })],
    ['job', with_({ job: undefined })],
    ['type', with_({ job: { ...JOB, type: '' } })],
    ['queue', with_({ job: { ...JOB, queue: 5 } })],
    ['lifecycle', with_({ job: { ...JOB, lifecycle: 'a\nb' } })],
    ['lifecycleVersion', with_({ job: { ...JOB, lifecycleVersion: 0 } })],
    ['priority', with_({ job: { ...JOB, priority: 1e9 } })],
    ['aheadMs', with_({ job: { ...JOB, aheadMs: -1 } })],
    ['timeout', with_({ job: { ...JOB, timeoutMs: -1 } })],
    ['policy', with_({ job: { ...JOB, policy: 5 } })],
    ['policy', with_({ job: { ...JOB, policy: {} } })],
    ['policy', with_({ job: { ...JOB, policy: { ...DEFAULT_POLICY, crashesMax: -1 } } })],
  ])('with a bad %s is refused', (field, rules) => {
    const fault = findRulesFault('s', rules)
    expect(fault).toBeInstanceOf(CommandInvalid)
    expect(fault?.details.field).toBe(field)
  })

  it('with a bad name is refused', () => {
    expect(findRulesFault('', RULES)?.details.field).toBe('name')
    expect(findRulesFault('s', FULL)).toBeUndefined()
  })
})

describe('what a row keeps beside the definition', () => {
  const ticks = fc.array(
    fc.record({
      tick: fc.integer(),
      previous: fc.option(fc.integer()),
      isBackfill: fc.boolean(),
    }),
  )
  it('is read as it was written', () => {
    fc.assert(
      fc.property(ticks, (buffer) => {
        expect(decodeBuffer(encodeBuffer(buffer))).toEqual(buffer)
      }),
    )
    expect(decodeIds('["a","b"]')).toEqual(['a', 'b'])
  })

  it.each(['', '{}', '[1]', '["x"]', '[["x",null,0]]', '[[1,"x",0]]', '[[1.5,null,0]]'])(
    'is damaged otherwise: %s',
    (text) => expect(decodeBuffer(text)).toBeUndefined(),
  )

  it.each(['', '{}', '[1]', '[null]'])('ids are damaged otherwise: %s', (text) =>
    expect(decodeIds(text)).toBeUndefined(),
  )
})

describe('the key of a job', () => {
  const names = fc.string({ minLength: 1, maxLength: SCHEDULE_NAME_MAX })

  it('says the schedule and the tick, and no two have the same', () => {
    fc.assert(
      fc.property(names, fc.integer(), fc.uuid(), (name, tick, id) => {
        expect(parseScheduleKey(tickKey(name, tick))).toEqual({ name, tick })
        expect(parseScheduleKey(runKey(name, id))).toEqual({ name })
      }),
    )
    const both = fc.tuple(names, fc.integer())
    fc.assert(
      fc.property(both, both, ([a, m], [b, n]) => {
        expect(tickKey(a, m) === tickKey(b, n)).toBe(a === b && m === n)
        expect(tickKey(a, m)).not.toBe(runKey(b, String(n)))
      }),
    )
    expect(tickKey('n'.repeat(SCHEDULE_NAME_MAX), Number.MIN_SAFE_INTEGER).length).toBeLessThan(256)
  })

  it('of other jobs is not read', () => {
    for (const key of [null, '', 'own', 'schedules/a/1', 'schedule/a/x', 'schedule/a/']) {
      expect(parseScheduleKey(key)).toBeUndefined()
    }
    expect(isReservedKey('schedule/x')).toBe(true)
    expect(isReservedKey('schedule-run/x')).toBe(true)
    expect(isReservedKey('schedule')).toBe(false)
  })

  it('leaves room for names of 200 characters', () => {
    expect(scheduleName('n'.repeat(200))).toBeUndefined()
    expect(scheduleName('n'.repeat(201))).toMatch(/longer than 200/)
    expect(scheduleName('a\nb')).toMatch(/control/)
  })
})

describe('a tick that meets open jobs', () => {
  it.each([
    ['skip', 0, 0, 'make'],
    ['skip', 1, 0, 'skip'],
    ['skip', 0, 1, 'skip'],
    ['bufferOne', 1, 0, 'buffer'],
    ['bufferOne', 1, 1, 'skip'],
    ['bufferOne', 0, 0, 'make'],
    ['bufferAll', 1, 5, 'buffer'],
    ['bufferAll', 1, BUFFER_MAX, 'skip'],
    ['cancelOther', 1, 0, 'cancel'],
    ['cancelOther', 0, 0, 'make'],
    ['allowAll', 9, 9, 'make'],
  ] as const)('%s with %i open and %i waiting: %s', (overlap, open, waiting, kind) => {
    expect(chooseOverlap(overlap, open, waiting).kind).toBe(kind)
  })
})

describe('jitter', () => {
  it('is within its bound, the same each time, and spread', () => {
    const delays = Array.from({ length: 1000 }, (_, i) => jitterOf('s', i * 60_000, 999))
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...delays)).toBeLessThanOrEqual(999)
    expect(jitterOf('s', 60_000, 999)).toBe(delays[1])
    for (let tenth = 0; tenth < 10; tenth++) {
      const within = delays.filter((delay) => Math.floor(delay / 100) === tenth)
      expect(within.length).toBeGreaterThan(50)
      expect(within.length).toBeLessThan(200)
    }
    expect(jitterOf('s', 5, 0)).toBe(0)
  })
})
