/**
 * The commit boundary: fence, function, result and effects in one transaction. The function runs at
 * most once for a job that ends up committed, and whatever it did is rolled back with it.
 */
import assert from 'node:assert/strict'
import { InvalidTransition, PawlError, StaleFence } from '../../../src/core/errors.ts'
import type { CommitAnswer, CommitTx, Store } from '../../../src/stores/contract/store.ts'
import { CommitTooSlow, TxEnded, TxOwned, UseTx } from '../../../src/stores/errors.ts'
import { type Bench, type Cases, CLIENT, fenceOf, LEASE_MS, OPERATOR, refused } from './bench.ts'
import { settled } from './check.ts'

/** What a commit does. */
export const commitCases: Cases = {
  'a commit records its result and ends the job': async (bench) => {
    const held = await bench.hold({ input: '1' })
    const answer = await bench.store.commit(held, async () => '{"sum":3}')
    assert.ok(answer.kind === 'done')
    const job = await bench.job(held.job.id)
    assert.deepEqual(settled(answer.job), settled(job))
    assert.equal(answer.result, '{"sum":3}')
    assert.deepEqual([job.outcome, job.execution?.status], ['succeeded', 'DONE'])
    assert.deepEqual(await bench.store.payloads(job.id), { input: '1', result: '{"sum":3}' })
  },

  'what the function writes into a table of its own is committed with the job': async (bench) => {
    const held = await bench.hold()
    await bench.store.commit(held, async (tx) => {
      await bench.ownTable.add(tx, 'first')
      await bench.ownTable.add(tx, "it's; second")
      assert.deepEqual(await bench.ownTable.all(tx), ['first', "it's; second"])
      return '1'
    })
    assert.deepEqual(await bench.ownTexts(), ['first', "it's; second"])
  },

  'a function that throws leaves nothing behind, and the job can be committed again': async (
    bench,
  ) => {
    const held = await bench.hold()
    const broken = new Error('no')
    await bench.assertUntouched(held.job.id, async () => {
      const committing = bench.store.commit(held, async (tx) => {
        await bench.ownTable.add(tx, 'lost')
        tx.effect('mail', '1')
        throw broken
      })
      await assert.rejects(committing, broken)
      const atOnce = bench.store.commit(held, () => {
        throw broken
      })
      await assert.rejects(atOnce, broken)
    })
    const answer = await bench.store.commit(held, async (tx) => {
      await bench.ownTable.add(tx, 'kept')
      return '2'
    })
    assert.equal(answer.kind, 'done')
    assert.deepEqual(await bench.ownTexts(), ['kept'])
    assert.deepEqual(await bench.store.claimEffects({ limit: 9, leaseMs: 1000 }), [])
  },

  'a commit whose reply was lost gives its result again, and the function does not run': async (
    bench,
  ) => {
    for (const effects of [0, 1]) {
      const held = await bench.hold()
      const first = await bench.store.commit(held, async (tx) => {
        await bench.ownTable.add(tx, `once ${effects}`)
        for (let i = 0; i < effects; i++) tx.effect('mail', '1')
        return '"first"'
      })
      assert.equal(first.kind, 'done')
      await bench.advance(LEASE_MS * 2)
      await bench.assertUntouched(held.job.id, async () => {
        const again = await bench.store.commit(held, () => assert.fail('it ran a second time'))
        const job = await bench.job(held.job.id)
        assert.deepEqual(again, { kind: 'same', job, result: '"first"' })
      })
    }
    assert.deepEqual(await bench.ownTexts(), ['once 0', 'once 1'])
    assert.equal((await bench.store.claimEffects({ limit: 9, leaseMs: 1000 })).length, 1)
  },

  'an implicit commit and a commit with a function are one commit': async (bench) => {
    const held = await bench.hold()
    await bench.settle(held, { kind: 'commit' }, '"implicit"')
    const again = await bench.store.commit(held, () => assert.fail('it ran'))
    assert.deepEqual([again.kind, again.kind === 'same' && again.result], ['same', '"implicit"'])
    const other = await bench.hold()
    await bench.store.commit(other, () => '"explicit"')
    assert.equal((await bench.settle(other, { kind: 'commit' }, '"late"')).kind, 'same')
    assert.equal((await bench.store.payloads(other.job.id))?.result, '"explicit"')
  },

  'a commit without a result stores none, with a function and without': async (bench) => {
    const [held, other] = [await bench.hold({ input: '1' }), await bench.hold({ input: '1' })]
    const first = await bench.store.commit(held, () => undefined)
    assert.deepEqual([first.kind, first.kind === 'done' && first.result], ['done', undefined])
    await bench.settle(other, { kind: 'commit' })
    for (const one of [held, other]) {
      assert.deepEqual(await bench.store.payloads(one.job.id), { input: '1' })
      const again = await bench.store.commit(one, () => assert.fail('it ran'))
      assert.deepEqual([again.kind, again.kind === 'same' && again.result], ['same', undefined])
    }
  },

  'two commits of one holder at once run one function': async (bench) => {
    const held = await bench.hold()
    let ran = 0
    const commit = () =>
      bench.store.commit(held, async () => {
        ran++
        // Others may try their luck while this one waits.
        await new Promise<void>((turn) => bench.environment.timers.defer(turn))
        return `${ran}`
      })
    const answers = await Promise.all([commit(), commit(), commit()])
    assert.deepEqual(answers.map(({ kind }) => kind).toSorted(), ['done', 'same', 'same'])
    assert.equal(ran, 1)
    assert.ok(answers.every((answer) => answer.kind !== 'rejected' && answer.result === '1'))
  },

  'a job that was not started cannot commit, and its function does not run': async (bench) => {
    const held = await bench.hold({}, { start: false })
    const answer = await bench.store.commit(held, () => assert.fail('it ran'))
    refused(answer, InvalidTransition)
  },

  'a function that returns no text is refused, and everything is rolled back': async (bench) => {
    for (const bad of [null, 7, {}, Symbol('no')]) {
      const held = await bench.hold()
      await bench.assertUntouched(held.job.id, async () => {
        const committing = bench.store.commit(held, async (tx) => {
          await bench.ownTable.add(tx, 'lost')
          return bad as unknown as string
        })
        await refusedTyped(committing)
      })
    }
    assert.deepEqual(await bench.ownTexts(), [])
  },

  'jobs that are enqueued with the tx of a commit stand or fall with it': async (bench) => {
    const [good, bad] = [await bench.hold(), await bench.hold()]
    const child = (tx: CommitTx, type: string) =>
      bench.store.enqueue([bench.item({ type, queue: 'children' })], { tx })
    await bench.store.commit(good, async (tx) => {
      await child(tx, 'kept')
      return '1'
    })
    const failing = bench.store.commit(bad, async (tx) => {
      await child(tx, 'lost')
      throw new Error('no')
    })
    await assert.rejects(failing, /^Error: no$/)
    const types = (await bench.claim({ queues: ['children'], limit: 9 })).map(({ job }) => job.type)
    assert.deepEqual(types, ['kept'])
  },
}

