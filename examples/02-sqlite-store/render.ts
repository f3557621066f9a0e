/** The ledgers of several jobs as a table for people. */
import type { Fact, Violation } from 'pawl/rules'

/** What the story came to. */
export interface StoryResult {
  readonly orders: number
  readonly succeeded: number
  readonly attempts: number
  readonly invoices: number
  readonly delivered: number
  readonly lateCommit: string
  readonly violations: readonly Violation[]
}

/** The whole story: every fact in the file, and what it came to. */
export function renderStory(ledgers: readonly Fact[][], result: StoryResult): string {
  const facts = ledgers.slice().reverse().flat()
  const start = facts[0]?.at ?? 0
  return [
    'Three orders, three jobs, one SQLite file. Everything that happened, as the file tells it:',
    '',
    ...facts.map((fact) => line(fact, start)),
    '',
    `Orders ${result.orders}, attempts ${result.attempts}, invoices ${result.invoices}, ` +
      `e-mails delivered ${result.delivered}, jobs succeeded ${result.succeeded}.`,
    `The worker that came back too late was told ${result.lateCommit}, and wrote nothing.`,
    result.violations.length === 0
      ? 'Promises P2, P3, P5, P6, P9 and P11 hold for every job.'
      : `Broken promises: ${JSON.stringify(result.violations)}`,
    '',
  ].join('\n')
}

function line(fact: Fact, start: number): string {
  const moved = fact.from !== fact.to || fact.via !== undefined
  const states = [...(fact.from === null ? [] : [fact.from]), ...(fact.via ?? []), fact.to]
  const cells = [
    `job ${fact.jobId.slice(-1)}`,
    `${((fact.at - start) / 1000).toFixed(0)} s`.padStart(5),
    fact.trigger.padEnd(7),
    (moved ? states.join(' → ') : fact.to).padEnd(20),
    (fact.execution?.statuses.join(' → ') ?? '').padEnd(21),
    fact.execution?.worker ?? fact.actor,
  ]
  return `  ${cells.join('  ')}`.trimEnd()
}
