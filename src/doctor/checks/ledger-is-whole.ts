import type { Fact } from '../../core/job/facts.ts'
import type { JobCheck } from './check.ts'

export const ledgerIsWhole: JobCheck = {
  name: 'ledger-is-whole',
  promise: 'P8',
  says: 'No fact of a job is missing, repeated or unreadable.',
  look: ({ stored, facts, unreadable, foldFault, isTruncated }) => [
    ...unreadable.map(({ raw, why }) => ({
      what: `fact ${raw.seq} cannot be read: ${why}`,
      evidence: { seq: raw.seq, kind: raw.kind, path: raw.path },
    })),
    ...(foldFault === undefined ? [] : [{ what: foldFault }]),
    ...(isTruncated ? [{ what: `the row has fact ${stored.row?.seq}, but ${lastOf(facts)}` }] : []),
  ],
}

function lastOf(facts: readonly Fact[]): string {
  const last = facts[facts.length - 1]
  return last === undefined ? 'the ledger has none' : `the last one in the ledger is ${last.seq}`
}
