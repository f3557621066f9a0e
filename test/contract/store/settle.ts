/** What attempts report: each report once, each on its own, and the next claim with it. */
import assert from 'node:assert/strict'
import {
  CommandInvalid,
  InvalidTransition,
  StaleFence,
  Unsupported,
  ValueInvalid,
} from '../../../src/core/errors.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import type { Held, Settlement } from '../../../src/stores/contract/store.ts'
import {
  type Bench,
  type Cases,
  done,
  failureOf,
  fenceOf,
  LEASE_MS,
  one,
  policyWith,
  type Report,
  refused,
  settlement,
} from './bench.ts'
import { settled } from './check.ts'

/** What a report does to its job. */
export const settleCases: Cases = {
  'a fact that was answered is the fact that can be read': async (bench) => {
    const held = await bench.hold()
    const answer = done(await bench.settle(held, { kind: 'commit', usage: { ms: 12 } }, '1'))
    assert.deepEqual(await bench.lastFact(held.job.id), answer.fact)
    assert.deepEqual(settled(await bench.job(held.job.id)), settled(answer.job))
    assert.deepEqual(answer.fact.usage, { ms: 12 })
  },

  'the fact that closes an attempt has its queue time and duration': async (bench) => {
    const closings: Record<string, (held: Held) => Promise<unknown>> = {
      commit: (held) => bench.settle(held, { kind: 'commit' }, '1'),
      'commit with an effect': (held) =>
        bench.store.commit(held, (tx) => {
          tx.effect('send', '{}')
          return 'null'
        }),
      fail: (held) => bench.fail(held, 'transient'),
      release: (held) => bench.settle(held, { kind: 'release' }),
      cancel: (held) => bench.applyCommand(held.job.id, { kind: 'cancel' }),
    }
    for (const [name, close] of Object.entries(closings)) {
      const { id } = await bench.enqueue({ queue: name })
      await bench.advance(70)
      const held = one(await bench.claim({ queues: [name] }))
      await bench.advance(30)
      await close(held)
      const { timing } = await bench.lastFact(id)
      assert.deepEqual(timing, { queueMs: 70, durationMs: 30 }, name)
    }
  },

  'successes of one batch have each their own queue time': async (bench) => {
    const waits = [50, 20, 0]
    for (const [i, wait] of waits.entries()) {
      await bench.enqueue()
      await bench.advance(wait - (waits[i + 1] ?? 0))
    }
    const held = await bench.claim({ limit: 10 })
    await bench.advance(5)
    const settlements = held.map((one) => settlement(one, { kind: 'commit' }, '1'))
    const { answers } = await bench.store.settle(settlements)
    for (const [i, { job }] of held.entries()) {
      const expected = { queueMs: waits[i], durationMs: 5 }
      assert.deepEqual((await bench.lastFact(job.id)).timing, expected)
      const answer = answers[i]
      assert.deepEqual(answer?.kind === 'done' && answer.fact.timing, expected)
    }
  },

  'an attempt that expired has the time until that was noticed': async (bench) => {
    const held = await bench.hold()
    await bench.advance(LEASE_MS + 250)
    await bench.store.recover(10)
    const fact = await bench.lastFact(held.job.id)
    assert.deepEqual(fact.timing, { queueMs: 0, durationMs: LEASE_MS + 250 })
  },

  'an implicit commit ends the job and keeps its result': async (bench) => {
    const held = await bench.hold({ input: '"in"' })
    const { job } = done(await bench.settle(held, { kind: 'commit' }, '{"ok":true}'))
    assert.deepEqual([job.state, job.outcome], ['succeeded', 'succeeded'])
    assert.deepEqual(await bench.store.payloads(job.id), { input: '"in"', result: '{"ok":true}' })
  },

  'a failed attempt waits out its delay and is then taken again': async (bench) => {
    const held = await bench.hold()
    const { job } = done(await bench.fail(held, 'transient', 'the net is down'))
    assert.deepEqual([job.state, job.failures, job.execution], ['retrying', 1, null])
    assert.deepEqual(job.error, {
      message: 'the net is down',
      kind: 'transient',
      type: 'RETRYABLE',
    })
    assert.equal(await bench.store.promote(10), 0)
    await bench.advance(2000)
    assert.equal(await bench.store.promote(10), 1)
    const again = await bench.reclaim(held)
    assert.equal(again.job.attempt, 2)
  },

  'an attempt that is given back is ready at once and costs nothing': async (bench) => {
    const held = await bench.hold()
    const { job } = done(await bench.settle(held, { kind: 'release' }))
    assert.deepEqual([job.state, job.releases, job.failures, job.crashes], ['queued', 1, 0, 0])
    await bench.reclaim(held)
  },

  'a suspended job holds no slot and comes back at its time': async (bench) => {
    const held = await bench.hold()
    const runAt = bench.store.now() + 500
    const { job } = done(await bench.settle(held, { kind: 'suspend', runAt }))
    assert.deepEqual([job.state, job.runAt, job.failures], ['scheduled', runAt, 0])
    await bench.advance(500)
    assert.equal(await bench.store.promote(10), 1)
    await bench.reclaim(held)
  },

  'the holder can end a job whose cancellation was asked for': async (bench) => {
    const held = await bench.hold()
    const { job } = done(await bench.settle(held, { kind: 'cancel' }))
    assert.equal(job.outcome, 'cancelled')
  },

  'a job that was not started cannot commit or remember a step': async (bench) => {
    const held = await bench.hold({}, { start: false })
    await bench.assertUntouched(held.job.id, async () => {
      refused(await bench.settle(held, { kind: 'commit' }, '1'), InvalidTransition)
      refused(await bench.settle(held, { kind: 'step', name: 'a', n: 1 }, '1'), InvalidTransition)
    })
  },

  'a report that a lifecycle does not have is refused': async (bench) => {
    const held = await bench.hold({ lifecycle: leased })
    const runAt = bench.store.now() + 500
    refused(await bench.settle(held, { kind: 'suspend', runAt }), Unsupported)
  },

  'settlements of one call stand each on its own': async (bench) => {
    const [good, stale, bad, last] = [
      await bench.hold(),
      await bench.hold(),
      await bench.hold(),
      await bench.hold(),
    ]
    done(await bench.settle(stale, { kind: 'release' }))
    const { answers } = await bench.store.settle([
      settlement(good, { kind: 'commit' }, '1'),
      settlement(stale, { kind: 'commit' }, '2'),
      settlement(bad, { kind: 'step', name: '', n: 1 }, '3'),
      settlement(last, { kind: 'release' }),
    ])
    done(answers[0])
    refused(answers[1], StaleFence)
    refused(answers[2], CommandInvalid)
    done(answers[3])
    assert.equal((await bench.job(bad.job.id)).seq, bad.job.seq)
  },

  'successes among others are answered in order, and the next claim comes last': async (bench) => {
    const queue = 'q'
    const held: Held[] = []
    for (let i = 0; i < 9; i++) held.push(await bench.hold({ queue, input: String(i) }))
    const stale = held[4] as Held
    done(await bench.settle(stale, { kind: 'release' }))
    // Its holder has not heard of it.
    done(await bench.settle(held[6] as Held, { kind: 'step', name: 'a', n: 1 }, '1'))
    const waiting = [stale.job.id, (await bench.enqueue({ queue })).id]
    const other: Readonly<Record<number, Report>> = {
      1: { kind: 'fail', failure: failureOf('terminal') },
      3: { kind: 'release' },
      7: { kind: 'step', name: 'a', n: 1 },
    }
    const { answers, claimed } = await bench.store.settle(
      held.map((one, i) => settlement(one, other[i] ?? { kind: 'commit' }, `"${i}"`)),
      { worker: 'worker-2', queues: [queue], limit: 10, leaseMs: LEASE_MS, start: true },
    )
    for (const [i, { job }] of held.entries()) {
      if (i === 4) refused(answers[i], StaleFence)
      if (i === 3 || i === 4) continue
      assert.deepEqual(await bench.lastFact(job.id), done(answers[i]).fact)
      if (other[i] !== undefined) continue
      assert.deepEqual(await bench.store.payloads(job.id), { input: `${i}`, result: `"${i}"` })
    }
    const expected = [...waiting, (held[3] as Held).job.id].sort()
    assert.deepEqual(claimed.map(({ job }) => job.id).sort(), expected)
  },

  'several reports of one job in one call are applied in order': async (bench) => {
    const held = await bench.hold({}, { start: false })
    const { answers } = await bench.store.settle([
      settlement(held, { kind: 'start' }),
      settlement(held, { kind: 'step', name: 'a', n: 1 }, '1'),
      settlement(held, { kind: 'step', name: 'a', n: 1 }, '2'),
      settlement(held, { kind: 'commit' }, '3'),
      settlement(held, { kind: 'commit' }, '4'),
    ])
    const kinds = answers.map(({ kind }) => kind)
    assert.deepEqual(kinds, ['done', 'done', 'same', 'done', 'same'])
    assert.equal((await bench.store.payloads(held.job.id))?.result, '3')
  },

  'settling claims anew in the same call, also what it just gave back': async (bench) => {
    const held = await bench.hold({ queue: 'q' })
    const next = { worker: 'worker-2', queues: ['q'], limit: 5, leaseMs: LEASE_MS, start: true }
    const given = await bench.store.settle([settlement(held, { kind: 'release' })], next)
    done(given.answers[0])
    const again = one(given.claimed)
    assert.deepEqual([again.job.id, again.job.attempt], [held.job.id, 2])
    await bench.enqueue({ queue: 'q', type: 'next' })
    const refusal = await bench.store.settle([settlement(held, { kind: 'commit' }, '1')], next)
    refused(refusal.answers[0], StaleFence)
    assert.equal(one(refusal.claimed).job.type, 'next')
    assert.deepEqual((await bench.store.settle([], next)).claimed, [])
  },

  'settling without a next claim claims nothing': async (bench) => {
    const held = await bench.hold({ queue: 'q' })
    await bench.enqueue({ queue: 'q' })
    const { claimed } = await bench.store.settle([settlement(held, { kind: 'release' })])
    assert.deepEqual(claimed, [])
    assert.deepEqual(await bench.store.settle([]), { answers: [], claimed: [] })
  },

  'a retry that asks for its own delay gets it': async (bench) => {
    const held = await bench.hold()
    const failure = { ...failureOf('transient'), retryAfterMs: 77_000 }
    const { job } = done(await bench.settle(held, { kind: 'fail', failure }))
    assert.equal(job.runAt, bench.store.now() + 77_000)
  },

  'jobs that fail together come back spread over some seconds': async (bench) => {
    const count = 1000
    const queue = 'storm'
    const items = Array.from({ length: count }, () => bench.item({ queue }))
    await bench.store.enqueue(items)
    const failure = failureOf('transient')
    for (let left = count; left > 0; left -= 100) {
      const held = await bench.claim({ queues: [queue], limit: 100 })
      const failed = held.map((one) => settlement(one, { kind: 'fail', failure }))
      for (const answer of (await bench.store.settle(failed)).answers) done(answer)
    }
    const { items: jobs } = await bench.store.list({ queue }, { limit: count })
    const seconds = new Map<number, number>()
    for (const { runAt } of jobs) {
      const second = Math.floor(((runAt as number) - bench.store.now()) / 1000)
      seconds.set(second, (seconds.get(second) ?? 0) + 1)
    }
    assert.equal(jobs.length, count)
    assert.equal(seconds.get(0), undefined)
    assert.ok(Math.max(...seconds.values()) <= count * 0.15, 'too many in one second')
    // A job that fails in another queue does not wait for these.
    const { job } = done(await bench.fail(await bench.hold()))
    assert.ok((job.runAt as number) <= bench.store.now() + 2000)
  },

  'the budget of failures is kept, and then the job is parked': async (bench) => {
    const base = policyWith()
    const policy = { ...base, retry: { ...base.retry, max: 2 } }
    let held = await bench.hold({ policy })
    for (const expected of ['retrying', 'retrying', 'quarantined']) {
      const { job } = done(await bench.fail(held))
      assert.equal(job.state, expected)
      if (expected === 'quarantined') break
      await bench.store.promote(10)
      held = await bench.reclaim(held)
    }
    assert.equal((await bench.job(held.job.id)).failures, 2)
  },

  ...lostReplies(),
}

