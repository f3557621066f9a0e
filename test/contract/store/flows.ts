/** Flows: what is created, when dependents start, and what failures mean for them (P19). */
import assert from 'node:assert/strict'
import { CommandInvalid, DependencyOpen } from '../../../src/core/errors.ts'
import { LINKS } from '../../../src/core/job/links.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import { concernsOthers } from '../../../src/stores/contract/flows.ts'
import { nodeId } from '../../../src/stores/derived-ids.ts'
import { QueueFull } from '../../../src/stores/errors.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, one, refused } from './bench.ts'
import {
  create,
  createdFlow,
  diamond,
  fail,
  flowOf,
  group,
  itemOf,
  nodeOf,
  states,
  succeed,
  take,
  wake,
} from './flow-bench.ts'

const NOBODY = '00000000-0000-7000-8000-00000000dead'

/** What is created. */
export const flowCases: Cases = {
  'a flow is created as a whole, and its dependents wait': async (bench) => {
    const { id, ids } = await create(bench, diamond(bench))
    assert.deepEqual(
      ids,
      [0, 1, 2].map((n) => nodeId(id, n)),
    )
    assert.equal(await states(bench, id), 'queued queued created')
    const last = await nodeOf(bench, id, 2)
    const { flow, node, links, runAt } = last
    assert.deepEqual([flow, node, links, runAt], [id, 2, LINKS.waits, null])
    const first = await nodeOf(bench, id, 0)
    assert.deepEqual([first.flow, first.node, first.links], [id, 0, LINKS.awaited])
    assert.deepEqual(await bench.claim({ queues: ['c'] }), [])
  },

  'a dependent starts when all that it waits for has succeeded': async (bench) => {
    const { id } = await create(bench, diamond(bench))
    assert.ok(concernsOthers(await succeed(bench, 'a', '"A"')))
    assert.deepEqual(await wake(bench), [])
    assert.equal((await nodeOf(bench, id, 2)).state, 'created')
    await succeed(bench, 'b', '"B"')
    assert.deepEqual(await wake(bench), ['c arrive'])
    const held = await take(bench, 'c')
    assert.equal(held.job.id, nodeId(id, 2))
    const [all] = await bench.store.flows.after(held.job.id)
    const { ends = [], ...rest } = all ?? {}
    assert.deepEqual(rest, { name: 'all', need: 'success', list: true })
    assert.deepEqual(
      ends.map(({ type, outcome, result }) => [type, outcome, result]),
      [
        ['a', 'succeeded', '"A"'],
        ['b', 'succeeded', '"B"'],
      ],
    )
    await bench.settle(held, { kind: 'commit' })
    assert.deepEqual(await wake(bench), [])
    assert.equal((await bench.store.flows.get(id))?.state, 'done')
  },

  'a node with an empty list of dependencies starts at once': async (bench) => {
    const { id } = await create(bench, [{ item: itemOf(bench, 'a'), after: [group([])] }])
    assert.equal(await states(bench, id), 'queued')
    assert.deepEqual((await bench.store.flows.after(nodeId(id, 0)))[0]?.ends, [])
  },

  'a chain goes on link by link, and `settled` needs only an end': async (bench) => {
    const { id } = await create(bench, [
      { item: itemOf(bench, 'a') },
      { item: itemOf(bench, 'b'), after: [group([0], { need: 'end', list: false })] },
      { item: itemOf(bench, 'c'), after: [group([[0, 1]], { need: 'end' })] },
    ])
    await fail(bench, 'a')
    assert.deepEqual(await wake(bench), ['b arrive'])
    await succeed(bench, 'b')
    assert.deepEqual(await wake(bench), ['c arrive'])
    const [all] = await bench.store.flows.after(nodeId(id, 2))
    assert.deepEqual(
      all?.ends.map(({ outcome, error }) => [outcome, error?.message]),
      [
        ['failed', 'boom'],
        ['succeeded', undefined],
      ],
    )
  },

  'a repeated creation changes nothing, and a key belongs to one flow': async (bench) => {
    const flow = flowOf(bench, diamond(bench), { key: 'k1' })
    createdFlow(await bench.store.flows.create(flow))
    assert.equal(createdFlow(await bench.store.flows.create(flow)).flow.id, flow.id)
    assert.equal((await bench.ids()).length, 3)
    const other = await bench.store.flows.create(flowOf(bench, diamond(bench), { key: 'k1' }))
    assert.ok(other.kind === 'existing')
    assert.equal(other.flow.id, flow.id)
    assert.equal((await bench.store.flows.getByKey('k1'))?.id, flow.id)
    assert.equal((await bench.ids()).length, 3)
  },

  'nothing is created if one node is refused': async (bench) => {
    await bench.store.limitQueue('b', { maxDepth: 0 })
    const answer = await bench.store.flows.create(flowOf(bench, diamond(bench)))
    refused(answer, QueueFull)
    assert.equal((answer as { node?: number }).node, 1)
    assert.deepEqual(await bench.ids(), [])
    assert.deepEqual((await bench.store.flows.list({})).items, [])
  },

  'nodes with keys, admissions, due times and later dependencies are refused': async (bench) => {
    const plain = itemOf(bench, 'a')
    const admission = { singleton: { key: 'k', mode: 'skip' } } as const
    const nodes = [
      [{ item: itemOf(bench, 'a', { key: 'k' }) }],
      [{ item: itemOf(bench, 'a', { hold: true }) }],
      [{ item: { ...plain, admission } as never }],
      [{ item: { ...plain, onConflict: 'reject' } as never }],
      [{ item: plain, after: [group([0])] }],
      [{ item: plain, after: [group('members')] }],
      [{ item: plain }, { item: plain, after: [group([0]), group([0])] }],
      [{ item: itemOf(bench, 'a', { runAt: bench.store.now() + 1 }), after: [group([])] }],
      [{ item: plain, odd: 1 } as never],
    ]
    for (const some of nodes) {
      refused(await bench.store.flows.create(flowOf(bench, some)), CommandInvalid)
    }
    refused(await bench.store.flows.create(flowOf(bench, [], { open: true })), CommandInvalid)
    assert.deepEqual(await bench.ids(), [])
  },

  'a flow joins a transaction, and does not exist if that is rolled back': async (bench) => {
    const flow = flowOf(bench, diamond(bench))
    const leave = new Error('leave')
    const rolledBack = bench.store.transaction(async (tx) => {
      createdFlow(await bench.store.flows.create(flow, { tx }))
      throw leave
    })
    await assert.rejects(rolledBack, leave)
    assert.equal(await bench.store.flows.get(flow.id), undefined)
    assert.deepEqual(await bench.ids(), [])
    await bench.store.transaction(async (tx) => {
      createdFlow(await bench.store.flows.create(flow, { tx }))
      const bad = flowOf(bench, [{ item: itemOf(bench, 'a', { key: 'k' }) }])
      refused(await bench.store.flows.create(bad, { tx }), CommandInvalid)
    })
    assert.equal(await states(bench, flow.id), 'queued queued created')
  },

  'a lifecycle without a state for waiting can be part of a flow': async (bench) => {
    const { id } = await create(bench, [
      { item: itemOf(bench, 'a', { lifecycle: leased }) },
      { item: itemOf(bench, 'b', { lifecycle: leased }), after: [group([0])] },
    ])
    assert.deepEqual(await bench.claim({ queues: ['b'] }), [])
    await succeed(bench, 'a')
    assert.deepEqual(await wake(bench), ['b arrive'])
    assert.equal((await take(bench, 'b')).job.id, nodeId(id, 1))
  },
}

