/** Jobs whose lease has expired, and jobs whose time has come: found, bounded, and each once. */
import assert from 'node:assert/strict'
import { LeaseLive, StaleFence } from '../../../src/core/errors.ts'
import { hardened } from '../../../src/core/lifecycles/hardened.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import {
  type Cases,
  CLIENT,
  done,
  fenceOf,
  LEASE_MS,
  OPERATOR,
  one,
  policyWith,
  refused,
} from './bench.ts'

/** What becomes of a job whose holder went silent. */
export const recoverCases: Cases = {
  'a lease that still runs is left alone': async (bench) => {
    const held = await bench.hold()
    await bench.advance(LEASE_MS - 1)
    await bench.assertUntouched(held.job.id, async () => {
      assert.deepEqual(await bench.store.recover(10), [])
      const expire = { kind: 'expire', fence: fenceOf(held) } as const
      refused(await bench.applyCommand(held.job.id, expire, { actor: 'engine' }), LeaseLive)
    })
  },

  'a job that was started and went silent has crashed': async (bench) => {
    const held = await bench.hold({ policy: policyWith() })
    const { job, fact } = done(one(await bench.expire()))
    assert.deepEqual([job.id, job.state, job.crashes], [held.job.id, 'retrying', 1])
    assert.deepEqual([fact.actor, fact.execution?.abort], ['engine', 'lease_expired'])
    assert.deepEqual(await bench.store.recover(10), [])
  },

  'a job that was never started is given back at no cost': async (bench) => {
    await bench.hold({}, { start: false })
    const { job } = done(one(await bench.expire()))
    assert.deepEqual([job.state, job.crashes, job.releases], ['queued', 0, 1])
  },

  'crashes are bounded, and then the job is parked': async (bench) => {
    const policy = policyWith({ crashesMax: 2 })
    const held = await bench.hold({ policy })
    for (const state of ['retrying', 'retrying', 'quarantined']) {
      assert.equal(done(one(await bench.expire())).job.state, state)
      await bench.store.promote(10)
      if (state === 'retrying') await bench.reclaim(held)
    }
    assert.equal((await bench.job(held.job.id)).crashes, 2)
  },

  'no more than the limit are taken back at once, those that expired first before the others':
    async (bench) => {
      const ids: string[] = []
      for (let i = 0; i < 5; i++) {
        ids.push((await bench.hold({}, { leaseMs: LEASE_MS - i * 1000 })).job.id)
      }
      await bench.advance(LEASE_MS)
      assert.deepEqual(await bench.store.recover(0), [])
      const taken: string[] = []
      for (const expected of [2, 2, 1, 0]) {
        const answers = await bench.store.recover(2)
        assert.equal(answers.length, expected)
        taken.push(...answers.map((answer) => done(answer).job.id))
      }
      assert.deepEqual(taken, ids.toReversed())
    },

  'recoverers of the same moment take each job back once': async (bench) => {
    for (let i = 0; i < 10; i++) await bench.hold()
    await bench.advance(LEASE_MS)
    const answers = await Promise.all(Array.from({ length: 8 }, () => bench.store.recover(4)))
    const ids = answers.flat().map((answer) => done(answer).job.id)
    assert.equal(ids.length, 10)
    assert.equal(new Set(ids).size, 10)
  },

  'a job that was claimed in this very millisecond is not taken back': async (bench) => {
    const held = await bench.hold({ policy: policyWith() })
    await bench.expire()
    await bench.store.promote(10)
    const again = await bench.reclaim(held)
    assert.deepEqual(await bench.store.recover(10), [])
    assert.equal(again.job.attempt, 2)
  },

  'a stalled job waits for an operator where its policy says so, and is flagged once': async (
    bench,
  ) => {
    const held = await bench.hold({ policy: policyWith({ recovery: 'operator' }) })
    const { job } = done(one(await bench.expire()))
    assert.deepEqual([job.state, job.stalled], ['running', true])
    assert.deepEqual(await bench.store.recover(10), [])
    const expire = { kind: 'expire', fence: fenceOf(held), approved: true } as const
    const approved = done(await bench.applyCommand(job.id, expire, OPERATOR))
    assert.deepEqual([approved.job.stalled, approved.job.crashes], [false, 1])
    refused(await bench.applyCommand(job.id, expire, OPERATOR), StaleFence)
  },

  'a list of stalled jobs has those whose recovery waits, and the other one has the rest': async (
    bench,
  ) => {
    const policy = policyWith({ recovery: 'operator' })
    const held = await bench.hold({ policy })
    const ready = await bench.enqueue()
    done(one(await bench.expire()))
    const running = await bench.hold({ policy })
    const idsOf = async (stalled: boolean) => {
      const { items } = await bench.store.list({ stalled })
      return items.map(({ id }) => id)
    }
    assert.deepEqual(await idsOf(true), [held.job.id])
    assert.deepEqual((await idsOf(false)).sort(), [ready.id, running.job.id].sort())
    assert.deepEqual((await bench.store.list({ stalled: true, lane: 'parked' })).items, [])
    const expire = { kind: 'expire', fence: fenceOf(held), approved: true } as const
    done(await bench.applyCommand(held.job.id, expire, OPERATOR))
    assert.deepEqual(await idsOf(true), [])
  },

  'stalled jobs do not keep others from being taken back': async (bench) => {
    for (let i = 0; i < 3; i++) {
      await bench.hold({ policy: policyWith({ recovery: 'operator' }) })
    }
    await bench.advance(1)
    const other = await bench.hold()
    await bench.advance(LEASE_MS)
    for (let i = 0; i < 2; i++) await bench.store.recover(2)
    assert.equal((await bench.job(other.job.id)).state, 'retrying')
  },

  'a stalled job whose cancellation is asked for is cancelled, since its holder is silent': async (
    bench,
  ) => {
    const held = await bench.hold({ policy: policyWith({ recovery: 'operator' }) })
    await bench.expire()
    const [asked] = await bench.store.cancel([held.job.id], CLIENT)
    assert.equal(asked?.kind, 'asked')
    const { job } = done(one(await bench.store.recover(10)))
    assert.deepEqual([job.state, job.reason, job.stalled], ['cancelled', 'cancelled', false])
    assert.deepEqual(await bench.store.recover(10), [])
  },

  'a stalled holder that comes back is late': async (bench) => {
    const held = await bench.hold({ policy: policyWith({ recovery: 'operator' }) })
    await bench.expire()
    refused(await bench.settle(held, { kind: 'commit' }, '1'), StaleFence)
    const beat = { ref: held.ref, fence: fenceOf(held) }
    assert.deepEqual((await bench.store.heartbeat([beat], LEASE_MS)).lost, [held.ref])
  },

  'a committed job is never taken back': async (bench) => {
    const held = await bench.hold()
    await bench.store.commit(held, (tx) => {
      tx.effect('mail', '1')
      return '1'
    })
    assert.deepEqual(await bench.expire(), [])
  },

  'a wish to cancel outlives the holder that was asked': async (bench) => {
    const held = await bench.hold({ policy: policyWith() })
    const [asked] = await bench.store.cancel([held.job.id], { actor: 'client' })
    assert.equal(asked?.kind, 'asked')
    await bench.expire()
    await bench.store.promote(10)
    const [again] = await bench.claim({ queues: [held.job.queue] })
    if (again === undefined) {
      assert.equal((await bench.job(held.job.id)).outcome, 'cancelled')
      return
    }
    const beat = { ref: again.ref, fence: fenceOf(again) }
    assert.deepEqual((await bench.store.heartbeat([beat], LEASE_MS)).cancelling, [again.ref])
  },
}

