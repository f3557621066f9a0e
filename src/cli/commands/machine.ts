/** `pawl machine list|show|migrate`: states, edges and versions of machines. */
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { EdgeSpec, Machine } from '../../core/machine/define.ts'
import { toDot, toMermaid } from '../../core/machine/render.ts'
import { NameUnknown } from '../../engine/errors.ts'
import { findMachine, type KnownMachine, knownMachines } from '../../engine/machines.ts'
import { versionsOf } from '../../stores/versions.ts'
import { UsageInvalid } from '../errors.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, type OptionSpec, wholeOf } from '../spec.ts'
import { visible } from '../visible.ts'
import { migrateCommand } from './machine-migrate.ts'

async function machinesOf(call: Call): Promise<KnownMachine[]> {
  const jobs = await loadJobFiles(call.settings.jobs.value)
  const own = [...new Set([...LIFECYCLES, ...jobs.map(({ lifecycle }) => lifecycle)])]
  return knownMachines([...own, ...(hasFlag(call, 'stored') ? await storedOf(call, own) : [])])
}

/** Versions that only the store has, from other releases. */
function storedOf(call: Call, own: readonly Lifecycle[]): Promise<readonly Lifecycle[]> {
  return withPawl(call, async ({ store }) => (await versionsOf(store, own)).stored)
}

async function list(call: Call): Promise<undefined> {
  const { output } = call
  const entries = await machinesOf(call)
  if (output.json) {
    for (const { kind, machine } of entries) {
      const { name, version, states, edges } = machine
      output.record({ name, kind, version, states: states.size, edges: edges.length })
    }
    return undefined
  }
  const columns = [
    { head: 'machine' },
    { head: 'of' },
    { head: 'version', right: true },
    { head: 'states' },
  ]
  const rows = entries.map(({ kind, machine }) => [
    ...[machine.name, kind, String(machine.version)],
    [...machine.states.keys()].join(' '),
  ])
  output.table(
    columns.map((column) => ({ max: 100, ...column })),
    rows,
  )
  return undefined
}

async function show(call: Call): Promise<undefined> {
  const { output } = call
  const [name = ''] = call.args
  const entries = await machinesOf(call)
  const wanted = wholeOf(call, 'machineVersion', 1)
  const entry = findMachine(entries, name, wanted)
  if (entry === undefined) {
    throw new NameUnknown(
      'machine',
      visible(wanted === undefined ? name : `${name} version ${wanted}`),
      [...new Set(entries.map(({ machine }) => machine.name))],
    )
  }
  const { kind, machine } = entry
  const ways = ['mermaid', 'dot'].filter((way) => hasFlag(call, way))
  if (ways.length + Number(output.json) > 1) {
    throw new UsageInvalid('--mermaid, --dot and --json cannot be used together')
  }
  if (ways[0] === 'mermaid') output.line(toMermaid(machine).trimEnd())
  else if (ways[0] === 'dot') output.line(toDot(machine).trimEnd())
  else if (output.json) {
    const { version, initial, edges } = machine
    const states = Object.fromEntries(machine.states)
    output.record({ name: machine.name, kind, version, initial, states, edges })
  } else printMachine(call, machine)
  return undefined
}

function printMachine({ output }: Call, machine: Machine): void {
  const states = [...machine.states].map(([state, { terminal, meaning }]) => [
    state,
    state === machine.initial ? 'first' : terminal ? 'last' : '',
    meaning,
  ])
  output.table([{ head: 'state' }, { head: '' }, { head: 'meaning', max: 100 }], states)
  output.line()
  const edges = machine.edges.map(({ from, to, on, operator, because }: EdgeSpec) => [
    `${from} → ${to}`,
    on.join(', '),
    [operator ? 'operator' : '', because ?? ''].filter((part) => part !== '').join('; '),
  ])
  output.table([{ head: 'edge' }, { head: 'on' }, { head: 'note', max: 100 }], edges)
}

const JOBS: OptionSpec = {
  flags: '--jobs <file>',
  says: 'a job file with its own lifecycles',
  repeats: true,
}

const STORED: OptionSpec = {
  flags: '--stored',
  says: 'also versions of lifecycles that only the store has',
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'machine list',
    summary: 'List the machines: lifecycles, and those of executions, workers and runs',
    options: [JOBS, STORED],
    examples: [
      ['pawl machine list', 'all known machines'],
      ['pawl machine list --stored --store sqlite:./jobs.db', 'and those of the store'],
    ],
    run: list,
  },
  {
    name: 'machine show',
    summary: 'Show the states and edges of a machine',
    args: [{ flags: '<name>', says: 'the name of the machine' }],
    options: [
      { flags: '--mermaid', says: 'as a Mermaid diagram' },
      { flags: '--dot', says: 'as a Graphviz graph' },
      {
        flags: '--machine-version <number>',
        says: 'this version; the latest if absent',
      },
      JOBS,
      STORED,
    ],
    examples: [
      ['pawl machine show standard', 'tables'],
      ['pawl machine show standard --mermaid', 'a diagram for Markdown'],
      ['pawl machine show run --dot | dot -Tsvg > run.svg', 'a picture'],
    ],
    run: show,
  },
  migrateCommand,
]
