import type { Fact } from '../../core/job/facts.ts'
import type { JobCheck } from './check.ts'

/** Facts are numbered without gaps, and each can be read. */
export const ledgerIsWhole: JobCheck = {
  name: 'ledger-is-whole',
  promise: 'P8',
  says: 'No fact of a job is missing, repeated or unreadable.',
  look: ({ dossier, facts, unreadable, foldFault, isTruncated }) => [
    ...unreadable.map(({ raw, why }) => ({
      what: `fact ${raw.seq} cannot be read: ${why}`,
      evidence: { seq: raw.seq, kind: raw.kind, path: raw.path },
    })),
    ...(foldFault === undefined ? [] : [{ what: foldFault }]),
    ...(isTruncated
      ? [{ what: `the row tells of fact ${dossier.row?.seq}, and ${lastOf(facts)}` }]
      : []),
  ],
}

function lastOf(facts: readonly Fact[]): string {
  const last = facts[facts.length - 1]
  return last === undefined ? 'there is none' : `the last one is ${last.seq}`
}