async function chain(bench: Bench, onFailure: 'park' | 'cancel' | 'fail') {
  return create(bench, [
    { item: itemOf(bench, 'a') },
    { item: itemOf(bench, 'b'), after: [group([0])], onFailure },
    { item: itemOf(bench, 'c'), after: [group([1])], onFailure },
  ])
}

/** What becomes of dependents. */
export const dependencyCases: Cases = {
  'a failed dependency parks its dependent, and a redrive of the cause releases it': async (
    bench,
  ) => {
    const { id } = await chain(bench, 'park')
    await fail(bench, 'a')
    assert.deepEqual(await wake(bench), ['b park'])
    assert.equal(await states(bench, id), 'failed dependency_failed created')
    assert.equal((await bench.lastFact(nodeId(id, 1))).dependency, nodeId(id, 0))
    assert.equal((await bench.store.flows.get(id))?.state, 'attention')
    assert.deepEqual(await wake(bench), [])
    const cause = await bench.applyCommand(nodeId(id, 0), { kind: 'redrive' }, OPERATOR)
    assert.ok(concernsOthers(cause))
    assert.deepEqual(await wake(bench), ['b arrive'])
    assert.equal(await states(bench, id), 'queued created created')
    await succeed(bench, 'a')
    assert.deepEqual(await wake(bench), ['b arrive'])
    await succeed(bench, 'b')
    assert.deepEqual(await wake(bench), ['c arrive'])
    await succeed(bench, 'c')
    assert.equal((await bench.store.flows.get(id))?.state, 'done')
  },

  'a failed dependency cancels all dependents behind it': async (bench) => {
    const { id } = await chain(bench, 'cancel')
    await fail(bench, 'a')
    assert.deepEqual(await wake(bench), ['b cancel', 'c cancel'])
    assert.equal(await states(bench, id), 'failed cancelled cancelled')
    assert.equal((await nodeOf(bench, id, 2)).reason, 'dependency_failed')
  },

  'a failed dependency fails its dependent, which starts only after the cause succeeds': async (
    bench,
  ) => {
    const { id } = await chain(bench, 'fail')
    done(await bench.applyCommand(nodeId(id, 0), { kind: 'cancel' }))
    assert.deepEqual(await wake(bench), ['b arrive', 'c arrive'])
    assert.equal(await states(bench, id), 'cancelled failed failed')
    const { error, attempt } = await nodeOf(bench, id, 1)
    assert.deepEqual([error?.kind, attempt], ['dependency_failed', 1])
    const answer = await bench.applyCommand(nodeId(id, 1), { kind: 'redrive' }, OPERATOR)
    assert.equal(refused(answer, DependencyOpen).details.dependency, nodeId(id, 0))
  },

  'a failed dependent can be redriven when its dependencies have succeeded': async (bench) => {
    const { id } = await chain(bench, 'fail')
    await fail(bench, 'a')
    await wake(bench)
    done(await bench.applyCommand(nodeId(id, 0), { kind: 'redrive' }, OPERATOR))
    await succeed(bench, 'a')
    assert.deepEqual(await wake(bench), [])
    done(await bench.applyCommand(nodeId(id, 1), { kind: 'redrive' }, OPERATOR))
    await succeed(bench, 'b')
    await wake(bench)
    done(await bench.applyCommand(nodeId(id, 2), { kind: 'redrive' }, OPERATOR))
    await succeed(bench, 'c')
    assert.equal(await states(bench, id), 'succeeded succeeded succeeded')
  },

  'nothing else starts a dependent, and every refusal names what it waits for': async (bench) => {
    const { id, ids } = await chain(bench, 'park')
    const [first, second = ''] = ids
    const commands = [
      { kind: 'submit' },
      { kind: 'schedule', runAt: bench.store.now() + 1 },
      { kind: 'reschedule', runAt: bench.store.now() },
      { kind: 'redrive' },
    ] as const
    for (const command of commands) {
      const answer = await bench.applyCommand(second, command, OPERATOR)
      assert.equal(refused(answer, DependencyOpen).details.dependency, first)
    }
    done(await bench.applyCommand(second, { kind: 'prioritise', priority: 5 }))
    assert.deepEqual(await bench.claim({ queues: ['b'] }), [])
    assert.equal(await states(bench, id), 'queued created created')
  },

  'a parked dependent stays parked, and starts when it is redriven afterwards': async (bench) => {
    const { id } = await chain(bench, 'park')
    done(await bench.applyCommand(nodeId(id, 1), { kind: 'park' }, OPERATOR))
    refused(await bench.applyCommand(nodeId(id, 1), { kind: 'redrive' }, OPERATOR), DependencyOpen)
    await succeed(bench, 'a')
    assert.deepEqual(await wake(bench), [])
    assert.equal(await states(bench, id), 'succeeded quarantined created')
    done(await bench.applyCommand(nodeId(id, 1), { kind: 'redrive' }, OPERATOR))
    await succeed(bench, 'b')
    assert.deepEqual(await wake(bench), ['c arrive'])
  },

  'a forced dependent starts, and later arrivals leave it alone': async (bench) => {
    const { id } = await chain(bench, 'park')
    done(await bench.applyCommand(nodeId(id, 1), { kind: 'force', to: 'queued' }, OPERATOR))
    const held = await take(bench, 'b')
    const [all] = await bench.store.flows.after(held.job.id)
    assert.deepEqual(
      all?.ends.map(({ outcome, seq }) => [outcome, seq]),
      [[null, null]],
    )
    await succeed(bench, 'a')
    assert.deepEqual(await wake(bench), [])
    await bench.settle(held, { kind: 'commit' })
    assert.deepEqual(await wake(bench), ['c arrive'])
  },

  'a cancelled dependent is not released, and its own dependents are told': async (bench) => {
    const { id } = await chain(bench, 'park')
    await bench.store.cancel([nodeId(id, 1)], CLIENT)
    assert.deepEqual(await wake(bench), ['c park'])
    await succeed(bench, 'a')
    assert.deepEqual(await wake(bench), [])
    assert.equal(await states(bench, id), 'succeeded cancelled dependency_failed')
  },

  'the end that counted stays, also if a settled dependency is redriven': async (bench) => {
    const { id } = await create(bench, [
      { item: itemOf(bench, 'a') },
      { item: itemOf(bench, 'b'), after: [group([0], { need: 'end' })] },
    ])
    await fail(bench, 'a')
    assert.deepEqual(await wake(bench), ['b arrive'])
    done(await bench.applyCommand(nodeId(id, 0), { kind: 'redrive' }, OPERATOR))
    await succeed(bench, 'a')
    assert.deepEqual(await wake(bench), [])
    const [all] = await bench.store.flows.after(nodeId(id, 1))
    assert.deepEqual(
      all?.ends.map(({ outcome }) => outcome),
      ['failed'],
    )
  },

  'a deadline ends a dependent while it waits': async (bench) => {
    const deadlineAt = bench.store.now() + 1000
    const { id } = await create(bench, [
      { item: itemOf(bench, 'a') },
      { item: itemOf(bench, 'b', { deadlineAt }), after: [group([0])] },
    ])
    await bench.advance(1000)
    const shed = one(await bench.store.shed(100))
    assert.equal(done(shed).job.id, nodeId(id, 1))
    assert.deepEqual([done(shed).job.state, done(shed).job.reason], ['failed', 'deadline'])
  },

  'what a job waits for, and who waits for it, can be read': async (bench) => {
    const { ids } = await create(bench, diamond(bench))
    const [a = '', b = '', c = ''] = ids
    const { flows } = bench.store
    const idsOf = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id).toSorted()
    assert.deepEqual(idsOf(await flows.waitsFor(c, 10)), [a, b].toSorted())
    assert.deepEqual(idsOf(await flows.awaitedBy(a, 10)), [c])
    await succeed(bench, 'a')
    assert.deepEqual(idsOf(await flows.waitsFor(c, 10)), [b])
    assert.deepEqual(await flows.awaitedBy(a, 10), [])
    assert.deepEqual(await flows.waitsFor(NOBODY, 10), [])
  },
}

