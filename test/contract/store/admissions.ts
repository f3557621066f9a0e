/** Admission: rate limits, debounced jobs and singletons, by key. */

import assert from 'node:assert/strict'
import type { Admission, SingletonMode } from '../../../src/core/admission.ts'
import type { Job } from '../../../src/core/job/job.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import type { Lifecycle } from '../../../src/core/lifecycles/lifecycle.ts'
import type { Enqueued } from '../../../src/stores/contract/store.ts'
import { KeyTaken, RateLimited } from '../../../src/stores/errors.ts'
import { type Bench, type Cases, created, done, LEASE_MS, OPERATOR, one } from './bench.ts'

function jobOf(answer: Enqueued): Job {
  assert.ok('job' in answer, answer.kind)
  return answer.job
}

const kindsOf = (answers: readonly Enqueued[]) => answers.map(({ kind }) => kind)

const inputOf = async (bench: Bench, id: string) => (await bench.store.payloads(id))?.input

function rate(limit: number, periodMs: number, key = 'k'): { admission: Admission } {
  return { admission: { rate: { limit, periodMs, key } } }
}

/** At most so many in every window. */
export const rateCases: Cases = {
  'no window of the period has more jobs than the limit': async (bench) => {
    const [limit, periodMs] = [3, 1000]
    const times: number[] = []
    for (let i = 0; i < 60; i++) {
      const answer = await bench.offer(rate(limit, periodMs))
      if (answer.kind === 'created') times.push(bench.store.now())
      else assert.ok(answer.kind === 'rejected' && answer.error instanceof RateLimited)
      await bench.advance((i * 37) % 91)
    }
    assert.ok(times.length > limit, `${times.length} accepted`)
    for (const from of times) {
      const within = times.filter((at) => at >= from && at < from + periodMs)
      assert.ok(within.length <= limit, `${within.length} from ${from}`)
    }
  },

  'a refusal says when the next job is accepted, and writes nothing': async (bench) => {
    for (let i = 0; i < 2; i++) created(await bench.offer(rate(2, 1000)))
    const before = await bench.ids()
    const refused = await bench.offer(rate(2, 1000))
    assert.ok(refused.kind === 'rejected' && refused.error instanceof RateLimited)
    const { retryAfterMs } = refused.error
    assert.ok(retryAfterMs > 0 && retryAfterMs <= 1020, String(retryAfterMs))
    assert.deepEqual(await bench.ids(), before)
    await bench.advance(retryAfterMs - 1)
    assert.equal((await bench.offer(rate(2, 1000))).kind, 'rejected')
    await bench.advance(1)
    created(await bench.offer(rate(2, 1000)))
  },

  'keys and types are counted apart': async (bench) => {
    created(await bench.offer(rate(1, 1000, 'a')))
    created(await bench.offer(rate(1, 1000, 'b')))
    created(await bench.offer({ type: 'other', ...rate(1, 1000, 'a') }))
    assert.equal((await bench.offer(rate(1, 1000, 'a'))).kind, 'rejected')
    created(await bench.offer())
  },

  'jobs of one call are counted one after the other': async (bench) => {
    const items = [1, 2, 3, 4].map(() => bench.item(rate(2, 1000)))
    const answers = await bench.store.enqueue([...items, bench.item()])
    assert.deepEqual(kindsOf(answers), ['created', 'created', 'rejected', 'rejected', 'created'])
  },

  'callers at once get no more than the limit': async (bench) => {
    const offers = Array.from({ length: 12 }, () => bench.offer(rate(5, 60_000)))
    const answers = await Promise.all(offers)
    assert.equal(answers.filter(({ kind }) => kind === 'created').length, 5)
  },

  'a repeated key is answered with its job, and counts nothing': async (bench) => {
    const first = created(await bench.offer({ key: 'once', ...rate(1, 1000) }))
    const again = await bench.offer({ key: 'once', ...rate(1, 1000) })
    assert.deepEqual([again.kind, jobOf(again).id], ['existing', first.id])
    const taken = await bench.offer({ key: 'once', onConflict: 'reject', ...rate(1, 1000) })
    assert.ok(taken.kind === 'rejected' && taken.error instanceof KeyTaken)
  },

  'in a transaction that is rolled back nothing is counted': async (bench) => {
    const leave = new Error('no')
    const work = bench.store.transaction(async (tx) => {
      created(one(await bench.store.enqueue([bench.item(rate(1, 1000))], { tx })))
      throw leave
    })
    await assert.rejects(work, leave)
    created(await bench.offer(rate(1, 1000)))
  },

  'a changed period or limit holds for what was accepted before': async (bench) => {
    for (let i = 0; i < 3; i++) created(await bench.offer(rate(3, 1000)))
    await bench.advance(1100)
    assert.equal((await bench.offer(rate(3, 60_000))).kind, 'rejected')
    created(await bench.offer(rate(3, 1000)))
  },

  'rows go when they have no effect any more': async (bench) => {
    created(await bench.offer(rate(1, 1000)))
    assert.equal((await bench.store.admissions.list(undefined, 10)).length, 1)
    assert.deepEqual(await bench.store.admissions.tend(10), { released: 0, removed: 0, seen: 0 })
    await bench.advance(1010)
    assert.deepEqual(await bench.store.admissions.tend(10), { released: 0, removed: 1, seen: 1 })
    assert.deepEqual(await bench.store.admissions.list(undefined, 10), [])
    created(await bench.offer(rate(1, 1000)))
  },
}

