/** Children: made once, awaited by their parent, and cancelled with it. */
import assert from 'node:assert/strict'
import {
  CommandInvalid,
  ReplayMismatch,
  StaleFence,
  Unsupported,
} from '../../../src/core/errors.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import type { InvokeAnswer, InvokeRequest } from '../../../src/stores/contract/flows.ts'
import type { Held } from '../../../src/stores/contract/store.ts'
import { invokedId } from '../../../src/stores/derived-ids.ts'
import { QueueFull } from '../../../src/stores/errors.ts'
import { type Bench, type Cases, CLIENT, done, OPERATOR, refused } from './bench.ts'
import { fail, invoke, itemOf, succeed, take, wake } from './flow-bench.ts'

const kids = (bench: Bench, n: number) => Array.from({ length: n }, () => itemOf(bench, 'kid'))

/** A parent that waits for so many children. */
async function parent(bench: Bench, n: number, fields: Partial<InvokeRequest> = {}): Promise<Held> {
  const held = await bench.hold({ type: 'parent' })
  const answer = await invoke(bench, held, kids(bench, n), fields)
  assert.equal(answer.kind, 'suspended', JSON.stringify(answer))
  return held
}

const outcomes = (answer: InvokeAnswer) => {
  assert.equal(answer.kind, 'over', JSON.stringify(answer))
  const { ends } = answer as Extract<InvokeAnswer, { kind: 'over' }>
  return ends.map(({ outcome, result, error }) => result ?? error?.message ?? outcome)
}

const run = async (bench: Bench, how: 'succeed' | 'fail' = 'succeed') =>
  how === 'succeed' ? succeed(bench, 'kid', '7') : fail(bench, 'kid')

/** Ends one of the ready children. */
async function end(bench: Bench, how: 'commit' | 'fail'): Promise<void> {
  const [held] = await bench.claim({ queues: ['kid'] })
  assert.ok(held)
  if (how === 'commit') await bench.settle(held, { kind: 'commit' }, '7')
  else await bench.fail(held, 'terminal')
}

