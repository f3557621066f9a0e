// The format of facts: their codes, their fields and the edges that they tell of.
import { FACT_CODES, FACT_VERSION, type Fact, hopsOf, standard } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { EVERY_LIFECYCLE, FINAL, factOf, HOUR, played } from './job-play.ts'

const base: Fact = {
  version: 1,
  jobId: '00000000-0000-7000-8000-000000000001',
  seq: 2,
  at: 0,
  trigger: 'claim',
  from: 'queued',
  to: 'running',
  actor: 'worker',
}

describe('fact codes', () => {
  it('are never renumbered, never reused and never lost', () => {
    // Stores keep these numbers: a release may add a line here, but never change one.
    expect(FACT_CODES).toEqual({
      create: 10,
      submit: 11,
      schedule: 12,
      due: 13,
      reschedule: 14,
      'run-now': 15,
      prioritise: 16,
      replace: 17,
      migrate: 18,
      arrive: 19,
      claim: 20,
      start: 21,
      step: 22,
      signal: 23,
      receive: 24,
      commit: 30,
      done: 31,
      retry: 40,
      fail: 41,
      'give-up': 42,
      reject: 43,
      expire: 44,
      release: 45,
      suspend: 46,
      exhaust: 47,
      stall: 48,
      wait: 49,
      cancel: 50,
      park: 60,
      redrive: 61,
      discard: 62,
      force: 63,
      repair: 64,
    })
    expect(new Set(Object.values(FACT_CODES)).size).toBe(33)
  })

  it('belong to version 1 of the format', () => {
    expect(FACT_VERSION).toBe(1)
  })
})

describe('the edges of a fact', () => {
  it('is the one from its first to its last state', () => {
    expect(hopsOf(base)).toEqual([{ from: 'queued', to: 'running' }])
  })

  it('are all that it passed, in order', () => {
    expect(hopsOf({ ...base, from: 'a', via: ['b', 'c'], to: 'd' })).toEqual([
      { from: 'a', to: 'b' },
      { from: 'b', to: 'c' },
      { from: 'c', to: 'd' },
    ])
  })

  it('are none where the state stayed', () => {
    expect(hopsOf({ ...base, from: 'queued', to: 'queued' })).toEqual([])
  })

  it('are none for a creation that went no further', () => {
    expect(hopsOf({ ...base, trigger: 'create', from: null, to: 'created' })).toEqual([])
  })

  it('begin at the initial state for a creation that went further', () => {
    const fact: Fact = { ...base, trigger: 'create', from: null, via: ['created'], to: 'queued' }
    expect(hopsOf(fact)).toEqual([{ from: 'created', to: 'queued' }])
  })
})

describe('a fact', () => {
  it('says who asked, why, and in which trace', () => {
    const script = new JobScript(standard)
    script.create({ hold: true })
    const requester = {
      actor: 'operator',
      operator: 'ann',
      note: 'it blocks the others',
      metadata: { ticket: 'OPS-7' },
      traceId: 'trace-1',
      spanId: 'span-1',
    } as const
    expect(factOf(script.applyCommand({ kind: 'park' }, requester))).toEqual({
      version: 1,
      jobId: '00000000-0000-7000-8000-000000000001',
      seq: 2,
      at: Date.UTC(2026, 0, 1),
      trigger: 'park',
      from: 'created',
      to: 'quarantined',
      reason: 'parked',
      ...requester,
    })
  })

  it('does not mention what was not given', () => {
    const script = new JobScript(standard)
    script.create()
    const { actor, ...rest } = factOf(script.applyCommand({ kind: 'cancel' }))
    expect(actor).toBe('client')
    expect(rest).not.toHaveProperty('operator')
    expect(rest).not.toHaveProperty('note')
    expect(rest).not.toHaveProperty('metadata')
    expect(rest).not.toHaveProperty('traceId')
    expect(rest).not.toHaveProperty('spanId')
  })

  it('of a creation holds every attribute, with null for those that are absent', () => {
    const script = new JobScript(standard)
    const fact = factOf(script.create())
    expect(fact).toEqual({
      version: 1,
      jobId: '00000000-0000-7000-8000-000000000001',
      seq: 1,
      at: Date.UTC(2026, 0, 1),
      trigger: 'create',
      from: null,
      via: ['created'],
      to: 'queued',
      actor: 'client',
      created: {
        type: 'example',
        queue: 'default',
        lifecycle: 'standard',
        lifecycleVersion: 2,
        tags: [],
        key: null,
        limitKey: null,
        retryOf: null,
        timeoutMs: null,
        deadlineAt: null,
        policy: null,
      },
      priority: 0,
      runAt: Date.UTC(2026, 0, 1),
    })
  })
})

describe('a fact of an attempt', () => {
  it('of a creation holds every attribute that was given', () => {
    const script = new JobScript(standard)
    const { policy } = standard
    const given = {
      type: 'report',
      queue: 'slow',
      tags: ['a', 'b'],
      key: 'report-1',
      retryOf: '00000000-0000-7000-8000-00000000000a',
      timeoutMs: 1000,
      deadlineAt: script.clock.now() + HOUR,
      policy,
    }
    const limitKeys = [{ gate: 'type/report' }, { gate: 'job/report/a/b', max: 3 }]
    const fact = factOf(script.create({ ...given, limitKeys, priority: -5 }))
    const limitKey = 'job/report/a/b=3 type/report'
    expect(fact.created).toEqual({ ...given, limitKey, lifecycle: 'standard', lifecycleVersion: 2 })
    expect(fact.priority).toBe(-5)
  })

  it('names the claim, the worker and the first expiry at the claim', () => {
    const script = played(standard, 'create')
    expect(factOf(script.claim({ worker: 'w-9', leaseMs: 500 })).execution).toEqual({
      attempt: 1,
      statuses: ['LEASED', 'IN_PROGRESS'],
      claim: '00000000-0000-7000-8000-000000000002',
      worker: 'w-9',
      leaseUntil: script.clock.now() + 500,
    })
  })

  it('names the claim and the last expiry at the close, final only where the job ended', () => {
    for (const lifecycle of EVERY_LIFECYCLE) {
      const script = played(lifecycle, 'create', 'claim')
      const { claim, leaseUntil } = script.job.execution ?? {}
      const fail = script.applyCommand({ kind: 'fail', fence: script.fence, failure: FINAL })
      const closing = { attempt: 1, statuses: ['ABORTED'], claim, leaseUntil, abort: 'error' }
      const ended = script.job.outcome !== null
      expect(factOf(fail).execution).toEqual(ended ? { ...closing, final: true } : closing)
      // The job of lifecycle hardened is parked by a terminal error, which is no end.
      expect(ended).toBe(lifecycle.name !== 'hardened')
    }
  })

  it('carries the numbers that the handler reported', () => {
    const usage = { durationMs: 12.5, pages: 3 }
    const committed = played(standard, 'create', 'claim')
    const { fence } = committed
    expect(factOf(committed.applyCommand({ kind: 'commit', fence, usage })).usage).toEqual(usage)
    for (const failure of [FINAL, { ...FINAL, class: 'retryable', kind: 'error' } as const]) {
      const failed = played(standard, 'create', 'claim')
      const fact = factOf(
        failed.applyCommand({ kind: 'fail', fence: failed.fence, failure, usage }),
      )
      expect(fact.usage).toEqual(usage)
    }
  })
})
