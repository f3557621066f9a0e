/** What readers see. */
import assert from 'node:assert/strict'
import { RunNotFound } from '../../../src/core/errors.ts'
import type { RunEvent } from '../../../src/core/run/events.ts'
import { foldRun } from '../../../src/core/run/evolve.ts'
import { RunNameInvalid, RunNotDamaged } from '../../../src/runs/journal/errors.ts'
import { AUTHOR, all, type JournalCases } from './bench.ts'

/** Ids that would leave the folder, collide, or mean something to a system. */
const HOSTILE_IDS = [
  ...['', '.', '..', '../x', 'a/b', 'a\\b', '/etc', 'C:', 'a\0b', 'a\nb', ' a', 'a ', 'a.', '.a'],
  ...['Run', 'RUN', 'ä', 'con', 'nul', 'com1', 'aux.txt', 'lpt9.a.b', '~', '%2e%2e', 'a%b', '-a'],
  ...['a'.repeat(101), 'file:a', 'a?b', 'a*b', 'a|b', '$HOME', '`a`', "a'b", 'a"b', '\u202e'],
]

/** Tests of reading. */
export const readingCases: JournalCases = {
  async 'the run as of an event is the fold of the events up to it'(bench) {
    const events = await bench.example()
    const reader = await bench.journal.read('run-1')
    for (const { seq } of events) {
      assert.deepEqual(await reader.asOf(seq), foldRun(events.slice(0, seq)))
    }
    assert.equal(await reader.asOf(0), undefined)
    assert.equal(await reader.asOf(-1), undefined)
    assert.equal(await reader.asOf(events.length + 1), undefined)
  },

  async 'a range returns the events in it'(bench) {
    const events = await bench.example()
    const reader = await bench.journal.read('run-1')
    assert.deepEqual(await all(reader.events({ from: 3, to: 5 })), events.slice(2, 5))
    assert.deepEqual(await all(reader.events({ from: 4 })), events.slice(3))
    assert.deepEqual(await all(reader.events({ to: 2 })), events.slice(0, 2))
    assert.deepEqual(await all(reader.events({ from: 1000 })), [])
    assert.deepEqual(await all(reader.events({ to: 0 })), [])
  },

  async 'open and replay call onEvent for every event'(bench) {
    const events = await bench.example()
    const told: { seq: number; event_id: string }[] = []
    const note = (event: RunEvent) => void told.push(event)
    await (await bench.journal.read('run-1')).replay(note)
    const idsOf = (some: typeof told) => some.map(({ seq, event_id }) => `${seq} ${event_id}`)
    assert.deepEqual(idsOf(told), idsOf(events))
    told.length = 0
    await (await bench.journal.open('run-1', AUTHOR, note)).close()
    assert.deepEqual(idsOf(told), idsOf(events))
  },

  async 'a reader may stop in the middle'(bench) {
    await bench.example()
    for await (const { seq } of (await bench.journal.read('run-1')).events()) {
      if (seq === 2) break
    }
  },

  async 'a reader needs no lock, and sees all acknowledged events'(bench) {
    const writer = await bench.create()
    const other = await bench.again()
    const { run, lastHash, tornBytes } = await (await other.read('run-1')).replay()
    assert.deepEqual({ run, lastHash, tornBytes }, { run, lastHash: writer.lastHash, tornBytes: 0 })
    assert.deepEqual(run, writer.run)
    await other.close()
    await writer.close()
  },

  async 'runs are listed by id'(bench) {
    assert.deepEqual(await bench.journal.list(), [])
    for (const runId of ['b', 'a', 'c-1', '2']) await (await bench.create(runId)).close()
    assert.deepEqual(await bench.journal.list(), ['2', 'a', 'b', 'c-1'])
  },

  async 'a run that does not exist is not found'(bench) {
    const { journal } = bench
    await assert.rejects(journal.read('nobody'), RunNotFound)
    await assert.rejects(journal.open('nobody', AUTHOR), RunNotFound)
    await assert.rejects(journal.verify('nobody'), RunNotFound)
    const wish = { reason: 'enough', actor: 'ann' }
    await assert.rejects(journal.requestCancel('nobody', wish), RunNotFound)
    await assert.rejects(
      journal.failDamaged('nobody', () => [], AUTHOR),
      RunNotFound,
    )
    assert.equal(await journal.peek('nobody'), undefined)
    assert.deepEqual(await journal.list(), [])
  },

  async 'an id that cannot be a folder everywhere is refused'(bench) {
    const { journal } = bench
    for (const runId of HOSTILE_IDS) {
      await assert.rejects(bench.create(runId), RunNameInvalid, JSON.stringify(runId))
      await assert.rejects(journal.open(runId, AUTHOR), RunNameInvalid)
      await assert.rejects(journal.read(runId), RunNameInvalid)
      await assert.rejects(journal.peek(runId), RunNameInvalid)
    }
    await assert.rejects(bench.create(7 as never), RunNameInvalid)
    assert.deepEqual(await journal.list(), [])
  },

  async 'failDamaged refuses a run that is not damaged'(bench) {
    await bench.example()
    const never = () => assert.fail('nothing is to be decided')
    await assert.rejects(bench.journal.failDamaged('run-1', never, AUTHOR), RunNotDamaged)
  },
}
