// How a job comes into being, becomes due, moves in time and is cancelled.
import { decide, document, hardened, leased, standard, task } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, errorOf, factOf, HOUR, played, statesOf, wordOf } from './job-play.ts'

type Script = ReturnType<typeof played>

describe('the order of the checks', () => {
  const context = { now: 0, random: 0, actor: 'client' } as const

  it('begins with the form of the command, before the job is looked for', () => {
    expect(wordOf(decide(standard, null, { kind: 'prioritise', priority: 0.5 }, context))).toBe(
      'E_COMMAND_INVALID',
    )
    expect(wordOf(decide(standard, null, { kind: 'park' }, context))).toBe('E_COMMAND_INVALID')
  })

  it('then asks whether there is such a job', () => {
    expect(wordOf(decide(standard, null, { kind: 'submit' }, context))).toBe('E_JOB_NOT_FOUND')
  })

  it('refuses to create a job twice, and names it', () => {
    const script = played(standard, 'create')
    const again = script.create()
    expect(wordOf(again)).toBe('E_JOB_EXISTS')
    expect(errorOf(again).details).toEqual({ jobId: '00000000-0000-7000-8000-000000000002' })
  })
})

describe('a creation', () => {
  it('takes the job as far towards ready as its due time allows, in one fact', () => {
    const now: Record<string, (string | null)[]> = {
      standard: [null, 'created', 'queued'],
      hardened: [null, 'pending'],
      leased: [null, 'PENDING'],
      document: [null, 'CREATED', 'QUEUED'],
      task: [null, 'pending'],
      tiny: [null, 'open'],
    }
    const later = {
      ...now,
      standard: [null, 'created', 'scheduled'],
      document: [null, 'CREATED'],
    }
    for (const lifecycle of EVERY_LIFECYCLE) {
      const { name } = lifecycle
      expect(statesOf(factOf(new JobScript(lifecycle).create())), name).toEqual(now[name])
      const script = new JobScript(lifecycle)
      const runAt = script.clock.now() + 1
      const fact = factOf(script.create({ runAt }))
      expect(statesOf(fact), name).toEqual(later[name as keyof typeof later])
      expect(script.job.runAt).toBe(runAt)
      expect([script.job.lifecycle, script.job.lifecycleVersion]).toEqual([name, lifecycle.version])
    }
  })

  it('for a time that has come is one for now', () => {
    for (const ago of [0, 1, HOUR]) {
      const script = new JobScript(standard)
      script.create({ runAt: script.clock.now() - ago })
      expect(script.job).toMatchObject({ state: 'queued', runAt: script.clock.now() })
    }
  })

  it('holds the job back without a due time, where the lifecycle has a state for that', () => {
    for (const [lifecycle, state] of [
      [standard, 'created'],
      [document, 'CREATED'],
    ] as const) {
      const script = new JobScript(lifecycle)
      expect(statesOf(factOf(script.create({ hold: true })))).toEqual([null, state])
      expect(script.job.runAt).toBeNull()
    }
  })

  it('is refused where the lifecycle cannot hold a job back', () => {
    for (const lifecycle of [hardened, leased, task]) {
      const answer = new JobScript(lifecycle).create({ hold: true })
      expect(wordOf(answer)).toBe('E_UNSUPPORTED')
      expect(errorOf(answer).details).toEqual({ lifecycle: lifecycle.name, command: 'hold' })
    }
  })
})

describe('a job that was held back', () => {
  it('runs now when it is submitted', () => {
    for (const lifecycle of [standard, document]) {
      const script = played(lifecycle, 'hold')
      script.clock.advance(5)
      expect(wordOf(script.applyCommand({ kind: 'submit' }))).toBe('submit')
      expect(script.job).toMatchObject({ state: lifecycle.ready, runAt: script.clock.now() })
      expect(wordOf(script.applyCommand({ kind: 'submit' }))).toBe('same')
      script.claim()
      expect(wordOf(script.applyCommand({ kind: 'submit' }))).toBe('E_TRANSITION_INVALID')
    }
  })

  it('runs later when it is scheduled', () => {
    for (const [lifecycle, state] of [
      [standard, 'scheduled'],
      [document, 'CREATED'],
    ] as const) {
      const script = played(lifecycle, 'hold')
      const runAt = script.clock.now() + HOUR
      expect(wordOf(script.applyCommand({ kind: 'schedule', runAt }))).toBe('schedule')
      expect(script.job).toMatchObject({ state, runAt })
      expect(wordOf(script.applyCommand({ kind: 'schedule', runAt }))).toBe('same')
      expect(wordOf(script.applyCommand({ kind: 'schedule', runAt: runAt + 1 }))).toBe('schedule')
      expect(script.job).toMatchObject({ state, runAt: runAt + 1 })
    }
  })

  it('runs now when it is scheduled for now or the past', () => {
    for (const ago of [0, HOUR]) {
      const script = played(standard, 'hold')
      const runAt = script.clock.now() - ago
      expect(wordOf(script.applyCommand({ kind: 'schedule', runAt }))).toBe('submit')
      expect(script.job).toMatchObject({ state: 'queued', runAt: script.clock.now() })
    }
  })

  it('runs now when it was scheduled for later and is scheduled again for now or the past', () => {
    for (const lifecycle of [standard, document]) {
      const script = played(lifecycle, 'delay')
      const runAt = script.clock.now()
      expect(wordOf(script.applyCommand({ kind: 'schedule', runAt }))).toBe('run-now')
      expect(script.job).toMatchObject({ state: lifecycle.ready, runAt })
    }
  })

  it('is not scheduled once it was submitted', () => {
    for (const [lifecycle, to] of [
      [standard, 'scheduled'],
      [document, 'CREATED'],
    ] as const) {
      const script = played(lifecycle, 'create')
      const answer = script.applyCommand({ kind: 'schedule', runAt: script.clock.now() + 1 })
      expect(errorOf(answer)).toMatchObject({ from: lifecycle.ready, to })
    }
  })

  it('does not exist in a lifecycle without an idle state, hence no submit and no schedule', () => {
    for (const lifecycle of [hardened, leased, task]) {
      const script = played(lifecycle, 'create')
      const runAt = script.clock.now() + 1
      expect(wordOf(script.applyCommand({ kind: 'submit' }))).toBe('E_UNSUPPORTED')
      expect(wordOf(script.applyCommand({ kind: 'schedule', runAt }))).toBe('E_UNSUPPORTED')
      expect(wordOf(script.applyCommand({ kind: 'schedule', runAt: 0 }))).toBe('E_UNSUPPORTED')
    }
  })
})

