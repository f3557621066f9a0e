/** The ledger of a job as a table for people. */
import { type Execution, executionsOf, type Fact, type Violation } from 'pawl/rules'
import type { JobScript } from 'pawl/testing'

/** What the story came to. */
export interface StoryResult {
  readonly state: string
  readonly refusals: readonly { who: string; command: string; code: string }[]
  readonly violations: readonly Violation[]
}

/** The whole story: ledger, executions, refusals and verdict. */
export function renderStory(script: JobScript, result: StoryResult): string {
  const { facts, job } = script
  const start = job.createdAt
  return [
    `Job ${job.id}: type ${job.type}, lifecycle ${job.lifecycle}`,
    '',
    'Its ledger, one row for each atomic step:',
    '',
    table(
      ['seq', 'time', 'what', 'state', 'execution', 'why', 'who'],
      facts.map((fact) => factRow(fact, start)),
    ),
    '',
    'Its executions, derived from the ledger:',
    '',
    table(
      ['attempt', 'worker', 'status', 'because', 'error'],
      executionsOf(facts).map(executionRow),
    ),
    '',
    'What was refused, and left no trace in the ledger:',
    '',
    table(
      ['who', 'asked for', 'answer'],
      result.refusals.map(({ who, command, code }) => [who, command, code]),
    ),
    '',
    result.violations.length === 0
      ? `The job has ${result.state}, once. Promises P2, P3, P5, P6, P9 and P11 hold.`
      : `Broken promises: ${JSON.stringify(result.violations)}`,
    '',
  ].join('\n')
}

function factRow(fact: Fact, start: number): string[] {
  const states = [fact.from ?? '', ...(fact.via ?? []), fact.to]
  const moved = fact.from !== fact.to || fact.via !== undefined
  return [
    String(fact.seq),
    `${((fact.at - start) / 1000).toFixed(1)} s`,
    fact.trigger,
    moved ? states.filter((state) => state !== '').join(' → ') : fact.to,
    fact.execution ? `${fact.execution.attempt}: ${fact.execution.statuses.join(' → ')}` : '',
    fact.reason ?? '',
    fact.execution?.worker ?? fact.actor,
  ]
}

function executionRow(execution: Execution): string[] {
  const { attempt, leaseOwner, status, abort, error } = execution
  return [String(attempt), leaseOwner, status, abort ?? '', error?.message ?? '']
}

function table(head: readonly string[], rows: readonly string[][]): string {
  const all = [head, ...rows]
  const widths = head.map((_, i) => Math.max(...all.map((row) => (row[i] ?? '').length)))
  const line = (row: readonly string[]) =>
    `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd()
  return [line(head), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)].join('\n')
}