/** A settlement whose reply was lost is sent again: it is the same, or it comes too late. */
function lostReplies(): Cases {
  const reports: [Report, 'same' | 'stale'][] = [
    [{ kind: 'start' }, 'same'],
    [{ kind: 'step', name: 'a', n: 1 }, 'same'],
    [{ kind: 'commit' }, 'same'],
    [{ kind: 'fail', failure: failureOf('transient') }, 'stale'],
    [{ kind: 'fail', failure: failureOf('terminal') }, 'stale'],
    [{ kind: 'release' }, 'stale'],
    [{ kind: 'suspend', runAt: Number.MAX_SAFE_INTEGER }, 'stale'],
    [{ kind: 'cancel' }, 'stale'],
  ]
  return Object.fromEntries(
    reports.map(([report, expected], i) => [
      `a repeated ${report.kind} (${i + 1}) changes nothing`,
      (bench: Bench) => repeat(bench, report, expected),
    ]),
  )
}

async function repeat(bench: Bench, report: Report, expected: 'same' | 'stale'): Promise<void> {
  const held = await bench.hold({}, { start: report.kind !== 'start' })
  const sent: Settlement = settlement(held, report, '"first"')
  done((await bench.store.settle([sent])).answers[0])
  await bench.assertUntouched(held.job.id, async () => {
    const { answers } = await bench.store.settle([{ ...sent, payload: '"second"' }])
    if (expected === 'same') assert.equal(answers[0]?.kind, 'same')
    else refused(answers[0], StaleFence)
  })
  const steps = await bench.store.steps(held.ref)
  assert.ok(steps.every(({ payload }) => payload === '"first"'))
}

