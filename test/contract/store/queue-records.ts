/** Records of changes of queues. */
import assert from 'node:assert/strict'
import { CommandInvalid, PawlError } from '../../../src/core/errors.ts'
import { CLIENT } from '../../../src/stores/contract/requester.ts'
import type { Requester, Store } from '../../../src/stores/contract/store.ts'
import type { QueueRecord } from '../../../src/stores/queue-records.ts'
import { type Cases, OPERATOR } from './bench.ts'

const UNSET = { pausedAt: null, maxDepth: null, maxWaitMs: null }
const BY_ANN = { actor: 'operator', operator: 'ann', note: OPERATOR.note } as const

/** What a record says, but for its number. */
function saidBy(record: QueueRecord | undefined): Omit<QueueRecord, 'number'> {
  assert.ok(record)
  const { number, ...said } = record
  assert.ok(number > 0)
  return said
}

async function historyOf(store: Store, queue: string): Promise<QueueRecord[]> {
  return (await store.listQueueRecords({ queue })).items.slice()
}

/** Who changed a queue, when and why, and what changed. */
export const queueRecordCases: Cases = {
  'each change of a queue is recorded: who, when, why, before and after': async (bench) => {
    const { store } = bench
    const pausedAt = store.now()
    const paused = { ...UNSET, pausedAt }
    const both = { ...paused, maxDepth: 5, maxWaitMs: 60_000 }
    const pause = await store.pauseQueue('a', OPERATOR)
    const said = { at: pausedAt, queue: 'a', ...BY_ANN }
    assert.deepEqual(saidBy(pause), { ...said, action: 'pause', before: UNSET, after: paused })
    await bench.advance(5)
    const at = pausedAt + 5
    const limit = await store.limitQueue('a', { maxDepth: 5, maxWaitMs: 60_000 }, OPERATOR)
    assert.deepEqual(saidBy(limit), { ...said, at, action: 'limit', before: paused, after: both })
    const resume = await store.resumeQueue('a', OPERATOR)
    const resumed = { ...both, pausedAt: null }
    assert.deepEqual(saidBy(resume), {
      ...{ ...said, at, action: 'resume' },
      ...{ before: both, after: resumed },
    })
    const lift = await store.limitQueue('a', { maxDepth: null })
    const left = { ...resumed, maxDepth: null }
    const client = { at, queue: 'a', actor: 'client', action: 'limit' }
    assert.deepEqual(saidBy(lift), { ...client, before: resumed, after: left })
    assert.deepEqual(await historyOf(store, 'a'), [lift, resume, limit, pause])
  },

  'a change that changes nothing writes nothing': async ({ store }) => {
    assert.equal(await store.resumeQueue('a', OPERATOR), undefined)
    assert.equal(await store.limitQueue('a', { maxDepth: null, maxWaitMs: null }), undefined)
    assert.deepEqual(await store.listQueues(), [])
    const first = await store.pauseQueue('a', OPERATOR)
    const other: Requester = { actor: 'operator', operator: 'ben', note: 'again' }
    assert.equal(await store.pauseQueue('a', other), undefined)
    const bound = await store.limitQueue('a', { maxDepth: 3 })
    for (let i = 0; i < 3; i++) {
      assert.equal(await store.limitQueue('a', { maxDepth: 3 }, OPERATOR), undefined)
    }
    assert.deepEqual(await historyOf(store, 'a'), [bound, first])
    const [queue] = await store.listQueues()
    assert.equal(queue?.pausedBy, 'ann')
    assert.equal(queue?.pauseReason, OPERATOR.note)
  },

  'records of every queue are listed, newest first, page by page': async ({ store }) => {
    for (const queue of ['a', 'b', 'a', 'b', 'a']) {
      const [now] = (await store.listQueues()).filter(({ name }) => name === queue)
      const isPaused = now?.pausedAt !== undefined
      await (isPaused ? store.resumeQueue(queue, OPERATOR) : store.pauseQueue(queue, OPERATOR))
    }
    const all = (await store.listQueueRecords({})).items
    const names = all.map(({ queue, action }) => `${queue} ${action}`)
    assert.deepEqual(names, ['a pause', 'b resume', 'a resume', 'b pause', 'a pause'])
    const walked: QueueRecord[] = []
    let after: string | undefined
    do {
      const page = await store.listQueueRecords({}, { limit: 2, ...(after && { after }) })
      walked.push(...page.items)
      after = page.next
    } while (after !== undefined)
    assert.deepEqual(walked, all)
    const ofB = all.filter(({ queue }) => queue === 'b')
    assert.deepEqual(await historyOf(store, 'b'), ofB)
    assert.deepEqual(await historyOf(store, 'never changed'), [])
  },

  'changes at the same time each begin where the one before ended': async ({ store }) => {
    const depths = Array.from({ length: 8 }, (_, i) => i + 1)
    await Promise.all(depths.map((maxDepth) => store.limitQueue('a', { maxDepth }, OPERATOR)))
    const records = (await historyOf(store, 'a')).reverse()
    assert.equal(records.length, depths.length)
    for (const [i, { before }] of records.entries()) {
      assert.deepEqual(before, records[i - 1]?.after ?? UNSET)
    }
    const [queue] = await store.listQueues()
    assert.equal(queue?.maxDepth, records.at(-1)?.after.maxDepth)
  },

  'an operator without a name or a reason, and what is no bound, are refused': async ({
    store,
  }) => {
    const nameless: Requester = { actor: 'operator', note: 'why' }
    const silent: Requester = { actor: 'operator', operator: 'ann' }
    const misspelt = { maxdepth: 5 } as object
    const refused = [
      ...[nameless, silent].flatMap((requester) => [
        () => store.pauseQueue('a', requester),
        () => store.resumeQueue('a', requester),
        () => store.limitQueue('a', { maxDepth: 1 }, requester),
      ]),
      () => store.pauseQueue('', CLIENT),
      () => store.resumeQueue('', CLIENT),
      () => store.limitQueue('a', misspelt),
      () => store.limitQueue('a', { maxDepth: -1 }),
    ]
    for (const [i, change] of refused.entries()) {
      await assert.rejects(change(), CommandInvalid, `case ${i}`)
    }
    await assert.rejects(store.listQueueRecords({ name: 'a' } as object), CommandInvalid)
    await assert.rejects(store.listQueueRecords({}, { after: 'x' }), PawlError)
    assert.deepEqual(await store.listQueues(), [])
    assert.deepEqual((await store.listQueueRecords({})).items, [])
  },
}
