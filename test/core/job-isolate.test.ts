// How the engine takes a job out of the flow whose stored row is damaged: the same in every
// lifecycle, without a state of its own, and so that a repair lets the job go on.
import type { Job } from 'pawl'
import { type Decision, evolve, type Fact } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { DAMAGED, isolate } from '../../src/core/job/isolate.ts'
import { laneOf } from '../../src/core/job/lanes.ts'
import { checkFacts } from '../../src/core/promises.ts'
import { EVERY_LIFECYCLE, FINAL, HOUR, statesOf } from './job-play.ts'

type Play = (script: JobScript) => Decision | undefined

const PLACES: readonly [string, Play][] = [
  ['ready', (script) => script.create()],
  ['delayed', (script) => script.create({ runAt: script.clock.now() + HOUR })],
  ['held', (script) => script.create() && script.claim()],
  ['leased', (script) => script.create() && script.claim({ start: false })],
]

describe.each(EVERY_LIFECYCLE.map((one) => [one.name, one] as const))('in %s', (_, lifecycle) => {
  it.each(PLACES)('a %s job is set aside, and nothing speaks against its facts', (_name, play) => {
    const script = new JobScript(lifecycle)
    play(script)
    const before = script.job
    const fact = isolate(lifecycle, before, script.clock.now(), 'its tags cannot be read') as Fact
    const after = evolve(before, fact)
    expect(fact).toMatchObject({
      trigger: 'park',
      actor: 'engine',
      reason: DAMAGED,
      metadata: { damage: 'its tags cannot be read' },
    })
    expect(laneOf(lifecycle, after, fact.at)).toBe('parked')
    expect(after.execution).toBeNull()
    expect(checkFacts(lifecycle, [...script.facts, fact])).toEqual([])
    // Only an open attempt moves it: back to where it can be claimed again.
    if (before.execution === null) expect(statesOf(fact)).toEqual([before.state, before.state])
    else expect(fact.execution).toMatchObject({ statuses: ['ABORTED'], abort: 'forced' })
  })

  it('a job that has ended or is set aside already needs no fact', () => {
    const script = new JobScript(lifecycle)
    script.create()
    const now = script.clock.now()
    const aside = evolve(script.job, isolate(lifecycle, script.job, now, 'x') as Fact)
    expect(isolate(lifecycle, aside, now, 'y')).toBeUndefined()
    script.claim()
    const open: Job = { ...script.job, state: 'nowhere' }
    expect(isolate(lifecycle, open, now, 'z')).toBeUndefined()
    script.applyCommand({ kind: 'fail', fence: script.fence, failure: FINAL })
    const ended: Job = { ...script.job, outcome: 'failed' }
    expect(isolate(lifecycle, ended, now, 'z')).toBeUndefined()
  })

  it('a committed job needs no fact', () => {
    const script = new JobScript(lifecycle)
    script.create()
    script.claim()
    script.applyCommand({ kind: 'commit', fence: script.fence, effects: 1 })
    expect(isolate(lifecycle, script.job, script.clock.now(), 'x')).toBeUndefined()
  })

  it('what is said of the damage is cut to a bound', () => {
    const script = new JobScript(lifecycle)
    script.create()
    const fact = isolate(lifecycle, script.job, 0, 'x'.repeat(9999))
    expect(fact?.metadata?.damage).toHaveLength(1000)
  })
})
