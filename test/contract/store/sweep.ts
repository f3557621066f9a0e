/** Retention by classes: what one step looks at and removes, and the keys that it keeps. */

import assert from 'node:assert/strict'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import type { EndedWord } from '../../../src/core/retention.ts'
import type { SweepRequest } from '../../../src/stores/contract/retention.ts'
import type { Enqueued } from '../../../src/stores/contract/store.ts'
import { JobRemoved, KeyTaken } from '../../../src/stores/errors.ts'
import { type Bench, type Cases, created, done, OPERATOR, one } from './bench.ts'

interface Ending {
  readonly how?: EndedWord
  readonly type?: string
  readonly key?: string
}

async function end(bench: Bench, { how = 'succeeded', ...item }: Ending = {}): Promise<string> {
  const held = await bench.hold(item)
  if (how === 'succeeded') await bench.store.commit(held, () => '1')
  if (how === 'failed') done(await bench.fail(held, 'terminal'))
  if (how === 'cancelled') done(await bench.settle(held, { kind: 'cancel' }))
  return held.job.id
}

function sweep(bench: Bench, fields: Partial<SweepRequest> = {}) {
  const endedBefore = bench.store.now() + 1
  return bench.store.retention.sweep({ outcome: 'succeeded', endedBefore, limit: 100, ...fields })
}

/** The steps of a pass. */
export const sweepCases: Cases = {
  'a step removes the jobs of its outcome and its types': async (bench) => {
    const gone = await end(bench, { type: 'a' })
    const kept = [
      await end(bench, { type: 'a', how: 'failed' }),
      await end(bench, { type: 'a', how: 'cancelled' }),
      await end(bench, { type: 'b' }),
    ]
    const swept = await sweep(bench, { types: ['a', 'c'] })
    assert.equal(swept.removed, 1)
    assert.deepEqual(await bench.ids(), kept.toReversed())
    assert.deepEqual(await bench.store.facts(gone), [])
    assert.equal((await sweep(bench, { outcome: 'failed' })).removed, 1)
    assert.equal((await sweep(bench, { outcome: 'cancelled', types: ['a'] })).removed, 1)
    assert.equal((await sweep(bench, { types: [] })).removed, 0)
    assert.deepEqual(await bench.ids(), [kept[2]])
  },

  'a cancelled job counts as cancelled in a lifecycle without that outcome': async (bench) => {
    const job = await bench.enqueue({ lifecycle: leased })
    done(one(await bench.store.cancel([job.id], OPERATOR)))
    assert.equal((await bench.job(job.id)).outcome, 'failed')
    assert.equal((await sweep(bench, { outcome: 'failed' })).removed, 0)
    assert.equal((await sweep(bench, { outcome: 'cancelled' })).removed, 1)
  },

  'a pass goes on from where the last step ended, and sees each job once': async (bench) => {
    const kept: string[] = []
    for (let i = 0; i < 7; i++) {
      const id = await end(bench, { how: i % 2 === 0 ? 'failed' : 'succeeded' })
      if (i % 2 === 1) kept.push(id)
      if (i % 3 === 0) await bench.advance(1)
    }
    const removed: number[] = []
    let after: string | undefined
    for (let steps = 0, hasMore = true; hasMore && steps < 10; steps++) {
      const from = after === undefined ? {} : { after }
      const step = await sweep(bench, { outcome: 'failed', limit: 2, ...from })
      removed.push(step.removed)
      hasMore = step.hasMore
      after = step.next ?? after
    }
    assert.deepEqual(removed, [1, 1, 1, 1])
    assert.deepEqual(await bench.ids(), kept.toReversed())
    // What comes before the cursor is not looked at again.
    assert.equal((await sweep(bench, { after: after ?? '' })).removed, 0)
    assert.equal((await sweep(bench, { after: 'no position' })).removed, 3)
  },

  'jobs that have not ended are passed over, parked ones too': async (bench) => {
    const parked = await bench.enqueue()
    done(await bench.applyCommand(parked.id, { kind: 'park' }, OPERATOR))
    await bench.enqueue()
    await bench.hold()
    for (const outcome of ['succeeded', 'failed', 'cancelled'] as const) {
      const step = await sweep(bench, { outcome, endedBefore: 9e14 })
      assert.deepEqual(step, { removed: 0, keys: 0, characters: 0, hasMore: false })
    }
    assert.equal((await bench.ids()).length, 3)
  },

  'a dry run counts and removes nothing': async (bench) => {
    const id = await end(bench, { key: 'k' })
    await bench.assertUntouched(id, async () => {
      const archive = () => assert.fail('it was called')
      const step = await sweep(bench, { dryRun: true, keysMs: 1000, archive })
      assert.deepEqual([step.removed, step.keys], [1, 1])
    })
    assert.deepEqual(await bench.store.seals.prunings(0, 10), [])
  },

  'a step leaves a record with the person who asked': async (bench) => {
    await end(bench)
    await sweep(bench, { by: { operator: 'ann', note: 'the disk is full' } })
    await end(bench, { key: 'k' })
    await sweep(bench, { keysMs: 1000, archive: async () => {} })
    const records = await bench.store.seals.prunings(0, 10)
    const shown = records.map(({ jobs, keys, operator, note, archived }) => {
      return { jobs, keys, operator, note, archived }
    })
    assert.deepEqual(shown, [
      { jobs: 1, keys: 0, operator: 'ann', note: 'the disk is full', archived: false },
      { jobs: 1, keys: 1, operator: undefined, note: undefined, archived: true },
    ])
  },

  'what cannot be asked for is refused': async (bench) => {
    const bad: Partial<Record<keyof SweepRequest, unknown>>[] = [
      { outcome: 'parked' },
      { outcome: undefined },
      { endedBefore: -1 },
      { limit: 1e9 },
      { keysMs: 0 },
      { by: { operator: 'ann' } },
      { types: [''] },
      { typo: 1 } as object,
    ]
    for (const fields of bad) {
      await assert.rejects(sweep(bench, fields as Partial<SweepRequest>), {
        code: 'E_COMMAND_INVALID',
      })
    }
  },
}

