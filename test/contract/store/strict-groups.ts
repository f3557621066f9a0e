/** Jobs of a strict group run one at a time, in the order in which they were enqueued. */
import assert from 'node:assert/strict'
import type { LimitKey } from '../../../src/core/limits/keys.ts'
import type { Held } from '../../../src/stores/contract/store.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, one, policyWith } from './bench.ts'

const GATE = 'strict/example/acme'
const HOLD: readonly LimitKey[] = [{ gate: GATE }]
const SKIP: readonly LimitKey[] = [{ gate: GATE, skip: true }]

/** Enqueues jobs of one group, each a millisecond later than the last. */
async function enqueueGroup(bench: Bench, count: number, limitKeys = HOLD): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    ids.push((await bench.enqueue({ limitKeys, policy: policyWith({ crashesMax: 9 }) })).id)
    await bench.advance(1)
  }
  return ids
}

/** Claims everything that may start. */
const claimAll = (bench: Bench) => bench.claim({ limit: 50 })
const idsOf = (held: readonly Held[]) => held.map(({ job }) => job.id)

const succeed = async (bench: Bench, held: Held) => {
  done(await bench.settle(held, { kind: 'commit' }, '1'))
}

/** Claims the only job that may start, which must be this one. */
async function claimOnly(bench: Bench, id: string | undefined): Promise<Held> {
  const held = one(await claimAll(bench))
  assert.equal(held.job.id, id)
  assert.deepEqual(await claimAll(bench), [])
  return held
}

