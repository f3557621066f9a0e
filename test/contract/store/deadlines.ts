/** Past the deadline of a job nothing starts and nothing commits, by the store's clock. */
import assert from 'node:assert/strict'
import { DeadlinePassed } from '../../../src/core/errors.ts'
import { executionsOf } from '../../../src/core/job/executions.ts'
import { laneOf } from '../../../src/core/job/lanes.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import { DEFAULT_POLICY } from '../../../src/core/retry.ts'
import type { Held } from '../../../src/stores/contract/store.ts'
import { type Bench, type Cases, done, fenceOf, OPERATOR, one, refused } from './bench.ts'

const LEFT_MS = 1000

/** A claimed job whose deadline passes in a second. */
async function held(bench: Bench): Promise<Held> {
  const { id } = await bench.enqueue({ deadlineAt: bench.store.now() + LEFT_MS })
  const claimed = one(await bench.claim())
  assert.equal(claimed.job.id, id)
  return claimed
}

async function assertNothingCommitted(bench: Bench, { job }: Held): Promise<void> {
  const facts = await bench.store.facts(job.id)
  assert.ok(facts.every(({ trigger }) => trigger !== 'commit' && trigger !== 'step'))
  assert.equal((await bench.store.payloads(job.id))?.result, undefined)
}

