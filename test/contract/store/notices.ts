/** Notices of jobs that ended or were parked, for those who asked for them. */
import assert from 'node:assert/strict'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import { policyFor } from '../../../src/core/lifecycles/lifecycle.ts'
import type { HeldEffect } from '../../../src/stores/contract/store.ts'
import { NOT_RECEIVED, NOTICE_AGE_MAX_MS, type Notice } from '../../../src/stores/notices.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, policyWith, settlement } from './bench.ts'

const TYPE = 'pawl.notify'
const TOLD = { policy: policyWith({ notify: true }) }

const take = ({ store }: Bench): Promise<HeldEffect[]> =>
  store.claimEffects({ limit: 100, leaseMs: 1000, types: [TYPE] })

async function notices(bench: Bench): Promise<Notice[]> {
  const taken = await take(bench)
  return taken.map(({ payload }) => JSON.parse(payload) as Notice)
}

/** What leaves a notice, and what becomes of it. */
export const noticeCases: Cases = {
  'the end of a job leaves a notice in the same step, if its policy says so': async (bench) => {
    const quiet = await bench.hold()
    const held = await bench.hold({ ...TOLD, type: 'mail', key: 'k', tags: ['red'] })
    const commits = [quiet, held].map((one) => settlement(one, { kind: 'commit' }, '"secret"'))
    await bench.store.settle(commits)
    const [effect, ...others] = await take(bench)
    assert.ok(effect)
    assert.deepEqual(others, [])
    const { id, queue } = held.job
    const { seq, at } = await bench.lastFact(id)
    assert.equal(effect.key, `${id}/${TYPE}/${seq}`)
    assert.deepEqual(JSON.parse(effect.payload), {
      ...{ jobId: id, type: 'mail', queue, key: 'k', tags: ['red'] },
      ...{ outcome: 'succeeded', state: 'succeeded', reason: null, error: null },
      ...{ attempt: 1, seq, at },
    })
  },

  'so do failure, cancellation and parking, each with its reason': async (bench) => {
    const policy = policyWith({ notify: true, retry: { ...TOLD.policy.retry, max: 0 } })
    await bench.fail(await bench.hold({ policy }), 'terminal', 'no such page')
    await bench.fail(await bench.hold({ policy }), 'transient', 'not now')
    const { id } = await bench.enqueue({ policy })
    await bench.store.cancel([id], CLIENT)
    const told = (await notices(bench)).map(({ outcome, reason, error }) => [
      outcome,
      reason,
      error,
    ])
    assert.deepEqual(told, [
      ['failed', 'terminal', 'no such page'],
      ['parked', 'retries_exhausted', 'not now'],
      ['cancelled', 'cancelled', null],
    ])
  },

  'what neither ends nor parks a job leaves none': async (bench) => {
    const held = await bench.hold(TOLD)
    await bench.fail(held)
    await bench.advance(1)
    await bench.store.promote(9)
    const again = await bench.reclaim(held)
    await bench.settle(again, { kind: 'release' })
    assert.deepEqual(await notices(bench), [])
  },

  'a job that is redriven and ends again is told of again': async (bench) => {
    const held = await bench.hold(TOLD)
    await bench.fail(held, 'terminal')
    done(await bench.applyCommand(held.job.id, { kind: 'redrive' }, OPERATOR))
    await bench.settle(await bench.reclaim(held), { kind: 'commit' }, '1')
    const told = await notices(bench)
    assert.deepEqual(
      told.map(({ outcome }) => outcome),
      ['failed', 'succeeded'],
    )
    assert.ok((told[0]?.seq ?? 0) < (told[1]?.seq ?? 0))
  },

  'every lifecycle tells of its end, and only once': async (bench) => {
    for (const lifecycle of LIFECYCLES) {
      const policy = policyFor(lifecycle, { notify: true })
      const held = await bench.hold({ policy, lifecycle })
      await bench.settle(held, { kind: 'commit' }, '1')
      await bench.settle(held, { kind: 'commit' }, '1')
      const told = await notices(bench)
      assert.deepEqual(
        [lifecycle.name, told.map(({ outcome }) => outcome)],
        [lifecycle.name, ['succeeded']],
      )
    }
  },

  'a job is done by its effects alone, and a notice of it follows': async (bench) => {
    const held = await bench.hold({ ...TOLD, type: 'order' })
    await bench.store.commit(held, (tx) => {
      tx.effect('mail', '1')
      return '1'
    })
    assert.deepEqual(await notices(bench), [])
    const request = { limit: 9, leaseMs: 1000, types: ['order'] }
    const [mail] = await bench.store.claimEffects(request)
    assert.ok(mail)
    await bench.store.settleEffects([{ kind: 'delivered', effect: mail }])
    assert.equal((await bench.job(held.job.id)).outcome, 'succeeded')
    const [notice] = await take(bench)
    assert.ok(notice)
    const before = await bench.job(held.job.id)
    assert.deepEqual(await bench.store.settleEffects([{ kind: 'delivered', effect: notice }]), [
      true,
    ])
    assert.deepEqual(await bench.job(held.job.id), before)
  },

  'a notice that is parked can be tried again, and its job stays as it is': async (bench) => {
    const held = await bench.hold(TOLD)
    await bench.fail(held, 'terminal')
    const [effect] = await take(bench)
    assert.ok(effect)
    await bench.store.settleEffects([{ kind: 'parked', effect, error: 'nobody there' }])
    assert.deepEqual(await take(bench), [])
    await bench.assertUntouched(held.job.id, async () => {
      assert.deepEqual(await bench.store.retryEffects([effect.key], OPERATOR), [true])
    })
    assert.equal((await take(bench))[0]?.key, effect.key)
  },

  'a notice that nobody takes for a week is parked, and can be retried': async (bench) => {
    const { store } = bench
    const held = await bench.hold(TOLD)
    await bench.settle(held, { kind: 'commit' }, '1')
    const since = store.now()
    assert.deepEqual(await store.examination.undeliveredNotices(since - 1), {
      ...{ overdue: 0, since: null, parked: 0 },
    })
    await bench.advance(NOTICE_AGE_MAX_MS - 1)
    await store.recover(10)
    assert.deepEqual(await store.examination.undeliveredNotices(store.now()), {
      ...{ overdue: 1, since, parked: 0 },
    })
    await bench.advance(1)
    await bench.assertUntouched(held.job.id, async () => {
      await store.recover(10)
    })
    assert.deepEqual(await store.examination.undeliveredNotices(store.now()), {
      ...{ overdue: 0, since: null, parked: 1 },
    })
    const { items } = await store.listEffects({ state: 'parked', type: TYPE })
    const [parked, ...others] = items
    assert.deepEqual([parked?.error, parked?.tries, others], [NOT_RECEIVED, 0, []])
    assert.deepEqual(await take(bench), [])
    assert.deepEqual(await store.retryEffects([parked?.key ?? ''], OPERATOR), [true])
    assert.equal((await take(bench)).length, 1)
  },

  'an effect that nobody takes is never parked by its age': async (bench) => {
    const held = await bench.hold({ type: 'order' })
    await bench.store.commit(held, (tx) => {
      tx.effect('mail', '1')
      return '1'
    })
    await bench.advance(NOTICE_AGE_MAX_MS * 2)
    await bench.store.recover(10)
    const { items } = await bench.store.listEffects({ jobId: held.job.id })
    assert.deepEqual(
      items.map(({ state }) => state),
      ['pending'],
    )
  },

  'an effect cannot be called like a notice': async (bench) => {
    const held = await bench.hold()
    const answer = bench.store.commit(held, (tx) => {
      tx.effect(TYPE, '1')
      return '1'
    })
    await assert.rejects(answer, { code: 'E_COMMAND_INVALID' })
  },
}
