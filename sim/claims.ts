/** Claims as they stand in the ledger, for the judges of groups and of priorities. */
import type { Fact } from 'pawl/rules'

interface Entry {
  readonly fact: Fact
}

/** Whether the fact starts an execution. */
export function isStart({ fact }: Entry): boolean {
  const last = fact.execution?.statuses.at(-1)
  const isOpen = last === 'LEASED' || last === 'IN_PROGRESS'
  return fact.execution?.statuses[0] === 'LEASED' && isOpen
}

/** Neighbours that were claimed together; every other fact stands alone. */
export function claimsOf<E extends Entry>(entries: readonly E[]): E[][] {
  const claims: E[][] = []
  for (const entry of entries) {
    const last = claims.at(-1)
    const [before] = last ?? []
    const isSame = before !== undefined && isStart(before) && isStart(entry)
    const isTogether = isSame && before.fact.execution?.worker === entry.fact.execution?.worker
    if (isTogether && before.fact.at === entry.fact.at) last?.push(entry)
    else claims.push([entry])
  }
  return claims
}
