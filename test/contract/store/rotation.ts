/** The groups of a queue take turns: each starts as many jobs in its turn as its weight says. */
import assert from 'node:assert/strict'
import type { LimitKey } from '../../../src/core/limits/keys.ts'
import type { ClaimRequest, Held } from '../../../src/stores/contract/store.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, one } from './bench.ts'

const LINE = 'group/main'

/** Has the groups of the queue of these tests take turns. */
async function rotate(bench: Bench): Promise<void> {
  await bench.store.limits.declare([{ name: LINE, max: null }])
}

const group = (key: string, weight?: number): LimitKey => ({
  gate: `${LINE}/${key}`,
  ...(weight !== undefined && { weight }),
})

/** Enqueues jobs of one group at once. */
async function enqueueOf(bench: Bench, count: number, ...keys: LimitKey[]): Promise<string[]> {
  const items = Array.from({ length: count }, () => bench.item({ limitKeys: keys }))
  await bench.store.enqueue(items)
  return items.map(({ command }) => command.jobId)
}

const nameOf = ({ job }: Held) => {
  return (job.limitKey ?? 'none').split(' ')[0]?.split('=')[0]?.replace(`${LINE}/`, '') ?? ''
}

/** Claims some jobs one by one, and returns the names of their groups in that order. */
async function claimEach(bench: Bench, count: number, request: Partial<ClaimRequest> = {}) {
  const names: string[] = []
  for (let n = 0; n < count; n++) names.push(nameOf(one(await bench.claim(request))))
  return names.join('')
}

