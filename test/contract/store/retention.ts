/** Retention: whole ended jobs are removed, after they were archived, and nothing else is. */

import assert from 'node:assert/strict'
import { fold } from '../../../src/core/job/evolve.ts'
import type { Fact } from '../../../src/core/job/facts.ts'
import type { Job } from '../../../src/core/job/job.ts'
import { readable } from '../../../src/stores/damage.ts'
import { type Bench, type Cases, CLIENT, created, done, OPERATOR } from './bench.ts'
import { settled } from './check.ts'

interface Line {
  readonly fact: Fact
  readonly payload: string | null
}

const parse = (lines: string): Line[] => {
  assert.ok(lines === '' || lines.endsWith('\n'), 'every line is whole')
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
}

/** A job that has ended, in one way of three. */
async function ended(bench: Bench, how: 'succeeded' | 'failed' | 'cancelled'): Promise<Job> {
  const held = await bench.hold({ key: `key ${bench.environment.ids.next()}`, input: '{"in":1}' })
  if (how === 'succeeded') await bench.store.commit(held, () => '{"out":"ü\\u0000"}')
  if (how === 'failed') done(await bench.fail(held, 'terminal'))
  if (how === 'cancelled') done(await bench.settle(held, { kind: 'cancel' }))
  return bench.job(held.job.id)
}

