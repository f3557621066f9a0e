/** Throttles: in every window of a period at most so many units start, by the store's time. */
import assert from 'node:assert/strict'
import { type Bench, type Cases, done, OPERATOR, one } from './bench.ts'

const GATE = 'rate/example/calls'

interface Throttle {
  readonly max: number
  readonly periodMs: number
  readonly burst: number
}

async function declare(bench: Bench, throttle: Throttle): Promise<void> {
  await bench.store.limits.declare([{ name: GATE, ...throttle }])
}

async function enqueue(bench: Bench, count: number, units?: number): Promise<void> {
  const limitKeys = [{ gate: GATE, ...(units !== undefined && { units }) }]
  await bench.store.enqueue(Array.from({ length: count }, () => bench.item({ limitKeys })))
}

/** Works as a worker does: whenever something is due, it claims; returns when jobs started. */
async function startsOf(bench: Bench, count: number): Promise<number[]> {
  const starts: number[] = []
  for (let turn = 0; turn < 200 && starts.length < count; turn++) {
    await bench.store.promote(100)
    const held = await bench.claim({ limit: 50 })
    starts.push(...held.map(() => bench.store.now()))
    await bench.store.settle(
      held.map((one) => {
        const { attempt, execution } = one.job
        const fence = { attempt, claim: execution?.claim ?? '' }
        return { held: one, command: { kind: 'commit', fence }, payload: '1' }
      }),
    )
    if (starts.length === count) break
    const due = await bench.store.nextDue()
    assert.ok(due !== undefined, 'a blocked job is due some time')
    await bench.advance(Math.max(1, due - bench.store.now()))
  }
  return starts
}

export const throttleCases: Cases = {
  'no window of a period has more starts than the limit, and none is late': async (bench) => {
    await declare(bench, { max: 10, periodMs: 1000, burst: 3 })
    await enqueue(bench, 40)
    const starts = await startsOf(bench, 40)
    assert.equal(starts.length, 40)
    for (const from of starts) {
      const inWindow = starts.filter((at) => at >= from && at < from + 1000)
      assert.ok(inWindow.length <= 10, `${inWindow.length} starts in a window`)
    }
    const took = (starts.at(-1) as number) - (starts[0] as number)
    assert.ok(took <= 5200, `40 starts took ${took} ms`)
  },

  'units count, and a job with many is not overtaken for ever': async (bench) => {
    await declare(bench, { max: 10, periodMs: 1000, burst: 2 })
    await enqueue(bench, 2)
    const limitKeys = [{ gate: GATE, units: 8 }]
    const heavy = await bench.enqueue({ limitKeys })
    await enqueue(bench, 5)
    assert.equal((await bench.claim({ limit: 9 })).length, 2)
    const due = await bench.store.nextDue()
    await bench.advance((due as number) - bench.store.now())
    await bench.store.promote(100)
    assert.equal(one(await bench.claim({ limit: 9 })).job.id, heavy.id)
  },

  'an attempt is a start: a retry waits for its turn, too': async (bench) => {
    await declare(bench, { max: 1, periodMs: 10_000, burst: 1 })
    await enqueue(bench, 1)
    const held = one(await bench.claim())
    done(await bench.settle(held, { kind: 'release' }))
    assert.deepEqual(await bench.claim(), [])
    const gate = await bench.store.limits.gate(GATE)
    assert.deepEqual([gate.max, gate.blocked], [1, 1])
    assert.equal(gate.opensAt, bench.store.now() + 10_000)
    await bench.advance(10_000)
    await bench.store.promote(100)
    assert.equal((await bench.claim()).length, 1)
  },

  'a handler that is told to wait closes the throttle for every job': async (bench) => {
    await declare(bench, { max: 100, periodMs: 1000, burst: 10 })
    await enqueue(bench, 2)
    const held = one(await bench.claim())
    const runAt = bench.store.now() + 30_000
    const command = { kind: 'suspend', runAt, reason: 'throttled', gate: GATE } as const
    done(await bench.settle(held, command))
    assert.deepEqual(await bench.claim({ limit: 9 }), [])
    assert.equal((await bench.store.limits.gate(GATE)).opensAt, runAt)
    await bench.advance(29_999)
    await bench.store.promote(100)
    assert.deepEqual(await bench.claim({ limit: 9 }), [])
    await bench.advance(1)
    await bench.store.promote(100)
    assert.equal((await bench.claim({ limit: 9 })).length, 2)
    assert.equal((await bench.job(held.job.id)).failures, 0)
  },

  'a throttle and a limit hold together': async (bench) => {
    await declare(bench, { max: 10, periodMs: 1000, burst: 5 })
    await bench.store.limits.declare([{ name: 'shared/api', max: 2 }])
    const limitKeys = [{ gate: GATE }, { gate: 'shared/api' }]
    await bench.store.enqueue(Array.from({ length: 6 }, () => bench.item({ limitKeys })))
    const held = await bench.claim({ limit: 9 })
    assert.equal(held.length, 2)
    // Jobs that a limit keeps back have not taken from the throttle.
    await bench.store.limits.set('shared/api', 9, OPERATOR)
    assert.equal((await bench.claim({ limit: 9 })).length, 3)
  },
}
