/** Taking leases: which jobs, in which order, how many, and that nobody else gets them, too. */
import assert from 'node:assert/strict'
import { decide } from '../../../src/core/job/decide.ts'
import type { Job } from '../../../src/core/job/job.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import type { Lifecycle } from '../../../src/core/lifecycles/lifecycle.ts'
import type { ClaimRequest, Held } from '../../../src/stores/contract/store.ts'
import {
  type Bench,
  type Cases,
  done,
  fenceOf,
  LEASE_MS,
  noneOrRefused,
  OPERATOR,
  one,
  policyWith,
} from './bench.ts'

const typesOf = (held: readonly Held[]) => held.map(({ job }) => job.type)

/** Which jobs a claim takes. */
export const claimCases: Cases = {
  'a claim takes as many jobs as its limit says, and no more': async (bench) => {
    for (let i = 0; i < 5; i++) await bench.enqueue()
    const counts: number[] = []
    for (const limit of [0, 1, 3, 10, 10]) counts.push((await bench.claim({ limit })).length)
    assert.deepEqual(counts, [0, 1, 3, 1, 0])
  },

  'jobs are taken by priority, then by time, then by age': async (bench) => {
    await bench.enqueue({ type: 'late', priority: 5 })
    await bench.enqueue({ type: 'first', priority: -5 })
    await bench.enqueue({ type: 'second' })
    await bench.enqueue({ type: 'third' })
    await bench.advance(10)
    await bench.enqueue({ type: 'fourth' })
    await bench.enqueue({ type: 'soon', priority: -4 })
    const order = ['first', 'soon', 'second', 'third', 'fourth', 'late']
    assert.deepEqual(typesOf(await bench.claim({ limit: 4 })), order.slice(0, 4))
    assert.deepEqual(typesOf(await bench.claim({ limit: 4 })), order.slice(4))
  },

  'a job that is ahead is taken as if it had been due so much earlier': async (bench) => {
    await bench.enqueue({ type: 'old' })
    await bench.advance(60_001)
    await bench.enqueue({ type: 'young' })
    await bench.enqueue({ type: 'ahead', aheadMs: 60_000 })
    await bench.enqueue({ type: 'other-queue', queue: 'other', aheadMs: 30_000 })
    await bench.enqueue({ type: 'urgent', priority: -1 })
    await bench.enqueue({ type: 'last', priority: 1, aheadMs: 86_400_000 })
    const order = ['urgent', 'old', 'ahead', 'other-queue', 'young', 'last']
    assert.deepEqual(typesOf(await bench.claim({ limit: 3 })), order.slice(0, 3))
    assert.deepEqual(typesOf(await bench.claim({ limit: 9 })), order.slice(3))
  },

  'jobs that are ahead cannot keep another job waiting for longer than that': async (bench) => {
    const plain = await bench.enqueue({ type: 'plain' })
    let steps = 0
    for (; steps < 20; steps++) {
      await bench.advance(101)
      await bench.enqueue({ aheadMs: 1000 })
      const [held] = await bench.claim({ limit: 1 })
      if (held?.job.id === plain.id) break
      assert.equal(held?.job.aheadMs, 1000)
    }
    // Those that were enqueued within the second came first.
    assert.equal(steps, 9)
  },

  'a job that is ahead does not start before its time, and is ahead when it is due': async (
    bench,
  ) => {
    const runAt = bench.store.now() + 5000
    await bench.enqueue({ type: 'delayed', runAt, aheadMs: 60_000 })
    await bench.advance(1000)
    await bench.enqueue({ type: 'plain' })
    assert.deepEqual(typesOf(await bench.claim({ limit: 1 })), ['plain'])
    await bench.enqueue({ type: 'second' })
    await bench.advance(4000)
    await bench.store.promote(10)
    const claimed = await bench.claim({ limit: 9 })
    assert.deepEqual(typesOf(claimed), ['delayed', 'second'])
    assert.deepEqual([claimed[0]?.job.runAt, claimed[0]?.job.aheadMs], [runAt, 60_000])
  },

  'a new priority changes by how much a job is ahead': async (bench) => {
    await bench.enqueue({ type: 'first' })
    await bench.advance(1000)
    const { id } = await bench.enqueue({ type: 'second' })
    done(await bench.applyCommand(id, { kind: 'prioritise', priority: 0, aheadMs: 1001 }))
    const again = await bench.applyCommand(id, { kind: 'prioritise', priority: 0, aheadMs: 1001 })
    assert.equal(again.kind, 'same')
    assert.deepEqual(typesOf(await bench.claim({ limit: 1 })), ['second'])
    const third = await bench.enqueue({ type: 'third', aheadMs: 86_400_000 })
    done(await bench.applyCommand(third.id, { kind: 'prioritise', priority: 0 }))
    assert.equal((await bench.job(third.id)).aheadMs, 0)
    assert.deepEqual(typesOf(await bench.claim({ limit: 2 })), ['first', 'third'])
  },

  'named queues are emptied in the order in which they are named': async (bench) => {
    for (const queue of ['a', 'b', 'c']) {
      await bench.enqueue({ type: `${queue}1`, queue, priority: queue === 'a' ? -9 : 0 })
      await bench.enqueue({ type: `${queue}2`, queue })
    }
    assert.deepEqual(typesOf(await bench.claim({ queues: ['c', 'a'], limit: 3 })), [
      'c1',
      'c2',
      'a1',
    ])
    assert.deepEqual(typesOf(await bench.claim({ queues: ['c', 'a'], limit: 3 })), ['a2'])
    assert.deepEqual(await bench.claim({ queues: [], limit: 3 }), [])
    assert.deepEqual(await bench.claim({ queues: ['nowhere'], limit: 3 }), [])
  },

  'without named queues, priority and time decide across all of them': async (bench) => {
    await bench.enqueue({ type: 'third', queue: 'a', priority: 9 })
    await bench.enqueue({ type: 'first', queue: 'b', priority: 1 })
    await bench.enqueue({ type: 'second', queue: 'c', priority: 5 })
    assert.deepEqual(typesOf(await bench.claim({ limit: 2 })), ['first', 'second'])
    assert.deepEqual(typesOf(await bench.claim({ limit: 2 })), ['third'])
  },

  'types that the worker does not know stay where they are': async (bench) => {
    for (const type of ['a', 'b', 'c']) await bench.enqueue({ type })
    assert.deepEqual(typesOf(await bench.claim({ types: ['c', 'a', 'd'], limit: 9 })), ['a', 'c'])
    assert.deepEqual(await bench.claim({ types: [], limit: 9 }), [])
    assert.equal((await bench.store.counts()).lanes.ready, 1)
  },

  'a job is not taken before its time': async (bench) => {
    for (const lifecycle of LIFECYCLES) {
      await bench.enqueue({ lifecycle, runAt: bench.store.now() + 1000 })
    }
    await bench.advance(999)
    assert.equal(await bench.store.promote(10), 0)
    assert.deepEqual(await bench.claim({ limit: 10 }), [])
    await bench.advance(1)
    assert.equal(await bench.store.promote(10), LIFECYCLES.length)
    assert.equal((await bench.claim({ limit: 10 })).length, LIFECYCLES.length)
  },

  'the holder gets the job as it is stored, with its input': async (bench) => {
    const { id } = await bench.enqueue({ input: '{"a":[1,2]}' })
    const held = one(await bench.claim({ worker: 'worker-7', leaseMs: 1234 }))
    assert.equal(held.job.id, id)
    assert.equal(held.input, '{"a":[1,2]}')
    assert.deepEqual(held.job, await bench.job(id))
    const { execution, attempt, startedAt } = held.job
    assert.deepEqual([attempt, startedAt], [1, bench.store.now()])
    assert.deepEqual(execution, {
      status: 'IN_PROGRESS',
      claim: execution?.claim,
      worker: 'worker-7',
      leaseUntil: bench.store.now() + 1234,
    })
  },

  'a prefetched job is leased, and in progress only when it is started': async (bench) => {
    const held = await bench.hold({}, { start: false })
    assert.equal(held.job.execution?.status, 'LEASED')
    const { job } = done(await bench.settle(held, { kind: 'start' }))
    assert.equal(job.execution?.status, 'IN_PROGRESS')
    assert.equal((await bench.settle(held, { kind: 'start' })).kind, 'same')
  },

  'a held job is not given to anybody else, not even when its lease has expired': async (bench) => {
    const held = await bench.hold()
    assert.deepEqual(await bench.claim({ worker: 'worker-2' }), [])
    await bench.advance(LEASE_MS + 1)
    await bench.assertUntouched(held.job.id, async () => {
      assert.deepEqual(await bench.claim({ worker: 'worker-2' }), [])
    })
  },

  'a parked job is not taken, also where its state is the ready one': async (bench) => {
    const { id, state } = await bench.enqueue({ lifecycle: leased })
    const { job } = done(await bench.applyCommand(id, { kind: 'park' }, OPERATOR))
    assert.equal(job.state, state)
    assert.deepEqual(await bench.claim(), [])
    done(await bench.applyCommand(id, { kind: 'redrive' }, OPERATOR))
    assert.equal(one(await bench.claim()).job.id, id)
  },

  'concurrent claims never give one job to two callers': async (bench) => {
    await bench.store.enqueue(
      Array.from({ length: 100 }, (_, i) => bench.item({ queue: `q${i % 3}` })),
    )
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, i) => bench.claim({ worker: `worker-${i}`, limit: 7 })),
    )
    // One that meets what another is just looking at may pass it over, but nothing stays hidden.
    const rest = await bench.claim({ worker: 'worker-20', limit: 100 })
    const ids = [...claims, rest].flatMap((held) => held.map(({ job }) => job.id))
    assert.equal(ids.length, 100)
    assert.equal(new Set(ids).size, 100)
    for (const [i, held] of claims.entries()) {
      assert.ok(held.every(({ job }) => job.execution?.worker === `worker-${i}`))
    }
  },

  'two claims never have the same fence': async (bench) => {
    for (let i = 0; i < 4; i++) await bench.enqueue()
    const [a, b] = [await bench.claim({ limit: 2 }), await bench.claim({ limit: 2 })]
    const claims = (held: Held[]) => new Set(held.map((each) => fenceOf(each).claim))
    assert.ok([...claims(a)].every((claim) => !claims(b).has(claim)))
  },

  ...senselessRequests(),
}

