/** The graph of a flow as a Mermaid diagram. Names of job types are data: they are escaped. */
import { span } from '../core/format.ts'
import type { FlowBox, FlowEdge, FlowGraph } from './flow-folding.ts'
import { NODE_STATUSES } from './flow-points.ts'

const NAME_MAX = 60

/** Returns a flow chart. Times of edges are counted from `since`, when the flow was created. */
export function flowMermaid({ boxes, edges }: FlowGraph, since: number): string {
  const ids = new Map(boxes.map(({ id }, i) => [id, `b${i}`]))
  const idOf = (box: string) => ids.get(box) as string
  const lines = [
    'flowchart LR',
    ...boxes.map((box) => `  ${idOf(box.id)}["${escaped(boxTitle(box))}<br/>${boxSays(box)}"]`),
    ...edges.map((edge) => `  ${idOf(edge.from)} ${arrowOf(edge, since)} ${idOf(edge.to)}`),
    '  classDef critical stroke-width:3px',
  ]
  const critical = boxes.filter((box) => box.critical).map(({ id }) => idOf(id))
  if (critical.length > 0) lines.push(`  class ${critical.join(',')} critical`)
  return `${lines.join('\n')}\n`
}

/** The name of a box: the type, and its node number or how many nodes it has. */
export function boxTitle({ type, types, count, first }: FlowBox): string {
  const others = types > 1 ? ` and ${types - 1} more types` : ''
  return count === 1 ? `${type} #${first}` : `${type}${others} ×${count}`
}

/** How the nodes of a box stand, and how long they took. */
export function boxSays({ count, statuses, startedAt, endedAt }: FlowBox): string {
  const words = NODE_STATUSES.flatMap((status) => {
    const many = statuses[status]
    if (many === undefined) return []
    return count === 1 ? status : `${many} ${status}`
  })
  const took = startedAt !== null && endedAt !== null ? ` in ${span(endedAt - startedAt)}` : ''
  return `${words.join(', ')}${took}`
}

/** When the dependency arrived, after the creation of the flow, or how many have not. */
export function edgeSays({ at, open, count, failed }: FlowEdge, since: number): string {
  if (failed > 0) return count === 1 ? 'failed' : `${failed} of ${count} failed`
  if (at === null) return count === 1 ? '' : `${count - open} of ${count}`
  return `+${span(at - since)}`
}

function arrowOf(edge: FlowEdge, since: number): string {
  const says = edgeSays(edge, since)
  const label = says === '' ? '' : `|"${says}"|`
  const line = edge.critical ? '==>' : edge.needs.includes('success') ? '-->' : '-.->'
  return `${line}${label}`
}

/** Mermaid reads entities of numbers; everything that is not a plain character becomes one. */
function escaped(text: string): string {
  const shown = [...text].slice(0, NAME_MAX).join('')
  return shown.replace(/[^\p{L}\p{N} _.,:/×#-]|#/gu, (char) => `#${char.codePointAt(0)};`)
}