/** A refusal by answer or by throwing; typed either way. */
async function refusedTyped(committing: Promise<CommitAnswer>): Promise<void> {
  const outcome = await committing.catch((error: unknown) => ({ kind: 'rejected', error }))
  refused(outcome, PawlError as unknown as new () => PawlError)
}

/** A function that never ends, cut off by the bound. */
const slow = (leaseMs: number, ms: number) => async (bench: Bench) => {
  const held = await bench.hold({}, { leaseMs })
  let kept: CommitTx | undefined
  await bench.assertUntouched(held.job.id, async () => {
    const committing = bench.store.commit(held, async (tx) => {
      kept = tx
      await bench.ownTable.add(tx, 'lost')
      tx.effect('mail', '1')
      await bench.advance(ms)
      // It goes on for ever; only the bound ends it.
      return new Promise<string>(() => {})
    })
    await assert.rejects(committing, CommitTooSlow)
  })
  assert.throws(() => kept?.effect('late', '1'), TxEnded)
  assert.equal((await bench.store.commit(held, () => '2')).kind, 'done')
  assert.deepEqual(await bench.ownTexts(), [])
}

/** How long a function may take. */
export const boundCases: Cases = {
  'a function that takes longer than five seconds is rolled back, and may be tried again': slow(
    60_000,
    5000,
  ),
  'a function that takes longer than a third of its lease is rolled back': slow(3000, 1000),

  'a function that is slow without ever waiting is rolled back, too': async (bench) => {
    const held = await bench.hold({}, { leaseMs: 60_000 })
    await bench.assertUntouched(held.job.id, async () => {
      const committing = bench.store.commit(held, async (tx) => {
        await bench.ownTable.add(tx, 'lost')
        await bench.advance(6000)
        return '1'
      })
      await assert.rejects(committing, CommitTooSlow)
      const atOnce = bench.store.commit(held, () => {
        void bench.advance(6000)
        return '1'
      })
      await assert.rejects(atOnce, CommitTooSlow)
    })
    assert.deepEqual(await bench.ownTexts(), [])
  },

  'a function within its bound commits': async (bench) => {
    const held = await bench.hold({}, { leaseMs: 60_000 })
    const answer = await bench.store.commit(held, async () => {
      await bench.advance(4999)
      return '1'
    })
    assert.equal(answer.kind, 'done')
  },

  'a lease that runs out inside the function takes its writes with it': async (bench) => {
    const held = await bench.hold({}, { leaseMs: 2 })
    await bench.assertUntouched(held.job.id, async () => {
      const committing = bench.store.commit(held, async (tx) => {
        await bench.ownTable.add(tx, 'lost')
        await bench.advance(2)
        return '1'
      })
      const outcome = await committing.catch((error: unknown) => ({ kind: 'rejected', error }))
      assert.ok('error' in outcome)
      const { error } = outcome
      assert.ok(error instanceof CommitTooSlow || error instanceof StaleFence, String(error))
    })
    assert.deepEqual(await bench.ownTexts(), [])
  },
}