/** What is read and removed. */
export const flowReadingCases: Cases = {
  'lists of flows are filtered by state, kind and key, page by page': async (bench) => {
    const first = await create(bench, diamond(bench), { key: 'one' })
    await bench.advance(1)
    const second = await create(bench, [{ item: itemOf(bench, 'x') }])
    await bench.advance(1)
    const third = await create(bench, [], { kind: 'batch', open: true })
    const { flows } = bench.store
    const listed = async (filter: Parameters<typeof flows.list>[0]) =>
      (await flows.list(filter)).items.map(({ id }) => id)
    assert.deepEqual(await listed({}), [third.id, second.id, first.id])
    assert.deepEqual(await listed({ kind: 'batch' }), [third.id])
    assert.deepEqual(await listed({ key: 'one' }), [first.id])
    await succeed(bench, 'x')
    await fail(bench, 'a')
    await wake(bench)
    assert.deepEqual(await listed({ state: 'done' }), [second.id])
    assert.deepEqual(await listed({ state: 'attention' }), [first.id])
    assert.deepEqual(await listed({ state: 'open' }), [third.id])
    const page = await flows.list({}, { limit: 2 })
    assert.equal(page.next, second.id)
    assert.deepEqual(
      (await flows.list({}, { limit: 2, after: page.next ?? '' })).items.map(({ id }) => id),
      [first.id],
    )
    await assert.rejects(flows.list({ state: 'lost' as never }), CommandInvalid)
  },

  'the nodes of a flow are read as they were at a moment': async (bench) => {
    const { id } = await create(bench, diamond(bench))
    const begun = bench.store.now()
    await bench.advance(10)
    await succeed(bench, 'a')
    await bench.advance(10)
    await succeed(bench, 'b')
    await wake(bench)
    const at = async (time?: number) => {
      const page = await bench.store.flows.nodes(id, time === undefined ? {} : { at: time })
      return page.items.map(({ job }) => job.state).join(' ')
    }
    assert.equal(await at(begun - 1), '')
    assert.equal(await at(begun), 'queued queued created')
    assert.equal(await at(begun + 10), 'succeeded queued created')
    assert.equal(await at(), 'succeeded succeeded queued')
    const { items } = await bench.store.flows.nodes(id, { limit: 2, after: '0' })
    assert.deepEqual(
      items.map(({ n }) => n),
      [1, 2],
    )
    const last = items[1]
    assert.deepEqual([last?.after, last?.onFailure], [[group([0, 1])], 'park'])
    assert.equal(last?.releasedAt, begun + 20)
    assert.equal(items[0]?.releasedAt, begun)
  },

  'jobs are listed by their flow': async (bench) => {
    const { id, ids } = await create(bench, diamond(bench))
    await bench.enqueue()
    const { items } = await bench.store.list({ flow: id })
    assert.deepEqual(items.map((job) => job.id).toSorted(), ids.toSorted())
    const page = await bench.store.list({ flow: id }, { limit: 2 })
    const rest = await bench.store.list({ flow: id }, { limit: 2, after: page.next ?? '' })
    assert.equal(page.items.length + rest.items.length, 3)
    assert.deepEqual((await bench.store.list({ flow: NOBODY })).items, [])
    assert.deepEqual((await bench.store.list({ flow: 'no id' })).items, [])
  },

  'retention keeps what a live job may still read, and removes a flow with its last job': async (
    bench,
  ) => {
    const { id, ids } = await create(bench, diamond(bench))
    await succeed(bench, 'a')
    await succeed(bench, 'b')
    await wake(bench)
    await bench.advance(1000)
    const request = { endedBefore: bench.store.now(), limit: 10 }
    assert.equal(await bench.store.prune(request), 0)
    const swept = await bench.store.retention.sweep({ ...request, outcome: 'succeeded' })
    assert.equal(swept.removed, 0)
    await succeed(bench, 'c')
    assert.equal(await bench.store.prune({ ...request, endedBefore: bench.store.now() }), 2)
    assert.notEqual(await bench.store.flows.get(id), undefined)
    await bench.advance(1)
    assert.equal(await bench.store.prune({ ...request, endedBefore: bench.store.now() }), 1)
    assert.equal(await bench.store.flows.get(id), undefined)
    assert.deepEqual(await bench.store.flows.after(ids[2] ?? ''), [])
  },
}
