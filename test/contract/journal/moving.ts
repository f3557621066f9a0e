/** Runs that are carried elsewhere, and runs that begin where another was. */
import assert from 'node:assert/strict'
import { CommandInvalid, RunExists, RunNotFound } from '../../../src/core/errors.ts'
import { exportRun, importRun } from '../../../src/runs/journal/bundle.ts'
import { BundleInvalid, RunNameInvalid } from '../../../src/runs/journal/errors.ts'
import { forkRun } from '../../../src/runs/journal/fork.ts'
import { AUTHOR, all, applyCommand, type JournalBench, type JournalCases, textOf } from './bench.ts'

/** Exports a run as a list of lines. */
function bundleOf({ journal }: JournalBench, runId = 'run-1'): Promise<string[]> {
  return all(exportRun(journal, runId))
}

/** The bundle under another id would need another chain, so the first journal must be emptied. */
async function refusedBundle(
  bench: JournalBench,
  lines: string[],
  type: new (...a: never[]) => Error,
) {
  await assert.rejects(importRun(bench.journal, lines), type)
}

/** Tests of export, import and fork. */
export const movingCases: JournalCases = {
  async 'the same run gives the same bundle, byte for byte'(bench) {
    await bench.example()
    assert.deepEqual(await bundleOf(bench), await bundleOf(bench))
  },

  async 'importing an existing run changes nothing'(bench) {
    const events = await bench.example()
    const outcome = await importRun(bench.journal, await bundleOf(bench))
    assert.deepEqual(outcome, { runId: 'run-1', outcome: 'same' })
    assert.deepEqual(await bench.events('run-1'), events)
  },

  async 'a run with more events is not replaced by an older bundle'(bench) {
    await bench.example()
    const lines = await bundleOf(bench)
    const writer = await bench.journal.open('run-1', AUTHOR)
    await applyCommand(writer, { kind: 'move', to: 'DRAFT_READY' })
    await writer.close()
    await refusedBundle(bench, lines, RunExists)
    assert.equal((await bench.journal.peek('run-1'))?.run_state, 'DRAFT_READY')
  },

  async 'a bundle that was changed anywhere is refused'(bench) {
    await bench.example()
    const lines = await bundleOf(bench)
    const header = JSON.parse(lines[0] as string) as Record<string, unknown>
    const withHeader = (changes: object) => [
      JSON.stringify({ ...header, ...changes }),
      ...lines.slice(1),
    ]
    for (const i of lines.keys()) {
      await refusedBundle(bench, lines.toSpliced(i, 1), Error)
      await refusedBundle(bench, lines.toSpliced(i, 0, lines[i] as string), Error)
      const changed = (lines[i] as string).replace(/[1-9a-f]"/, '0"')
      if (changed !== lines[i]) await refusedBundle(bench, lines.with(i, changed), Error)
    }
    await refusedBundle(bench, [], BundleInvalid)
    await refusedBundle(bench, ['null'], BundleInvalid)
    await refusedBundle(bench, withHeader({ version: 2 }), BundleInvalid)
    await refusedBundle(bench, withHeader({ last_hash: 'f'.repeat(64) }), BundleInvalid)
    await refusedBundle(bench, withHeader({ run_id: '../run-1' }), RunNameInvalid)
    await refusedBundle(bench, withHeader({ run_id: 'run-9' }), BundleInvalid)
    const fewer = lines.toSpliced(lines.length - 1, 1)
    fewer[0] = JSON.stringify({ ...header, artifacts: (header.artifacts as number) - 1 })
    await refusedBundle(bench, fewer, BundleInvalid)
    assert.deepEqual(await bench.journal.list(), ['run-1'])
  },

  async 'a fork has the other run’s events, an origin, a new chain and new ids'(bench) {
    const events = await bench.example()
    const seq = 9
    await forkRun(bench.journal, { from: 'run-1', seq, runId: 'run-2' }, bench.environment)
    const forked = await bench.events('run-2')
    assert.equal(forked.length, seq)
    const [first] = forked
    assert.ok(first?.type === 'RUN_CREATED')
    assert.equal(first.data.origin?.run_id, 'run-1')
    assert.equal(first.data.origin?.seq, seq)
    const ids = new Set([...events, ...forked].map(({ event_id }) => event_id))
    assert.equal(ids.size, events.length + forked.length)
    const [was, is] = await Promise.all(
      ['run-1', 'run-2'].map(async (id) => (await bench.journal.read(id)).asOf(seq)),
    )
    assert.deepEqual({ ...is, run_id: 'run-1' }, was)
    assert.deepEqual(await bench.events('run-1'), events)
  },

  async 'a fork has the contents, and continues independently'(bench) {
    await bench.example()
    const before = await bench.events('run-1')
    await forkRun(bench.journal, { from: 'run-1', seq: 9, runId: 'run-2' }, bench.environment)
    const writer = await bench.journal.open('run-2', AUTHOR)
    const plan = writer.run.artifacts_index['plan.md']
    assert.ok(plan)
    assert.equal(await textOf(writer, 'plan.md', plan.sha256), '# The plan\n')
    await applyCommand(writer, { kind: 'move', to: 'DRAFTING' })
    await writer.close()
    assert.deepEqual(await bench.events('run-1'), before)
  },

  async 'a fork needs an existing event and a free id'(bench) {
    await bench.example()
    const fork = (seq: number, runId: string, from = 'run-1') =>
      forkRun(bench.journal, { from, seq, runId }, bench.environment)
    await assert.rejects(fork(0, 'run-2'), CommandInvalid)
    await assert.rejects(fork(1000, 'run-2'), CommandInvalid)
    await assert.rejects(fork(1.5, 'run-2'), CommandInvalid)
    await assert.rejects(fork(3, 'run-1'), RunExists)
    await assert.rejects(fork(3, 'run-2', 'nobody'), RunNotFound)
    assert.deepEqual(await bench.journal.list(), ['run-1'])
  },
}
