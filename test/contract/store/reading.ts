/** The reading side: jobs, facts, payloads, lists, counts and the tail. */

import assert from 'node:assert/strict'
import { PawlError } from '../../../src/core/errors.ts'
import { fold } from '../../../src/core/job/evolve.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import type { JobFilter } from '../../../src/stores/contract/store.ts'
import { readable } from '../../../src/stores/damage.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, policyWith } from './bench.ts'
import { listAll } from './check.ts'

const NOBODY = '00000000-0000-7000-8000-00000000dead'

/** What can be read of one job, and of all. */
export const readingCases: Cases = {
  'what is not there is answered as nothing': async ({ store }) => {
    for (const id of [NOBODY, '', 'x', "'"]) {
      assert.equal(await store.get(id), undefined)
      assert.deepEqual(await store.facts(id), [])
      assert.equal(await store.asOf(id, 1), undefined)
      assert.equal(await store.payloads(id), undefined)
      assert.equal(await store.getByKey('example', id), undefined)
    }
    assert.deepEqual(await store.list({}), { items: [] })
    assert.deepEqual(await store.tail(undefined, 10), [])
    const { lanes, ended } = await store.counts()
    assert.deepEqual({ ...ended }, {})
    assert.ok(Object.values(lanes).every((count) => count === 0))
  },

  'many jobs can be read at once, each as alone, and what is not there is left out': async (
    bench,
  ) => {
    const { store } = bench
    const jobs = [await bench.job((await bench.hold()).job.id)]
    for (let i = 0; i < 3; i++) jobs.push(await bench.enqueue())
    const ids = jobs.map(({ id }) => id)
    const asked = [...ids, NOBODY, 'x', "'", ids[0] as string]
    const read = await store.getMany(asked)
    const byId = new Map(read.map((job) => [job.id, job]))
    assert.equal(read.length, jobs.length)
    for (const job of jobs) assert.deepEqual(byId.get(job.id), job)
    assert.deepEqual(await store.getMany([]), [])
  },

  'a job can be read as it was after each of its facts': async (bench) => {
    const seen = []
    let held = await bench.hold({ policy: policyWith() }, { start: false })
    const { id } = held.job
    seen.push(await bench.store.asOf(id, 1), await bench.job(id))
    done(await bench.settle(held, { kind: 'start' }))
    seen.push(await bench.job(id))
    done(await bench.fail(held))
    seen.push(await bench.job(id))
    await bench.store.promote(1)
    seen.push(await bench.job(id))
    held = await bench.reclaim(held)
    seen.push(await bench.job(id))
    done(await bench.settle(held, { kind: 'step', name: 'a', n: 1 }, '1'))
    seen.push(await bench.job(id))
    done(await bench.applyCommand(id, { kind: 'prioritise', priority: 4 }))
    seen.push(await bench.job(id))
    done(await bench.settle(held, { kind: 'cancel' }))
    seen.push(await bench.job(id))
    const facts = await bench.store.facts(id)
    assert.equal(facts.length, seen.length)
    for (const [i, job] of seen.entries()) {
      assert.deepEqual(await bench.store.asOf(id, i + 1), job)
      assert.deepEqual(fold(facts.slice(0, i + 1)), job)
    }
    assert.equal(await bench.store.asOf(id, 0), undefined)
  },

  'a job that has not committed has an input and no result': async (bench) => {
    const held = await bench.hold({ input: '[]' })
    assert.deepEqual(await bench.store.payloads(held.job.id), { input: '[]' })
    done(await bench.settle(held, { kind: 'commit' }))
    assert.deepEqual(await bench.store.payloads(held.job.id), { input: '[]' })
  },

  'whoever follows from the end of the tail sees what is new, and nothing else': async (bench) => {
    const { store } = bench
    const empty = await store.tailEnd()
    assert.deepEqual(await store.tail(empty, 10), [])
    const { id } = await bench.enqueue()
    const end = await store.tailEnd()
    assert.deepEqual(await store.tail(end, 10), [])
    const { fact } = done(await bench.applyCommand(id, { kind: 'prioritise', priority: 5 }))
    const seen = async (place: string) =>
      readable(await store.tail(place, 10)).map(({ fact }) => fact)
    assert.deepEqual(await seen(end), [fact])
    assert.equal((await seen(empty)).length, 2)
  },

  'the tail can be followed without a gap or a repetition while facts are added': async (bench) => {
    const seen: string[] = []
    let pos: string | undefined
    const follow = async (limit: number) => {
      const entries = readable(await bench.store.tail(pos, limit))
      assert.ok(entries.length <= limit)
      for (const { pos: next, fact } of entries) {
        pos = next
        seen.push(`${fact.jobId}/${fact.seq}`)
      }
    }
    const told: string[] = []
    for (let i = 0; i < 6; i++) {
      const held = await bench.hold()
      told.push(`${held.job.id}/1`, `${held.job.id}/2`)
      await follow(1)
      done(await bench.settle(held, { kind: 'release' }))
      told.push(`${held.job.id}/3`)
    }
    while (seen.length < told.length) await follow(4)
    assert.deepEqual(seen, told)
    assert.deepEqual(await bench.store.tail(pos, 10), [])
    assert.deepEqual(await bench.store.tail(undefined, 0), [])
  },

  'counts follow a job through its lanes': async (bench) => {
    const lane = async () => {
      const { lanes } = await bench.store.counts()
      return Object.entries(lanes)
        .filter(([, count]) => count > 0)
        .map(([name, count]) => `${name} ${count}`)
        .join()
    }
    const { id } = await bench.enqueue({ hold: true })
    assert.equal(await lane(), 'idle 1')
    done(await bench.applyCommand(id, { kind: 'schedule', runAt: bench.store.now() + 10 }))
    assert.equal(await lane(), 'waiting 1')
    await bench.advance(10)
    await bench.store.promote(1)
    assert.equal(await lane(), 'ready 1')
    const [held] = await bench.claim()
    assert.equal(await lane(), 'held 1')
    assert.ok(held)
    done(await bench.applyCommand(id, { kind: 'park' }, OPERATOR))
    assert.equal(await lane(), 'parked 1')
    done(await bench.applyCommand(id, { kind: 'redrive' }, OPERATOR))
    const [again] = await bench.claim()
    assert.ok(again)
    await bench.store.commit(again, (tx) => {
      tx.effect('mail', '1')
      return '1'
    })
    assert.equal(await lane(), 'delivering 1')
    const [effect] = await bench.store.claimEffects({ limit: 1, leaseMs: 1000 })
    assert.ok(effect)
    await bench.store.settleEffects([{ kind: 'delivered', effect }])
    assert.equal(await lane(), 'ended 1')
  },
}