export const strictCases: Cases = {
  'the jobs of a group run one at a time, in order of enqueue': async (bench) => {
    const ids = await enqueueGroup(bench, 5)
    for (const id of ids) await succeed(bench, await claimOnly(bench, id))
    assert.deepEqual(await claimAll(bench), [])
  },

  'priority and due time do not change the order': async (bench) => {
    const first = await bench.enqueue({ limitKeys: HOLD, priority: 9 })
    await bench.advance(1)
    const second = await bench.enqueue({ limitKeys: HOLD, priority: -9 })
    await bench.advance(1)
    const runAt = bench.store.now() + 5000
    const third = await bench.enqueue({ limitKeys: HOLD, runAt })
    await bench.advance(1)
    const fourth = await bench.enqueue({ limitKeys: HOLD, priority: -99 })
    await succeed(bench, await claimOnly(bench, first.id))
    await succeed(bench, await claimOnly(bench, second.id))
    assert.deepEqual(await claimAll(bench), [])
    await bench.advance(5000)
    await bench.store.promote(100)
    await succeed(bench, await claimOnly(bench, third.id))
    await succeed(bench, await claimOnly(bench, fourth.id))
  },

  'groups of other keys and jobs without a group are not held up': async (bench) => {
    const ids = await enqueueGroup(bench, 3)
    const other = await bench.enqueue({ limitKeys: [{ gate: 'strict/example/other' }] })
    const free = await bench.enqueue()
    const held = idsOf(await claimAll(bench))
    assert.deepEqual(held.toSorted(), [ids[0], other.id, free.id].toSorted())
  },

  'a job that waits for its retry holds its group': async (bench) => {
    const [first, second] = await enqueueGroup(bench, 2)
    await bench.fail(await claimOnly(bench, first))
    assert.deepEqual(await claimAll(bench), [])
    await bench.advance(60_000)
    await bench.store.promote(100)
    await succeed(bench, await claimOnly(bench, first))
    await claimOnly(bench, second)
  },

  'a job whose holder died holds its group until it has run again': async (bench) => {
    const [first, second] = await enqueueGroup(bench, 2)
    const lost = await claimOnly(bench, first)
    await bench.expire()
    await bench.advance(60_000)
    await bench.store.promote(100)
    const again = await claimOnly(bench, first)
    await bench.settle(lost, { kind: 'commit' }, '1')
    assert.deepEqual(await claimAll(bench), [])
    await succeed(bench, again)
    await claimOnly(bench, second)
  },

  'a failure for good and cancels give the group to the next job': async (bench) => {
    const ids = await enqueueGroup(bench, 6)
    const [first, second, third, fourth, fifth, sixth] = ids as [string, ...string[]]
    await bench.fail(await claimOnly(bench, first), 'terminal')
    assert.equal((await bench.job(first)).outcome, 'failed')
    const held = await claimOnly(bench, second)
    done(one(await bench.store.cancel([third as string], CLIENT)))
    await bench.settle(held, { kind: 'cancel' })
    await bench.store.cancel([fourth as string], CLIENT)
    await succeed(bench, await claimOnly(bench, fifth))
    await claimOnly(bench, sixth)
  },

  'a cancelled head that waits gives the group to the next job at once': async (bench) => {
    const [first, second] = await enqueueGroup(bench, 2)
    await bench.fail(await claimOnly(bench, first))
    assert.deepEqual(await claimAll(bench), [])
    done(one(await bench.store.cancel([first as string], CLIENT)))
    await claimOnly(bench, second)
  },

  'a parked job holds its group until an operator decides': async (bench) => {
    const [first, second, third] = await enqueueGroup(bench, 3)
    await claimOnly(bench, first)
    done(await bench.applyCommand(first as string, { kind: 'park' }, OPERATOR))
    assert.deepEqual(await claimAll(bench), [])
    done(await bench.applyCommand(first as string, { kind: 'redrive' }, OPERATOR))
    await succeed(bench, await claimOnly(bench, first))
    await claimOnly(bench, second)
    done(await bench.applyCommand(second as string, { kind: 'park' }, OPERATOR))
    done(await bench.applyCommand(second as string, { kind: 'discard' }, OPERATOR))
    await claimOnly(bench, third)
  },

  'a parked job that is skipped does not hold its group, and returns to its place': async (
    bench,
  ) => {
    const [first, second, third] = await enqueueGroup(bench, 3, SKIP)
    await claimOnly(bench, first)
    done(await bench.applyCommand(first as string, { kind: 'park' }, OPERATOR))
    const held = await claimOnly(bench, second)
    done(await bench.applyCommand(first as string, { kind: 'redrive' }, OPERATOR))
    assert.deepEqual(await claimAll(bench), [])
    await succeed(bench, held)
    await succeed(bench, await claimOnly(bench, first))
    await claimOnly(bench, third)
  },

  'a redriven job runs before those that were enqueued after it': async (bench) => {
    const [first, second, third] = await enqueueGroup(bench, 3)
    await bench.fail(await claimOnly(bench, first), 'terminal')
    const held = await claimOnly(bench, second)
    done(await bench.applyCommand(first as string, { kind: 'redrive' }, OPERATOR))
    assert.deepEqual(await claimAll(bench), [])
    await succeed(bench, held)
    await succeed(bench, await claimOnly(bench, first))
    await claimOnly(bench, third)
  },

  'a job that is blocked by a limit holds its group and nobody else': async (bench) => {
    await bench.store.limits.declare([{ name: 'shared/api', max: 1 }])
    const holder = await bench.hold({ limitKeys: [{ gate: 'shared/api' }] })
    const limitKeys = [{ gate: GATE }, { gate: 'shared/api' }]
    const first = await bench.enqueue({ limitKeys })
    await bench.advance(1)
    const second = await bench.enqueue({ limitKeys: HOLD })
    const free = await bench.enqueue()
    assert.deepEqual(idsOf(await claimAll(bench)), [free.id])
    await succeed(bench, holder)
    await succeed(bench, await claimOnly(bench, first.id))
    await claimOnly(bench, second.id)
  },

  'a group of a thousand jobs costs the claims of others nothing': async (bench) => {
    const items = Array.from({ length: 1000 }, () => bench.item({ limitKeys: HOLD }))
    await bench.store.enqueue(items)
    const free = await bench.enqueue()
    const held = await bench.claim({ limit: 10 })
    assert.equal(held.length, 2)
    assert.ok(idsOf(held).includes(free.id))
    const { ready, blocked } = (await bench.store.counts()).lanes
    assert.deepEqual([ready, blocked], [0, 999])
  },

  'a head with the lowest priority runs first, however many wait': async (bench) => {
    const head = await bench.enqueue({ limitKeys: HOLD, priority: 50 })
    await bench.advance(1)
    const items = Array.from({ length: 200 }, () => bench.item({ limitKeys: HOLD, priority: -1 }))
    await bench.store.enqueue(items)
    await succeed(bench, await claimOnly(bench, head.id))
    await claimOnly(bench, items[0]?.command.jobId)
  },

  'an operator can pause a strict group and cannot widen it': async (bench) => {
    await bench.store.limits.declare([{ name: 'strict/example', max: 1 }])
    const [first] = await enqueueGroup(bench, 2)
    await bench.store.limits.set(GATE, 0, OPERATOR)
    assert.deepEqual(await claimAll(bench), [])
    const widened = bench.store.limits.set(GATE, 2, OPERATOR)
    await assert.rejects(widened, { code: 'E_COMMAND_INVALID' })
    await bench.store.limits.reset(GATE, OPERATOR)
    await claimOnly(bench, first)
  },

  'a replaced input can move a job to another group': async (bench) => {
    const first = await bench.enqueue({ limitKeys: HOLD, key: 'k', runAt: bench.store.now() + 1e6 })
    await bench.advance(1)
    const second = await bench.enqueue({ limitKeys: HOLD })
    assert.deepEqual(await claimAll(bench), [])
    const limitKeys = [{ gate: 'strict/example/other' }]
    const replaced = await bench.offer({ limitKeys, key: 'k', onConflict: 'replace' })
    assert.equal(replaced.kind, 'replaced')
    await claimOnly(bench, second.id)
    assert.equal((await bench.job(first.id)).limitKey, 'strict/example/other')
  },
}
