/** Bounds that make no sense: nothing is done beyond what a bound can mean, and nothing breaks. */
import assert from 'node:assert/strict'
import type { EffectReport, HeldEffect } from '../../../src/stores/contract/store.ts'
import { type Bench, type Cases, fenceOf, LEASE_MS, noneOrRefused, one } from './bench.ts'

const SENSELESS = [-1, 0.5, Number.NaN, Number.NEGATIVE_INFINITY]

const asList = async (count: Promise<number>) => Array.from({ length: await count })

/** Each verb that takes a limit, with something to do; it must do none of it. */
const VERBS: Readonly<
  Record<string, (bench: Bench, limit: number) => Promise<readonly unknown[]>>
> = {
  promote: async (bench, limit) => {
    await bench.enqueue({ runAt: bench.store.now() + 1 })
    await bench.advance(1)
    return asList(bench.store.promote(limit))
  },
  recover: async (bench, limit) => {
    await bench.hold()
    await bench.advance(LEASE_MS)
    return bench.store.recover(limit)
  },
  shed: async (bench, limit) => {
    await bench.store.limitQueue('main', { maxWaitMs: 0 })
    await bench.enqueue()
    await bench.advance(1)
    return bench.store.shed(limit)
  },
  claimEffects: async (bench, limit) => {
    await commitWithEffect(bench)
    return bench.store.claimEffects({ limit, leaseMs: 1000 })
  },
  prune: async (bench, limit) => {
    const { id } = await bench.enqueue()
    await bench.store.cancel([id], { actor: 'client' })
    return asList(bench.store.prune({ endedBefore: bench.store.now() + 1, limit }))
  },
  tail: async (bench, limit) => {
    await bench.enqueue()
    return bench.store.tail(undefined, limit)
  },
  audit: async (bench, limit) => {
    await bench.enqueue()
    return (await bench.store.audit({}, { limit })).items
  },
  list: async (bench, limit) => {
    await bench.enqueue()
    return (await bench.store.list({}, { limit })).items
  },
}

async function commitWithEffect(bench: Bench): Promise<void> {
  const held = await bench.hold()
  await bench.store.commit(held, (tx) => {
    tx.effect('mail', '1')
    return '1'
  })
}

/** Bounds and times that no clock or counter can give. */
export const limitCases: Cases = {
  ...Object.fromEntries(
    Object.entries(VERBS).flatMap(([verb, call]) =>
      SENSELESS.map((limit) => [
        `${verb} with limit ${limit} does nothing`,
        async (bench: Bench) => {
          assert.deepEqual(await noneOrRefused(call(bench, limit)), [])
        },
      ]),
    ),
  ),

  'a heartbeat with a lease that makes no sense changes nothing': async (bench) => {
    const held = await bench.hold()
    const beat = { ref: held.ref, fence: fenceOf(held) }
    for (const leaseMs of [0, -1, 0.5, Number.NaN, Number.MAX_SAFE_INTEGER]) {
      await noneOrRefused(bench.store.heartbeat([beat], leaseMs).then(({ lost }) => lost))
      assert.deepEqual(await bench.job(held.job.id), held.job, `lease ${leaseMs}`)
    }
  },

  'effects are not taken for a lease that makes no sense': async (bench) => {
    await commitWithEffect(bench)
    for (const leaseMs of [0, -1, 0.5, Number.NaN, Number.MAX_SAFE_INTEGER]) {
      const taking = bench.store.claimEffects({ limit: 1, leaseMs })
      assert.deepEqual(await noneOrRefused(taking), [], `lease ${leaseMs}`)
    }
  },

  'an effect cannot be put off to a time that makes no sense': async (bench) => {
    await commitWithEffect(bench)
    const effect: HeldEffect = one(await bench.store.claimEffects({ limit: 1, leaseMs: 1000 }))
    for (const runAt of [Number.NaN, 0.5, -1, Number.POSITIVE_INFINITY]) {
      const report: EffectReport = { kind: 'retry', effect, runAt, error: 'no answer' }
      const settled = await noneOrRefused(bench.store.settleEffects([report]))
      assert.deepEqual(settled.filter(Boolean), [], `time ${runAt}`)
    }
  },
}