/** A varied set of jobs; their types say what they are. */
async function fill(bench: Bench): Promise<void> {
  await bench.enqueue({ type: 'plain', queue: 'a' })
  await bench.advance(10)
  await bench.enqueue({ type: 'tagged', queue: 'a', tags: ['red', 'a%b'], key: 'k1' })
  await bench.advance(10)
  await bench.enqueue({ type: 'later', queue: 'b', tags: ['blue'], runAt: bench.store.now() + 9e9 })
  await bench.advance(10)
  const failed = await bench.hold({ type: 'failed', queue: 'c', tags: ['red'] })
  done(await bench.fail(failed, 'terminal', 'said "no" to C:\\new\n→ 100%'))
  const retried = await bench.hold({ type: 'retried', queue: 'c', key: 'k2' })
  done(await bench.fail(retried, 'transient', 'boom_1'))
  await bench.hold({ type: 'held', queue: 'd', lifecycle: leased })
  const { id } = await bench.enqueue({ type: 'cancelled', queue: 'd' })
  await bench.store.cancel([id], CLIENT)
}

/** Lets an hour pass at every look at the clock, so that no work is done within its time. */
async function whileTimeFlies<T>({ environment }: Bench, work: () => Promise<T>): Promise<T> {
  const { clock } = environment
  const look = clock.now.bind(clock)
  clock.now = () => {
    clock.advance(3_600_000)
    return look()
  }
  try {
    return await work()
  } finally {
    clock.now = look
  }
}

/** Filters, and the types of the jobs that they show, newest first. */
function filters(start: number): [JobFilter, string[]][] {
  const all = ['cancelled', 'held', 'retried', 'failed', 'later', 'tagged', 'plain']
  return [
    [{}, all],
    [{ state: 'queued' }, ['tagged', 'plain']],
    [{ state: 'RUNNING' }, ['held']],
    [{ state: 'Queued' }, []],
    [{ lane: 'ended' }, ['cancelled', 'failed']],
    [{ lane: 'held' }, ['held']],
    [{ lane: 'waiting' }, ['retried', 'later']],
    [{ lane: 'blocked' }, []],
    [{ queue: 'a' }, ['tagged', 'plain']],
    [{ type: 'held' }, ['held']],
    [{ tag: 'red' }, ['failed', 'tagged']],
    [{ tag: 'a%b' }, ['tagged']],
    [{ tag: '%' }, []],
    [{ tag: 're' }, []],
    [{ key: 'k1' }, ['tagged']],
    [{ key: 'k_' }, []],
    [{ error: 'boom' }, ['retried']],
    [{ error: 'boom_1' }, ['retried']],
    [{ error: 'boom%1' }, []],
    [{ error: 'said "no"' }, ['failed']],
    [{ error: 'C:\\new\n→' }, ['failed']],
    [{ error: '"message"' }, []],
    [{ createdFrom: start + 20 }, all.slice(0, 5)],
    [{ createdBefore: start + 20 }, ['tagged', 'plain']],
    [{ createdFrom: start + 10, createdBefore: start + 11 }, ['tagged']],
    [{ queue: 'c', tag: 'red' }, ['failed']],
    [{ lane: 'ended', queue: 'd' }, ['cancelled']],
    [{ state: 'queued', queue: 'a', type: 'tagged', tag: 'red', key: 'k1' }, ['tagged']],
    [{ state: 'queued', tag: 'red', queue: 'c' }, []],
    [{ error: 'boom', state: 'retrying', lane: 'waiting', key: 'k2' }, ['retried']],
    [{ createdFrom: start + 30, lane: 'ended', error: 'no' }, ['failed']],
  ]
}