export const invokeCases: Cases = {
  'a parent waits without a lease, and goes on when all children have ended': async (bench) => {
    const held = await parent(bench, 2)
    const { id } = held.job
    const waiting = await bench.job(id)
    assert.deepEqual(
      [waiting.state, waiting.reason, waiting.runAt, waiting.execution],
      ['waiting', 'children:kids', null, null],
    )
    await end(bench, 'commit')
    assert.deepEqual(await wake(bench), [])
    await end(bench, 'fail')
    assert.deepEqual(await wake(bench), ['parent arrive'])
    const again = await bench.reclaim(held)
    const first = await invoke(bench, again, kids(bench, 2))
    assert.deepEqual(outcomes(first).toSorted(), ['7', 'boom'])
    assert.deepEqual(outcomes(await invoke(bench, again, kids(bench, 2))), outcomes(first))
    const { items } = await bench.store.list({ flow: id })
    assert.equal(items.length, 2)
    const { waits } = await bench.store.waits.history(id)
    assert.deepEqual(
      waits.map(({ for: what, name, end }) => [what, name, end?.kind]),
      [['children', 'kids', 'ended']],
    )
    done(await bench.settle(again, { kind: 'commit' }))
  },

  'the same call under the same fence has the same answer': async (bench) => {
    const held = await parent(bench, 1)
    const answer = await invoke(bench, held, kids(bench, 1))
    assert.equal(answer.kind, 'suspended')
    assert.equal((await bench.store.list({ flow: held.job.id })).items.length, 1)
    refused(await invoke(bench, held, kids(bench, 1), { n: 2 }), StaleFence)
  },

  'an answer stays the same if a failed child is redriven later': async (bench) => {
    const held = await parent(bench, 1)
    await run(bench, 'fail')
    await wake(bench)
    const again = await bench.reclaim(held)
    assert.deepEqual(outcomes(await invoke(bench, again, kids(bench, 1))), ['boom'])
    const child = invokedId(held.job.id, 'kids', 1, 0)
    done(await bench.applyCommand(child, { kind: 'redrive' }, OPERATOR))
    assert.deepEqual(outcomes(await invoke(bench, again, kids(bench, 1))), ['boom'])
    await run(bench)
    assert.deepEqual(outcomes(await invoke(bench, again, kids(bench, 1))), ['boom'])
    assert.deepEqual(await wake(bench), [])
  },

  'a child that failed has ended, also if it is redriven before its parent asks': async (bench) => {
    const held = await parent(bench, 1)
    await run(bench, 'fail')
    assert.deepEqual(await wake(bench), ['parent arrive'])
    const child = invokedId(held.job.id, 'kids', 1, 0)
    done(await bench.applyCommand(child, { kind: 'redrive' }, OPERATOR))
    const again = await bench.reclaim(held)
    assert.deepEqual(outcomes(await invoke(bench, again, kids(bench, 1))), ['boom'])
    done(await bench.settle(again, { kind: 'commit' }))
  },

  'a parent that is redriven before its children are cancelled waits until they are': async (
    bench,
  ) => {
    const held = await parent(bench, 1)
    const { id } = held.job
    done(await bench.applyCommand(id, { kind: 'park' }, OPERATOR))
    done(await bench.applyCommand(id, { kind: 'discard' }, OPERATOR))
    done(await bench.applyCommand(id, { kind: 'redrive' }, OPERATOR))
    const again = await bench.reclaim(held)
    assert.equal((await invoke(bench, again, kids(bench, 1))).kind, 'suspended')
    assert.deepEqual(await wake(bench), ['kid cancel', 'parent arrive'])
    const last = await bench.reclaim(held)
    assert.deepEqual(outcomes(await invoke(bench, last, kids(bench, 1))), ['cancelled'])
  },

  'an invoke of nothing is over at once': async (bench) => {
    const held = await bench.hold()
    assert.deepEqual(outcomes(await invoke(bench, held, [])), [])
    assert.deepEqual(outcomes(await invoke(bench, held, [])), [])
    done(await bench.settle(held, { kind: 'commit' }))
  },

  'a stale holder and a refused child create nothing': async (bench) => {
    const held = await bench.hold()
    await bench.expire()
    refused(await invoke(bench, held, kids(bench, 1)), StaleFence)
    const other = await bench.hold()
    await bench.store.limitQueue('kid', { maxDepth: 0 })
    refused(await invoke(bench, other, kids(bench, 1)), QueueFull)
    assert.deepEqual((await bench.store.list({ type: 'kid' })).items, [])
    assert.equal((await bench.job(other.job.id)).state, 'running')
    await assert.rejects(invoke(bench, other, [itemOf(bench, 'kid', { key: 'k' })]), CommandInvalid)
    const tied = await bench.hold({ lifecycle: leased })
    refused(await invoke(bench, tied, []), Unsupported)
  },

  'another number of children than before is refused': async (bench) => {
    const held = await parent(bench, 1)
    await run(bench)
    await wake(bench)
    const again = await bench.reclaim(held)
    refused(await invoke(bench, again, kids(bench, 2)), ReplayMismatch)
  },

  'a bounded number of children is under way at once': async (bench) => {
    const held = await parent(bench, 4, { concurrency: 2 })
    const ready = async () => (await bench.store.list({ type: 'kid', lane: 'ready' })).items.length
    assert.equal(await ready(), 2)
    for (const how of ['commit', 'fail', 'commit', 'commit'] as const) {
      await end(bench, how)
      await wake(bench)
      assert.ok((await ready()) <= 2)
    }
    const again = await bench.reclaim(held)
    const answer = await invoke(bench, again, kids(bench, 4), { concurrency: 2 })
    assert.deepEqual(outcomes(answer).toSorted(), ['7', '7', '7', 'boom'])
  },

  'a cancelled parent cancels its children and theirs': async (bench) => {
    const held = await parent(bench, 2)
    const child = await take(bench, 'kid')
    const below = await invoke(bench, child, [itemOf(bench, 'grandkid')])
    assert.equal(below.kind, 'suspended')
    await bench.store.cancel([held.job.id], CLIENT)
    assert.deepEqual(await wake(bench), ['grandkid cancel', 'kid cancel', 'kid cancel'])
    const { items } = await bench.store.list({ outcome: 'cancelled' })
    assert.equal(items.length, 4)
    const reasons = items.filter(({ type }) => type !== 'parent').map(({ reason }) => reason)
    assert.deepEqual(reasons, ['parent_ended', 'parent_ended', 'parent_ended'])
  },

  'a running child is asked to cancel, and an abandoned one goes on': async (bench) => {
    const held = await parent(bench, 1)
    const child = await take(bench, 'kid')
    await bench.store.cancel([held.job.id], CLIENT)
    assert.deepEqual(await wake(bench), ['kid asked'])
    const beat = { ref: child.ref, fence: { attempt: 1, claim: child.job.execution?.claim ?? '' } }
    assert.deepEqual((await bench.store.heartbeat([beat], 30_000)).cancelling, [child.ref])
    done(await bench.settle(child, { kind: 'cancel' }))
    assert.deepEqual(await wake(bench), [])
    const other = await parent(bench, 1, { onParentEnd: 'abandon' })
    await bench.store.cancel([other.job.id], CLIENT)
    assert.deepEqual(await wake(bench), [])
    await run(bench)
    assert.deepEqual(await wake(bench), [])
  },

  'a parked parent looks at its children again when it is redriven': async (bench) => {
    const held = await parent(bench, 1)
    done(await bench.applyCommand(held.job.id, { kind: 'park' }, OPERATOR))
    await run(bench)
    assert.deepEqual(await wake(bench), [])
    done(await bench.applyCommand(held.job.id, { kind: 'redrive' }, OPERATOR))
    const again = await bench.reclaim(held)
    assert.deepEqual(outcomes(await invoke(bench, again, kids(bench, 1))), ['7'])
  },

  'a forced parent waits again if a child has not ended': async (bench) => {
    const held = await parent(bench, 1)
    done(await bench.applyCommand(held.job.id, { kind: 'force', to: 'queued' }, OPERATOR))
    const again = await bench.reclaim(held)
    assert.equal((await invoke(bench, again, kids(bench, 1))).kind, 'suspended')
    await run(bench)
    assert.deepEqual(await wake(bench), ['parent arrive'])
  },

  'the nodes of a parent are its children, in the order of their calls': async (bench) => {
    const held = await parent(bench, 3)
    const { items } = await bench.store.flows.nodes(held.job.id)
    assert.deepEqual(
      items.map(({ n, as }) => `${as}/${n}`),
      ['kids/1/0', 'kids/1/1', 'kids/1/2'],
    )
    assert.deepEqual(
      items.map(({ job }) => job.id),
      [0, 1, 2].map((i) => invokedId(held.job.id, 'kids', 1, i)),
    )
  },
}
