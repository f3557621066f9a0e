/** Pausing queues, and what workers tell of themselves. */
import assert from 'node:assert/strict'
import { LANES, type Lane } from '../../../src/core/job/lanes.ts'
import type { Store, WorkerRow } from '../../../src/stores/contract/store.ts'
import {
  type Bench,
  type Cases,
  done,
  fenceOf,
  LEASE_MS,
  OPERATOR,
  one,
  settlement,
} from './bench.ts'

/** What pausing a queue does. */
export const queueCases: Cases = {
  'nothing of a paused queue is taken until it is resumed': async (bench) => {
    await bench.enqueue({ queue: 'a' })
    await bench.enqueue({ queue: 'b' })
    await bench.store.pauseQueue('a', OPERATOR)
    assert.deepEqual(await bench.claim({ queues: ['a'], limit: 9 }), [])
    assert.equal(one(await bench.claim({ limit: 9 })).job.queue, 'b')
    await bench.store.resumeQueue('a', OPERATOR)
    assert.equal(one(await bench.claim({ queues: ['a', 'b'] })).job.queue, 'a')
  },

  'pausing and resuming can be repeated, also for queues that have no jobs': async (bench) => {
    for (let i = 0; i < 2; i++) await bench.store.pauseQueue('later', OPERATOR)
    await bench.enqueue({ queue: 'later' })
    assert.deepEqual(await bench.claim(), [])
    for (let i = 0; i < 2; i++) await bench.store.resumeQueue('later', OPERATOR)
    one(await bench.claim())
    await bench.store.resumeQueue('never paused', OPERATOR)
  },

  'a paused queue accepts jobs, and what runs in it runs on': async (bench) => {
    const held = await bench.hold({ queue: 'a' })
    await bench.store.pauseQueue('a', OPERATOR)
    await bench.enqueue({ queue: 'a' })
    const beat = { ref: held.ref, fence: fenceOf(held) }
    assert.deepEqual((await bench.store.heartbeat([beat], LEASE_MS)).lost, [])
    const next = { worker: 'w', queues: ['a'], limit: 9, leaseMs: LEASE_MS, start: true }
    const { answers, claimed } = await bench.store.settle(
      [settlement(held, { kind: 'commit' }, '1')],
      next,
    )
    done(answers[0])
    assert.deepEqual(claimed, [])
  },

  'a paused queue in the middle of a list is passed over': async (bench) => {
    for (const queue of ['a', 'b', 'c']) await bench.enqueue({ queue, type: queue })
    await bench.store.pauseQueue('b', OPERATOR)
    const taken = await bench.claim({ queues: ['a', 'b', 'c'], limit: 9 })
    assert.deepEqual(
      taken.map(({ job }) => job.type),
      ['a', 'c'],
    )
  },
}

/** What can be read of queues. */
export const queueListCases: Cases = {
  'each queue tells how many jobs each of its lanes has, and since when one is ready': async (
    bench,
  ) => {
    assert.deepEqual(await bench.store.listQueues(), [])
    const start = bench.store.now()
    await bench.enqueue({ queue: 'b' })
    await bench.advance(5)
    await bench.enqueue({ queue: 'b' })
    await bench.enqueue({ queue: 'b', runAt: start + 1000 })
    await bench.enqueue({ queue: 'b', hold: true })
    await bench.hold({ queue: 'a' })
    done(
      await bench.applyCommand(
        (await bench.enqueue({ queue: 'a' })).id,
        { kind: 'park' },
        OPERATOR,
      ),
    )
    done(one(await bench.store.cancel([(await bench.enqueue({ queue: 'c' })).id], OPERATOR)))
    const [a, b, c, ...rest] = await bench.store.listQueues()
    assert.deepEqual(rest, [])
    assert.deepEqual(a, { name: 'a', lanes: lanes({ held: 1, parked: 1 }) })
    const own = lanes({ ready: 2, waiting: 1, idle: 1 })
    assert.deepEqual(b, { name: 'b', lanes: own, readySince: start })
    assert.deepEqual(c, { name: 'c', lanes: lanes({ ended: 1 }) })
  },

  'a paused queue tells since when, by whom and why, also where it is empty': async ({ store }) => {
    const pausedAt = store.now()
    await store.pauseQueue('later', OPERATOR)
    const paused = {
      name: 'later',
      lanes: lanes({}),
      pausedAt,
      pausedBy: 'ann',
      pauseReason: OPERATOR.note,
    }
    assert.deepEqual(await store.listQueues(), [paused])
    await store.resumeQueue('later', OPERATOR)
    assert.deepEqual(await store.listQueues(), [{ name: 'later', lanes: lanes({}) }])
  },
}

