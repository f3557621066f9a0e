// Priorities as numbers, and as a time by which a job is ahead of its due time.
import { evolve, type Fact, standard } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { CommandInvalid, DefinitionInvalid } from '../../src/core/errors.ts'
import { AHEAD_MAX_MS, orderAt, type Priority, readPriority } from '../../src/core/job/priority.ts'

describe('a priority', () => {
  it('that is a number stays that number', () => {
    expect(readPriority(-7)).toEqual({ priority: -7, aheadMs: 0 })
  })

  it('that is a time has the number 0 and is ahead by that time', () => {
    expect(readPriority({ ahead: '2m' })).toEqual({ priority: 0, aheadMs: 120_000 })
    expect(readPriority({ ahead: AHEAD_MAX_MS })).toEqual({ priority: 0, aheadMs: AHEAD_MAX_MS })
  })

  it.each([
    ['high', 'priority'],
    [null, 'priority'],
    [{ behind: '2m' }, 'priority'],
    [{ ahead: '2m', behind: '2m' }, 'priority.behind'],
    [{ ahead: 'soon' }, 'priority.ahead'],
    [{ ahead: -1 }, 'priority.ahead'],
    [{ ahead: AHEAD_MAX_MS + 1 }, 'priority.ahead'],
  ])('%j is refused by the name of its field', (value, field) => {
    const read = () => readPriority(value as Priority)
    expect(read).toThrow(CommandInvalid)
    expect(read).toThrow(`"${field}"`)
  })

  it('of a definition is refused as part of the definition', () => {
    expect(() => readPriority({ ahead: '2d' }, DefinitionInvalid)).toThrow(DefinitionInvalid)
  })

  it('orders jobs by the due time less the time by which they are ahead', () => {
    expect(orderAt({ runAt: 100_000, aheadMs: 30_000 })).toBe(70_000)
  })
})

describe('the time by which a job is ahead', () => {
  it('is part of its first fact, and of the job', () => {
    const script = new JobScript(standard)
    script.create({ aheadMs: 120_000 })
    expect(script.facts[0]).toMatchObject({ priority: 0, aheadMs: 120_000 })
    expect(script.job.aheadMs).toBe(120_000)
  })

  it('is 0 in a repair of an earlier release, whose facts lack it', () => {
    const script = new JobScript(standard)
    script.create()
    const { aheadMs: _none, ...rebased } = script.job
    const repair = { ...script.facts[0], seq: 2, trigger: 'repair', rebased } as unknown as Fact
    expect(evolve(null, repair).aheadMs).toBe(0)
  })
})
