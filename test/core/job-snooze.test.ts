// A snoozed attempt is no failure: the job runs again when its handler asked for it.
import { Snooze, Throttled } from 'pawl'
import { decide, executionsOf, type Lifecycle, standard } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { SNOOZED_ATTEMPTS_MAX } from '../../src/core/job/decide-attempt.ts'
import { laneOf } from '../../src/core/job/lanes.ts'
import { EVERY_LIFECYCLE } from './job-play.ts'

const DELAY_MS = 600_000

describe.each(EVERY_LIFECYCLE.map((one) => [one.name, one] as const))(
  'a snoozed job of lifecycle %s',
  (_name, lifecycle) => {
    it('waits until its time, spends no retry and no crash, and has no error', () => {
      const script = started(lifecycle)
      const decision = snooze(script)
      expect(decision).toMatchObject({ kind: 'fact', fact: { reason: 'snoozed' } })
      const { job, clock } = script
      const kept = { failures: 0, crashes: 0, error: null, reason: 'snoozed', outcome: null }
      expect(job).toMatchObject({ ...kept, runAt: clock.now() + DELAY_MS })
      expect(laneOf(lifecycle, job, clock.now())).toBe('waiting')
      expect(executionsOf(script.facts)).toMatchObject([{ abort: 'suspended', error: null }])
      clock.advance(DELAY_MS)
      script.applyCommand({ kind: 'due' })
      expect(script.claim().kind).toBe('fact')
    })

    it('that was throttled names the throttle, and costs as little', () => {
      const script = started(lifecycle)
      const runAt = script.clock.now() + DELAY_MS
      const { fence } = script
      const gate = 'rate/example/calls'
      const command = { kind: 'suspend', fence, runAt, reason: 'throttled', gate } as const
      expect(script.applyCommand(command)).toMatchObject({
        fact: { reason: 'throttled', gate, runAt },
      })
      expect(script.job).toMatchObject({ failures: 0, crashes: 0, error: null, outcome: null })
    })
  },
)

describe('snoozing', () => {
  it('without an edge of its own spends the release budget, and then counts as a crash', () => {
    for (const lifecycle of EVERY_LIFECYCLE.filter(({ name }) => name !== 'standard')) {
      const script = started(lifecycle, lifecycle.retryFixed ? undefined : 1)
      snooze(script)
      expect(script.job.releases).toBe(1)
      if (lifecycle.retryFixed) continue
      script.clock.advance(DELAY_MS)
      script.claim()
      snooze(script)
      expect(script.job.error).toMatchObject({ message: 'Snoozed too often' })
    }
  })

  it('parks a job with too many attempts', () => {
    expect(snoozedAt(SNOOZED_ATTEMPTS_MAX - 1)).toMatchObject({ fact: { trigger: 'suspend' } })
    expect(snoozedAt(SNOOZED_ATTEMPTS_MAX)).toMatchObject({
      fact: { trigger: 'give-up', to: 'quarantined', reason: 'snoozes_exhausted' },
    })
  })

  it('needs a duration, and no other reason than its own', () => {
    expect(() => new Snooze('soon' as '1s')).toThrow(
      expect.objectContaining({ code: 'E_COMMAND_INVALID' }),
    )
    expect(new Snooze('10m').delayMs).toBe(DELAY_MS)
    const script = started(standard)
    const command = { kind: 'suspend', fence: script.fence, runAt: 1, reason: 'bored' }
    expect(script.applyCommand(command as never)).toMatchObject({ kind: 'rejected' })
  })
})

describe('the error of a throttled handler', () => {
  it('has the throttle and the delay', () => {
    const error = new Throttled('calls', '30s')
    expect(error).toMatchObject({ name: 'Throttled', throttle: 'calls', retryAfterMs: 30_000 })
    expect(() => new Throttled('calls', 'soon' as never)).toThrow(/retryAfter/)
  })
})

/** The decision about a job that has so many attempts. */
function snoozedAt(attempt: number) {
  const { job, fence, clock } = started(standard)
  const command = { kind: 'suspend', runAt: clock.now(), reason: 'snoozed' } as const
  const context = { now: clock.now(), random: 0, actor: 'worker' } as const
  const held = { ...job, attempt }
  return decide(standard, held, { ...command, fence: { ...fence, attempt } }, context)
}

function started(lifecycle: Lifecycle, releasesMax?: number): JobScript {
  const script = new JobScript(lifecycle)
  const policy = releasesMax === undefined ? undefined : { ...lifecycle.policy, releasesMax }
  script.create(policy && { policy })
  script.claim()
  return script
}

function snooze(script: JobScript) {
  const runAt = script.clock.now() + DELAY_MS
  return script.applyCommand({ kind: 'suspend', fence: script.fence, runAt, reason: 'snoozed' })
}
