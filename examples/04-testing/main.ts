/**
 * How to test jobs of your own with `pawl/testing`. Four tests of the shop in jobs.ts: a handler
 * alone; a retry a minute later; a letter an hour later; a process that dies between the writes of
 * its commit and the commit itself. Nothing here waits: the test owns the time.
 *
 *   npm run build && node .build/programs/examples/04-testing/main.js [--json]
 *
 * Assertions are Node's own; under a test runner each function would be the body of a test.
 */
import assert from 'node:assert/strict'
import { createTestPawl, runJob, type TestPawl } from 'pawl/testing'
import { type Bank, invoice, thank } from './jobs.ts'

/** A bank that is away for the first calls, and charges each key once. */
class TestBank implements Bank {
  readonly charged = new Set<string>()
  #awayFor: number

  constructor({ awayFor = 0 } = {}) {
    this.#awayFor = awayFor
  }

  async charge(_order: string, key: string): Promise<void> {
    if (this.#awayFor-- > 0) throw new Error('the bank is away')
    this.charged.add(key)
  }
}

/** The shop on a database in memory; letters are sent an hour later. */
async function openShop(bank: Bank) {
  const sendLater = (order: string): Promise<unknown> =>
    test.pawl.enqueue(thank, { order }, { key: order, delay: '1h' })
  const job = invoice(bank, sendLater)
  const test: TestPawl = await createTestPawl({ jobs: [job, thank] })
  await test.query('CREATE TABLE invoices (order_id TEXT NOT NULL)')
  return { test, job }
}

const tests: Readonly<Record<string, () => Promise<void>>> = {
  'a bank that is away is worth another attempt': async () => {
    const job = invoice(new TestBank({ awayFor: 1 }), async () => {})
    const outcome = await runJob(job, { order: 'o-1' })
    assert.equal(outcome.kind, 'failed')
    assert.equal(outcome.failure.class, 'retryable')
  },

  'the order is charged when the bank is back, a minute later': async () => {
    const bank = new TestBank({ awayFor: 1 })
    const { test, job } = await openShop(bank)
    const { id } = await test.pawl.enqueue(job, { order: 'o-1' })
    assert.deepEqual((await test.drain()).waiting, [id])
    await test.advance('1m')
    assert.deepEqual((await test.drain()).succeeded, [id])
    assert.deepEqual([...bank.charged], [id])
    await test.close()
  },

  'the letter is enqueued at once, and sent an hour later': async () => {
    const { test, job } = await openShop(new TestBank())
    await test.pawl.enqueue(job, { order: 'o-1' })
    await test.drain()
    assert.deepEqual(await test.enqueued(thank), [{ order: 'o-1' }])
    await test.advance('59m')
    assert.deepEqual((await test.drain()).attempts, [])
    await test.advance('1m')
    assert.equal((await test.drain()).succeeded.length, 1)
    await test.close()
  },

  'a process that dies in its commit leaves one charge, one invoice and one letter': async () => {
    const bank = new TestBank()
    const { test, job } = await openShop(bank)
    const { id } = await test.pawl.enqueue(job, { order: 'o-1' })
    test.crashAt('commit.written')
    assert.equal((await test.drain()).crashed, 'commit.written')
    assert.deepEqual(await test.query('SELECT order_id FROM invoices'), [])
    // The lease of the dead process runs out, and somebody else does it all again.
    await test.advance('30s')
    await test.fastForward()
    assert.equal((await test.store.get(id))?.attempt, 2)
    assert.deepEqual(await test.query('SELECT order_id FROM invoices'), [{ order_id: 'o-1' }])
    assert.deepEqual([...bank.charged], [id])
    assert.equal((await test.enqueued(thank)).length, 1)
    await test.close()
  },
}

const isQuiet = process.argv.includes('--json')
for (const [name, run] of Object.entries(tests)) {
  await run()
  if (!isQuiet) console.log(`✓ ${name}`)
}
if (isQuiet) console.log(JSON.stringify({ passed: Object.keys(tests).length }))