/** Every verb that writes. Inside the function of a commit each would wait for that commit. */
/** Verbs that a function must not call on its own store. */
export const WRITES: Readonly<Record<string, (store: Store, bench: Bench) => Promise<unknown>>> = {
  enqueue: (store, bench) => store.enqueue([bench.item()]),
  applyCommand: (store) => store.applyCommand(['a'], { kind: 'submit' }, CLIENT),
  cancel: (store) => store.cancel(['a'], CLIENT),
  claim: (_store, bench) => bench.claim(),
  settle: (store) => store.settle([]),
  heartbeat: (store) => store.heartbeat([], 1000),
  claimEffects: (store) => store.claimEffects({ limit: 1, leaseMs: 1000 }),
  settleEffects: (store) => store.settleEffects([]),
  retryEffects: (store) => store.retryEffects([], OPERATOR),
  promote: (store) => store.promote(1),
  recover: (store) => store.recover(1),
  pauseQueue: (store) => store.pauseQueue('a', CLIENT),
  resumeQueue: (store) => store.resumeQueue('a', CLIENT),
  limitQueue: (store) => store.limitQueue('a', { maxDepth: 1 }),
  shed: (store) => store.shed(1),
  reportWorker: (store) => store.reportWorker({ id: 'a', state: 'b', info: 'c' }),
  removeWorker: (store) => store.removeWorker('a'),
}

/** What begins or ends a transaction, in some of the ways to write it. */
const CONTROL = [
  'COMMIT',
  ' \n begin',
  'ROLLBACK',
  'rollback work;',
  'End',
  'START  TRANSACTION READ ONLY',
  '-- harmless\nCOMMIT',
  '/* COMMENT */ ; ABORT',
]