async function removeKeyed(bench: Bench, keysMs: number | undefined, key = 'k') {
  const id = await end(bench, { type: 'mail', key })
  const endedAt = (await bench.job(id)).endedAt as number
  await sweep(bench, keysMs === undefined ? {} : { keysMs })
  assert.equal(await bench.store.get(id), undefined)
  return { id, endedAt }
}

function rejection(answer: Enqueued): unknown {
  assert.equal(answer.kind, 'rejected')
  return (answer as { error: unknown }).error
}

/** The keys of removed jobs. */
export const keptKeyCases: Cases = {
  'the key of a removed job stays taken for as long as it is kept': async (bench) => {
    const { id, endedAt } = await removeKeyed(bench, 1000)
    const answer = await bench.offer({ type: 'mail', key: 'k' })
    const removed = { id, type: 'mail', key: 'k', outcome: 'succeeded', endedAt }
    assert.deepEqual(answer, {
      kind: 'removed',
      removed: { ...removed, keepUntil: endedAt + 1000 },
    })
    const rejected = rejection(await bench.offer({ type: 'mail', key: 'k', onConflict: 'reject' }))
    assert.ok(rejected instanceof KeyTaken)
    const replaced = rejection(await bench.offer({ type: 'mail', key: 'k', onConflict: 'replace' }))
    assert.ok(replaced instanceof JobRemoved)
    assert.deepEqual(await bench.ids(), [])
    created(await bench.offer({ type: 'other', key: 'k' }))
    created(await bench.offer({ type: 'mail', key: 'other' }))
    await bench.advance(1000)
    created(await bench.offer({ type: 'mail', key: 'k' }))
    assert.deepEqual(await bench.store.retention.rivals(10), [])
  },

  'without a time for keys, the key is free when its job is removed': async (bench) => {
    await removeKeyed(bench, undefined)
    assert.equal(await bench.store.retention.removedJob('mail', 'k'), undefined)
    created(await bench.offer({ type: 'mail', key: 'k' }))
  },

  'jobs of one call and of a transaction meet kept keys as well': async (bench) => {
    const { id } = await removeKeyed(bench, 1000)
    const items = ['k', 'new', 'k'].map((key) => bench.item({ type: 'mail', key }))
    const answers = await bench.store.enqueue([...items, bench.item()])
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ['removed', 'created', 'removed', 'created'],
    )
    const inside = await bench.store.transaction((tx) =>
      bench.store.enqueue([bench.item({ type: 'mail', key: 'k' })], { tx }),
    )
    assert.equal(inside[0]?.kind === 'removed' && inside[0].removed.id, id)
  },

  'a key whose time is over is forgotten, and a later job may have it again': async (bench) => {
    await removeKeyed(bench, 1000)
    await removeKeyed(bench, 5000, 'later')
    assert.equal(await bench.store.retention.freeKeys(10), 0)
    await bench.advance(1000)
    assert.equal(await bench.store.retention.removedJob('mail', 'k'), undefined)
    const again = await removeKeyed(bench, 1000)
    assert.equal((await bench.store.retention.removedJob('mail', 'k'))?.id, again.id)
    assert.equal(await bench.store.retention.freeKeys(10), 0)
    await bench.advance(4000)
    assert.equal(await bench.store.retention.countKeys(10), 2)
    assert.equal(await bench.store.retention.freeKeys(1), 1)
    assert.equal(await bench.store.retention.freeKeys(10), 1)
    assert.equal(await bench.store.retention.countKeys(10), 0)
  },

  'a key that would be free already is not kept': async (bench) => {
    const id = await end(bench, { type: 'mail', key: 'k' })
    await bench.advance(1000)
    const step = await sweep(bench, { keysMs: 1000 })
    assert.deepEqual([step.removed, step.keys], [1, 0])
    assert.equal(await bench.store.get(id), undefined)
    created(await bench.offer({ type: 'mail', key: 'k' }))
  },

  'ended jobs are counted up to a bound': async (bench) => {
    for (let i = 0; i < 3; i++) await end(bench)
    const before = bench.store.now() + 1
    const { retention } = bench.store
    assert.deepEqual(
      [await retention.countEnded(before, 2), await retention.countEnded(before, 9)],
      [2, 3],
    )
    assert.equal(await retention.countEnded(before - 1, 9), 0)
  },
}