describe('a due time', () => {
  it('moves a waiting job to ready at its millisecond and not before', () => {
    for (const lifecycle of [standard, document]) {
      const script = played(lifecycle, 'delay')
      script.clock.advance(HOUR - 1)
      const early = script.applyCommand({ kind: 'due' })
      expect(wordOf(early)).toBe('E_NOT_DUE')
      expect(errorOf(early).details.runAt).toBe(script.clock.now() + 1)
      script.clock.advance(1)
      expect(wordOf(script.applyCommand({ kind: 'due' }))).toBe('due')
      expect(script.job.state).toBe(lifecycle.ready)
      expect(wordOf(script.applyCommand({ kind: 'due' }))).toBe('same')
    }
  })

  it('needs no fact where the ready job itself waited', () => {
    const script = played(hardened, 'delay')
    expect(wordOf(script.applyCommand({ kind: 'due' }))).toBe('E_NOT_DUE')
    script.clock.advance(HOUR)
    expect(wordOf(script.applyCommand({ kind: 'due' }))).toBe('same')
  })

  it('does not exist for a job that was never submitted', () => {
    const script = played(document, 'hold')
    const answer = script.applyCommand({ kind: 'due' })
    expect(wordOf(answer)).toBe('E_NOT_DUE')
    expect(errorOf(answer).details.runAt).toBeNull()
  })

  it('does not move a job in any other state', () => {
    expect(wordOf(played(standard, 'hold').applyCommand({ kind: 'due' }))).toBe(
      'E_TRANSITION_INVALID',
    )
    expect(wordOf(played(standard, 'create', 'claim').applyCommand({ kind: 'due' }))).toBe(
      'E_TRANSITION_INVALID',
    )
    // Lifecycle task has no edge for a due time; its ready jobs only change their lane.
    expect(wordOf(played(task, 'create', 'claim').applyCommand({ kind: 'due' }))).toBe(
      'E_UNSUPPORTED',
    )
  })

  it('of a parked job means nothing until it is redriven', () => {
    const retrying = played(document, 'create', 'claim', 'retry', 'park')
    retrying.clock.advance(HOUR)
    expect(wordOf(retrying.applyCommand({ kind: 'due' }))).toBe('E_JOB_PARKED')
    expect(wordOf(played(leased, 'create', 'park').applyCommand({ kind: 'due' }))).toBe(
      'E_JOB_PARKED',
    )
  })
})

