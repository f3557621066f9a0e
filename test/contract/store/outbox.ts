/** The outbox: effects that a commit declared, each delivered under a lease until all are. */
import assert from 'node:assert/strict'
import type { EffectReport, Held, HeldEffect } from '../../../src/stores/contract/store.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, one } from './bench.ts'

const EFFECT_LEASE_MS = 1000

const take = (bench: Bench, limit = 100): Promise<HeldEffect[]> =>
  bench.store.claimEffects({ limit, leaseMs: EFFECT_LEASE_MS })

const delivered = (effect: HeldEffect): EffectReport => ({ kind: 'delivered', effect })

/** A job that has committed and declared effects of these names. */
async function committed(bench: Bench, ...names: readonly string[]): Promise<Held> {
  const held = await bench.hold({ type: 'sender' })
  const answer = await bench.store.commit(held, (tx) => {
    for (const [i, name] of names.entries()) tx.effect(name, `{"i":${i}}`)
    return '"sent"'
  })
  assert.equal(answer.kind, 'done')
  return held
}

/** How effects are delivered. */
export const outboxCases: Cases = {
  'a committed job with effects is delivering, and succeeds with the last delivery': async (
    bench,
  ) => {
    const { job } = await committed(bench, 'mail', 'mail', 'hook')
    const delivering = await bench.job(job.id)
    assert.deepEqual([delivering.outcome, delivering.execution?.status], [null, 'COMMITTED'])
    assert.equal((await bench.store.counts()).lanes.delivering, 1)
    const effects = await take(bench)
    const [first, ...rest] = effects
    assert.ok(first)
    assert.deepEqual(await bench.store.settleEffects([delivered(first)]), [true])
    assert.equal((await bench.job(job.id)).outcome, null)
    assert.deepEqual(await bench.store.settleEffects(rest.map(delivered)), [true, true])
    const ended = await bench.job(job.id)
    assert.deepEqual([ended.outcome, ended.execution?.status], ['succeeded', 'DONE'])
    assert.equal((await bench.lastFact(job.id)).actor, 'engine')
    assert.equal((await bench.store.payloads(job.id))?.result, '"sent"')
  },

  'effects of the same name are numbered, and their keys are stable and their own': async (
    bench,
  ) => {
    const { job } = await committed(bench, 'mail', 'hook', 'mail')
    const effects = await take(bench)
    assert.deepEqual(
      effects.map(({ name, key, payload, jobId, jobType, tries }) => [
        name,
        key,
        payload,
        jobId,
        jobType,
        tries,
      ]),
      [
        ['mail', `${job.id}/mail/1`, '{"i":0}', job.id, 'sender', 1],
        ['hook', `${job.id}/hook/1`, '{"i":1}', job.id, 'sender', 1],
        ['mail', `${job.id}/mail/2`, '{"i":2}', job.id, 'sender', 1],
      ],
    )
    await bench.advance(EFFECT_LEASE_MS)
    const again = await take(bench)
    assert.deepEqual(
      again.map(({ key }) => key),
      effects.map(({ key }) => key),
    )
    assert.ok(again.every(({ tries }) => tries === 2))
  },

  'no more than the limit are taken, and none twice while its lease runs': async (bench) => {
    await committed(bench, 'a', 'b', 'c')
    const counts: number[] = []
    for (const limit of [0, 2, 2, 2]) counts.push((await take(bench, limit)).length)
    assert.deepEqual(counts, [0, 2, 1, 0])
  },

  'dispatchers of the same moment never get the same effect': async (bench) => {
    await committed(bench, ...Array.from({ length: 40 }, (_, i) => `e${i}`))
    const taken = (await Promise.all(Array.from({ length: 10 }, () => take(bench, 7)))).flat()
    assert.equal(taken.length, 40)
    assert.equal(new Set(taken.map(({ ref }) => ref)).size, 40)
  },

  'an effect that failed is tried again at its time': async (bench) => {
    const { job } = await committed(bench, 'mail')
    const effect = one(await take(bench))
    const runAt = bench.store.now() + 5000
    const retry: EffectReport = { kind: 'retry', effect, runAt, error: 'no answer' }
    assert.deepEqual(await bench.store.settleEffects([retry]), [true])
    await bench.advance(4999)
    assert.deepEqual(await take(bench), [])
    await bench.advance(1)
    const again = one(await take(bench))
    assert.deepEqual([again.key, again.tries], [effect.key, 2])
    assert.deepEqual(await bench.store.settleEffects([delivered(again)]), [true])
    assert.equal((await bench.job(job.id)).outcome, 'succeeded')
  },

  'a parked effect waits until its job is redriven; delivered ones are not sent again': async (
    bench,
  ) => {
    const { job } = await committed(bench, 'good', 'bad')
    const [good, bad] = await take(bench)
    assert.ok(good && bad)
    const parked: EffectReport = { kind: 'parked', effect: bad, error: 'gone' }
    assert.deepEqual(await bench.store.settleEffects([delivered(good), parked]), [true, true])
    await bench.advance(EFFECT_LEASE_MS * 10)
    assert.deepEqual(await take(bench), [])
    assert.equal((await bench.job(job.id)).outcome, null)
    done(await bench.applyCommand(job.id, { kind: 'redrive' }, OPERATOR))
    const again = one(await take(bench))
    assert.deepEqual([again.key, again.tries], [bad.key, 1])
    assert.deepEqual(await bench.store.settleEffects([delivered(again)]), [true])
    assert.equal((await bench.job(job.id)).outcome, 'succeeded')
  },

  'whoever lost the lease of an effect changes nothing': async (bench) => {
    await committed(bench, 'mail')
    const late = one(await take(bench))
    await bench.advance(EFFECT_LEASE_MS)
    const holder = one(await take(bench))
    const runAt = bench.store.now()
    const tries: EffectReport[] = [
      delivered(late),
      { kind: 'retry', effect: late, runAt, error: 'late' },
      { kind: 'parked', effect: late, error: 'late' },
    ]
    await bench.assertUntouched(late.jobId, async () => {
      assert.deepEqual(await bench.store.settleEffects(tries), [false, false, false])
    })
    assert.deepEqual(await take(bench), [])
    assert.deepEqual(await bench.store.settleEffects([delivered(holder)]), [true])
  },

  'a report whose reply was lost is false the second time, and changes nothing': async (bench) => {
    const { job } = await committed(bench, 'mail')
    const effect = one(await take(bench))
    assert.deepEqual(await bench.store.settleEffects([delivered(effect)]), [true])
    await bench.assertUntouched(job.id, async () => {
      assert.deepEqual(await bench.store.settleEffects([delivered(effect)]), [false])
    })
    assert.deepEqual(await bench.store.settleEffects([]), [])
  },

  'an effect that is reported twice in one call is recorded once': async (bench) => {
    const { job } = await committed(bench, 'mail')
    const effect = one(await take(bench))
    const reports = [delivered(effect), delivered(effect)]
    assert.deepEqual(await bench.store.settleEffects(reports), [true, false])
    assert.equal((await bench.job(job.id)).outcome, 'succeeded')
  },

  'effects of several jobs are settled in one call, each for its own job': async (bench) => {
    const jobs = [await committed(bench, 'a'), await committed(bench, 'b', 'c')]
    const effects = await take(bench)
    await bench.store.settleEffects(effects.filter(({ name }) => name !== 'c').map(delivered))
    const outcomes = await Promise.all(
      jobs.map(async ({ job }) => (await bench.job(job.id)).outcome),
    )
    assert.deepEqual(outcomes, ['succeeded', null])
  },

  'a job that delivers can neither be cancelled nor forced nor retried': async (bench) => {
    const { job } = await committed(bench, 'mail')
    await bench.assertUntouched(job.id, async () => {
      for (const command of [
        { kind: 'cancel' },
        { kind: 'park' },
        { kind: 'discard' },
        { kind: 'force', to: 'queued' },
      ] as const) {
        assert.equal((await bench.applyCommand(job.id, command, OPERATOR)).kind, 'rejected')
      }
      assert.equal(one(await bench.store.cancel([job.id], CLIENT)).kind, 'rejected')
    })
  },

  'a job is not done while effects are open, whoever says so': async (bench) => {
    const { job } = await committed(bench, 'mail')
    await bench.applyCommand(job.id, { kind: 'done', attempt: 1 })
    assert.equal((await bench.job(job.id)).outcome, null)
  },

  'effects that were never put into the outbox cannot be promised by a settlement': async (
    bench,
  ) => {
    const held = await bench.hold()
    const answer = await bench.settle(held, { kind: 'commit', effects: 2 }, '1')
    if (answer.kind === 'rejected') return
    assert.equal((await bench.job(held.job.id)).outcome, 'succeeded')
  },
}
