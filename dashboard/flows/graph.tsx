/** The graph of a flow: nodes, or nodes that are folded into one, and when dependencies arrived. */
import { useMemo } from 'preact/hooks'
import type { FlowBox, FlowEdge } from '../../src/audit/flow-folding.ts'
import { count, span } from '../format.ts'
import { type Columns, type Drawn, layOutColumns, type Placed } from '../graph/columns.ts'
import { hrefOf, jobHref } from '../router.ts'
import { SignShape } from '../ui/state.tsx'
import { NODE_TONES, statusesOf } from './tones.ts'

interface Props {
  readonly flow: { readonly id: string; readonly createdAt: number }
  readonly boxes: readonly FlowBox[]
  readonly edges: readonly FlowEdge[]
}

const SIZE = { width: 184, height: 46 }
const DISTANCES = { gap: 92, row: 64 }
/** How small the picture may become before it scrolls. */
const READABLE = 0.74

export function FlowPicture({ flow, boxes, edges }: Props) {
  // The layout depends on what waits for what alone, so nothing moves while numbers change.
  const structure = `${boxes.map(({ id }) => id).join()} ${edges.map(edgeKey).join()}`
  const layout = useMemo(() => {
    const sizes = new Map(boxes.map(({ id }) => [id, SIZE]))
    const links = edges.map(({ from, to }) => ({ from, to }))
    return layOutColumns(sizes, links, DISTANCES)
  }, [structure])
  return <Drawing {...{ flow, boxes, edges, layout }} />
}

type Layout = Columns<{ readonly from: string; readonly to: string }>

function Drawing({ flow, boxes, edges, layout }: Props & { layout: Layout }) {
  const { width, height, lines, boxes: places } = layout
  const byKey = new Map(edges.map((edge) => [edgeKey(edge), edge]))
  const drawn = lines.map((line) => ({ line, edge: byKey.get(edgeKey(line)) as FlowEdge }))
  // Pale lines first, so that the critical path is above them.
  drawn.sort((a, b) => Number(a.edge.critical) - Number(b.edge.critical))
  const label = 'What waits for what'
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <section class="graph flow" aria-label={label} tabIndex={0}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        style={{ maxWidth: `${width}px`, minWidth: `${width * READABLE}px` }}
        role={boxes.length > 0 ? 'group' : 'img'}
        aria-label={label}
      >
        {drawn.map(({ line, edge }) => (
          <Edge key={edgeKey(edge)} {...{ line, edge }} />
        ))}
        {boxes.map((box) => (
          <Box key={box.id} box={box} flow={flow.id} at={places.get(box.id) as Placed} />
        ))}
        {drawn.map(({ line, edge }) => (
          <EdgeLabel key={edgeKey(edge)} {...{ line, edge }} since={flow.createdAt} />
        ))}
      </svg>
    </section>
  )
}

const edgeKey = ({ from, to }: { readonly from: string; readonly to: string }) => `${from}\n${to}`

type Line = Drawn<{ readonly from: string; readonly to: string }>

/** The tone of an edge: failed, arrived, or not yet. */
function toneOf({ failed, open }: FlowEdge): string {
  if (failed > 0) return 'tone-failed'
  return open === 0 ? 'tone-succeeded' : 'tone-waiting'
}

function Edge({ line, edge }: { line: Line; edge: FlowEdge }) {
  const isLit = edge.open === 0 || edge.failed > 0
  const classes = [
    'edge',
    isLit && 'lit',
    edge.critical && 'critical',
    !edge.needs.includes('success') && 'side',
  ]
  return (
    <g class={toneOf(edge)}>
      <path class={classes.filter(Boolean).join(' ')} d={line.path} />
      <circle class={isLit ? 'tip lit' : 'tip'} cx={line.tip.x} cy={line.tip.y} r={3} />
    </g>
  )
}