/** What may be done while the function of a commit runs, and what may not. */
export const insideCases: Cases = {
  'a write of the store inside the function is told to use the tx': async (bench) => {
    const held = await bench.hold()
    const answer = await bench.store.commit(held, async () => {
      for (const [verb, write] of Object.entries(WRITES)) {
        await assert.rejects(write(bench.store, bench), UseTx, verb)
      }
      const nested = bench.store.commit(held, () => assert.fail('it ran'))
      await assert.rejects(nested, UseTx)
      return '1'
    })
    assert.equal(answer.kind, 'done')
    await bench.enqueue()
  },

  'writes of others wait for the function, and are done after it': async (bench) => {
    const held = await bench.hold()
    let entered: () => void = () => {}
    let leave: () => void = () => {}
    const inside = new Promise<void>((resolve) => {
      entered = resolve
    })
    const left = new Promise<void>((resolve) => {
      leave = resolve
    })
    const order: string[] = []
    const committing = bench.store.commit(held, async () => {
      entered()
      await left
      order.push('function')
      return '1'
    })
    await inside
    const others = Promise.all([bench.enqueue({ queue: 'x' }), bench.enqueue({ queue: 'x' })])
    const waiting = others.then(() => order.push('others'))
    leave()
    await Promise.all([committing, waiting])
    assert.deepEqual(order, ['function', 'others'])
  },

  'a reader inside a commit sees nothing of it, or is refused': async (bench) => {
    const held = await bench.hold({ key: 'k' })
    const before = await bench.job(held.job.id)
    await bench.store.commit(held, async (tx) => {
      await bench.ownTable.add(tx, 'unseen')
      // A store with one connection cannot read beside its open transaction, and says so.
      const refused = await bench.job(held.job.id).then(() => false, isUseTx)
      if (refused) return '1'
      assert.deepEqual(await bench.job(held.job.id), before)
      assert.deepEqual(await bench.store.getByKey('example', 'k'), before)
      assert.equal((await bench.store.facts(held.job.id)).length, before.seq)
      assert.equal((await bench.store.list({})).items.length, 1)
      assert.equal((await bench.store.counts()).lanes.held, 1)
      assert.deepEqual(await bench.store.steps(held.ref), [])
      return '1'
    })
  },

  'the tx of a commit that has ended can no longer be used': async (bench) => {
    const held = await bench.hold()
    let kept: CommitTx | undefined
    await bench.store.commit(held, (tx) => {
      kept = tx
      return '1'
    })
    const tx = kept as unknown as CommitTx
    assert.throws(() => tx.effect('late', '1'), TxEnded)
    await assert.rejects(async () => bench.ownTable.add(tx, 'late'), TxEnded)
    assert.deepEqual(await bench.ownTexts(), [])
  },

  'the function of a commit can neither begin nor end a transaction, but set savepoints': async (
    bench,
  ) => {
    const held = await bench.hold()
    const answer = await bench.store.commit(held, async (tx) => {
      await bench.ownTable.add(tx, 'kept')
      for (const text of CONTROL) await assert.rejects(tx.query(text), TxOwned, text)
      await tx.query('SAVEPOINT mine')
      await bench.ownTable.add(tx, 'taken back')
      await tx.query('ROLLBACK TO SAVEPOINT mine')
      await tx.query('RELEASE SAVEPOINT mine')
      return '1'
    })
    assert.equal(answer.kind, 'done')
    assert.deepEqual(await bench.ownTexts(), ['kept'])
  },

  'the holder keeps its lease by heartbeats before and after a failed commit': async (bench) => {
    const held = await bench.hold()
    const failing = bench.store.commit(held, () => Promise.reject(new Error('no')))
    await assert.rejects(failing)
    const beat = { ref: held.ref, fence: fenceOf(held) }
    assert.deepEqual((await bench.store.heartbeat([beat], LEASE_MS)).lost, [])
  },
}

function isUseTx(error: unknown): boolean {
  assert.ok(error instanceof UseTx, String(error))
  return true
}