/** Every state of every lifecycle, and where a move of the due time leads from there. */
const RESCHEDULED: readonly [Script, later: string, now: string][] = [
  [played(standard, 'hold'), 'E_TRANSITION_INVALID', 'E_TRANSITION_INVALID'],
  [played(standard, 'delay'), 'reschedule scheduled', 'run-now queued'],
  [played(standard, 'create'), 'reschedule scheduled', 'same queued'],
  [played(standard, 'create', 'claim'), 'E_TRANSITION_INVALID', 'E_TRANSITION_INVALID'],
  [played(standard, 'create', 'claim', 'retry'), 'reschedule scheduled', 'run-now queued'],
  [played(standard, 'create', 'park'), 'E_TRANSITION_INVALID', 'E_TRANSITION_INVALID'],
  [played(standard, 'create', 'claim', 'fail'), 'E_JOB_ENDED', 'E_JOB_ENDED'],
  [played(standard, 'create', 'cancel'), 'E_JOB_ENDED', 'E_JOB_ENDED'],
  [played(standard, 'create', 'claim', 'commit'), 'E_COMMITTED', 'E_COMMITTED'],
  [played(hardened, 'create'), 'reschedule pending', 'same pending'],
  [played(hardened, 'delay'), 'reschedule pending', 'run-now pending'],
  [played(hardened, 'create', 'claim'), 'E_TRANSITION_INVALID', 'E_TRANSITION_INVALID'],
  [played(hardened, 'create', 'claim', 'retry'), 'reschedule failed', 'run-now pending'],
  [played(hardened, 'create', 'claim', 'fail'), 'E_TRANSITION_INVALID', 'E_TRANSITION_INVALID'],
  [played(hardened, 'create', 'claim', 'commit'), 'E_COMMITTED', 'E_COMMITTED'],
  [played(leased, 'create'), 'reschedule PENDING', 'same PENDING'],
  [played(leased, 'delay'), 'reschedule PENDING', 'run-now PENDING'],
  [played(leased, 'create', 'claim'), 'E_TRANSITION_INVALID', 'E_TRANSITION_INVALID'],
  [played(leased, 'create', 'claim', 'retry'), 'reschedule PENDING', 'run-now PENDING'],
  [played(leased, 'create', 'claim', 'fail'), 'E_JOB_ENDED', 'E_JOB_ENDED'],
  [played(document, 'hold'), 'E_TRANSITION_INVALID', 'E_TRANSITION_INVALID'],
  [played(document, 'delay'), 'reschedule CREATED', 'run-now QUEUED'],
  [played(document, 'create'), 'reschedule QUEUED', 'same QUEUED'],
  [played(document, 'create', 'claim'), 'E_TRANSITION_INVALID', 'E_TRANSITION_INVALID'],
  [played(document, 'create', 'claim', 'retry'), 'E_UNSUPPORTED', 'E_UNSUPPORTED'],
  [played(document, 'create', 'claim', 'fail'), 'E_JOB_ENDED', 'E_JOB_ENDED'],
  [played(document, 'create', 'claim', 'commit'), 'E_COMMITTED', 'E_COMMITTED'],
  [played(task, 'create'), 'reschedule pending', 'same pending'],
  [played(task, 'delay'), 'reschedule pending', 'run-now pending'],
  [played(task, 'create', 'claim'), 'E_TRANSITION_INVALID', 'E_TRANSITION_INVALID'],
  [played(task, 'create', 'claim', 'fail'), 'E_JOB_ENDED', 'E_JOB_ENDED'],
  [played(task, 'create', 'claim', 'commit'), 'E_COMMITTED', 'E_COMMITTED'],
]

describe('a move of the due time', () => {
  const outcome = (script: Script, runAt: number) => {
    const context = { now: script.clock.now(), random: 0, actor: 'client' } as const
    const answer = decide(script.lifecycle, script.job, { kind: 'reschedule', runAt }, context)
    if (answer.kind === 'same') return { word: `same ${script.job.state}` }
    if (answer.kind === 'rejected') return { word: answer.error.code }
    return { word: `${answer.fact.trigger} ${answer.fact.to}`, runAt: answer.fact.runAt }
  }

  it('to a later time leads where the lifecycle says, in every state', () => {
    for (const [script, later] of RESCHEDULED) {
      const runAt = script.clock.now() + 2 * HOUR
      const moved = outcome(script, runAt)
      expect(moved.word, `${script.lifecycle.name} ${script.job.state}`).toBe(later)
      if (later.startsWith('reschedule')) expect(moved.runAt).toBe(runAt)
    }
  })

  it('to now or the past means run now, in every state', () => {
    for (const [script, , now] of RESCHEDULED) {
      for (const runAt of [script.clock.now(), script.clock.now() - 1]) {
        const moved = outcome(script, runAt)
        expect(moved.word, `${script.lifecycle.name} ${script.job.state}`).toBe(now)
        if (now.startsWith('run-now')) expect(moved.runAt).toBe(script.clock.now())
      }
    }
  })

  it('to the time that it has already changes nothing, where no edge is taken', () => {
    for (const lifecycle of [hardened, leased, document, task]) {
      const script = played(lifecycle, 'delay')
      const runAt = script.job.runAt ?? Number.NaN
      expect(wordOf(script.applyCommand({ kind: 'reschedule', runAt }))).toBe('same')
    }
  })

  it('lets nobody claim the job before', () => {
    const script = played(hardened, 'create')
    script.applyCommand({ kind: 'reschedule', runAt: script.clock.now() + 10 })
    expect(wordOf(script.claim())).toBe('E_NOT_DUE')
    script.clock.advance(10)
    expect(wordOf(script.claim())).toBe('claim')
  })
})

describe('a fact', () => {
  it('is not changed by what happens later to the objects that it was made from', () => {
    const tags = ['a']
    const metadata = { why: 'asked' }
    const usage = { pages: 1 }
    const script = new JobScript(standard)
    script.create({ tags })
    script.applyCommand({ kind: 'prioritise', priority: 3 }, { metadata })
    script.claim()
    script.applyCommand({ kind: 'commit', fence: script.fence, usage })
    const before = JSON.stringify(script.facts)
    tags.push('b')
    metadata.why = 'changed'
    usage.pages = 9
    expect(JSON.stringify(script.facts)).toBe(before)
  })
})