/** When the last one arrived, or how many have not. */
function edgeText({ at, open, count: all, failed }: FlowEdge, since: number): string {
  if (failed > 0) return all === 1 ? 'failed' : `${count(failed)} failed`
  if (at === null) return all === 1 ? '' : `${count(all - open)} of ${count(all)}`
  return `+${span(at - since)}`
}

function EdgeLabel({ line, edge, since }: { line: Line; edge: FlowEdge; since: number }) {
  const says = edgeText(edge, since)
  if (says === '') return null
  return (
    <text class="label" x={line.middle.x} y={line.middle.y + 4} text-anchor="middle">
      {says}
    </text>
  )
}

/** How many characters of a name a box has room for. */
const ROOM = 19

function clipped(name: string, room: number): string {
  const characters = [...name]
  return characters.length <= room ? name : `${characters.slice(0, room - 1).join('')}…`
}

/** Where a box leads: to its job, or to the list of its jobs. */
function targetOf({ job, type, types }: FlowBox, flow: string): string {
  return job === null ? hrefOf('/jobs', { flow, type: types > 1 ? undefined : type }) : jobHref(job)
}

function titleOf({ type, types, count: many, first }: FlowBox): string {
  if (many === 1) return `${type} #${first}`
  return `${type}${types > 1 ? ` and ${types - 1} more types` : ''}, ${count(many)} jobs`
}

/** How the nodes of a box stand: one word, or counts. */
function standing(box: FlowBox): string {
  const all = statusesOf(box)
  if (box.count > 1) return all.map(([status, many]) => `${count(many)} ${status}`).join(', ')
  const { startedAt, endedAt } = box
  const took = startedAt !== null && endedAt !== null ? ` in ${span(endedAt - startedAt)}` : ''
  return `${all[0]?.[0] ?? ''}${took}`
}

function Box({ box, flow, at }: { box: FlowBox; flow: string; at: Placed }) {
  const all = statusesOf(box)
  const status = all[0]?.[0] ?? 'later'
  const isFolded = box.count > 1
  const number = isFolded ? ` ×${count(box.count)}` : ` #${box.first}`
  const name = `${clipped(box.type, ROOM - number.length)}${number}`
  const classes = `node seen tone-${NODE_TONES[status]}${box.critical ? ' critical' : ''}`
  const says = `${titleOf(box)}: ${standing(box)}`
  // The label begins with what is seen.
  const whole = name.includes('…') ? `, ${titleOf(box)}` : ''
  const label = `${name}: ${standing(box)}${whole}`
  const link = {
    class: status === 'later' ? `${classes} later` : classes,
    transform: `translate(${at.x} ${at.y})`,
    'aria-label': box.critical ? `${label}, on the critical path` : label,
  }
  return (
    <a href={targetOf(box, flow)} {...link}>
      <title>{says}</title>
      {isFolded && <rect class="box" x={4} y={4} width={at.width} height={at.height} rx={7} />}
      <rect class="box" width={at.width} height={at.height} rx={7} />
      <g class="mark" transform="translate(10 9)">
        <SignShape tone={NODE_TONES[status]} />
      </g>
      <text class="word" x={30} y={20}>
        {name}
      </text>
      {!isFolded && (
        <text class="says" x={30} y={36}>
          {` ${standing(box)}`}
        </text>
      )}
      {isFolded && <Parts box={box} width={at.width - 20} />}
    </a>
  )
}

/** The statuses of a folded box as parts of a bar. */
function Parts({ box, width }: { box: FlowBox; width: number }) {
  const least = 3
  let x = 10
  return (
    <>
      {statusesOf(box).map(([status, many], i, { length }) => {
        const own = Math.max(least, ((width - least * length) * many) / box.count)
        const from = x
        x += own
        const tone = `part tone-${NODE_TONES[status]}`
        return <rect key={`${i} ${status}`} class={tone} x={from} y={31} width={own} height={5} />
      })}
    </>
  )
}
