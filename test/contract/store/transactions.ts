/** Transactions on a connection of the store: the user's writes and new jobs, together or not. */
import assert from 'node:assert/strict'
import type { StoreTx } from '../../../src/stores/contract/store.ts'
import { TransactionTooSlow, TxEnded, TxOwned, UseTx } from '../../../src/stores/errors.ts'
import type { Bench, Cases } from './bench.ts'
import { WRITES } from './commit.ts'

const enqueueIn = (bench: Bench, tx: StoreTx, type: string) =>
  bench.store.enqueue([bench.item({ type, queue: 'joined' })], { tx })

const joinedTypes = async (bench: Bench) =>
  (await bench.claim({ queues: ['joined'], limit: 9 })).map(({ job }) => job.type)

export const transactionCases: Cases = {
  'jobs and writes of a transaction are there when it resolves, with what it returns': async (
    bench,
  ) => {
    for (const value of ['text', 0, undefined, []]) {
      const returned = await bench.store.transaction(async (tx) => {
        await bench.ownTable.add(tx, String(value))
        return value
      })
      assert.equal(returned, value)
    }
    await bench.store.transaction((tx) => enqueueIn(bench, tx, 'kept'))
    assert.deepEqual(await joinedTypes(bench), ['kept'])
    assert.deepEqual(await bench.ownTexts(), ['text', '0', 'undefined', ''])
  },

  'nothing is left of a transaction whose function throws': async (bench) => {
    const failure = new Error('no')
    const failing = bench.store.transaction(async (tx) => {
      await bench.ownTable.add(tx, 'lost')
      await enqueueIn(bench, tx, 'lost')
      throw failure
    })
    await assert.rejects(failing, failure)
    const atOnce = bench.store.transaction(() => {
      throw failure
    })
    await assert.rejects(atOnce, failure)
    assert.deepEqual([await joinedTypes(bench), await bench.ownTexts()], [[], []])
  },

  'a job that joined a transaction wakes who waits, and is claimed like any other': async (
    bench,
  ) => {
    const woken = new Promise<void>((resolve) => bench.store.onWake(resolve))
    await bench.store.transaction((tx) => enqueueIn(bench, tx, 'joined'))
    await woken
    assert.deepEqual(await joinedTypes(bench), ['joined'])
  },

  'a verb inside the function is told to use the tx, and so is a nested transaction': async (
    bench,
  ) => {
    await bench.store.transaction(async (tx) => {
      for (const [verb, write] of Object.entries(WRITES)) {
        await assert.rejects(write(bench.store, bench), UseTx, verb)
      }
      const nested = bench.store.transaction(() => assert.fail('it ran'))
      await assert.rejects(nested, UseTx)
      await bench.ownTable.add(tx, 'kept')
    })
    await bench.enqueue({ queue: 'x' })
    assert.deepEqual(await bench.ownTexts(), ['kept'])
  },

  'a transaction inside the function of a commit is told to use the tx': async (bench) => {
    const held = await bench.hold()
    await bench.store.commit(held, async () => {
      await assert.rejects(
        bench.store.transaction(() => assert.fail('it ran')),
        UseTx,
      )
      return '1'
    })
  },

  'the function can neither begin nor end a transaction': async (bench) => {
    await bench.store.transaction(async (tx) => {
      for (const sql of ['BEGIN', 'COMMIT', ' rollback ', '/* a */ END']) {
        await assert.rejects(tx.query(sql), TxOwned, sql)
      }
      await bench.ownTable.add(tx, 'kept')
    })
    assert.deepEqual(await bench.ownTexts(), ['kept'])
  },

  'the tx of a transaction that has ended can no longer be used': async (bench) => {
    let kept: StoreTx | undefined
    await bench.store.transaction((tx) => {
      kept = tx
    })
    const tx = kept as unknown as StoreTx
    await assert.rejects(tx.query('late'), TxEnded)
    await assert.rejects(enqueueIn(bench, tx, 'late'), TxEnded)
    assert.deepEqual(await joinedTypes(bench), [])
  },

  'a function that takes longer than five seconds is rolled back, and its tx ends': async (
    bench,
  ) => {
    let kept: StoreTx | undefined
    const slow = bench.store.transaction(async (tx) => {
      kept = tx
      await bench.ownTable.add(tx, 'lost')
      await bench.advance(5000)
      return new Promise<never>(() => {})
    })
    await assert.rejects(slow, TransactionTooSlow)
    await assert.rejects((kept as unknown as StoreTx).query('late'), TxEnded)
    const blocking = bench.store.transaction(() => void bench.advance(6000))
    await assert.rejects(blocking, TransactionTooSlow)
    assert.deepEqual(await bench.ownTexts(), [])
  },

  'a statement that fails and is caught does not make the transaction half true': async (bench) => {
    const caught = bench.store.transaction(async (tx) => {
      await bench.ownTable.add(tx, 'first')
      await tx.query('this is no statement').catch(() => {})
      await enqueueIn(bench, tx, 'joined')
      return 'done'
    })
    const outcome = await caught.catch((error: { code?: string }) => error.code)
    const isDone = outcome === 'done'
    // PostgreSQL refuses everything after a failed statement; SQLite undoes the statement alone.
    if (!isDone) assert.match(String(outcome), /^E_TX_/)
    assert.deepEqual(await joinedTypes(bench), isDone ? ['joined'] : [])
    assert.deepEqual(await bench.ownTexts(), isDone ? ['first'] : [])
  },
}
