/** `docs/internals/state-machines.md`: every machine as a picture and as tables. */
import type { Lifecycle } from 'pawl'
import {
  analyse,
  executionMachine,
  JOB_TRIGGERS,
  LIFECYCLES,
  type Machine,
  pathOf,
  toMarkdown,
  toMermaid,
  workerMachine,
} from 'pawl/rules'
import { documentationRun } from 'pawl/runs'

const ORIGINS: Record<string, string> = {
  standard: 'The default lifecycle of jobs.',
  hardened: 'The lifecycle of the hardening requirements ([R0](requirements.md)).',
  leased: 'The lifecycle of the state-model requirements ([R1](requirements.md)).',
  document: 'The lifecycle of the job-lifecycle requirements ([R2](requirements.md)).',
  task: 'The lifecycle of the worker-loop requirements ([R3](requirements.md)).',
  execution: 'One attempt at a job ([R1](requirements.md)).',
  worker:
    'One slot of a worker ([R3](requirements.md)). ' +
    'On SQLite a worker looks whether anything is ready ' +
    '(Polling) and then takes the write lock for the lease (Claiming); if others were quicker, ' +
    'or what is ready is not for this worker, the claim is lost. On PostgreSQL, in a private ' +
    'database in memory, and when a claim comes with a report, one statement looks and takes: ' +
    'task-found and lease-acquired are then one step, and claim-lost cannot happen, because a ' +
    'row that another worker has locked is skipped. Recovery is skipped if its interval has not ' +
    'passed since the last look at expired leases.',
  run: 'An event-sourced run ([R4](requirements.md)).',
}

/** The whole document. */
export function stateMachinesDocument(): string {
  return [
    '# State machines',
    '',
    'Generated from the machines in `src/core`. Change them there, then run',
    '`npm run docs:generate`; `npm test` fails while this page is out of date.',
    '',
    'In the pictures a plus sign marks an edge that was added to those of the document, with its',
    'reason in the table below. In the tables of paths, each cell is the way that a job takes in',
    'one step from the state at the head of its column; an empty cell means that the trigger does',
    'not apply there.',
    '',
    ...LIFECYCLES.flatMap(lifecycleSection),
    ...[executionMachine, workerMachine, documentationRun.machine].flatMap(machineSection),
  ].join('\n')
}

function machineSection(machine: Machine): string[] {
  return [`## ${machine.name}`, '', ORIGINS[machine.name] ?? '', '', ...pictureOf(machine)]
}

function lifecycleSection(lifecycle: Lifecycle): string[] {
  const { machine } = lifecycle
  const title = `### Paths of ${machine.name}`
  return [...machineSection(machine), title, '', pathTable(lifecycle), '']
}

function pictureOf(machine: Machine): string[] {
  const { terminal } = analyse(machine)
  return [
    '```mermaid',
    toMermaid(machine).trimEnd(),
    '```',
    '',
    `Same state: ${machine.sameState}. Terminal: ${terminal.join(', ')}.`,
    '',
    toMarkdown(machine),
  ]
}

function pathTable(lifecycle: Lifecycle): string {
  const states = [...lifecycle.machine.states.keys()]
  const triggers = JOB_TRIGGERS.filter((trigger) => lifecycle.targets.has(trigger))
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const rows = triggers.map((trigger) => {
    const cells = states.map((state) => pathOf(lifecycle, state, trigger)?.join(' → ') ?? '')
    return line([`**${trigger}**`, ...cells])
  })
  const missing = JOB_TRIGGERS.filter((trigger) => !lifecycle.targets.has(trigger))
  return [
    line(['trigger', ...states]),
    line(['---', ...states.map(() => '---')]),
    ...rows,
    '',
    missing.length > 0 ? `Unsupported: ${missing.join(', ')}.` : '',
  ].join('\n')
}
