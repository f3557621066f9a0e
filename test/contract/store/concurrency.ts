/** Limits are exact: no claim makes more jobs run than they allow, and nobody waits in vain. */
import assert from 'node:assert/strict'
import type { LimitKey } from '../../../src/core/limits/keys.ts'
import type { Held } from '../../../src/stores/contract/store.ts'
import {
  type Bench,
  type Cases,
  CLIENT,
  done,
  fenceOf,
  LEASE_MS,
  OPERATOR,
  one,
  policyWith,
} from './bench.ts'

const keysOf = (...gates: string[]): LimitKey[] => gates.map((gate) => ({ gate }))

/** Declares a limit that is shared by everything that names it. */
async function declare(bench: Bench, name: string, max: number): Promise<void> {
  await bench.store.limits.declare([{ name, max }])
}

/** Enqueues jobs with the same keys. */
async function enqueueWith(bench: Bench, count: number, ...gates: string[]): Promise<string[]> {
  const limitKeys = keysOf(...gates)
  const items = Array.from({ length: count }, () => bench.item({ limitKeys }))
  await bench.store.enqueue(items)
  return items.map(({ command }) => command.jobId)
}

const idOf = ({ job }: Held) => job.id

async function usedOf(bench: Bench, gate: string): Promise<number> {
  return (await bench.store.limits.gate(gate)).used
}

async function lanesOf(bench: Bench) {
  const { ready, held, blocked } = (await bench.store.counts()).lanes
  return { ready, held, blocked }
}