/** What retention removes, and what it leaves. */
export const retentionCases: Cases = {
  'only jobs that ended before the time are removed': async (bench) => {
    const old = await ended(bench, 'succeeded')
    await bench.advance(1)
    const edge = bench.store.now()
    const young = await ended(bench, 'failed')
    const alive = await bench.enqueue()
    assert.equal(await bench.store.prune({ endedBefore: edge, limit: 10 }), 1)
    assert.deepEqual(await bench.ids(), [alive.id, young.id])
    assert.equal(await bench.store.get(old.id), undefined)
    assert.deepEqual(await bench.store.facts(old.id), [])
    assert.equal(await bench.store.payloads(old.id), undefined)
    assert.equal(await bench.store.prune({ endedBefore: edge, limit: 10 }), 0)
  },

  'jobs that have not ended are never removed, however old': async (bench) => {
    await bench.enqueue({ hold: true })
    await bench.enqueue({ runAt: bench.store.now() + 9e9 })
    await bench.hold()
    const parked = await bench.enqueue()
    done(await bench.applyCommand(parked.id, { kind: 'park' }, OPERATOR))
    const delivering = await bench.hold()
    await bench.store.commit(delivering, (tx) => {
      tx.effect('mail', '1')
      return '1'
    })
    await bench.advance(1e12)
    assert.equal(await bench.store.prune({ endedBefore: bench.store.now(), limit: 100 }), 0)
    assert.equal((await bench.ids()).length, 5)
  },

  'no more than the limit are removed, those that ended first before the others': async (bench) => {
    const ids: string[] = []
    for (let i = 0; i < 5; i++) {
      ids.push((await ended(bench, 'cancelled')).id)
      await bench.advance(1)
    }
    const request = { endedBefore: bench.store.now(), limit: 2 }
    assert.equal(await bench.store.prune({ ...request, limit: 0 }), 0)
    assert.equal(await bench.store.prune(request), 2)
    assert.deepEqual(await bench.ids(), ids.slice(2).toReversed())
    assert.deepEqual([await bench.store.prune(request), await bench.store.prune(request)], [2, 1])
  },

  'the archive holds every fact and payload, and folds to the same jobs': async (bench) => {
    const jobs: Job[] = []
    for (const how of ['succeeded', 'failed', 'cancelled'] as const) {
      jobs.push(await ended(bench, how))
    }
    const facts = await Promise.all(jobs.map(({ id }) => bench.store.facts(id)))
    let archived = ''
    const archive = async (lines: string) => {
      assert.equal((await bench.ids()).length, 3, 'nothing is removed before it is archived')
      archived += lines
    }
    const request = { endedBefore: bench.store.now() + 1, limit: 10, archive }
    assert.equal(await bench.store.prune(request), 3)
    const lines = parse(archived)
    for (const [i, job] of jobs.entries()) {
      const own = lines.filter(({ fact }) => fact.jobId === job.id)
      const ownFacts = own.map(({ fact }) => fact)
      assert.deepEqual(ownFacts, facts[i])
      const folded = fold(ownFacts)
      assert.deepEqual(folded && settled(folded), settled(job))
      assert.equal(own[0]?.payload, '{"in":1}')
      const result = own.find(({ fact }) => fact.trigger === 'commit')?.payload
      if (job.outcome === 'succeeded') assert.equal(result, '{"out":"ü\\u0000"}')
    }
    assert.equal(lines.length, facts.flat().length)
  },

  'nothing is removed when the archive fails': async (bench) => {
    const job = await ended(bench, 'succeeded')
    const full = new Error('the disk is full')
    const request = { endedBefore: bench.store.now() + 1, limit: 10 }
    await bench.assertUntouched(job.id, async () => {
      const pruning = bench.store.prune({ ...request, archive: () => Promise.reject(full) })
      await assert.rejects(pruning, full)
    })
    assert.equal(await bench.store.prune(request), 1)
  },

  'the archive is not called where there is nothing to remove': async (bench) => {
    await bench.enqueue()
    const archive = () => assert.fail('it was called')
    assert.equal(await bench.store.prune({ endedBefore: 9e15, limit: 10, archive }), 0)
  },

  'a job that is redriven while it is archived stays': async (bench) => {
    const job = await ended(bench, 'failed')
    const archive = async () => {
      done(await bench.applyCommand(job.id, { kind: 'redrive' }, OPERATOR))
    }
    const request = { endedBefore: bench.store.now() + 1, limit: 10, archive }
    assert.equal(await bench.store.prune(request), 0)
    assert.equal((await bench.job(job.id)).state, 'queued')
  },

  'what was not archived is not removed, even if the job ended again meanwhile': async (bench) => {
    const job = await ended(bench, 'failed')
    let archived = ''
    const archive = async (lines: string) => {
      archived += lines
      done(await bench.applyCommand(job.id, { kind: 'redrive' }, OPERATOR))
      done((await bench.store.cancel([job.id], CLIENT))[0])
    }
    const request = { endedBefore: bench.store.now() + 1, limit: 10, archive }
    await bench.store.prune(request)
    const left = (await bench.store.facts(job.id)).length
    if (left === 0) assert.equal(parse(archived).at(-1)?.fact.trigger, 'cancel')
  },

  'counts, tail and keys forget what was removed': async (bench) => {
    const jobs = [await ended(bench, 'succeeded'), await ended(bench, 'failed')]
    const kept = await bench.enqueue()
    await bench.store.prune({ endedBefore: bench.store.now() + 1, limit: 10 })
    assert.deepEqual({ ...(await bench.store.counts()).ended }, {})
    const tail = readable(await bench.store.tail(undefined, 100))
    assert.deepEqual([...new Set(tail.map(({ fact }) => fact.jobId))], [kept.id])
    for (const { key, type } of jobs) {
      assert.ok(key)
      assert.equal(await bench.store.getByKey(type, key), undefined)
      created(await bench.offer({ type, key }))
    }
  },

  'two who prune at once remove each job once': async (bench) => {
    for (let i = 0; i < 6; i++) await ended(bench, 'failed')
    const request = { endedBefore: bench.store.now() + 1, limit: 10 }
    const removed = await Promise.all([bench.store.prune(request), bench.store.prune(request)])
    assert.equal(
      removed.reduce((sum, count) => sum + count, 0),
      6,
    )
    assert.equal((await bench.store.counts()).lanes.ended, 0)
  },
}
