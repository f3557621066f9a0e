/** Steps: what an attempt has finished, so that the next one need not do it again. */
import assert from 'node:assert/strict'
import { StaleFence } from '../../../src/core/errors.ts'
import type { Held } from '../../../src/stores/contract/store.ts'
import { type Cases, done, fenceOf, LEASE_MS, policyWith, refused, settlement } from './bench.ts'

/** The results of steps. */
export const stepCases: Cases = {
  'results of steps are there for later attempts, in order': async (bench) => {
    const held = await bench.hold()
    assert.deepEqual(await bench.store.steps(held.ref), [])
    done(await bench.settle(held, { kind: 'step', name: 'fetch', n: 1 }, '{"a":1}'))
    done(await bench.settle(held, { kind: 'step', name: 'fetch', n: 2 }, '[]'))
    done(await bench.settle(held, { kind: 'step', name: 'store', n: 1 }, '"ü"'))
    done(await bench.settle(held, { kind: 'release' }))
    const again = await bench.reclaim(held)
    assert.deepEqual(await bench.store.steps(again.ref), [
      { name: 'fetch', n: 1, payload: '{"a":1}' },
      { name: 'fetch', n: 2, payload: '[]' },
      { name: 'store', n: 1, payload: '"ü"' },
    ])
  },

  'the first result of a step stands, whichever attempt says it again': async (bench) => {
    const held = await bench.hold()
    done(await bench.settle(held, { kind: 'step', name: 'a', n: 1 }, '1'))
    assert.equal((await bench.settle(held, { kind: 'step', name: 'a', n: 1 }, '2')).kind, 'same')
    done(await bench.settle(held, { kind: 'release' }))
    const again = await bench.reclaim(held)
    const repeated = await bench.settle(again, { kind: 'step', name: 'a', n: 1 }, '3')
    assert.equal(repeated.kind, 'same')
    assert.deepEqual(await bench.store.steps(held.ref), [{ name: 'a', n: 1, payload: '1' }])
  },

  'steps of one name are told apart by number, and belong to their job': async (bench) => {
    const [a, b] = [await bench.hold(), await bench.hold()]
    done(await bench.settle(a, { kind: 'step', name: 'x', n: 1 }, '"a"'))
    done(await bench.settle(b, { kind: 'step', name: 'x', n: 1 }, '"b"'))
    done(await bench.settle(b, { kind: 'step', name: 'X', n: 1 }, '"c"'))
    const most = Number.MAX_SAFE_INTEGER
    done(await bench.settle(b, { kind: 'step', name: 'x', n: most }, '"d"'))
    assert.equal((await bench.settle(b, { kind: 'step', name: 'x', n: most }, '1')).kind, 'same')
    assert.deepEqual(await bench.store.steps(a.ref), [{ name: 'x', n: 1, payload: '"a"' }])
    assert.deepEqual(await bench.store.steps(b.ref), [
      { name: 'x', n: 1, payload: '"b"' },
      { name: 'X', n: 1, payload: '"c"' },
      { name: 'x', n: most, payload: '"d"' },
    ])
  },

  'a step answers with the job and the fact that can be read, though its lease was renewed': async (
    bench,
  ) => {
    let held = await bench.hold()
    for (const n of [1, 2, 3]) {
      await bench.advance(1000)
      await bench.store.heartbeat([{ ref: held.ref, fence: fenceOf(held) }], LEASE_MS)
      const { job, fact } = done(await bench.settle(held, { kind: 'step', name: 'a', n }, '1'))
      assert.deepEqual(await bench.job(job.id), job)
      assert.deepEqual(await bench.lastFact(job.id), fact)
      assert.equal(job.execution?.leaseUntil, bench.store.now() + LEASE_MS)
      held = { ...held, job }
    }
    done(await bench.settle(held, { kind: 'commit' }, '1'))
  },

  'steps that are reported together are each on their own': async (bench) => {
    const [plain, stale, late, twice] = [
      await bench.hold(),
      await bench.hold(),
      await bench.hold(),
      await bench.hold(),
    ]
    done(await bench.settle(stale, { kind: 'release' }))
    done(await bench.settle(late, { kind: 'step', name: 'a', n: 1 }, '"early"'))
    const step = (held: Held, n: number) => settlement(held, { kind: 'step', name: 'a', n }, '1')
    const first = await bench.store.settle([step(plain, 1), step(stale, 1), step(late, 2)])
    assert.deepEqual(
      first.answers.map(({ kind }) => kind),
      ['done', 'rejected', 'done'],
    )
    assert.deepEqual(await bench.lastFact(plain.job.id), done(first.answers[0]).fact)
    assert.deepEqual(await bench.lastFact(late.job.id), done(first.answers[2]).fact)
    const second = await bench.store.settle([step(twice, 1), step(twice, 1), step(twice, 2)])
    assert.deepEqual(
      second.answers.map(({ kind }) => kind),
      ['done', 'same', 'done'],
    )
    assert.deepEqual(await bench.store.steps(stale.ref), [])
    for (const { ref } of [late, twice]) assert.equal((await bench.store.steps(ref)).length, 2)
  },

  'a step is refused when its lease has ended, whatever its holder believes': async (bench) => {
    const held = await bench.hold()
    const execution = { ...held.job.execution, leaseUntil: held.job.createdAt + 1_000_000_000 }
    const sure = { ...held, job: { ...held.job, execution } } as Held
    await bench.advance(LEASE_MS)
    refused(await bench.settle(sure, { kind: 'step', name: 'a', n: 1 }, '1'), StaleFence)
    assert.deepEqual(await bench.store.steps(held.ref), [])
  },

  'steps outlive a crash of their holder': async (bench) => {
    const held = await bench.hold({ policy: policyWith() })
    done(await bench.settle(held, { kind: 'step', name: 'a', n: 1 }, '1'))
    await bench.expire()
    await bench.store.promote(10)
    const again = await bench.reclaim(held)
    assert.equal((await bench.store.steps(again.ref)).length, 1)
  },

  'a step that brings no result is remembered as null': async (bench) => {
    const held = await bench.hold()
    done(await bench.settle(held, { kind: 'step', name: 'a', n: 1 }))
    assert.deepEqual(await bench.store.steps(held.ref), [{ name: 'a', n: 1, payload: 'null' }])
  },

  'a handle that no job has shows no steps': async ({ store }) => {
    assert.deepEqual(await store.steps(123_456), [])
  },
}
