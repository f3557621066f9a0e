/** Callers of the same moment share what they can, a bad one hurts only itself; and closing. */
import assert from 'node:assert/strict'
import { PawlError } from '../../../src/core/errors.ts'
import { standard } from '../../../src/core/lifecycles/standard.ts'
import type { Enqueued, Store } from '../../../src/stores/contract/store.ts'
import { StoreClosed } from '../../../src/stores/errors.ts'
import { type Bench, type Cases, CLIENT, created, done, fenceOf, OPERATOR, one } from './bench.ts'
import { flowOf } from './flow-bench.ts'
import { SCHEDULE_VERBS } from './schedules.ts'

/** What callers of the same moment do to each other. */
export const groupCases: Cases = {
  'a caller whose write fails hurts only itself': async (bench) => {
    const unheard = { ...standard, name: 'unheard' }
    const noText = bench.item({ input: Symbol('no text') as unknown as string })
    const noLimit = Symbol('no number') as unknown as number
    const held = await bench.hold()
    const [a, b, ...bad] = await Promise.allSettled([
      bench.store.enqueue([bench.item({ type: 'a' })]),
      bench.store.settle([
        { held, command: { kind: 'commit', fence: fenceOf(held) }, payload: '1' },
      ]),
      bench.store.enqueue([bench.item({ lifecycle: unheard })]),
      bench.store.enqueue([noText]),
      bench.store.promote(noLimit),
    ])
    const last = await bench.enqueue({ type: 'b' })
    assert.ok(a.status === 'fulfilled' && b.status === 'fulfilled')
    created(a.value[0])
    done(b.value.answers[0])
    for (const outcome of bad) assertRefused(outcome)
    assert.equal((await bench.job(held.job.id)).outcome, 'succeeded')
    assert.equal((await bench.ids())[0], last.id)
    assert.equal((await bench.ids()).length, 3)
  },

  'an item that cannot be stored leaves nothing of its own batch half done': async (bench) => {
    const noText = bench.item({ input: {} as unknown as string })
    const outcome = await Promise.allSettled([bench.store.enqueue([bench.item(), noText])])
    const ids = await bench.ids()
    const [first] = outcome
    if (first?.status === 'fulfilled') {
      assert.equal(first.value.filter(({ kind }) => kind === 'created').length, ids.length)
    } else {
      assert.deepEqual(ids, [])
      assert.ok(first?.reason instanceof PawlError, String(first?.reason))
    }
  },

  'three hundred callers at once are all answered, each with its own': async (bench) => {
    const jobs = await Promise.all(
      Array.from({ length: 300 }, (_, i) => bench.enqueue({ type: `t${i}`, queue: `q${i % 7}` })),
    )
    assert.deepEqual(
      jobs.map(({ type }) => type),
      Array.from({ length: 300 }, (_, i) => `t${i}`),
    )
    assert.equal((await bench.store.counts()).lanes.ready, 300)
  },
}

/** A refusal, by throwing or by answer; typed either way. */
function assertRefused(outcome: PromiseSettledResult<Enqueued[] | number>): void {
  if (outcome.status === 'rejected') {
    assert.ok(outcome.reason instanceof PawlError, String(outcome.reason))
  } else {
    assert.equal((outcome.value as Enqueued[])[0]?.kind, 'rejected')
  }
}

const NO_WAIT = { id: 'a', wait: { for: 'signal', name: 'a', n: 1, until: null } } as const

const NO_JOB = '00000000-0000-7000-8000-00000000dead'
const NO_FENCE = { attempt: 1, claim: 'a' }

