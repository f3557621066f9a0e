// The fence: who may move a job, and in which order the refusals come.
import { findFenceMismatch, findStale, isExpired, leased, standard, task } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { CLOCK_SLACK_MS, isEndless, LEASE_MAX_MS } from '../../src/core/job/fence.ts'
import {
  awaken,
  crash,
  EVERY_LIFECYCLE,
  holderCommands,
  played,
  staleness,
  wordOf,
} from './job-play.ts'

const CLAIM = '00000000-0000-7000-8000-000000000002'
const FOREIGN = '00000000-0000-7000-8000-0000000000ff'

const because = (stale: ReturnType<typeof findStale>) => stale?.details.because

describe('a lease', () => {
  it('is endless if it ends later than any that was granted, by clocks that differ', () => {
    const latest = 1000 + LEASE_MAX_MS + CLOCK_SLACK_MS
    expect([isEndless(latest, 1000), isEndless(latest + 1, 1000)]).toEqual([false, true])
  })
})

describe('the fence', () => {
  it('is stale where nobody holds the job', () => {
    const { job } = played(standard, 'create')
    expect(because(findFenceMismatch(job, { attempt: 0, claim: CLAIM }))).toBe('not-held')
  })

  it('is stale for another attempt, even with the right claim', () => {
    const { job } = played(standard, 'create', 'claim')
    expect(because(findFenceMismatch(job, { attempt: 2, claim: CLAIM }))).toBe('attempt')
    expect(because(findFenceMismatch(job, { attempt: 0, claim: FOREIGN }))).toBe('attempt')
  })

  it('is stale for another claim of the same attempt', () => {
    const { job } = played(standard, 'create', 'claim')
    expect(because(findFenceMismatch(job, { attempt: 1, claim: FOREIGN }))).toBe('claim')
  })

  it('holds until the millisecond that the lease names', () => {
    const { job, fence } = played(standard, 'create', 'claim')
    const until = job.execution?.leaseUntil ?? Number.NaN
    expect(findStale(job, fence, until - 1)).toBeUndefined()
    expect(because(findStale(job, fence, until))).toBe('expired')
    expect(findFenceMismatch(job, fence)).toBeUndefined()
  })

  it('names the mismatch before the expiry', () => {
    const { job } = played(standard, 'create', 'claim')
    const late = (job.execution?.leaseUntil ?? Number.NaN) + 1
    expect(because(findStale(job, { attempt: 1, claim: FOREIGN }, late))).toBe('claim')
  })

  it('does not expire where nobody holds the job', () => {
    expect(isExpired(played(standard, 'create').job, Number.MAX_SAFE_INTEGER)).toBe(false)
  })
})

describe('every command of a holder', () => {
  it('is stale where nobody holds the job, in every lifecycle', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create')
      const now = script.clock.now()
      for (const command of holderCommands({ attempt: 0, claim: CLAIM }, now)) {
        expect(staleness(script.applyCommand(command))).toBe('not-held')
      }
      expect(script.facts).toHaveLength(1)
    }
  })

  it('is stale for a foreign claim and for a foreign attempt, in every lifecycle', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create', 'claim')
      const now = script.clock.now()
      for (const command of holderCommands({ attempt: 1, claim: FOREIGN }, now)) {
        expect(staleness(script.applyCommand(command))).toBe('claim')
      }
      for (const command of holderCommands({ attempt: 2, claim: CLAIM }, now)) {
        expect(staleness(script.applyCommand(command))).toBe('attempt')
      }
      expect(script.facts).toHaveLength(2)
    }
  })

  it('is stale under the right fence once the lease has run out', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create', 'lease')
      script.clock.advance(30_000)
      for (const command of holderCommands(script.fence, script.clock.now())) {
        expect(staleness(script.applyCommand(command))).toBe('expired')
      }
    }
  })

  it('is stale for the holder before, once the job was claimed again', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create', 'claim')
      const { fence } = script
      crash(script)
      awaken(script)
      expect(wordOf(script.claim())).toBe('claim')
      for (const command of holderCommands(fence, script.clock.now())) {
        expect(staleness(script.applyCommand(command))).toBe('attempt')
      }
    }
  })
})