export const concurrencyCases: Cases = {
  'a claim takes as many jobs as the limit allows and blocks the others': async (bench) => {
    await declare(bench, 'shared/api', 3)
    const ids = await enqueueWith(bench, 10, 'shared/api')
    const held = await bench.claim({ limit: 8 })
    assert.deepEqual(held.map(idOf), ids.slice(0, 3))
    assert.deepEqual(new Set(held.map(({ slots }) => slots)), new Set(['shared/api']))
    assert.equal(await usedOf(bench, 'shared/api'), 3)
    assert.deepEqual(await lanesOf(bench), { ready: 0, held: 3, blocked: 7 })
    assert.deepEqual(await bench.claim({ limit: 8 }), [])
  },

  'a settlement that claims hands its slot to the next job in one call': async (bench) => {
    await declare(bench, 'shared/api', 1)
    const ids = await enqueueWith(bench, 4, 'shared/api')
    let held = one(await bench.claim({ limit: 4 }))
    const order = [held.job.id]
    for (let turn = 1; turn < 4; turn++) {
      const command = { kind: 'commit', fence: fenceOf(held) } as const
      const request = { worker: 'w', limit: 4, leaseMs: LEASE_MS, start: true }
      const { claimed } = await bench.store.settle([{ held, command, payload: '1' }], request)
      held = one(claimed)
      order.push(held.job.id)
      assert.equal(await usedOf(bench, 'shared/api'), 1)
    }
    assert.deepEqual(order, ids)
  },

  'reports and the next claim in one call count each slot once': async (bench) => {
    await declare(bench, 'shared/key', 1)
    await declare(bench, 'queue/main', 3)
    const keys = Array.from({ length: 9 }, (_, n) => `shared/key/${n}`)
    for (const key of keys) await bench.enqueue({ limitKeys: keysOf(key) })
    const request = { worker: 'w', limit: 5, leaseMs: LEASE_MS, start: true }
    const settle = (held: readonly Held[]) =>
      bench.store.settle(
        held.map((one) => ({
          held: one,
          command: { kind: 'commit', fence: fenceOf(one) } as const,
          payload: '1',
        })),
        request,
      )
    const usedOfAll = () => Promise.all(['queue/main', ...keys].map((key) => usedOf(bench, key)))
    const first = await bench.claim({ limit: 5 })
    assert.deepEqual(await usedOfAll(), [3, 1, 1, 1, 0, 0, 0, 0, 0, 0])
    const second = await settle(first)
    assert.deepEqual(new Set(second.answers.map(({ kind }) => kind)), new Set(['done']))
    assert.deepEqual(await usedOfAll(), [3, 0, 0, 0, 1, 1, 1, 0, 0, 0])
    // Their leases are lost: their slots are free already, and a report frees nothing.
    await bench.advance(LEASE_MS)
    assert.equal((await bench.store.recover(10)).length, 3)
    const third = await settle(second.claimed)
    assert.deepEqual(new Set(third.answers.map(({ kind }) => kind)), new Set(['rejected']))
    assert.equal(third.claimed.length, 3)
    assert.equal((await usedOfAll())[0], 3)
    assert.equal(
      (await usedOfAll()).slice(1).reduce((sum, used) => sum + used, 0),
      3,
    )
    assert.deepEqual(await bench.store.limits.drift(10), [])
  },

  'jobs without limits pass those that are blocked, in their order': async (bench) => {
    await declare(bench, 'shared/api', 1)
    const limited = await enqueueWith(bench, 5, 'shared/api')
    const free = await enqueueWith(bench, 3)
    const held = await bench.claim({ limit: 4 })
    assert.deepEqual(held.map(idOf).toSorted(), [limited[0], ...free].toSorted())
  },

  'a blocked job that is ahead comes before one that was due earlier': async (bench) => {
    await declare(bench, 'shared/api', 1)
    const limitKeys = keysOf('shared/api')
    await bench.enqueue({ limitKeys })
    const held = one(await bench.claim())
    const late = await bench.enqueue({ limitKeys })
    await bench.advance(1000)
    const ahead = await bench.enqueue({ limitKeys, aheadMs: 2000 })
    assert.deepEqual(await bench.claim({ limit: 9 }), [])
    assert.equal((await bench.store.limits.blockage(late.id))?.ahead, 1)
    assert.equal((await bench.store.limits.blockage(ahead.id))?.ahead, 0)
    done(await bench.settle(held, { kind: 'commit' }, '1'))
    assert.equal(one(await bench.claim({ limit: 9 })).job.id, ahead.id)
  },

  'totals are sums over the keys of a limit, without numbers for single keys': async (bench) => {
    await declare(bench, 'job/sync/tenant', 1)
    await declare(bench, 'shared/api', 5)
    await declare(bench, 'shared/unused', 7)
    await bench.store.limits.set('job/sync/tenant/b', 2, OPERATOR)
    await enqueueWith(bench, 2, 'job/sync/tenant/a', 'shared/api')
    const since = bench.store.now()
    await bench.advance(100)
    await enqueueWith(bench, 4, 'job/sync/tenant/b', 'shared/api')
    assert.equal((await bench.claim({ limit: 20 })).length, 3)
    assert.deepEqual(await bench.store.limits.totals(100), [
      {
        limit: 'job/sync/tenant',
        isThrottle: false,
        max: 1,
        used: 3,
        blocked: 3,
        blockedSince: since,
      },
      { limit: 'shared/api', isThrottle: false, max: 5, used: 3, blocked: 0 },
      { limit: 'shared/unused', isThrottle: false, max: 7, used: 0, blocked: 0 },
    ])
    assert.deepEqual(await bench.store.limits.totals(0), [])
  },

  'priority decides among blocked jobs of one gate': async (bench) => {
    await declare(bench, 'shared/api', 1)
    const limitKeys = keysOf('shared/api')
    const first = await bench.enqueue({ limitKeys })
    const held = one(await bench.claim())
    const late = await bench.enqueue({ limitKeys, priority: 5 })
    const urgent = await bench.enqueue({ limitKeys, priority: -5 })
    assert.deepEqual(await bench.claim({ limit: 5 }), [])
    assert.equal(held.job.id, first.id)
    done(await bench.settle(held, { kind: 'commit' }, '1'))
    const next = one(await bench.claim({ limit: 5 }))
    assert.equal(next.job.id, urgent.id)
    done(await bench.settle(next, { kind: 'commit' }, '1'))
    assert.equal(one(await bench.claim({ limit: 5 })).job.id, late.id)
  },

  'a job with several limits starts only if each has room': async (bench) => {
    await declare(bench, 'shared/a', 1)
    await declare(bench, 'shared/b', 1)
    const [onlyA] = await enqueueWith(bench, 1, 'shared/a')
    const [both] = await enqueueWith(bench, 1, 'shared/a', 'shared/b')
    const [onlyB] = await enqueueWith(bench, 1, 'shared/b')
    const held = await bench.claim({ limit: 5 })
    assert.deepEqual(held.map(idOf), [onlyA, onlyB])
    const [a, b] = held as [Held, Held]
    done(await bench.settle(a, { kind: 'commit' }, '1'))
    assert.deepEqual(await bench.claim({ limit: 5 }), [])
    done(await bench.settle(b, { kind: 'commit' }, '1'))
    assert.equal(one(await bench.claim({ limit: 5 })).job.id, both)
    assert.deepEqual([await usedOf(bench, 'shared/a'), await usedOf(bench, 'shared/b')], [1, 1])
  },

  'two queues share a gate': async (bench) => {
    await declare(bench, 'shared/api', 1)
    const limitKeys = keysOf('shared/api')
    await bench.enqueue({ limitKeys, queue: 'one' })
    const second = await bench.enqueue({ limitKeys, queue: 'two' })
    const held = one(await bench.claim({ queues: ['one'] }))
    assert.deepEqual(await bench.claim({ queues: ['two'] }), [])
    done(await bench.settle(held, { kind: 'commit' }, '1'))
    assert.equal(one(await bench.claim({ queues: ['two'] })).job.id, second.id)
  },

  'blocked jobs are counted, listed and explained by their gate': async (bench) => {
    await declare(bench, 'shared/api', 1)
    const ids = await enqueueWith(bench, 3, 'shared/api')
    const held = one(await bench.claim({ limit: 3 }))
    const blockage = await bench.store.limits.blockage(ids[2] as string)
    assert.equal(blockage?.ahead, 1)
    assert.deepEqual(
      [blockage.gate.gate, blockage.gate.used, blockage.gate.max, blockage.gate.blocked],
      ['shared/api', 1, 1, 2],
    )
    const holder = one(await bench.store.limits.holders('shared/api', 5))
    assert.deepEqual([holder.id, holder.worker], [held.job.id, 'worker-1'])
    assert.equal(await bench.store.limits.blockage(held.job.id), undefined)
    const { items } = await bench.store.list({ lane: 'blocked' })
    assert.deepEqual(items.map(({ id }) => id).toSorted(), ids.slice(1).toSorted())
    const { items: gates } = await bench.store.limits.gates({ limit: 'shared/api' })
    assert.deepEqual(one(gates), blockage.gate)
  },

  'a number of the newest job counts for its key': async (bench) => {
    const gate = 'job/sync/tenant/acme'
    await bench.store.limits.declare([{ name: 'job/sync/tenant', max: null }])
    for (let n = 0; n < 4; n++) await bench.enqueue({ limitKeys: [{ gate, max: 1 }] })
    assert.equal((await bench.claim({ limit: 9 })).length, 1)
    await bench.advance(1)
    await bench.enqueue({ limitKeys: [{ gate, max: 3 }] })
    assert.equal((await bench.claim({ limit: 9 })).length, 1)
    assert.equal((await bench.store.limits.gate(gate)).max, 3)
    await bench.advance(1000)
    await bench.store.promote(100)
    assert.equal((await bench.claim({ limit: 9 })).length, 1)
    assert.equal(await usedOf(bench, gate), 3)
  },

  'a cancelled or moved job leaves its gate': async (bench) => {
    await declare(bench, 'shared/api', 1)
    const ids = await enqueueWith(bench, 4, 'shared/api')
    const held = one(await bench.claim({ limit: 4 }))
    const [, cancelled, later, last] = ids as [string, string, string, string]
    done(one(await bench.store.cancel([cancelled], CLIENT)))
    done(await bench.applyCommand(last, { kind: 'prioritise', priority: -1 }))
    const runAt = bench.store.now() + 1000
    done(await bench.applyCommand(later, { kind: 'reschedule', runAt }))
    assert.deepEqual(await lanesOf(bench), { ready: 1, held: 1, blocked: 0 })
    assert.deepEqual(await bench.claim({ limit: 4 }), [])
    done(await bench.settle(held, { kind: 'commit' }, '1'))
    assert.equal(one(await bench.claim({ limit: 4 })).job.id, last)
  },

  'a paused queue keeps no other job of the gate waiting': async (bench) => {
    await declare(bench, 'shared/api', 1)
    const limitKeys = keysOf('shared/api')
    const held = await bench.hold({ limitKeys })
    await bench.enqueue({ limitKeys, queue: 'paused' })
    const other = await bench.enqueue({ limitKeys, queue: 'other', priority: 9 })
    assert.deepEqual(await bench.claim({ limit: 5 }), [])
    await bench.store.pauseQueue('paused', OPERATOR)
    done(await bench.settle(held, { kind: 'commit' }, '1'))
    assert.equal(one(await bench.claim({ limit: 5 })).job.id, other.id)
  },

  'a job that nobody serves keeps no other job of the gate waiting': async (bench) => {
    await declare(bench, 'shared/api', 1)
    const limitKeys = keysOf('shared/api')
    const held = await bench.hold({ limitKeys })
    await bench.enqueue({ limitKeys, type: 'unserved' })
    const served = await bench.enqueue({ limitKeys, type: 'served' })
    assert.deepEqual(await bench.claim({ limit: 5 }), [])
    done(await bench.settle(held, { kind: 'commit' }, '1'))
    assert.deepEqual(await bench.claim({ limit: 5, types: ['served'] }), [])
    await bench.advance(1000)
    await bench.store.promote(100)
    assert.equal(one(await bench.claim({ limit: 5, types: ['served'] })).job.id, served.id)
  },

  'a thousand blocked jobs leave the lane of ready jobs': async (bench) => {
    await declare(bench, 'shared/api', 1)
    await enqueueWith(bench, 1000, 'shared/api')
    const [free] = await enqueueWith(bench, 1)
    const held = await bench.claim({ limit: 10 })
    assert.equal(held.length, 2)
    assert.ok(held.some(({ job }) => job.id === free))
    assert.deepEqual(await lanesOf(bench), { ready: 0, held: 2, blocked: 999 })
  },
}

