/** `pawl machine list|show`: states and edges, as tables and pictures. */
import { executionMachine } from '../../core/execution.ts'
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import type { EdgeSpec, Machine } from '../../core/machine/define.ts'
import { toDot, toMermaid } from '../../core/machine/render.ts'
import { documentationRun } from '../../core/run/machine.ts'
import { workerMachine } from '../../core/worker.ts'
import { NameUnknown, UsageInvalid } from '../errors.ts'
import { loadJobFiles } from '../job-files.ts'
import { type Call, type CommandSpec, hasFlag, type OptionSpec } from '../spec.ts'
import { visible } from '../visible.ts'

interface Entry {
  readonly kind: 'job' | 'execution' | 'worker' | 'run'
  readonly machine: Machine
}

async function machinesOf(call: Call): Promise<Entry[]> {
  const jobs = await loadJobFiles(call.settings.jobs.value)
  const own = new Set([...LIFECYCLES, ...jobs.map(({ lifecycle }) => lifecycle)])
  const byName = new Map([...own].map(({ name, machine }) => [name, machine as Machine]))
  return [
    ...[...byName.values()].map((machine) => ({ kind: 'job' as const, machine })),
    { kind: 'execution', machine: executionMachine as Machine },
    { kind: 'worker', machine: workerMachine as Machine },
    { kind: 'run', machine: documentationRun.machine as Machine },
  ]
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
  const entry = entries.find(({ machine }) => machine.name === name)
  if (entry === undefined) {
    throw new NameUnknown(
      'machine',
      visible(name),
      entries.map(({ machine }) => machine.name),
    )
  }
  const { kind, machine } = entry
  const ways = ['mermaid', 'dot'].filter((way) => hasFlag(call, way))
  if (ways.length + Number(output.json) > 1) {
    throw new UsageInvalid('Only one of --mermaid, --dot and --json can be given')
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
  says: 'files of jobs with own lifecycles',
  repeats: true,
}

/** Commands about machines. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'machine list',
    summary: 'List the machines: lifecycles of jobs, and those of executions, workers and runs',
    options: [JOBS],
    examples: [['pawl machine list', 'all that are known here']],
    run: list,
  },
  {
    name: 'machine show',
    summary: 'Show the states and edges of a machine',
    args: [{ flags: '<name>', says: 'the name of the machine' }],
    options: [
      { flags: '--mermaid', says: 'as a Mermaid diagram' },
      { flags: '--dot', says: 'as a Graphviz graph' },
      JOBS,
    ],
    examples: [
      ['pawl machine show standard', 'tables'],
      ['pawl machine show standard --mermaid', 'a diagram for Markdown'],
      ['pawl machine show run --dot | dot -Tsvg > run.svg', 'a picture'],
    ],
    run: show,
  },
]
