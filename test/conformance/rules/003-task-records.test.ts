// The worker-loop requirements (R3): the leases, tries and records of its tasks.
import fc from 'fast-check'
import { type Command, checkFacts, checkP2, checkP9, hopsOf, task, viewOf } from 'pawl/rules'
import { expect, it } from 'vitest'
import { histories } from '../../support/random-history.ts'
import {
  answerOf,
  factOf,
  fail,
  LEASE_MS,
  refusalOf,
  running,
  submitted,
  wayOf,
} from '../played-job.ts'
import { expire, release, taskWith, verbsOf, viewed } from '../task-job.ts'

// Leases and tries.

it('an expired lease returns the task to pending while try_count is below max_tries', () => {
  for (const maxTries of [2, 3, 5]) {
    const script = taskWith(maxTries)
    for (let tries = 1; tries < maxTries; tries++) {
      script.claim()
      expect(viewed(script)).toMatchObject({ try_count: tries, max_tries: maxTries })
      script.clock.advance(LEASE_MS - 1)
      const { fence, job } = script
      expect(answerOf(script.applyCommand({ kind: 'expire', fence }))).toBe('E_LEASE_LIVE')
      expect(script.job).toBe(job)
      script.clock.advance(1)
      expect(wayOf(factOf(script.applyCommand({ kind: 'expire', fence })))).toBe(
        'running → pending',
      )
      expect(script.job.runAt).toBe(script.clock.now())
    }
  }
  expect(viewed(submitted(task))).toMatchObject({ try_count: 0, max_tries: 3 })
})

it('an expired lease ends the task in error when try_count has reached max_tries', () => {
  for (const maxTries of [1, 2, 3]) {
    const script = taskWith(maxTries)
    for (let tries = 1; tries < maxTries; tries++) {
      script.claim()
      expire(script)
    }
    script.claim()
    expect(viewed(script)).toMatchObject({ try_count: maxTries, max_tries: maxTries })
    const fact = factOf(expire(script))
    expect([wayOf(fact), fact.outcome]).toEqual(['running → error', 'failed'])
    expect(fact.reason).toBe('crashes_exhausted')
  }
})

it('try_count is attempts less releases', () => {
  const script = taskWith(4)
  const counts: unknown[] = []
  const count = () => counts.push(viewed(script).try_count)
  script.claim()
  count()
  release(script)
  count()
  script.claim()
  expire(script)
  count()
  // A lease that expires before the handler has started is a release too.
  script.claim({ start: false })
  count()
  expire(script)
  count()
  script.claim()
  script.applyCommand({ kind: 'commit', fence: script.fence })
  count()
  expect(counts).toEqual([1, 0, 1, 2, 1, 2])
  expect(script.job).toMatchObject({ attempt: 4, releases: 2 })
})

it('a task that is given back is pending again at no cost', () => {
  const script = taskWith(2)
  for (let n = 1; n <= 5; n++) {
    script.claim()
    expect(wayOf(factOf(release(script)))).toBe('running → pending')
    expect(viewed(script)).toMatchObject({ status: 'pending', try_count: 0 })
    expect(script.job).toMatchObject({ crashes: 0, releases: n, runAt: script.clock.now() })
  }
})

it('a cancelled task ends in error', () => {
  const held = running(task)
  const fact = factOf(held.applyCommand({ kind: 'cancel' }))
  expect([wayOf(fact), fact.reason]).toEqual(['running → error', 'cancelled'])
  expect(fact.execution).toMatchObject({ statuses: ['ABORTED'], abort: 'cancelled' })
  // A pending task can end only through running: the engine opens an attempt and aborts it.
  const waiting = submitted(task)
  const direct = factOf(waiting.applyCommand({ kind: 'cancel' }))
  expect([wayOf(direct), direct.reason]).toEqual(['pending → running → error', 'cancelled'])
  expect(direct.execution).toMatchObject({
    attempt: 1,
    statuses: ['LEASED', 'ABORTED'],
    worker: 'engine',
    abort: 'cancelled',
  })
  expect(waiting.job).toMatchObject({ attempt: 1, execution: null, outcome: 'failed' })
})

it('a running task always has a lease that began in the future', () => {
  fc.assert(
    fc.property(histories({ lifecycles: [task] }), ({ script, told }) => {
      for (const { at, execution } of script.facts.filter(({ trigger }) => trigger === 'claim')) {
        expect(execution?.leaseUntil).toBeGreaterThan(at)
      }
      for (const { after } of told) {
        const lease = after === null ? null : viewOf(task, after).lease_timeout
        const status = after?.execution?.status
        if (status === 'LEASED' || status === 'IN_PROGRESS') expect(lease).toBeTypeOf('number')
        if (after?.state === 'pending' || after?.state === 'error') expect(lease).toBeNull()
      }
    }),
    { numRuns: 300 },
  )
  const script = submitted(task)
  for (const leaseMs of [0, -1]) {
    expect(refusalOf(script.claim({ leaseMs })).details).toMatchObject({ field: 'leaseUntil' })
  }
})