/** How a job that is held can leave the lane of held jobs. */
const EXITS: Readonly<Record<string, (bench: Bench, held: Held) => Promise<unknown>>> = {
  success: (bench, held) => bench.settle(held, { kind: 'commit' }, '1'),
  commit: (bench, held) => bench.store.commit(held, () => '1'),
  'a commit with effects': (bench, held) =>
    bench.store.commit(held, (tx) => {
      tx.effect('mail', '1')
      return '1'
    }),
  'a failure that is tried again': (bench, held) => bench.fail(held),
  'a failure for good': (bench, held) => bench.fail(held, 'terminal'),
  'invalid input': (bench, held) => bench.fail(held, 'invalid_input'),
  release: (bench, held) => bench.settle(held, { kind: 'release' }),
  snooze: (bench, held) => {
    const runAt = bench.store.now() + 5000
    return bench.settle(held, { kind: 'suspend', runAt, reason: 'snoozed' })
  },
  'a cancel that the holder carries out': (bench, held) => bench.settle(held, { kind: 'cancel' }),
  'a lease that expires': (bench) => bench.expire(),
  'a cancel of a dead holder': async (bench, held) => {
    await bench.store.cancel([held.job.id], CLIENT)
    return bench.expire()
  },
  quarantine: (bench, held) => bench.applyCommand(held.job.id, { kind: 'park' }, OPERATOR),
  force: (bench, held) =>
    bench.applyCommand(held.job.id, { kind: 'force', to: 'quarantined' }, OPERATOR),
}