/** Lists by keyset. */
export const listCases: Cases = {
  'jobs are found by the code and by the group of their last error': async (bench) => {
    const held = await bench.hold()
    await bench.enqueue()
    const known = { name: 'Error', code: '23505', fingerprint: '00abc123def456' }
    const failure = { class: 'retryable', kind: 'error', message: 'Error: no', ...known } as const
    await bench.settle(held, { kind: 'fail', failure })
    for (const error of ['23505', '00abc123def456', 'Error: no']) {
      const { items } = await bench.store.list({ error })
      assert.deepEqual(
        items.map(({ id }) => id),
        [held.job.id],
      )
    }
    assert.deepEqual((await bench.store.list({ error: 'retryable' })).items, [])
  },

  'an unknown condition, value or option of a list is refused, and never means every job': async ({
    store,
  }) => {
    const refused = { code: 'E_COMMAND_INVALID' }
    const texts = ['state', 'lane', 'outcome', 'queue', 'type', 'tag', 'key', 'error']
    const bad = [
      ...texts.flatMap((field) =>
        ['', ' ', '\0', '\ud800', 7, true, null, undefined, ['ready'], {}].map((value) => ({
          [field]: value,
        })),
      ),
      ...['createdFrom', 'createdBefore'].flatMap((field) =>
        [Number.NaN, Number.POSITIVE_INFINITY, -1, 0.5, '5', null, undefined].map((value) => ({
          [field]: value,
        })),
      ),
      ...['nonsense', 'constructor', '__proto__', 'toString', 'READY'].map((lane) => ({ lane })),
      ...['done', 'FAILED', 'toString'].map((outcome) => ({ outcome })),
      ...['yes', 'true', 1, null, undefined].map((stalled) => ({ stalled })),
      { createdFrom: 5, createdBefore: 5 },
      { lanes: 'ready' },
      { constructor: 'x' },
      Object.create({ bogus: 1 }) as object,
      ['ready'],
      null,
      'ready',
    ]
    for (const filter of bad as JobFilter[]) {
      await assert.rejects(store.list(filter), refused, JSON.stringify(filter))
    }
    const pages = [{ limt: 1 }, { limit: '5' }, { limit: Number.NaN }, { limit: -1 }, 5, null]
    for (const page of [...pages, { limit: 10_001 }] as { limit: number }[]) {
      await assert.rejects(store.list({}, page), refused, JSON.stringify(page))
      await assert.rejects(store.listEffects({}, page), refused, JSON.stringify(page))
      await assert.rejects(store.audit({}, page), refused, JSON.stringify(page))
    }
    for (const after of ['x', '', 7 as never, {} as never]) {
      await assert.rejects(store.list({}, { after }), PawlError)
      await assert.rejects(store.audit({}, { after }), PawlError)
    }
    const facts: object[] = [
      ...[{ actor: 'robot' }, { actor: 'constructor' }, { trigger: 'explode' }, { bogus: 1 }],
      ...[{ jobId: undefined }, { from: 5, before: 5 }, { from: Number.NaN }, { operator: 7 }],
    ]
    for (const filter of facts) {
      await assert.rejects(store.audit(filter), refused, JSON.stringify(filter))
    }
  },

  'a condition on the outcome means the same in every lifecycle': async (bench) => {
    const none = { policy: policyWith({ retry: { ...policyWith().retry, max: 0 } }) }
    const expected: Record<string, string[]> = {
      ...{ succeeded: [], failed: [], cancelled: [], parked: [] },
    }
    const expectIn = (id: string, ...words: string[]) => {
      for (const word of words) expected[word]?.unshift(id)
    }
    for (const lifecycle of LIFECYCLES) {
      const mayRetry = lifecycle.name !== 'task' && lifecycle.name !== 'document'
      const waiting = await bench.enqueue({ lifecycle })
      const good = await bench.hold({ lifecycle })
      done(await bench.settle(good, { kind: 'commit' }, '1'))
      expectIn(good.job.id, 'succeeded')
      const wordsOf = async (id: string, word: string) => {
        const { outcome } = await bench.job(id)
        expectIn(id, word, ...(outcome === null ? ['parked'] : []))
      }
      const final = await bench.hold({ lifecycle })
      done(await bench.fail(final, 'terminal'))
      await wordsOf(final.job.id, 'failed')
      if (mayRetry) {
        const exhausted = await bench.hold({ lifecycle, ...none })
        done(await bench.fail(exhausted))
        await wordsOf(exhausted.job.id, 'failed')
        const again = await bench.hold({ lifecycle })
        done(await bench.fail(again))
      }
      done(await bench.applyCommand(waiting.id, { kind: 'cancel' }))
      await wordsOf(waiting.id, 'cancelled')
      const parked = await bench.enqueue({ lifecycle })
      done(await bench.applyCommand(parked.id, { kind: 'park' }, OPERATOR))
      expectIn(parked.id, 'parked')
    }
    for (const [word, ids] of Object.entries(expected)) {
      const { items } = await bench.store.list({ outcome: word as 'failed' }, { limit: 1000 })
      assert.deepEqual(items.map(({ id }) => id).sort(), ids.sort(), word)
    }
  },

  ...Object.fromEntries(
    filters(0).map(([filter], i) => [
      `the filter ${JSON.stringify(filter)} shows what it says, newest first`,
      async (bench: Bench) => {
        const start = bench.store.now()
        await fill(bench)
        const [own, expected] = filters(start)[i] ?? [{}, []]
        const types = (await listAll(bench.store, own)).map(({ type }) => type)
        assert.deepEqual(types, expected)
        const byOne = (await listAll(bench.store, own, 1)).map(({ type }) => type)
        assert.deepEqual(byOne, expected)
      },
    ]),
  ),

  'pages follow each other without a gap or a repetition while jobs are added': async (bench) => {
    const before = new Set<string>()
    for (let i = 0; i < 25; i++) {
      const lifecycle = LIFECYCLES[i % LIFECYCLES.length] ?? leased
      before.add((await bench.enqueue({ lifecycle })).id)
    }
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await bench.store.list({}, { limit: 4, ...(after !== undefined && { after }) })
      assert.ok(page.items.length <= 4)
      seen.push(...page.items.map(({ id }) => id))
      after = page.next
      await bench.enqueue()
      await bench.claim({ limit: 2 })
    } while (after !== undefined)
    assert.deepEqual(seen, [...before].toReversed())
  },

  'a page without a limit is bounded, and the rest follows': async (bench) => {
    await bench.store.enqueue(Array.from({ length: 130 }, () => bench.item()))
    const page = await bench.store.list({})
    assert.ok(page.items.length > 0 && page.items.length < 130)
    assert.ok(page.next !== undefined)
    assert.equal((await listAll(bench.store, {}, 1000)).length, 130)
  },

  'a rare match is found among many that do not match': async (bench) => {
    await bench.enqueue({ type: 'rare' })
    for (let i = 0; i < 3; i++) {
      await bench.store.enqueue(Array.from({ length: 400 }, () => bench.item({ type: 'common' })))
    }
    const found = await listAll(bench.store, { type: 'rare' }, 10)
    assert.equal(found.length, 1)
  },

  'a list that runs out of time says where to go on, and nothing is skipped or repeated': async (
    bench,
  ) => {
    const expected: string[] = []
    for (let i = 0; i < 12; i++) {
      await bench.store.enqueue(Array.from({ length: 100 }, () => bench.item({ type: 'common' })))
      expected.unshift((await bench.enqueue({ type: 'rare' })).id)
    }
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await whileTimeFlies(bench, () =>
        bench.store.list({ type: 'rare' }, { limit: 100, ...(after !== undefined && { after }) }),
      )
      assert.ok(!page.partial || page.next !== undefined, 'a page cut short goes on somewhere')
      assert.ok(page.partial || page.next === undefined, 'a page that was not full says why')
      assert.ok(page.next === undefined || page.next !== after, 'every page gets further')
      seen.push(...page.items.map(({ id }) => id))
      after = page.next
    } while (after !== undefined)
    assert.deepEqual(seen, expected)
  },

  'a page is never longer than asked for': async (bench) => {
    for (let i = 0; i < 3; i++) await bench.enqueue()
    for (const limit of [0, 1, 2, 3]) {
      assert.ok((await bench.store.list({}, { limit })).items.length <= limit, `limit ${limit}`)
    }
  },
}
