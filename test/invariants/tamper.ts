// Hand-made ledgers for the tests of the promises: a legal one to start from, and ways to spoil it.
import type { Job, Lifecycle } from 'pawl'
import { checkFacts, checkP9, type Fact, type Violation } from 'pawl/rules'

/** The ledger with one of its facts changed, by its number. */
export function alter(facts: readonly Fact[], seq: number, fields: Partial<Fact>): Fact[] {
  return facts.map((fact) => (fact.seq === seq ? { ...fact, ...fields } : fact))
}

/** The ledger with one more fact, which goes on where the last one ended unless told otherwise. */
export function append(facts: readonly Fact[], fields: Partial<Fact>): Fact[] {
  const last = facts.at(-1)
  if (last === undefined) throw new Error('there is no fact to go on from')
  const { version, jobId, seq, at, to } = last
  const next: Fact = {
    version,
    jobId,
    seq: seq + 1,
    at,
    trigger: 'prioritise',
    from: to,
    to,
    actor: 'engine',
    ...fields,
  }
  return [...facts, next]
}

/** The ledger without some fields of one of its facts. */
export function without(facts: readonly Fact[], seq: number, ...keys: (keyof Fact)[]): Fact[] {
  return facts.map((fact) => {
    if (fact.seq !== seq) return fact
    const kept = Object.entries(fact).filter(([key]) => !keys.some((lost) => lost === key))
    return Object.fromEntries(kept) as unknown as Fact
  })
}

/** Which fact breaks which promise and how, one line each. */
export function lines(violations: readonly Violation[]): string[] {
  return violations.map(({ promise, seq, what }) => `${promise} at ${seq}: ${what}`)
}

/** Everything that all promises together have to say about a ledger and the row beside it. */
export function reports(lifecycle: Lifecycle, row: Job, facts: readonly Fact[]): Violation[] {
  return [...checkFacts(lifecycle, facts), ...checkP9(row, facts)]
}