export const rotationCases: Cases = {
  'groups take turns, however many jobs one of them has': async (bench) => {
    await rotate(bench)
    await enqueueOf(bench, 50, group('a'))
    await enqueueOf(bench, 2, group('b'))
    await enqueueOf(bench, 3, group('c'))
    assert.equal(await claimEach(bench, 10), 'abcabcacaa')
  },

  'a group starts as many jobs in its turn as its weight says': async (bench) => {
    await rotate(bench)
    await enqueueOf(bench, 20, group('a'))
    await enqueueOf(bench, 20, group('b', 3))
    await enqueueOf(bench, 20, group('c', 2))
    assert.equal(await claimEach(bench, 12), 'abbbccabbbcc')
  },

  'a claim of many jobs takes them in the order of the turns': async (bench) => {
    await rotate(bench)
    await enqueueOf(bench, 20, group('a'))
    await enqueueOf(bench, 20, group('b', 3))
    const first = await bench.claim({ limit: 6 })
    assert.equal(first.map(nameOf).toSorted().join(''), 'aabbbb')
    assert.equal(await claimEach(bench, 3), 'bba')
    const rest = await bench.claim({ limit: 100 })
    assert.equal(rest.length, 31)
    assert.deepEqual(await bench.claim({ limit: 100 }), [])
  },

  'priority and time count within a group': async (bench) => {
    await rotate(bench)
    const [late] = await enqueueOf(bench, 1, group('a'))
    const urgent = await bench.enqueue({ limitKeys: [group('a')], priority: -5 })
    const [other] = await enqueueOf(bench, 1, group('b'))
    const order: string[] = []
    for (let n = 0; n < 3; n++) order.push(one(await bench.claim()).job.id)
    assert.deepEqual(order, [urgent.id, other, late])
  },

  'jobs without a group are a group of weight one together': async (bench) => {
    await rotate(bench)
    await enqueueOf(bench, 9)
    await enqueueOf(bench, 9, group('a', 2))
    assert.equal(await claimEach(bench, 6), 'noneaanoneaa')
  },

  'a group that comes later waits for one round at most': async (bench) => {
    await rotate(bench)
    for (const key of ['a', 'b', 'c']) await enqueueOf(bench, 9, group(key))
    assert.equal(await claimEach(bench, 2), 'ab')
    await enqueueOf(bench, 1, group('d'))
    assert.equal(await claimEach(bench, 6), 'cabdca')
  },

  'the weight of the newest job counts': async (bench) => {
    await rotate(bench)
    await enqueueOf(bench, 9, group('a', 1))
    await enqueueOf(bench, 9, group('b', 1))
    assert.equal(await claimEach(bench, 2), 'ab')
    await bench.advance(1)
    await enqueueOf(bench, 1, group('b', 3))
    assert.equal(await claimEach(bench, 9), 'ababbbabb')
  },

  'other queues and their claims know nothing of turns': async (bench) => {
    await rotate(bench)
    await enqueueOf(bench, 3, group('a'))
    const plain = await bench.enqueue({ queue: 'plain' })
    assert.equal(one(await bench.claim({ queues: ['plain'] })).job.id, plain.id)
    const late = await bench.enqueue({ queue: 'plain', priority: 9 })
    const held = await bench.claim({ limit: 9 })
    assert.equal(held.length, 4)
    assert.ok(held.some(({ job }) => job.id === late.id))
  },

  'a job that a limit blocks stops no other, and returns to its turn': async (bench) => {
    await rotate(bench)
    await bench.store.limits.declare([{ name: 'shared/api', max: 1 }])
    const api = { gate: 'shared/api' }
    const ids = await enqueueOf(bench, 5, group('a'), api)
    await enqueueOf(bench, 2, group('b'))
    const held = await bench.claim({ limit: 9 })
    assert.equal(held.map(nameOf).toSorted().join(''), 'abb')
    assert.deepEqual(await bench.claim({ limit: 9 }), [])
    const first = held.find((h) => nameOf(h) === 'a') as Held
    assert.equal(first.job.id, ids[0])
    done(await bench.settle(first, { kind: 'commit' }, '1'))
    await enqueueOf(bench, 1, group('c'))
    const next = await bench.claim({ limit: 9 })
    assert.equal(next.map(nameOf).toSorted().join(''), 'ac')
    assert.ok(next.some(({ job }) => job.id === ids[1]))
    assert.deepEqual(await bench.store.limits.drift(9), [])
  },

  'a limit of the queue and turns hold together': async (bench) => {
    await bench.store.limits.declare([
      { name: LINE, max: null },
      { name: 'queue/main', max: 3 },
    ])
    await enqueueOf(bench, 5, group('a'))
    await enqueueOf(bench, 5, group('b'))
    const held = await bench.claim({ limit: 9 })
    assert.equal(held.map(nameOf).toSorted().join(''), 'aab')
    assert.deepEqual(await bench.claim({ limit: 9 }), [])
    for (const one of held) done(await bench.settle(one, { kind: 'commit' }, '1'))
    assert.equal((await bench.claim({ limit: 9 })).map(nameOf).toSorted().join(''), 'abb')
  },

  'cancelled, moved and paused jobs keep nobody waiting': async (bench) => {
    await rotate(bench)
    const [cancelled, moved, kept] = await enqueueOf(bench, 3, group('a'))
    await enqueueOf(bench, 2, group('b'))
    assert.equal(await claimEach(bench, 1), 'a')
    await enqueueOf(bench, 1, group('c'))
    assert.equal(await claimEach(bench, 1), 'b')
    done(one(await bench.store.cancel([moved as string], CLIENT)))
    done(await bench.applyCommand(kept as string, { kind: 'prioritise', priority: 7 }))
    assert.equal(typeof cancelled, 'string')
    await bench.store.pauseQueue('main', OPERATOR)
    assert.deepEqual(await bench.claim({ limit: 9 }), [])
    await bench.store.resumeQueue('main', OPERATOR)
    assert.equal((await bench.claim({ limit: 9 })).map(nameOf).toSorted().join(''), 'abc')
  },

  'jobs of types that a worker does not serve keep nobody waiting': async (bench) => {
    await rotate(bench)
    await bench.enqueue({ limitKeys: [group('a')], type: 'other' })
    const served = await bench.enqueue({ limitKeys: [group('b')], type: 'served' })
    const held = one(await bench.claim({ types: ['served'] }))
    assert.equal(held.job.id, served.id)
    assert.deepEqual(await bench.claim({ types: ['served'] }), [])
    assert.equal(await claimEach(bench, 1), 'a')
  },

  'a retry and a job of a dead holder return to the turns of their group': async (bench) => {
    await rotate(bench)
    await enqueueOf(bench, 1, group('a'))
    await enqueueOf(bench, 3, group('b'))
    const held = one(await bench.claim())
    await bench.fail(held)
    await bench.advance(60_000)
    await bench.store.promote(100)
    assert.equal(await claimEach(bench, 2), 'ba')
    await bench.expire()
    await bench.advance(60_000)
    await bench.store.promote(100)
    assert.equal((await bench.claim({ limit: 9 })).map(nameOf).toSorted().join(''), 'abbb')
  },

  'every tenant has its jobs after one round for each, whatever the largest has': async (bench) => {
    await rotate(bench)
    const tenants = Array.from({ length: 200 }, (_, n) => `t${n}`)
    await enqueueOf(bench, 600, group('large'))
    await bench.store.enqueue(
      [0, 1, 2].flatMap(() => tenants.map((t) => bench.item({ limitKeys: [group(t)] }))),
    )
    const counts = new Map<string, number>()
    let left = 603
    while (left > 0) {
      const held = await bench.claim({ limit: Math.min(50, left) })
      assert.ok(held.length > 0)
      left -= held.length
      for (const one of held) counts.set(nameOf(one), (counts.get(nameOf(one)) ?? 0) + 1)
    }
    assert.deepEqual(new Set(counts.values()), new Set([3]))
    assert.equal(counts.size, 201)
  },
}
