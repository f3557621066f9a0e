/**
 * The contract suite of journals: what every place for runs must pass. Like the suite of stores it
 * uses the contract alone and asserts with Node's own `assert`. After every test each run is
 * verified, and its log is folded and compared with its snapshot.
 */
import assert from 'node:assert/strict'
import { foldRun } from '../../../src/core/run/evolve.ts'
import { testEnvironment } from '../../../src/testing/test-environment.ts'
import { artifactCases } from './artifacts.ts'
import { all, JournalBench, type JournalCases, type OpenJournal } from './bench.ts'
import { holdingCases } from './holding.ts'
import { movingCases } from './moving.ts'
import { readingCases } from './reading.ts'
import { writingCases } from './writing.ts'

export type { OpenJournal } from './bench.ts'

/** What the suite needs: a test runner, and a way to a fresh journal. */
export interface JournalContractOptions {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (name: string, body: () => Promise<void>) => unknown
  readonly open: OpenJournal
}

const THEMES: Readonly<Record<string, JournalCases>> = {
  writing: writingCases,
  reading: readingCases,
  holding: holdingCases,
  artifacts: artifactCases,
  'export, import and fork': movingCases,
}

/** Declares the tests of the contract for one kind of journal. */
export function journalContract({ describe, it, open }: JournalContractOptions): void {
  for (const [theme, cases] of Object.entries(THEMES)) {
    describe(theme, () => {
      for (const [name, run] of Object.entries(cases)) {
        it(name, async () => {
          const environment = testEnvironment()
          const bench = new JournalBench(environment, await open(environment))
          try {
            await run(bench)
          } finally {
            await bench.journal.close()
          }
          await checkJournal(bench)
        })
      }
    })
  }
}

/** Opened anew, every run is whole, and its snapshot is the fold of its events. */
async function checkJournal(bench: JournalBench): Promise<void> {
  const journal = await bench.again()
  try {
    for (const runId of await journal.list()) {
      const reader = await journal.read(runId)
      const run = foldRun(await all(reader.events()))
      assert.deepEqual((await reader.replay()).run, run, 'a replay is the fold of the events')
      const findings = await journal.verify(runId)
      assert.deepEqual(findings, [])
      assert.deepEqual(await journal.peek(runId), run, 'the snapshot is the fold of the events')
    }
  } finally {
    await journal.close()
  }
}