describe('an expiry', () => {
  it('names the exact lease that was read, and needs no live one', () => {
    const script = played(standard, 'create', 'claim')
    const { fence } = script
    expect(wordOf(script.applyCommand({ kind: 'expire', fence }))).toBe('E_LEASE_LIVE')
    script.clock.advance(29_999)
    expect(wordOf(script.applyCommand({ kind: 'expire', fence }))).toBe('E_LEASE_LIVE')
    script.clock.advance(1)
    const foreign = { ...fence, claim: FOREIGN }
    expect(staleness(script.applyCommand({ kind: 'expire', fence: foreign }))).toBe('claim')
    expect(wordOf(script.applyCommand({ kind: 'expire', fence }))).toBe('expire')
    expect(staleness(script.applyCommand({ kind: 'expire', fence }))).toBe('not-held')
  })
})

describe('after the commit', () => {
  it('a foreign fence is stale first, the right one learns of the commit', () => {
    // Lifecycle task has no suspend: its answer would be Unsupported, but the fence comes first.
    const script = played(task, 'create', 'claim', 'effects')
    const { fence } = script
    const now = script.clock.now()
    for (const command of holderCommands({ ...fence, claim: FOREIGN }, now)) {
      expect(staleness(script.applyCommand(command))).toBe('claim')
    }
    for (const command of holderCommands(fence, now)) {
      expect(wordOf(script.applyCommand(command))).toBe(
        command.kind === 'commit' ? 'same' : 'E_COMMITTED',
      )
    }
    expect(script.facts).toHaveLength(3)
  })

  it('what a lifecycle does not have is committed before it is unsupported', () => {
    const open = played(leased, 'create', 'claim')
    const suspend = (fence: typeof open.fence) =>
      ({ kind: 'suspend', fence, runAt: open.clock.now() }) as const
    expect(wordOf(open.applyCommand(suspend(open.fence)))).toBe('E_UNSUPPORTED')
    expect(wordOf(open.operate({ kind: 'discard' }))).toBe('E_UNSUPPORTED')
    const committed = played(leased, 'create', 'claim', 'effects')
    expect(wordOf(committed.applyCommand(suspend(committed.fence)))).toBe('E_COMMITTED')
    expect(wordOf(committed.operate({ kind: 'discard' }))).toBe('E_COMMITTED')
  })

  it('a commit whose reply was lost finds itself again, even when the lease has run out', () => {
    for (const move of ['effects', 'commit'] as const) {
      const script = played(standard, 'create', 'claim', move)
      const { fence } = script
      expect(wordOf(script.applyCommand({ kind: 'commit', fence }))).toBe('same')
      script.clock.advance(31_000)
      expect(wordOf(script.applyCommand({ kind: 'commit', fence }))).toBe('same')
      expect(script.facts).toHaveLength(3)
    }
  })

  it('a commit by somebody else is stale, before and after the lease has run out', () => {
    const script = played(standard, 'create', 'claim', 'commit')
    const { fence } = script
    for (const foreign of [
      { ...fence, claim: FOREIGN },
      { ...fence, attempt: 2 },
    ]) {
      expect(wordOf(script.applyCommand({ kind: 'commit', fence: foreign }))).toBe('E_STALE_FENCE')
    }
    script.clock.advance(31_000)
    const foreign = { ...fence, claim: FOREIGN }
    expect(staleness(script.applyCommand({ kind: 'commit', fence: foreign }))).toBe('claim')
  })
})

describe('after the commit, for those who hold nothing', () => {
  it('an expired lease is no crash', () => {
    const script = played(standard, 'create', 'claim', 'effects')
    const { fence } = script
    script.clock.advance(31_000)
    expect(wordOf(script.applyCommand({ kind: 'expire', fence }))).toBe('E_COMMITTED')
    expect(
      staleness(script.applyCommand({ kind: 'expire', fence: { ...fence, attempt: 7 } })),
    ).toBe('attempt')
  })

  it('the job is done by anybody who names its attempt, lease or no lease', () => {
    const script = played(standard, 'create', 'claim', 'effects')
    script.clock.advance(31_000)
    expect(staleness(script.applyCommand({ kind: 'done', attempt: 2 }))).toBe('attempt')
    expect(wordOf(script.applyCommand({ kind: 'done', attempt: 1 }))).toBe('done')
    expect(script.job.state).toBe('succeeded')
    expect(wordOf(script.applyCommand({ kind: 'done', attempt: 1 }))).toBe('same')
  })

  it('a job is not done before its commit', () => {
    expect(staleness(played(standard, 'create').applyCommand({ kind: 'done', attempt: 0 }))).toBe(
      'not-held',
    )
    const running = played(standard, 'create', 'claim')
    expect(staleness(running.applyCommand({ kind: 'done', attempt: 1 }))).toBe('not-held')
  })
})
