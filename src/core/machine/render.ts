/**
 * Diagrams and tables of a machine. Names need no escaping: `soundness.ts` allows plain words only.
 */
import type { EdgeSpec, Machine, StateSpec } from './define.ts'

/** Returns a Mermaid state diagram. Added edges have a plus sign, operator edges `(operator)`. */
export function toMermaid(machine: Machine): string {
  const states = [...machine.states.keys()]
  const aliased = states.some((state) => state.includes('-') || MERMAID_WORDS.includes(state))
  const id = (state: string) => (aliased ? `s${states.indexOf(state)}` : state)
  const lines = ['stateDiagram-v2']
  if (aliased) lines.push(...states.map((state) => `  state "${state}" as ${id(state)}`))
  lines.push(`  [*] --> ${id(machine.initial)}`)
  for (const edge of machine.edges) {
    lines.push(`  ${id(edge.from)} --> ${id(edge.to)}: ${edgeLabel(edge)}`)
  }
  for (const [state, { terminal }] of machine.states) {
    if (terminal) lines.push(`  ${id(state)} --> [*]`)
  }
  return `${lines.join('\n')}\n`
}

/** Words that Mermaid does not accept as the name of a state. */
const MERMAID_WORDS = ['as', 'class', 'classDef', 'default', 'direction', 'end', 'note', 'state']

/** Returns a Graphviz graph. Added edges are dashed, terminal states have a double border. */
export function toDot(machine: Machine): string {
  const lines = [`digraph "${machine.name}" {`, '  rankdir=LR']
  for (const [state, { terminal }] of machine.states) {
    lines.push(`  "${state}" [shape=box${terminal ? ', peripheries=2' : ''}]`)
  }
  for (const edge of machine.edges) {
    const style = edge.because === undefined ? '' : ', style=dashed'
    lines.push(`  "${edge.from}" -> "${edge.to}" [label="${edgeLabel(edge)}"${style}]`)
  }
  return `${[...lines, '}'].join('\n')}\n`
}

/** Returns two Markdown tables: the states with their meaning, and the edges with their origin. */
export function toMarkdown(machine: Machine): string {
  const states = [...machine.states].map(([state, spec]) => [
    `\`${state}\``,
    stateKind(spec, state === machine.initial),
    spec.meaning,
  ])
  const edges = machine.edges.map((edge) => [
    `\`${edge.from}\` → \`${edge.to}\``,
    edge.on.join(', '),
    edge.operator ? 'operator' : '',
    edge.because === undefined ? 'documented' : `added: ${edge.because}`,
  ])
  return [
    markdownTable(['state', 'kind', 'meaning'], states),
    markdownTable(['edge', 'triggers', 'who', 'origin'], edges),
  ].join('\n')
}

/** Returns a Markdown table. Bars in cells are escaped, and line breaks become spaces. */
export function markdownTable(head: readonly string[], rows: readonly string[][]): string {
  const inCell = (cell: string) => cell.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ')
  const line = (cells: readonly string[]) => `| ${cells.map(inCell).join(' | ')} |`
  return `${[line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')}\n`
}

function edgeLabel(edge: EdgeSpec): string {
  const marks = [edge.because === undefined ? '' : ' +', edge.operator ? ' (operator)' : '']
  return edge.on.join(', ') + marks.join('')
}

function stateKind(spec: StateSpec, initial: boolean): string {
  const kinds = [
    initial ? 'initial' : '',
    spec.stable ? 'stable' : '',
    spec.transitional ? 'transitional' : '',
    spec.terminal ? 'terminal' : '',
  ]
  return kinds.filter((kind) => kind !== '').join(', ')
}