function lanes(counts: Partial<Record<Lane, number>>): Record<Lane, number> {
  const none = Object.keys(LANES).map((lane) => [lane, 0])
  return { ...(Object.fromEntries(none) as Record<Lane, number>), ...counts }
}

/** The rows as plain objects, whatever the driver makes of them. */
async function workers(store: Store): Promise<WorkerRow[]> {
  return (await store.listWorkers()).map((row) => ({ ...row }))
}

/** What workers tell of themselves. */
export const workerCases: Cases = {
  'a worker is listed as it last told of itself, since it first did': async ({ store }) => {
    const startedAt = store.now()
    await store.reportWorker({ id: 'w1', state: 'Polling', info: '{"slots":4}' })
    assert.deepEqual(await workers(store), [
      { id: 'w1', state: 'Polling', startedAt, seenAt: startedAt, info: '{"slots":4}' },
    ])
  },

  'a later report keeps the start and moves the time of the last sign': async (bench) => {
    const startedAt = bench.store.now()
    await bench.store.reportWorker({ id: 'w1', state: 'Polling', info: '1' })
    await bench.advance(500)
    await bench.store.reportWorker({ id: 'w1', state: 'Draining', info: '2' })
    assert.deepEqual(await workers(bench.store), [
      { id: 'w1', state: 'Draining', startedAt, seenAt: startedAt + 500, info: '2' },
    ])
  },

  'workers are told apart, and one that signs off is gone': async ({ store }) => {
    for (const id of ['w2', 'w1', 'W1']) await store.reportWorker({ id, state: 'x', info: id })
    await store.removeWorker('w1')
    await store.removeWorker('nobody')
    const ids = (await store.listWorkers()).map(({ id }) => id)
    assert.deepEqual(ids.toSorted(), ['W1', 'w2'])
  },
}

/** Hints that something may have become ready. */
export const wakeCases: Cases = {
  'a listener is told when jobs are accepted, come back or become due': async (bench) => {
    let woken = 0
    const stop = bench.store.onWake(() => {
      woken++
    })
    const expectWake = async (what: string, action: () => Promise<unknown>) => {
      const before = woken
      await action()
      assert.ok(woken > before, `nobody was told of ${what}`)
    }
    const runAt = bench.store.now() + 10
    await expectWake('a new job', () => bench.enqueue({ queue: 'a' }))
    const held = one(await bench.claim({ queues: ['a'] }))
    await expectWake('a job given back', () => bench.settle(held, { kind: 'release' }))
    const sender = await bench.hold()
    await expectWake('an effect', () =>
      bench.store.commit(sender, (tx) => {
        tx.effect('mail', '1')
        return '1'
      }),
    )
    await bench.enqueue({ queue: 'b', runAt })
    await bench.advance(10)
    await expectWake('a job that is due', () => bench.store.promote(1))
    stop()
    const before = woken
    await bench.enqueue()
    assert.equal(woken, before, 'whoever stopped listening is told no more')
  },

  'a listener that throws hurts no writer': async (bench) => {
    const stop = bench.store.onWake(() => {
      throw new Error('a bad listener')
    })
    let woken = 0
    const stopOther = bench.store.onWake(() => {
      woken++
    })
    await bench.enqueue()
    assert.ok(woken > 0)
    stop()
    stopOther()
  },

  'a listener may stop itself while it is told': (bench) => stopInside(bench),
}

async function stopInside(bench: Bench): Promise<void> {
  let woken = 0
  const stop = bench.store.onWake(() => {
    woken++
    stop()
    stop()
  })
  await bench.enqueue()
  await bench.enqueue()
  assert.equal(woken, 1)
}