function debounce(
  input: string,
  { lifecycle, key = 'k' }: { lifecycle?: Lifecycle; key?: string } = {},
) {
  const admission: Admission = { debounce: { periodMs: 1000, timeoutMs: 2500, key } }
  return { input, admission, ...(lifecycle && { lifecycle }) }
}

/** Several enqueues become one job. */
export const debounceCases: Cases = {
  ...Object.fromEntries(
    LIFECYCLES.map((lifecycle) => [
      `the last input wins, and the job waits for silence: ${lifecycle.name}`,
      async (bench: Bench) => {
        const first = created(await bench.offer(debounce('1', { lifecycle })))
        const start = bench.store.now()
        await bench.advance(600)
        const second = await bench.offer(debounce('2', { lifecycle }))
        assert.deepEqual([second.kind, jobOf(second).id], ['replaced', first.id])
        assert.equal((await bench.job(first.id)).runAt, start + 1600)
        await bench.advance(999)
        await bench.store.promote(10)
        assert.deepEqual(await bench.claim(), [])
        await bench.advance(1)
        await bench.store.promote(10)
        const held = one(await bench.claim())
        assert.deepEqual([held.job.id, held.input], [first.id, '2'])
      },
    ]),
  ),

  'no enqueue can push the job beyond its time-out': async (bench) => {
    const start = bench.store.now()
    const { id } = created(await bench.offer(debounce('0')))
    for (let i = 1; i <= 6; i++) {
      await bench.advance(400)
      const answer = await bench.offer(debounce(String(i)))
      assert.deepEqual([answer.kind, jobOf(answer).id], ['replaced', id])
      assert.ok(((await bench.job(id)).runAt as number) <= start + 2500)
    }
    assert.equal((await bench.job(id)).runAt, start + 2500)
    await bench.advance(300)
    await bench.store.promote(10)
    // It is due and was not claimed yet: a further input still replaces it, and it stays due.
    assert.equal((await bench.offer(debounce('7'))).kind, 'replaced')
    await bench.store.promote(10)
    assert.equal(one(await bench.claim()).input, '7')
  },

  'once it is claimed, a new job begins': async (bench) => {
    const first = created(await bench.offer(debounce('1')))
    await bench.advance(1000)
    await bench.store.promote(10)
    const held = one(await bench.claim())
    const second = created(await bench.offer(debounce('2')))
    assert.notEqual(second.id, first.id)
    assert.equal(second.runAt, bench.store.now() + 1000)
    await bench.store.commit(held, () => '1')
    assert.deepEqual([await inputOf(bench, first.id), await inputOf(bench, second.id)], ['1', '2'])
  },

  'a job that was cancelled or parked is not replaced': async (bench) => {
    const first = created(await bench.offer(debounce('1')))
    done(one(await bench.store.cancel([first.id], OPERATOR)))
    const second = created(await bench.offer(debounce('2')))
    done(await bench.applyCommand(second.id, { kind: 'park' }, OPERATOR))
    created(await bench.offer(debounce('3')))
  },

  'jobs of one call become one, with the last input': async (bench) => {
    const items = ['1', '2', '3'].map((input) => bench.item(debounce(input)))
    const other = bench.item(debounce('x', { key: 'other' }))
    const answers = await bench.store.enqueue([...items.slice(0, 2), other, ...items.slice(2)])
    assert.deepEqual(kindsOf(answers), ['created', 'replaced', 'created', 'replaced'])
    assert.equal(await inputOf(bench, jobOf(answers[0] as Enqueued).id), '3')
    assert.equal((await bench.ids()).length, 2)
  },

  'callers at once make one job': async (bench) => {
    const offers = Array.from({ length: 8 }, (_, i) => bench.offer(debounce(String(i))))
    const answers = await Promise.all(offers)
    assert.equal(new Set(answers.map((answer) => jobOf(answer).id)).size, 1)
    assert.equal(answers.filter(({ kind }) => kind === 'created').length, 1)
  },

  'its row goes after the job was claimed, and not before': async (bench) => {
    created(await bench.offer(debounce('1')))
    await bench.advance(200_000)
    assert.deepEqual(await bench.store.admissions.tend(10), { released: 0, removed: 0, seen: 1 })
    await bench.store.promote(10)
    one(await bench.claim())
    await bench.advance(60_000)
    assert.deepEqual(await bench.store.admissions.tend(10), { released: 0, removed: 1, seen: 1 })
  },
}