/** Every verb but `now` and `close`. */
const VERBS: Readonly<Record<string, (store: Store, bench: Bench) => Promise<unknown>>> = {
  ...SCHEDULE_VERBS,
  enqueue: (store, bench) => store.enqueue([bench.item()]),
  applyCommand: (store) => store.applyCommand(['a'], { kind: 'submit' }, CLIENT),
  cancel: (store) => store.cancel(['a'], CLIENT),
  claim: (_store, bench) => bench.claim(),
  settle: (store) => store.settle([]),
  heartbeat: (store) => store.heartbeat([], 1000),
  steps: (store) => store.steps(1),
  'waits.signal': ({ waits }) => waits.signal([], { name: 'a', key: 'k', payload: '1' }, CLIENT),
  'waits.wait': ({ waits }) => waits.wait({ ...NO_WAIT, fence: { attempt: 1, claim: 'a' } }),
  'waits.history': ({ waits }) => waits.history('a'),
  'flows.create': ({ flows }, bench) => flows.create(flowOf(bench, [])),
  'flows.add': ({ flows }) => flows.add(NO_JOB, []),
  'flows.close': ({ flows }) => flows.close(NO_JOB, CLIENT),
  'flows.wake': ({ flows }) => flows.wake(1),
  'flows.invoke': ({ flows }) =>
    flows.invoke({ id: NO_JOB, fence: NO_FENCE, name: 'a', n: 1, children: [] }),
  'flows.get': ({ flows }) => flows.get(NO_JOB),
  'flows.getByKey': ({ flows }) => flows.getByKey('a'),
  'flows.list': ({ flows }) => flows.list({}),
  'flows.progress': ({ flows }) => flows.progress(NO_JOB),
  'flows.nodes': ({ flows }) => flows.nodes(NO_JOB),
  'flows.after': ({ flows }) => flows.after(NO_JOB),
  'flows.waitsFor': ({ flows }) => flows.waitsFor(NO_JOB, 1),
  'flows.awaitedBy': ({ flows }) => flows.awaitedBy(NO_JOB, 1),
  claimEffects: (store) => store.claimEffects({ limit: 1, leaseMs: 1000 }),
  settleEffects: (store) => store.settleEffects([]),
  listEffects: (store) => store.listEffects({}),
  retryEffects: (store) => store.retryEffects([], OPERATOR),
  tokens: (store) => store.tokens.list(1),
  promote: (store) => store.promote(1),
  recover: (store) => store.recover(1),
  pauseQueue: (store) => store.pauseQueue('a', CLIENT),
  resumeQueue: (store) => store.resumeQueue('a', CLIENT),
  limitQueue: (store) => store.limitQueue('a', { maxDepth: 1 }),
  shed: (store) => store.shed(1),
  reportWorker: (store) => store.reportWorker({ id: 'a', state: 'b', info: 'c' }),
  removeWorker: (store) => store.removeWorker('a'),
  listQueueRecords: (store) => store.listQueueRecords({}),
  listWorkers: (store) => store.listWorkers(),
  prune: (store) => store.prune({ endedBefore: 1, limit: 1 }),
  get: (store) => store.get('a'),
  getByKey: (store) => store.getByKey('a', 'b'),
  facts: (store) => store.facts('a'),
  traces: (store) => store.traces(['00000000-0000-7000-8000-000000000001'], 'create'),
  asOf: (store) => store.asOf('a', 1),
  payloads: (store) => store.payloads('a'),
  list: (store) => store.list({}),
  counts: (store) => store.counts(),
  audit: (store) => store.audit({}),
  tail: (store) => store.tail(undefined, 1),
  nextDue: (store) => store.nextDue(),
  progress: (store) => store.progress('00000000-0000-7000-8000-000000000001'),
}

/** What closing does. */
export const closeCases: Cases = {
  'closing finishes what was accepted': async (bench) => {
    const held = await bench.hold()
    const accepted = Promise.all(Array.from({ length: 50 }, () => bench.enqueue()))
    const committing = bench.store.commit(held, async () => '1')
    const closing = bench.store.close()
    assert.equal((await accepted).length, 50)
    assert.equal((await committing).kind, 'done')
    await closing
  },

  'closing waits for the function of a commit': async (bench) => {
    const held = await bench.hold()
    let leave: () => void = () => {}
    const left = new Promise<void>((resolve) => {
      leave = resolve
    })
    const committing = bench.store.commit(held, async () => {
      await left
      return '1'
    })
    const closing = bench.store.close()
    leave()
    assert.equal((await committing).kind, 'done')
    await closing
  },

  'whoever closes a store that is being closed waits for it, too': async (bench) => {
    const held = await bench.hold()
    let committed = false
    const committing = bench.store
      .commit(held, async () => {
        for (let i = 0; i < 5; i++) {
          await new Promise<void>((turn) => bench.environment.timers.defer(turn))
        }
        return '1'
      })
      .then(() => {
        committed = true
      })
    const closing = bench.store.close()
    await bench.store.close()
    assert.ok(committed)
    await Promise.all([committing, closing])
  },

  'a store can be closed twice, and disposed of after that': async (bench) => {
    await bench.enqueue()
    await Promise.all([bench.store.close(), bench.store.close()])
    await bench.store.close()
    await bench.store[Symbol.asyncDispose]()
  },

  'the time of a closed store can still be read': async (bench) => {
    await bench.store.close()
    assert.ok(bench.store.now() > 0)
  },

  ...Object.fromEntries(
    Object.entries(VERBS).map(([verb, call]) => [
      `${verb} of a closed store says that it is closed`,
      async (bench: Bench) => {
        one([await bench.enqueue()])
        await bench.store.close()
        await assert.rejects(async () => call(bench.store, bench), StoreClosed)
      },
    ]),
  ),

  'commit of a closed store says that it is closed, and its function does not run': async (
    bench,
  ) => {
    const held = await bench.hold()
    await bench.store.close()
    const late = bench.store.commit(held, () => assert.fail('it ran'))
    await assert.rejects(late, StoreClosed)
  },
}