/** What becomes of a job whose time has come. */
export const promoteCases: Cases = {
  'the next due time is that of the first job that waits': async (bench) => {
    assert.equal(await bench.store.nextDue(), undefined)
    await bench.enqueue()
    assert.equal(await bench.store.nextDue(), undefined)
    const now = bench.store.now()
    for (const ms of [30, 10, 20]) await bench.enqueue({ runAt: now + ms })
    assert.equal(await bench.store.nextDue(), now + 10)
    await bench.advance(15)
    await bench.store.promote(9)
    assert.equal(await bench.store.nextDue(), now + 20)
  },

  'no more than the limit are made ready at once, those that are due first before the others':
    async (bench) => {
      for (const ms of [30, 10, 20]) {
        await bench.enqueue({ type: `${ms}`, runAt: bench.store.now() + ms })
      }
      await bench.advance(100)
      assert.equal(await bench.store.promote(0), 0)
      assert.equal(await bench.store.promote(2), 2)
      const first = await bench.claim({ limit: 9 })
      assert.deepEqual(
        first.map(({ job }) => job.type),
        ['10', '20'],
      )
      assert.equal(await bench.store.promote(2), 1)
      assert.equal(await bench.store.promote(2), 0)
    },

  'where a job waits in its ready state, promotion writes no fact': async (bench) => {
    const { id, state } = await bench.enqueue({
      lifecycle: leased,
      runAt: bench.store.now() + 1000,
    })
    assert.equal(state, leased.ready)
    await bench.advance(1000)
    await bench.assertUntouched(id, async () => {
      assert.equal(await bench.store.promote(10), 1)
      assert.equal(await bench.store.promote(10), 0)
    })
    one(await bench.claim())
  },

  'where a job waits in a state of its own, promotion is a fact of the engine': async (bench) => {
    const held = await bench.hold({ lifecycle: hardened })
    done(await bench.fail(held))
    await bench.advance(2000)
    assert.equal(await bench.store.promote(10), 1)
    const { trigger, actor, from, to } = await bench.lastFact(held.job.id)
    assert.deepEqual([trigger, actor, from, to], ['due', 'engine', 'failed', 'pending'])
  },

  'promoters of the same moment make each job ready once': async (bench) => {
    for (const lifecycle of LIFECYCLES) {
      for (let i = 0; i < 3; i++) {
        await bench.enqueue({ lifecycle, runAt: bench.store.now() + 10 })
      }
    }
    await bench.advance(10)
    const counts = await Promise.all(Array.from({ length: 8 }, () => bench.store.promote(4)))
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      3 * LIFECYCLES.length,
    )
    assert.equal((await bench.claim({ limit: 100 })).length, 3 * LIFECYCLES.length)
  },

  'a job that is parked while it waits is not made ready': async (bench) => {
    for (const lifecycle of LIFECYCLES) {
      const { id } = await bench.enqueue({ lifecycle, runAt: bench.store.now() + 10 })
      done(await bench.applyCommand(id, { kind: 'park' }, OPERATOR))
    }
    await bench.advance(10)
    assert.equal(await bench.store.promote(100), 0)
    assert.deepEqual(await bench.claim({ limit: 100 }), [])
  },

  'a job whose due time is moved keeps the new one': async (bench) => {
    const { id } = await bench.enqueue({ runAt: bench.store.now() + 10 })
    done(await bench.applyCommand(id, { kind: 'reschedule', runAt: bench.store.now() + 1000 }))
    await bench.advance(10)
    assert.equal(await bench.store.promote(10), 0)
    done(await bench.applyCommand(id, { kind: 'reschedule', runAt: bench.store.now() }))
    assert.equal(one(await bench.claim()).job.id, id)
  },

  'jobs that are retried become due in their own time': async (bench) => {
    const held = await bench.hold({ policy: policyWith() })
    done(await bench.fail(held))
    assert.equal(await bench.store.promote(10), 1)
    await bench.reclaim(held)
  },
}