/** Heartbeats renew leases and tell their holders what they must know. */
export const heartbeatCases: Cases = {
  'a heartbeat moves the end of the lease and writes no fact': async (bench) => {
    const held = await bench.hold()
    await bench.advance(LEASE_MS - 1)
    const beat = { ref: held.ref, fence: fenceOf(held) }
    const answer = await bench.store.heartbeat([beat], LEASE_MS)
    assert.deepEqual(answer, { lost: [], cancelling: [] })
    const job = await bench.job(held.job.id)
    assert.equal(job.execution?.leaseUntil, bench.store.now() + LEASE_MS)
    assert.equal(job.seq, held.job.seq)
    await bench.advance(LEASE_MS - 1)
    assert.deepEqual(await bench.store.recover(10), [])
    const { fact } = done(await bench.settle(held, { kind: 'commit' }, '1'))
    assert.equal(fact.execution?.leaseUntil, bench.store.now() + 1)
  },

  'an expired lease is lost in the very millisecond, and never revived': async (bench) => {
    const held = await bench.hold()
    await bench.advance(LEASE_MS)
    const beat = { ref: held.ref, fence: fenceOf(held) }
    await bench.assertUntouched(held.job.id, async () => {
      const answer = await bench.store.heartbeat([beat], LEASE_MS)
      assert.deepEqual(answer, { lost: [held.ref], cancelling: [] })
      refused(await bench.settle(held, { kind: 'commit' }, '1'), StaleFence)
    })
    assert.equal((await bench.store.recover(10)).length, 1)
  },

  'each lease of one heartbeat stands on its own': async (bench) => {
    const [alive, released, wanted] = [await bench.hold(), await bench.hold(), await bench.hold()]
    done(await bench.settle(released, { kind: 'release' }))
    await bench.store.cancel([wanted.job.id], { actor: 'client' })
    const beats = [alive, released, wanted].map((held) => ({
      ref: held.ref,
      fence: fenceOf(held),
    }))
    const foreign = { ref: alive.ref, fence: { ...fenceOf(alive), attempt: 2 } }
    const answer = await bench.store.heartbeat([...beats, foreign], LEASE_MS)
    assert.deepEqual(answer, { lost: [released.ref, alive.ref], cancelling: [wanted.ref] })
    assert.deepEqual(await bench.store.heartbeat([], LEASE_MS), { lost: [], cancelling: [] })
  },

  'progress is told with a heartbeat, stays until the next claim, and is no fact': async (
    bench,
  ) => {
    const held = await bench.hold()
    const { id } = held.job
    const beat = { ref: held.ref, fence: fenceOf(held) }
    assert.equal(await bench.store.progress(id), undefined)
    await bench.store.heartbeat([{ ...beat, progress: '{"done":1}' }], LEASE_MS)
    await bench.store.heartbeat([beat], LEASE_MS)
    assert.equal(await bench.store.progress(id), '{"done":1}')
    const foreign = { ...beat, fence: { ...beat.fence, attempt: 9 }, progress: '2' }
    await bench.store.heartbeat([foreign], LEASE_MS)
    assert.equal(await bench.store.progress(id), '{"done":1}')
    assert.equal((await bench.store.facts(id)).length, 2)
    done(await bench.settle(held, { kind: 'release' }))
    await bench.reclaim(held)
    assert.equal(await bench.store.progress(id), undefined)
    assert.equal(await bench.store.progress('not an id'), undefined)
  },

  'progress that cannot be stored is refused, and no lease is renewed': async (bench) => {
    const held = await bench.hold()
    const beat = { ref: held.ref, fence: fenceOf(held), progress: '"\0"' }
    await assert.rejects(bench.store.heartbeat([beat], LEASE_MS), ValueInvalid)
  },

  'the last progress of an attempt is stored with its end, whatever the end is': async (bench) => {
    const failure = failureOf('transient', 'no')
    const ends: Report[] = [
      { kind: 'commit' },
      { kind: 'fail', failure },
      { kind: 'release' },
      { kind: 'cancel' },
    ]
    for (const end of ends) {
      const held = await bench.hold()
      const beat = { ref: held.ref, fence: fenceOf(held), progress: '1' }
      await bench.store.heartbeat([beat], LEASE_MS)
      const report = { ...settlement(held, end), progress: '{"done":2}' }
      const [answer] = (await bench.store.settle([report])).answers
      assert.equal(answer?.kind, 'done')
      assert.equal(await bench.store.progress(held.job.id), '{"done":2}')
      // A report that is refused changes nothing.
      await bench.store.settle([{ ...report, progress: '3' }])
      assert.equal(await bench.store.progress(held.job.id), '{"done":2}')
    }
    const held = await bench.hold()
    const closing = () => ({ progress: '"all"', usage: { tokens: 7 } })
    const answer = await bench.store.commit(held, () => '1', closing)
    assert.equal(answer.kind, 'done')
    assert.equal(await bench.store.progress(held.job.id), '"all"')
    const facts = await bench.store.facts(held.job.id)
    assert.deepEqual(facts.at(-1)?.usage, { tokens: 7 })
  },

  'a job that has committed has no lease to renew': async (bench) => {
    const held = await bench.hold()
    await bench.store.commit(held, (tx) => {
      tx.effect('mail', '1')
      return '1'
    })
    const beat = { ref: held.ref, fence: fenceOf(held) }
    assert.deepEqual((await bench.store.heartbeat([beat], LEASE_MS)).lost, [held.ref])
  },
}
