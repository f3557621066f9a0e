import { type SealFinding, verifySeals } from '../../audit/verify-seals.ts'
import { LedgerSum, type SealTables } from '../../stores/seals.ts'
import type { Finding } from '../finding.ts'
import type { StoreCheck } from './check.ts'

/** Under which name it is kept that an operator knows of a seal that does not hold. */
const BROKEN_SEAL = 'seal'

/**
 * What was sealed is there, unchanged. What is not can never be brought back, and the seal goes on
 * saying so; an operator can take note of exactly that, and then it is no longer an error.
 */
export const sealsHold: StoreCheck = {
  name: 'seals-hold',
  promise: 'P8',
  says: 'The ledger is what was sealed, but for what retention says that it removed.',
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

/** What exactly does not hold; retention does not change it. */
async function stateOf(tables: SealTables, found: SealFinding): Promise<string> {
  const { kind, seal, range, message } = found
  if (seal === undefined || range === undefined) return JSON.stringify({ kind, message })
  const total = new LedgerSum()
  total.merge(await tables.measure(...range))
  for (const removal of await tables.removalsOf(seal)) total.merge(removal)
  return JSON.stringify({ kind, seal, facts: total.facts, sum: total.sum })
}