/** What a deadline does. */
export const deadlineCases: Cases = {
  'a job past its deadline is claimed to be ended, and cannot be started': async (bench) => {
    const { id } = await bench.enqueue({ deadlineAt: bench.store.now() + LEFT_MS })
    const other = await bench.enqueue({ deadlineAt: bench.store.now() + LEFT_MS + 1 })
    await bench.advance(LEFT_MS)
    const claimed = await bench.claim({ limit: 2 })
    const statuses = new Map(claimed.map(({ job }) => [job.id, job.execution?.status]))
    assert.equal(statuses.get(id), 'LEASED')
    assert.equal(statuses.get(other.id), 'IN_PROGRESS')
    const late = claimed.find(({ job }) => job.id === id) as Held
    assert.deepEqual(await bench.job(id), late.job)
    const [execution] = executionsOf(await bench.store.facts(id))
    assert.equal(execution?.status, 'LEASED')
    refused(await bench.settle(late, { kind: 'start' }), DeadlinePassed)
    const failure = { class: 'terminal', kind: 'deadline', message: 'too late' } as const
    const answer = done(await bench.settle(late, { kind: 'fail', failure }))
    assert.equal(answer.job.outcome, 'failed')
    assert.equal(answer.job.reason, 'deadline')
  },

  'a job that waits past its deadline is ended, in every lifecycle and wherever it waits': async (
    bench,
  ) => {
    for (const lifecycle of LIFECYCLES) {
      const deadlineAt = bench.store.now() + LEFT_MS
      const waits = { lifecycle, deadlineAt }
      const ready = await bench.enqueue(waits)
      const later = await bench.enqueue({ ...waits, runAt: deadlineAt + 3_600_000 })
      const due = await bench.enqueue({ ...waits, runAt: deadlineAt - 1 })
      const timely = await bench.enqueue({ lifecycle, deadlineAt: deadlineAt + 1, priority: 9 })
      await bench.advance(LEFT_MS - 1)
      assert.deepEqual(await bench.store.shed(10), [])
      await bench.advance(1)
      const answers = await bench.store.shed(10)
      const ended = [ready, later, due].map(({ id }) => id)
      assert.deepEqual(answers.map((answer) => done(answer).job.id).sort(), ended.toSorted())
      for (const id of ended) {
        const job = await bench.job(id)
        assert.equal(job.error?.kind, 'deadline')
        assert.notEqual(laneOf(lifecycle, job, bench.store.now()), 'ready')
        const facts = await bench.store.facts(id)
        assert.deepEqual(
          facts.slice(-2).map(({ trigger, actor }) => [trigger, actor]),
          [
            ['claim', 'engine'],
            ['fail', 'engine'],
          ],
        )
        const [execution, ...others] = executionsOf(facts)
        assert.equal(others.length, 0)
        assert.deepEqual([execution?.status, execution?.startedAt], ['ABORTED', null])
      }
      assert.deepEqual(await bench.store.shed(10), [])
      assert.equal(one(await bench.claim()).job.id, timely.id)
    }
  },

  'a retry that would come after the deadline ends with it': async (bench) => {
    const policy = { ...DEFAULT_POLICY, retry: { ...DEFAULT_POLICY.retry, delayMs: 3_600_000 } }
    const { id } = await bench.enqueue({ deadlineAt: bench.store.now() + LEFT_MS, policy })
    await bench.fail(one(await bench.claim()))
    await bench.advance(LEFT_MS)
    const { job } = done(one(await bench.store.shed(10)))
    assert.deepEqual([job.id, job.outcome, job.reason, job.attempt], [id, 'failed', 'deadline', 2])
  },

  'held and parked jobs are not ended at their deadline by others': async (bench) => {
    const claimed = await held(bench)
    const parked = await bench.enqueue({ deadlineAt: bench.store.now() + LEFT_MS })
    await bench.applyCommand(parked.id, { kind: 'park' }, OPERATOR)
    await bench.advance(LEFT_MS)
    const before = await Promise.all([bench.job(claimed.job.id), bench.job(parked.id)])
    assert.deepEqual(await bench.store.shed(10), [])
    const after = await Promise.all([bench.job(claimed.job.id), bench.job(parked.id)])
    assert.deepEqual(after, before)
  },

  'jobs past their deadline are ended in batches, the earliest first': async (bench) => {
    const now = bench.store.now()
    const ids: string[] = []
    for (const ms of [3, 1, 2]) ids.push((await bench.enqueue({ deadlineAt: now + ms })).id)
    await bench.advance(LEFT_MS)
    const first = await bench.store.shed(2)
    assert.deepEqual(
      first.map((answer) => done(answer).job.id),
      [ids[1], ids[2]],
    )
    assert.equal(done(one(await bench.store.shed(2))).job.id, ids[0])
  },

  'a success that is reported past the deadline is refused': async (bench) => {
    const late = await held(bench)
    await bench.advance(LEFT_MS)
    const answer = await bench.settle(late, { kind: 'commit' }, '1')
    refused(answer, DeadlinePassed)
    await assertNothingCommitted(bench, late)
  },

  'a success just before the deadline counts': async (bench) => {
    const timely = await held(bench)
    await bench.advance(LEFT_MS - 1)
    const { job } = done(await bench.settle(timely, { kind: 'commit' }, '1'))
    assert.equal(job.outcome, 'succeeded')
  },

  'successes of one batch are judged each by its own deadline': async (bench) => {
    const deadlines = [LEFT_MS, undefined, LEFT_MS + 1, LEFT_MS, undefined, undefined]
    for (const ms of deadlines) {
      await bench.enqueue(ms === undefined ? {} : { deadlineAt: bench.store.now() + ms })
    }
    const claimed = await bench.claim({ limit: deadlines.length })
    await bench.advance(LEFT_MS)
    const { answers } = await bench.store.settle(
      claimed.map((one) => ({
        held: one,
        command: { kind: 'commit', fence: fenceOf(one) },
        payload: '1',
      })),
    )
    for (const [i, { job }] of claimed.entries()) {
      const isLate = job.deadlineAt !== null && job.deadlineAt <= bench.store.now()
      assert.equal(answers[i]?.kind, isLate ? 'rejected' : 'done')
    }
  },

  'a step past the deadline is not recorded': async (bench) => {
    const late = await held(bench)
    await bench.advance(LEFT_MS)
    const answer = await bench.settle(late, { kind: 'step', name: 'charge', n: 1 }, '1')
    refused(answer, DeadlinePassed)
    await assertNothingCommitted(bench, late)
  },

  'the function of a commit does not run past the deadline': async (bench) => {
    const late = await held(bench)
    await bench.advance(LEFT_MS)
    let ran = false
    const answer = await bench.store.commit(late, () => {
      ran = true
      return '1'
    })
    refused(answer, DeadlinePassed)
    assert.equal(ran, false)
  },

  'a commit whose function outlasts the deadline is rolled back': async (bench) => {
    const late = await held(bench)
    const committing = bench.store.commit(late, async (tx) => {
      tx.effect('send', '{}')
      await bench.advance(LEFT_MS)
      return '1'
    })
    await assert.rejects(committing, DeadlinePassed)
    await assertNothingCommitted(bench, late)
    const { items } = await bench.store.listEffects({ jobId: late.job.id }, { limit: 10 })
    assert.deepEqual(items, [])
    const failure = { class: 'terminal', kind: 'deadline', message: 'too late' } as const
    assert.equal(done(await bench.settle(late, { kind: 'fail', failure })).job.outcome, 'failed')
  },
}

/** What snoozing does. */
export const snoozeCases: Cases = {
  'a snoozed job waits until its time and is claimed again, without a failure': async (bench) => {
    const snoozed = await bench.hold()
    const runAt = bench.store.now() + LEFT_MS
    const { job } = done(await bench.settle(snoozed, { kind: 'suspend', runAt, reason: 'snoozed' }))
    assert.equal(job.state, 'scheduled')
    assert.equal(job.reason, 'snoozed')
    assert.equal((await bench.store.counts()).lanes.waiting, 1)
    assert.deepEqual(await bench.claim(), [])
    await bench.advance(LEFT_MS)
    await bench.store.promote(10)
    const again = one(await bench.claim())
    assert.equal(again.job.attempt, 2)
    assert.equal(again.job.failures, 0)
    assert.equal(again.job.error, null)
  },
}