it('a done task has no lease', () => {
  const script = running(task)
  script.applyCommand({ kind: 'commit', fence: script.fence })
  expect(viewed(script)).toMatchObject({ status: 'done', lease_timeout: null, lease_owner: null })
})

it('no verb of the holder passes once its lease has expired', () => {
  const answers = (leaseLeft: number) =>
    verbsOf({ attempt: 1, claim: '' }).map(({ kind }) => {
      const script = submitted(task)
      script.claim({ start: kind !== 'start' })
      script.clock.advance(LEASE_MS - leaseLeft)
      const verb = verbsOf(script.fence).find((other) => other.kind === kind) as Command
      const decision = script.applyCommand(verb)
      return decision.kind === 'rejected' ? decision.error.details : decision.kind
    })
  expect(new Set(answers(1))).toEqual(new Set(['fact']))
  for (const details of answers(0)) expect(details).toMatchObject({ because: 'expired' })
  for (const details of answers(-5000)) expect(details).toMatchObject({ because: 'expired' })
  const script = running(task)
  script.clock.advance(LEASE_MS)
  expect(answerOf(script.applyCommand({ kind: 'done', attempt: 1 }))).toBe('E_STALE_FENCE')
})

// Records.

it('updated_at is the time of the last fact', () => {
  fc.assert(
    fc.property(histories({ lifecycles: [task] }), ({ script, told }) => {
      for (const { answer, context, after, before } of told) {
        if (after === null) continue
        const updated = answer.kind === 'fact' ? context.now : before?.updatedAt
        expect(viewOf(task, after).updated_at).toBe(updated)
      }
      expect(script.job.updatedAt).toBe(script.facts.at(-1)?.at)
    }),
    { numRuns: 200 },
  )
})

it('every transition of a task to running, done or error is one fact', () => {
  fc.assert(
    fc.property(histories({ lifecycles: [task] }), ({ script, told }) => {
      const seen = told.flatMap(({ before, after }) =>
        before === null || after === null || before.state === after.state ? [] : [after.state],
      )
      const recorded = script.facts.filter(({ from, to }) => from !== null && from !== to)
      expect(recorded.map(({ to }) => to)).toEqual(seen)
      // No fact enters a state twice. Only a task that is cancelled, or failed by what it waits
      // for, passes running on its way.
      for (const fact of script.facts) {
        const entered = hopsOf(fact).map(({ to }) => to)
        expect(new Set(entered).size).toBe(entered.length)
        if (entered.length > 1) expect(['cancel', 'arrive']).toContain(fact.trigger)
      }
      expect(checkP2(task, script.facts)).toEqual([])
    }),
    { numRuns: 200 },
  )
})

it('the view of a task has the field names of the document', () => {
  const script = running(task)
  expect(viewed(script)).toMatchObject({
    status: 'running',
    lease_timeout: script.clock.now() + LEASE_MS,
    try_count: 1,
    max_tries: 3,
    updated_at: script.clock.now(),
  })
  script.clock.advance(10)
  fail(script, new Error('no such page'))
  expect(viewed(script)).toMatchObject({
    status: 'error',
    lease_timeout: null,
    error: 'Error: no such page',
    updated_at: script.clock.now(),
  })
})

it('any random sequence of commands keeps the promises and max_tries', () => {
  fc.assert(
    fc.property(histories({ lifecycles: [task] }), ({ script, told }) => {
      expect(checkFacts(task, script.facts)).toEqual([])
      expect(checkP9(script.job, script.facts)).toEqual([])
      // A person may grant more tries; until then the bound holds.
      for (const { after, answer } of told) {
        if (after === null) continue
        if (answer.kind === 'fact' && answer.fact.operator !== undefined) break
        const { try_count, max_tries } = viewOf(task, after)
        expect(try_count).toBeLessThanOrEqual(max_tries as number)
      }
    }),
    { numRuns: 500 },
  )
})

it('whatever a person did, an expired lease goes by try_count and max_tries', () => {
  fc.assert(
    fc.property(histories({ lifecycles: [task] }), ({ told }) => {
      for (const { before, answer } of told) {
        if (before?.execution?.status !== 'IN_PROGRESS' || answer.kind !== 'fact') continue
        if (answer.fact.execution?.abort !== 'lease_expired') continue
        const { try_count, max_tries } = viewOf(task, before)
        const left = Number(try_count) < Number(max_tries)
        expect(answer.fact.to).toBe(left ? 'pending' : 'error')
      }
    }),
    { numRuns: 500 },
  )
})