export const exitCases: Cases = Object.fromEntries(
  Object.entries(EXITS).map(([name, leave]) => [
    `${name} frees the slot once, and the next job gets it`,
    async (bench: Bench) => {
      await declare(bench, 'shared/api', 1)
      const limitKeys = keysOf('shared/api')
      const held = await bench.hold({ limitKeys, policy: policyWith({ crashesMax: 5 }) })
      const [next] = await enqueueWith(bench, 1, 'shared/api')
      assert.deepEqual(await bench.claim({ limit: 5, queues: ['main'] }), [])
      await leave(bench, held)
      assert.notEqual(held.job.execution, null)
      assert.equal(await usedOf(bench, 'shared/api'), 0)
      assert.equal(one(await bench.claim({ limit: 5, queues: ['main'] })).job.id, next)
      // A report of the same attempt that comes late, or again, frees nothing.
      await bench.settle(held, { kind: 'commit' }, '1')
      await bench.settle(held, { kind: 'release' })
      assert.equal(await usedOf(bench, 'shared/api'), 1)
      assert.deepEqual(await bench.store.limits.drift(10), [])
    },
  ]),
)

export const limitChangeCases: Cases = {
  'a raised limit makes blocked jobs ready at once, a lowered one stops nothing': async (bench) => {
    await declare(bench, 'shared/api', 2)
    await enqueueWith(bench, 9, 'shared/api')
    const held = await bench.claim({ limit: 9 })
    assert.equal(held.length, 2)
    const record = await bench.store.limits.set('shared/api', 4, OPERATOR)
    assert.deepEqual([record?.before.override, record?.after.override], [null, 4])
    held.push(...(await bench.claim({ limit: 9 })))
    assert.equal(held.length, 4)
    await bench.store.limits.set('shared/api', 1, OPERATOR)
    assert.equal(await usedOf(bench, 'shared/api'), 4)
    for (const one of held.splice(0, 3)) {
      done(await bench.settle(one, { kind: 'commit' }, '1'))
      assert.deepEqual(await bench.claim({ limit: 9 }), [])
    }
    await bench.store.limits.reset('shared/api', OPERATOR)
    assert.equal((await bench.claim({ limit: 9 })).length, 1)
    assert.equal(await usedOf(bench, 'shared/api'), 2)
  },

  'zero pauses a key, and only that key': async (bench) => {
    await bench.store.limits.declare([{ name: 'shared/repo', max: 2 }])
    await bench.store.limits.set('shared/repo/a', 0, OPERATOR)
    const [a] = await enqueueWith(bench, 1, 'shared/repo/a')
    const [b] = await enqueueWith(bench, 1, 'shared/repo/b')
    assert.deepEqual((await bench.claim({ limit: 5 })).map(idOf), [b])
    await bench.store.limits.reset('shared/repo/a', OPERATOR)
    assert.deepEqual((await bench.claim({ limit: 5 })).map(idOf), [a])
  },

  'a higher version of the code wins, and an operator beats both': async (bench) => {
    const { limits } = bench.store
    const name = 'shared/api'
    assert.equal(one(await limits.declare([{ name, max: 5 }])).record?.action, 'declare')
    assert.deepEqual(await limits.declare([{ name, max: 5 }]), [{ name }])
    assert.equal(one(await limits.declare([{ name, max: 7 }])).warning, 'conflict')
    await limits.declare([{ name, max: 9, version: 2 }])
    assert.deepEqual(await limits.declare([{ name, max: 5 }]), [{ name, warning: 'kept' }])
    await limits.set(name, 3, OPERATOR)
    await limits.declare([{ name, max: 11, version: 3 }])
    assert.equal((await limits.gate(name)).max, 3)
    await limits.reset(name, OPERATOR)
    assert.equal((await limits.gate(name)).max, 11)
    const { items } = await limits.records({ name })
    assert.deepEqual(
      items.map(({ action }) => action),
      ['reset', 'declare', 'set', 'declare', 'declare', 'declare'],
    )
    assert.deepEqual(
      [items[2]?.operator, items[2]?.note, items[2]?.actor],
      ['ann', 'looked into it', 'operator'],
    )
    const { items: listed } = await limits.list()
    assert.deepEqual(
      listed.map((one) => [one.name, one.max, one.version, one.override]),
      [[name, 11, 3, null]],
    )
  },

  'limits that make no sense are refused, and nothing is written': async (bench) => {
    const { limits } = bench.store
    const refused: (() => Promise<unknown>)[] = [
      () => limits.declare([{ name: 'shared/api', max: -1 }]),
      () => limits.declare([{ name: 'shared/api', max: 1.5 }]),
      () => limits.declare([{ name: 'nothing', max: 1 }]),
      () => limits.declare([{ name: 'shared/a b', max: 1 }]),
      () => limits.declare([{ name: `shared/${'x'.repeat(700)}`, max: 1 }]),
      () => limits.declare([{ name: 'rate/t/r', max: 0, periodMs: 1000 }]),
      () => limits.declare([{ name: 'rate/t/r', max: 5, periodMs: 0 }]),
      () => limits.declare([{ name: 'rate/t/r', max: 5 }]),
      () => limits.declare([{ name: 'rate/t/r', max: 5, periodMs: 1000, burst: 6 }]),
      () => limits.declare([{ name: 'shared/api', max: 5, burst: 1 }]),
      () => limits.set('shared/api', -1, OPERATOR),
      () => limits.set('shared/api', 5, CLIENT),
      () => limits.set('rate/t/r', 5, OPERATOR),
      () => limits.reset('shared/api', { actor: 'operator', operator: 'ann' }),
    ]
    for (const call of refused) await assert.rejects(call, { code: 'E_COMMAND_INVALID' })
    assert.deepEqual((await limits.list()).items, [])
    assert.deepEqual((await limits.records({})).items, [])
  },

  'a limit is not declared while a worker of an earlier release is alive': async (bench) => {
    const { store } = bench
    const info = JSON.stringify({ concurrency: 1 })
    await store.reportWorker({ id: 'old', state: 'Idle', info })
    const declaring = store.limits.declare([{ name: 'shared/api', max: 1 }])
    await assert.rejects(declaring, { code: 'E_WORKERS_TOO_OLD' })
    await bench.advance(20_000)
    const [declared] = await store.limits.declare([{ name: 'shared/api', max: 1 }])
    assert.equal(declared?.record?.after.max, 1)
  },
}

