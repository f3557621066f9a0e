/** What an append promises. */
import assert from 'node:assert/strict'
import { LedgerBroken } from '../../../src/core/errors.ts'
import { EventInvalid, JournalClosed } from '../../../src/runs/journal/errors.ts'
import { AUTHOR, applyCommand, factsOf, type JournalCases, TO_PLAN } from './bench.ts'

/** Tests of appending. */
export const writingCases: JournalCases = {
  async 'acknowledged events are read back unchanged'(bench) {
    const acknowledged = await bench.example()
    assert.deepEqual(await bench.events('run-1'), acknowledged)
    const other = await bench.again()
    assert.deepEqual(await bench.events('run-1', other), acknowledged)
    await other.close()
  },

  async 'events are numbered from 1 without gaps, each with an id of its own'(bench) {
    const events = await bench.example()
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, i) => i + 1),
    )
    assert.equal(new Set(events.map(({ event_id }) => event_id)).size, events.length)
  },

  async 'appends of the same moment keep their order'(bench) {
    const writer = await bench.create()
    const asked = Array.from({ length: 50 }, (_, i) =>
      applyCommand(writer, { kind: 'change-section', section: `s${i}`, to: 'drafted' }),
    )
    const events = (await Promise.all(asked)).flat()
    assert.deepEqual(
      events.map(({ seq }) => seq),
      asked.map((_, i) => i + 2),
    )
    await writer.close()
    assert.deepEqual((await bench.events('run-1')).slice(1), events)
  },

  async 'the run includes appended events at once, for the next decision'(bench) {
    const writer = await bench.create()
    const moves = TO_PLAN.map((to) => applyCommand(writer, { kind: 'move', to }))
    assert.equal(writer.run.run_state, 'PLAN_READY')
    await Promise.all(moves)
    await writer.close()
  },

  async 'facts that do not follow from the run are refused, and nothing is written'(bench) {
    const writer = await bench.create()
    const stranger = { type: 'ISSUE_RESOLVED', data: { issue: 'never opened' } } as const
    const section = { type: 'SECTION_STATE_CHANGED', data: { section: 's', from_state: null } }
    const fine = { ...section, data: { ...section.data, to_state: 'x' } } as never
    const before = structuredClone({ run: writer.run, lastHash: writer.lastHash })
    await assert.rejects(writer.append([fine, stranger], AUTHOR), LedgerBroken)
    assert.deepEqual({ run: writer.run, lastHash: writer.lastHash }, before)
    await applyCommand(writer, { kind: 'move', to: 'CLONED_INPUTS' })
    await writer.close()
    assert.equal((await bench.events('run-1')).length, 2)
  },

  async 'an event that breaks the schema is refused, and nothing is written'(bench) {
    const writer = await bench.create()
    const facts = factsOf(writer.run, { kind: 'move', to: 'CLONED_INPUTS' })
    const nobody = { ...AUTHOR, actor: '' }
    await assert.rejects(writer.append(facts, nobody), EventInvalid)
    const extra = [{ ...facts[0], data: { ...facts[0]?.data, surprise: 1 } }] as never
    await assert.rejects(writer.append(extra, AUTHOR), EventInvalid)
    assert.equal(writer.run.last_seq, 1)
    await writer.close()
  },

  async 'an append of nothing does nothing'(bench) {
    const writer = await bench.create()
    assert.deepEqual(await writer.append([], AUTHOR), [])
    await writer.close()
    assert.equal((await bench.events('run-1')).length, 1)
  },

  async 'a writer that is closed refuses, and closing it again does nothing'(bench) {
    const writer = await bench.create()
    const last = applyCommand(writer, { kind: 'move', to: 'CLONED_INPUTS' })
    await writer.close()
    await last
    await writer.close()
    const facts = factsOf(writer.run, { kind: 'move', to: 'INGESTED' })
    await assert.rejects(writer.append(facts, AUTHOR), JournalClosed)
    await assert.rejects(writer.writeArtifact('a', Buffer.from('a')), JournalClosed)
    assert.equal((await bench.events('run-1')).length, 2)
  },

  async 'closing a journal closes its writers, and later calls are refused'(bench) {
    const writer = await bench.create()
    await bench.journal.close()
    const facts = factsOf(writer.run, { kind: 'move', to: 'CLONED_INPUTS' })
    await assert.rejects(writer.append(facts, AUTHOR), JournalClosed)
    await assert.rejects(bench.journal.list(), JournalClosed)
    await assert.rejects(bench.create('run-2'), JournalClosed)
  },

  async 'a change of state is in the snapshot when it is acknowledged'(bench) {
    const writer = await bench.create()
    await applyCommand(writer, { kind: 'move', to: 'CLONED_INPUTS' })
    assert.deepEqual(await bench.journal.peek('run-1'), writer.run)
    await writer.close()
  },

  async 'the snapshot follows many events, and is never ahead of them'(bench) {
    const writer = await bench.create()
    for (let i = 0; i < 300; i++) {
      await applyCommand(writer, { kind: 'change-section', section: 's', to: `state ${i}` })
      const seen = await bench.journal.peek('run-1')
      assert.ok((seen?.last_seq ?? 0) <= writer.run.last_seq)
    }
    const behind = writer.run.last_seq - ((await bench.journal.peek('run-1'))?.last_seq ?? 0)
    assert.ok(behind < 256, `it is ${behind} events behind`)
    await writer.close()
    assert.deepEqual(await bench.journal.peek('run-1'), writer.run)
  },
}
