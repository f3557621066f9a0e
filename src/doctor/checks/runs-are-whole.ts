import { messageOf } from '../../core/errors.ts'
import type { Finding, Remedy } from '../finding.ts'
import { shellWord } from '../shell-word.ts'

/** What the doctor needs of a journal, in a folder or in a store. */
export interface RunRecords {
  /** The folder, or 'the store'. */
  readonly name: string
  list(): Promise<readonly string[]>
  verify(runId: string): Promise<
    readonly {
      readonly kind: 'log' | 'tail' | 'snapshot' | 'artifact' | 'lease'
      readonly severity: 'error' | 'notice'
      readonly message: string
      readonly details: Readonly<Record<string, unknown>>
    }[]
  >
  /** Repairs tail and snapshot, as opening a run for writing does; throws if it is held. */
  mend(runId: string): Promise<void>
}

/** The repairs that opening a run for writing makes. */
const REMEDIES: Readonly<Record<string, Remedy>> = {
  snapshot: 'rebuild the snapshot',
  tail: 'rebuild the snapshot',
  lease: 'end the lease',
}

const RUNS_ARE_WHOLE = 'runs-are-whole'

/** Verifies the log, the snapshot and the artifacts of every run. */
export async function* checkRuns(
  records: RunRecords,
): AsyncIterable<{ runId: string; finding: Finding }> {
  for (const runId of await records.list()) {
    for (const finding of await verified(records, runId)) yield { runId, finding }
  }
}

async function verified(records: RunRecords, runId: string): Promise<Finding[]> {
  const subject = `run ${runId} in ${records.name}`
  const base = { check: RUNS_ARE_WHOLE, promise: 'P9', subject } as const
  try {
    const findings = await records.verify(runId)
    return findings.map(({ kind, message, details }): Finding => {
      const remedy = REMEDIES[kind]
      const finding = { ...base, what: message, evidence: details }
      return remedy !== undefined
        ? { ...finding, severity: 'warning', remedy }
        : {
            ...finding,
            severity: 'error',
            advice: `See all of it: pawl run verify ${shellWord(runId)}`,
          }
    })
  } catch (error) {
    const what = `it cannot be verified: ${messageOf(error)}`
    return [{ ...base, severity: 'error', what, evidence: {} }]
  }
}