export const queueLimitCases: Cases = {
  'a queue with a limit counts jobs that were held before': async (bench) => {
    await bench.store.enqueue(Array.from({ length: 6 }, () => bench.item()))
    const before = await bench.claim({ limit: 2 })
    await declare(bench, 'queue/main', 3)
    assert.equal(await usedOf(bench, 'queue/main'), 2)
    const after = await bench.claim({ limit: 9 })
    assert.equal(after.length, 1)
    assert.deepEqual(await lanesOf(bench), { ready: 3, held: 3, blocked: 0 })
    for (const held of before) done(await bench.settle(held, { kind: 'commit' }, '1'))
    assert.equal(await usedOf(bench, 'queue/main'), 1)
    assert.equal((await bench.claim({ limit: 9 })).length, 2)
  },

  'a limit of a queue and a key hold together': async (bench) => {
    await declare(bench, 'queue/main', 2)
    await declare(bench, 'shared/api', 1)
    await enqueueWith(bench, 3, 'shared/api')
    await enqueueWith(bench, 3)
    const held = await bench.claim({ limit: 9 })
    assert.equal(held.length, 2)
    assert.deepEqual([await usedOf(bench, 'queue/main'), await usedOf(bench, 'shared/api')], [2, 1])
    for (const one of held) done(await bench.settle(one, { kind: 'commit' }, '1'))
    assert.deepEqual([await usedOf(bench, 'queue/main'), await usedOf(bench, 'shared/api')], [0, 0])
  },

  'other queues are claimed while one is full, in the order of claims': async (bench) => {
    await declare(bench, 'queue/full', 1)
    for (let n = 0; n < 3; n++) await bench.enqueue({ queue: 'full', priority: -1 })
    const other = await bench.enqueue({ queue: 'other' })
    const held = await bench.claim({ limit: 9 })
    assert.deepEqual(held.map(({ job }) => job.queue).toSorted(), ['full', 'other'])
    assert.ok(held.some(({ job }) => job.id === other.id))
    assert.deepEqual(await bench.claim({ limit: 9 }), [])
  },

  'a queue with a limit is served although other queues always have jobs': async (bench) => {
    await bench.store.limits.declare([{ name: 'queue/limited', max: 5 }])
    const limited = [
      await bench.enqueue({ queue: 'limited' }),
      await bench.enqueue({ queue: 'limited' }),
    ]
    for (let i = 0; i < 20; i++) await bench.enqueue({ queue: 'busy' })
    const held = [...(await bench.claim({ limit: 4 })), ...(await bench.claim({ limit: 4 }))]
    const ids = held.map(idOf)
    assert.ok(limited.every(({ id }) => ids.includes(id)))
  },
}
