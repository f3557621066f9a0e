/** Batches: callbacks, each once, also for empty and open batches and after a redrive. */
import assert from 'node:assert/strict'
import { TransitionRace } from '../../../src/core/errors.ts'
import type { FlowNode, FlowRequest } from '../../../src/stores/contract/flows.ts'
import { nodeId } from '../../../src/stores/derived-ids.ts'
import { BatchClosed, FlowNotFound } from '../../../src/stores/errors.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, refused } from './bench.ts'
import { create, createdFlow, fail, group, itemOf, states, succeed, wake } from './flow-bench.ts'

const NEEDS = ['success', 'end', 'failure'] as const

/** A batch with all three callbacks, named by what they need, and so many members. */
async function batch(bench: Bench, members: number, fields: Partial<FlowRequest> = {}) {
  const callbacks = NEEDS.map(
    (need): FlowNode => ({ item: itemOf(bench, need), after: [group('members', { need })] }),
  )
  const nodes = Array.from({ length: members }, (): FlowNode => ({ item: itemOf(bench, 'm') }))
  return create(bench, [...callbacks, ...nodes], { kind: 'batch', ...fields })
}

/** Runs one of the ready members. */
const run = async (bench: Bench, how: 'succeed' | 'fail') => {
  const [held] = await bench.claim({ queues: ['m'] })
  assert.ok(held)
  if (how === 'succeed') await bench.settle(held, { kind: 'commit' })
  else await bench.fail(held, 'terminal')
  return held.job.id
}

