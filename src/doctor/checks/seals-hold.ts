import { type SealFinding, verifySeals } from '../../audit/verify-seals.ts'
import { LedgerSum, type SealTables } from '../../stores/seals.ts'
import type { Finding } from '../finding.ts'
import type { StoreCheck } from './check.ts'

/** The name under which the store notes that an operator has acknowledged a broken seal. */
const BROKEN_SEAL = 'seal'

/**
 * Verifies the seals. A broken seal cannot be repaired, so it would be reported in every check. An
 * operator can acknowledge exactly this state; then it is a notice.
 */
export const sealsHold: StoreCheck = {
  name: 'seals-hold',
  promise: 'P8',
  says: 'The ledger agrees with its seals, except for what retention has recorded.',
  look: async ({ store }) => {
    const known = new Set(await store.examination.notes(BROKEN_SEAL))
    const findings: Omit<Finding, 'check'>[] = []
    for await (const found of verifySeals(store.seals)) {
      const state = await stateOf(store.seals, found)
      const isKnown = known.has(state)
      findings.push({
        promise: 'P8',
        severity: isKnown ? 'notice' : 'error',
        subject: found.seal === undefined ? 'the seals' : `seal ${found.seal}`,
        what: found.message,
        evidence: { origin: BROKEN_SEAL, state },
        ...(!isKnown && { remedy: 'note what is wrong and go on' }),
        advice: 'Compare the ledger with a backup, an export or the archives of retention.',
      })
    }
    return findings
  },
}

/** Identifies the broken state. Later retention does not change it. */
async function stateOf(tables: SealTables, found: SealFinding): Promise<string> {
  const { kind, seal, range, message } = found
  if (seal === undefined || range === undefined) return JSON.stringify({ kind, message })
  const total = new LedgerSum()
  total.merge(await tables.measure(...range))
  for (const removal of await tables.removalsOf(seal)) total.merge(removal)
  return JSON.stringify({ kind, seal, facts: total.facts, sum: total.sum })
}