/** Requests that make no sense take nothing, and say why. */
function senselessRequests(): Cases {
  const requests: Partial<ClaimRequest>[] = [
    { limit: -1 },
    { limit: 1.5 },
    { limit: Number.NaN },
    { limit: Number.POSITIVE_INFINITY },
    { leaseMs: 0 },
    { leaseMs: -1 },
    { leaseMs: 0.5 },
    { leaseMs: Number.NaN },
    { leaseMs: Number.MAX_SAFE_INTEGER },
    { worker: '' },
  ]
  return Object.fromEntries(
    requests.map((request) => {
      const [[field, value] = []] = Object.entries(request)
      const name = `a claim with ${field} ${value === '' ? 'empty' : value} takes nothing`
      return [
        name,
        async (bench: Bench) => {
          const { id } = await bench.enqueue()
          const before = await bench.job(id)
          assert.deepEqual(await noneOrRefused(bench.claim(request)), [])
          assert.deepEqual(await bench.job(id), before)
        },
      ]
    }),
  )
}

/** The facts of a claim, which a store may write without asking the decider, are the decider's. */
export const claimFactCases: Cases = Object.fromEntries(
  LIFECYCLES.flatMap((lifecycle) =>
    [true, false].map((start) => [
      `${lifecycle.name}: a claim ${start ? 'with' : 'without'} start is what the decider decides`,
      (bench: Bench) => compareClaims(bench, lifecycle, start),
    ]),
  ),
)

