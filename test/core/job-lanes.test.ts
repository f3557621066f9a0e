// What the scheduler sees of a job: its lane, and whether its time has come.
import type { Job } from 'pawl'
import { document, hardened, isDue, LANES, laneOf, leased, standard, task } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { awaken, crash, HOUR, played } from './job-play.ts'

const laneNow = (script: ReturnType<typeof played>) =>
  laneOf(script.lifecycle, script.job, script.clock.now())

describe('lanes', () => {
  it('keep their numbers, which stores have written down', () => {
    expect(LANES).toEqual({
      idle: 0,
      waiting: 1,
      ready: 2,
      held: 3,
      parked: 4,
      ended: 5,
      delivering: 6,
      blocked: 7,
    })
  })
})

describe('the lane of a job', () => {
  it('is idle while it was never submitted', () => {
    expect(laneNow(played(standard, 'hold'))).toBe('idle')
    expect(laneNow(played(document, 'hold'))).toBe('idle')
  })

  it('is waiting while it was created for later, whatever state that is', () => {
    for (const lifecycle of [standard, hardened, leased, document, task]) {
      expect(laneNow(played(lifecycle, 'delay'))).toBe('waiting')
    }
  })

  it('is ready once a ready job is due, without a fact', () => {
    for (const lifecycle of [hardened, leased, task]) {
      const script = played(lifecycle, 'delay')
      script.clock.advance(HOUR - 1)
      expect(laneNow(script)).toBe('waiting')
      script.clock.advance(1)
      expect(laneNow(script)).toBe('ready')
      expect(script.facts).toHaveLength(1)
    }
  })

  it('stays waiting where the lifecycle has an edge for the due time', () => {
    for (const lifecycle of [standard, document]) {
      const script = played(lifecycle, 'delay')
      script.clock.advance(HOUR)
      expect(laneNow(script)).toBe('waiting')
      awaken(script)
      expect(laneNow(script)).toBe('ready')
    }
  })

  it('is waiting while a retry waits', () => {
    expect(laneNow(played(standard, 'create', 'claim', 'retry'))).toBe('waiting')
    expect(laneNow(played(hardened, 'create', 'claim', 'retry'))).toBe('waiting')
    expect(laneNow(played(leased, 'create', 'claim', 'retry'))).toBe('waiting')
    expect(laneNow(played(document, 'create', 'claim', 'retry'))).toBe('waiting')
  })

  it('is waiting for 60 seconds after a stall in lifecycle hardened', () => {
    const script = played(hardened, 'create', 'claim')
    crash(script)
    expect(script.job.state).toBe('pending')
    script.clock.advance(59_999)
    expect(laneNow(script)).toBe('waiting')
    script.clock.advance(1)
    expect(laneNow(script)).toBe('ready')
  })

  it('is held while an attempt is open, started or not, also after its lease ran out', () => {
    for (const move of ['lease', 'claim'] as const) {
      const script = played(task, 'create', move)
      expect(laneNow(script)).toBe('held')
      script.clock.advance(HOUR)
      expect(laneNow(script)).toBe('held')
    }
  })

  it('is delivering between the commit and the last effect, and then ended', () => {
    const script = played(leased, 'create', 'claim', 'effects')
    expect(script.job.state).toBe('RUNNING')
    expect(laneNow(script)).toBe('delivering')
    script.applyCommand({ kind: 'done', attempt: 1 })
    expect(laneNow(script)).toBe('ended')
  })
})

describe('the lane of a job that has stopped', () => {
  it('is parked in the parked state of its lifecycle', () => {
    expect(laneNow(played(standard, 'create', 'park'))).toBe('parked')
    expect(laneNow(played(hardened, 'create', 'claim', 'fail'))).toBe('parked')
  })

  it('is parked by its reason where the lifecycle has no such state', () => {
    expect(laneNow(played(leased, 'create', 'park'))).toBe('parked')
    expect(laneNow(played(task, 'create', 'claim', 'park'))).toBe('parked')
    expect(laneNow(played(document, 'hold', 'park'))).toBe('parked')
    expect(laneNow(played(document, 'create', 'claim', 'retry', 'park'))).toBe('parked')
  })

  it('is ended for every outcome', () => {
    expect(laneNow(played(standard, 'create', 'claim', 'commit'))).toBe('ended')
    expect(laneNow(played(standard, 'create', 'claim', 'fail'))).toBe('ended')
    expect(laneNow(played(standard, 'create', 'cancel'))).toBe('ended')
    expect(laneNow(played(task, 'create', 'cancel'))).toBe('ended')
  })

  it('is parked in a state that the lifecycle does not know, since no code may guess', () => {
    const { job, clock } = played(standard, 'create')
    const stray: Job = { ...job, state: 'frozen' }
    expect(laneOf(standard, stray, clock.now())).toBe('parked')
  })
})

describe('a due time', () => {
  it('has come at the millisecond that it names, and not before', () => {
    const { job } = played(hardened, 'delay')
    const runAt = job.runAt ?? Number.NaN
    expect(isDue(job, runAt - 1)).toBe(false)
    expect(isDue(job, runAt)).toBe(true)
    expect(isDue(job, runAt + 1)).toBe(true)
  })

  it('never comes for a job that has none', () => {
    expect(isDue(played(standard, 'hold').job, Number.MAX_SAFE_INTEGER)).toBe(false)
  })
})