function single(mode: SingletonMode, input = '{}', key = 'k') {
  const admission: Admission = { singleton: { mode, key } }
  return { input, admission }
}

/** Lets a job that waited for another one become ready, as a worker does. */
async function tend(bench: Bench): Promise<number> {
  await bench.advance(1000)
  const { released } = await bench.store.admissions.tend(10)
  await bench.advance(1)
  await bench.store.promote(10)
  return released
}

/** One job that has not ended. */
export const singletonCases: Cases = {
  'skip: the existing job is the answer until it has ended': async (bench) => {
    const first = created(await bench.offer(single('skip')))
    const again = await bench.offer(single('skip'))
    assert.deepEqual([again.kind, jobOf(again).id], ['existing', first.id])
    created(await bench.offer(single('skip', '{}', 'other')))
    const held = one(await bench.claim({ types: ['example'] }))
    assert.equal((await bench.offer(single('skip'))).kind, 'existing')
    done(await bench.fail(held))
    assert.equal((await bench.offer(single('skip'))).kind, 'existing')
    done(one(await bench.store.cancel([first.id], OPERATOR)))
    const second = created(await bench.offer(single('skip')))
    // A parked job would close its key for as long as nobody looks at it.
    done(await bench.applyCommand(second.id, { kind: 'park' }, OPERATOR))
    created(await bench.offer(single('skip')))
  },

  ...Object.fromEntries(
    LIFECYCLES.map((lifecycle) => [
      `latest: one runs, and one waits with the last input: ${lifecycle.name}`,
      async (bench: Bench) => {
        const offer = (input: string) => bench.offer({ ...single('latest', input), lifecycle })
        const first = created(await offer('1'))
        const same = await offer('2')
        assert.deepEqual([same.kind, jobOf(same).id], ['replaced', first.id])
        const held = one(await bench.claim())
        assert.equal(held.input, '2')
        const next = created(await offer('3'))
        const last = await offer('4')
        assert.deepEqual([last.kind, jobOf(last).id], ['replaced', next.id])
        assert.equal(await tend(bench), 0)
        assert.deepEqual(await bench.claim(), [])
        assert.deepEqual(await bench.store.admissions.waiting(next.id), {
          ...{ type: 'example', key: 'k', job: first.id },
        })
        await bench.store.commit(held, () => '1')
        assert.equal(await tend(bench), 1)
        const second = one(await bench.claim())
        assert.deepEqual([second.job.id, second.input], [next.id, '4'])
        assert.equal(await bench.store.admissions.waiting(next.id), undefined)
      },
    ]),
  ),

  'latest: a retry of the running job comes before the one that waits': async (bench) => {
    created(await bench.offer(single('latest', '1')))
    const held = one(await bench.claim())
    created(await bench.offer(single('latest', '2')))
    done(await bench.fail(held))
    await bench.advance(10_000)
    assert.equal(await tend(bench), 0)
    const again = one(await bench.claim())
    assert.equal(again.job.id, held.job.id)
    done(await bench.fail(again, 'terminal'))
    assert.equal(await tend(bench), 1)
  },

  'cancel: a job that does not run is replaced at once': async (bench) => {
    const first = created(await bench.offer(single('cancel', '1')))
    const second = created(await bench.offer(single('cancel', '2')))
    assert.notEqual((await bench.job(first.id)).outcome, null)
    assert.equal(one(await bench.claim()).job.id, second.id)
  },

  'cancel: a running job is asked to stop, and the new one starts after it': async (bench) => {
    created(await bench.offer(single('cancel', '1')))
    const held = one(await bench.claim())
    const second = created(await bench.offer(single('cancel', '2')))
    const third = created(await bench.offer(single('cancel', '3')))
    assert.notEqual((await bench.job(second.id)).outcome, null)
    const { cancelling } = await bench.store.heartbeat(
      [{ ref: held.ref, fence: { attempt: 1, claim: held.job.execution?.claim ?? '' } }],
      LEASE_MS,
    )
    assert.deepEqual(cancelling, [held.ref])
    assert.equal(await tend(bench), 0)
    assert.deepEqual(await bench.claim(), [])
    done(await bench.settle(held, { kind: 'cancel' }))
    assert.equal(await tend(bench), 1)
    assert.equal(one(await bench.claim()).job.id, third.id)
  },

  'a job that waits and is cancelled is forgotten': async (bench) => {
    created(await bench.offer(single('latest', '1')))
    const held = one(await bench.claim())
    const next = created(await bench.offer(single('latest', '2')))
    done(one(await bench.store.cancel([next.id], OPERATOR)))
    const other = created(await bench.offer(single('latest', '3')))
    assert.notEqual(other.id, next.id)
    await bench.store.commit(held, () => '1')
    assert.equal(await tend(bench), 1)
    assert.equal(one(await bench.claim()).job.id, other.id)
  },

  'callers at once have one job': async (bench) => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => bench.offer(single('skip'))))
    assert.equal(new Set(answers.map((answer) => jobOf(answer).id)).size, 1)
  },

  'jobs of one call have one job': async (bench) => {
    const items = ['1', '2', '3'].map((input) => bench.item(single('latest', input)))
    const answers = await bench.store.enqueue(items)
    assert.deepEqual(kindsOf(answers), ['created', 'replaced', 'replaced'])
    assert.equal(await inputOf(bench, jobOf(answers[0] as Enqueued).id), '3')
  },

  'its row goes after the job has ended, and not before': async (bench) => {
    created(await bench.offer(single('skip')))
    await bench.advance(60_000)
    assert.deepEqual(await bench.store.admissions.tend(10), { released: 0, removed: 0, seen: 1 })
    await bench.store.commit(one(await bench.claim()), () => '1')
    await bench.advance(60_000)
    assert.deepEqual(await bench.store.admissions.tend(10), { released: 0, removed: 1, seen: 1 })
  },

  'an admission that makes no sense is refused': async (bench) => {
    const bad = [
      { rate: { limit: 0, periodMs: 1, key: 'k' } },
      { rate: { limit: 1, periodMs: 0, key: 'k' } },
      { rate: { limit: 1, periodMs: 1, key: '' } },
      { debounce: { periodMs: 10, timeoutMs: 5, key: 'k' } },
      { singleton: { mode: 'other', key: 'k' } },
      { typo: 1 },
      { ...single('skip').admission, ...debounce('1').admission },
    ]
    for (const admission of bad) {
      const answer = await bench.offer({ admission: admission as Admission })
      assert.equal(answer.kind, 'rejected', JSON.stringify(admission))
    }
    assert.deepEqual(await bench.ids(), [])
  },
}