async function compareClaims(bench: Bench, lifecycle: Lifecycle, start: boolean): Promise<void> {
  const policy = lifecycle.retryFixed ? {} : { policy: policyWith() }
  const { id } = await bench.enqueue({ lifecycle, tags: ['a'], key: 'k', ...policy })
  // The first claim finds a fresh job; the later ones find what earlier attempts left behind.
  await compareClaim(bench, lifecycle, id, start)
  await bench.advance(LEASE_MS)
  await bench.store.recover(10)
  await bench.advance(60_000)
  await bench.store.promote(10)
  const held = await compareClaim(bench, lifecycle, id, start)
  done(await bench.settle(held, { kind: 'release' }))
  await compareClaim(bench, lifecycle, id, start)
}

async function compareClaim(
  bench: Bench,
  lifecycle: Lifecycle,
  id: string,
  start: boolean,
): Promise<Held> {
  const before: Job = await bench.job(id)
  await bench.advance(7)
  const held = one(await bench.claim({ start, worker: 'worker-9' }))
  const { claim } = fenceOf(held)
  const now = bench.store.now()
  const command = { kind: 'claim', claim, worker: 'worker-9', leaseUntil: now + LEASE_MS, start }
  const context = { now, random: 0, actor: 'worker' } as const
  const decision = decide(lifecycle, before, command as never, context)
  assert.equal(decision.kind, 'fact')
  assert.deepEqual(await bench.lastFact(id), (decision as { fact: unknown }).fact)
  return held
}
