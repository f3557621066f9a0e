/** One writer at a time. */
import assert from 'node:assert/strict'
import { RunExists } from '../../../src/core/errors.ts'
import { RunHeld } from '../../../src/runs/journal/errors.ts'
import { AUTHOR, applyCommand, type JournalCases } from './bench.ts'

/** Tests of the right to write. */
export const holdingCases: JournalCases = {
  async 'a run that is held cannot be opened, and the refusal says who holds it'(bench) {
    const writer = await bench.create()
    const other = await bench.again()
    for (const journal of [bench.journal, other]) {
      await assert.rejects(journal.open('run-1', AUTHOR), (error: unknown) => {
        assert.ok(error instanceof RunHeld)
        assert.equal((error.details.holder as { pid: number }).pid, process.pid)
        return true
      })
    }
    const holder = await (await other.read('run-1')).holder()
    assert.equal(holder?.pid, process.pid)
    await applyCommand(writer, { kind: 'move', to: 'CLONED_INPUTS' })
    await writer.close()
    await other.close()
  },

  async 'a released run can be opened by any process'(bench) {
    await (await bench.create()).close()
    const other = await bench.again()
    for (const [journal, to] of [
      [other, 'CLONED_INPUTS'],
      [bench.journal, 'INGESTED'],
    ] as const) {
      assert.equal(await (await journal.read('run-1')).holder(), undefined)
      const writer = await journal.open('run-1', AUTHOR)
      await applyCommand(writer, { kind: 'move', to })
      await writer.close()
    }
    await other.close()
    assert.equal((await bench.journal.peek('run-1'))?.run_state, 'INGESTED')
  },

  async 'a run is created once'(bench) {
    const writer = await bench.create()
    await writer.close()
    await assert.rejects(bench.create(), RunExists)
    const other = await bench.again()
    await assert.rejects(bench.create('run-1', other), RunExists)
    await other.close()
    assert.equal((await bench.events('run-1')).length, 1)
  },

  async 'of several processes that create a run at once, one succeeds'(bench) {
    const other = await bench.again()
    const made = await Promise.allSettled(
      [bench.journal, other, bench.journal, other].map((journal) => bench.create('run-1', journal)),
    )
    const writers = made.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    assert.equal(writers.length, 1)
    for (const one of made) {
      if (one.status === 'fulfilled') continue
      const known = one.reason instanceof RunHeld || one.reason instanceof RunExists
      assert.ok(known, String(one.reason))
    }
    await writers[0]?.close()
    await other.close()
    assert.equal((await bench.events('run-1')).length, 1)
  },

  async 'the holder receives the last request to cancel'(bench) {
    const writer = await bench.create()
    assert.equal(await writer.cancelRequest(), undefined)
    const other = await bench.again()
    await other.requestCancel('run-1', { reason: 'too slow', actor: 'ann' })
    await other.requestCancel('run-1', { reason: 'wrong inputs', actor: 'bob' })
    const asked = await writer.cancelRequest()
    assert.equal(asked?.reason, 'wrong inputs')
    assert.equal(asked?.actor, 'bob')
    assert.deepEqual(await (await other.read('run-1')).cancelRequest(), asked)
    await other.close()
    await applyCommand(writer, { kind: 'cancel', reason: asked.reason })
    await writer.close()
  },
}