export const batchCases: Cases = {
  'when all members have succeeded, two callbacks start and the third is not needed': async (
    bench,
  ) => {
    const { id } = await batch(bench, 2)
    assert.equal(await states(bench, id), 'created created created queued queued')
    await run(bench, 'succeed')
    assert.deepEqual(await wake(bench), [])
    await run(bench, 'succeed')
    assert.deepEqual(await wake(bench), ['end arrive', 'failure cancel', 'success arrive'])
    const { reason } = await bench.job(nodeId(id, 2))
    assert.equal(reason, 'not_needed')
    const { members, succeeded } = (await bench.store.flows.progress(id)) ?? {}
    assert.deepEqual([members, succeeded], [2, 2])
  },

  'the first failure starts onFailure, the last end onComplete, a redrive onSuccess': async (
    bench,
  ) => {
    const { id } = await batch(bench, 3)
    const failed = await run(bench, 'fail')
    assert.deepEqual(await wake(bench), ['failure arrive', 'success park'])
    assert.equal((await bench.lastFact(nodeId(id, 2))).dependency, failed)
    await run(bench, 'fail')
    await run(bench, 'succeed')
    assert.deepEqual(await wake(bench), ['end arrive'])
    const progress = await bench.store.flows.progress(id)
    assert.deepEqual(progress, {
      ...{ members: 3, succeeded: 1, failed: 2, cancelled: 0, parked: 0, live: 0 },
    })
    const { items } = await bench.store.list({ flow: id, outcome: 'failed' })
    const words: string[][] = []
    for (const { id: member } of items.filter(({ type }) => type === 'm')) {
      done(await bench.applyCommand(member, { kind: 'redrive' }, OPERATOR))
      words.push(await wake(bench))
      await run(bench, 'succeed')
    }
    // The second redrive leaves nothing that has failed: the callback waits again.
    assert.deepEqual(words, [[], ['success arrive']])
    assert.deepEqual(await wake(bench), ['success arrive'])
    for (const need of NEEDS) await succeed(bench, need)
    assert.deepEqual(await wake(bench), [])
    assert.equal((await bench.store.flows.get(id))?.state, 'done')
  },

  'a parked callback for failures is cancelled by a redrive if all members succeeded': async (
    bench,
  ) => {
    const { id } = await batch(bench, 1)
    const callback = nodeId(id, 2)
    done(await bench.applyCommand(callback, { kind: 'park' }, OPERATOR))
    await run(bench, 'succeed')
    assert.deepEqual(await wake(bench), ['end arrive', 'success arrive'])
    done(await bench.applyCommand(callback, { kind: 'redrive' }, OPERATOR))
    const { state, reason } = await bench.job(callback)
    assert.deepEqual([state, reason], ['cancelled', 'not_needed'])
  },

  'a parked callback for failures is started by a redrive if a member failed': async (bench) => {
    const { id } = await batch(bench, 1)
    const callback = nodeId(id, 2)
    done(await bench.applyCommand(callback, { kind: 'park' }, OPERATOR))
    await run(bench, 'fail')
    await wake(bench)
    done(await bench.applyCommand(callback, { kind: 'redrive' }, OPERATOR))
    assert.equal((await bench.job(callback)).state, 'queued')
  },

  'an empty batch is decided in its creation': async (bench) => {
    const { id } = await batch(bench, 0)
    assert.equal(await states(bench, id), 'queued queued cancelled')
    assert.deepEqual(await wake(bench), [])
  },

  'a batch without callbacks has no links': async (bench) => {
    const nodes = [{ item: itemOf(bench, 'm') }]
    const { id } = await create(bench, nodes, { kind: 'batch' })
    assert.equal((await bench.job(nodeId(id, 0))).links, 0)
    await run(bench, 'succeed')
    assert.equal((await bench.store.flows.get(id))?.state, 'done')
  },

  'callbacks of an open batch wait until it is closed': async (bench) => {
    const { id } = await batch(bench, 1, { open: true })
    await run(bench, 'succeed')
    assert.deepEqual(await wake(bench), [])
    const { flows } = bench.store
    const added = createdFlow(await flows.add(id, [itemOf(bench, 'm')], { at: 4 }))
    assert.deepEqual([added.flow.size, added.jobs[0]?.id], [5, nodeId(id, 4)])
    // The reply was lost: the same call again adds nothing.
    assert.equal(createdFlow(await flows.add(id, [itemOf(bench, 'm')], { at: 4 })).flow.size, 5)
    const two = [itemOf(bench, 'm'), itemOf(bench, 'm')]
    refused(await flows.add(id, two, { at: 4 }), TransitionRace)
    const words: string[] = []
    const closed = await flows.close(id, CLIENT, (answers) => {
      for (const one of answers) if (one.kind === 'done') words.push(one.job.type)
    })
    assert.deepEqual([closed?.open, words], [false, []])
    refused(await flows.add(id, [itemOf(bench, 'm')]), BatchClosed)
    await run(bench, 'succeed')
    assert.deepEqual(await wake(bench), ['end arrive', 'failure cancel', 'success arrive'])
  },

  'closing a batch whose members have ended decides about its callbacks': async (bench) => {
    const { id } = await batch(bench, 1, { open: true })
    await run(bench, 'succeed')
    await wake(bench)
    const words: string[] = []
    await bench.store.flows.close(id, CLIENT, (answers) => {
      for (const one of answers) {
        if (one.kind === 'done') words.push(`${one.job.type} ${one.fact.trigger}`)
      }
    })
    assert.deepEqual(words.toSorted(), ['end arrive', 'failure cancel', 'success arrive'])
    assert.equal((await bench.store.flows.close(id, CLIENT))?.open, false)
    assert.deepEqual(await wake(bench), [])
  },

  'a failure in an open batch starts onFailure at once': async (bench) => {
    const { id } = await batch(bench, 1, { open: true })
    await fail(bench, 'm')
    assert.deepEqual(await wake(bench), ['failure arrive', 'success park'])
    await bench.store.flows.close(id, CLIENT)
    assert.equal(await states(bench, id), 'dependency_failed queued queued failed')
  },

  'only batches that exist can be added to and closed': async (bench) => {
    const id = bench.environment.ids.next()
    refused(await bench.store.flows.add(id, [itemOf(bench, 'm')]), FlowNotFound)
    assert.equal(await bench.store.flows.close(id, CLIENT), undefined)
    assert.equal(await bench.store.flows.progress(id), undefined)
  },
}
