/** A journal of runs, as the doctor looks at it and mends it. */
import type { RunRecords } from '../../doctor/checks/runs-are-whole.ts'
import type { Author, Journal } from './journal.ts'

/** The records of a journal; `name` is where it is, for people. */
export function recordsOf(journal: Journal, name: string, author: Author): RunRecords {
  return {
    name,
    list: () => journal.list(),
    verify: (runId) => journal.verify(runId),
    // Whoever opens a run for writing sets the torn tail aside and writes the snapshot anew.
    mend: async (runId) => (await journal.open(runId, author)).close(),
  }
}
