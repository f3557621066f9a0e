/** A machine as a picture, with what is known of its states and edges. */
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { type MachineData, type MachineEdge, toneOf } from '../machine-data.ts'
import { SignShape } from '../ui/state.tsx'
import { placeLabels } from './labels.ts'
import { type Box, type Layout, type Line, layOut } from './layout.ts'
import { isSideEdge } from './side-edges.ts'

/** What is shown of a state. */
export interface StateMark {
  /** A short text below its name. */
  readonly says?: string
  readonly seen?: boolean
  readonly now?: boolean
  readonly href?: string
}

/** What is shown of an edge. */
export interface EdgeMark {
  readonly lit: boolean
  readonly label?: string
  /** How often it was taken; the width of the line, on a log scale. */
  readonly traffic?: number
}

export interface GraphProps {
  readonly machine: MachineData
  readonly label: string
  readonly stateMark?: (state: string) => StateMark
  readonly edgeMark?: (edge: MachineEdge) => EdgeMark | undefined
  /** Also the edges that people take: cancel, park and reschedule. */
  readonly full?: boolean
  /** Without labels of edges; scrolls rather than become so small that it cannot be read. */
  readonly readable?: boolean
  /** Boxes that nothing is known of are pale. */
  readonly pale?: boolean
}

export function Graph(props: GraphProps) {
  const { machine, label, full = false, edgeMark, pale = false, readable } = props
  const taken = full ? '' : takenKey(props)
  const layout = useMemo(() => {
    const isShown = (edge: MachineEdge) => !isSideEdge(machine, edge) || isTaken(edge, edgeMark)
    return layOut(machine, (edge) => full || isShown(edge), readable)
  }, [machine, full, taken, readable])
  return <Picture {...props} layout={layout} label={label} pale={pale} />
}

function isTaken(edge: MachineEdge, mark: GraphProps['edgeMark']): boolean {
  return mark?.(edge)?.lit ?? false
}

/** Which side edges are drawn, as a text that changes only if they do. */
function takenKey({ machine, edgeMark }: GraphProps): string {
  const side = machine.edges.filter((edge) => isSideEdge(machine, edge))
  return side
    .filter((edge) => isTaken(edge, edgeMark))
    .map(({ from, to }) => `${from}>${to}`)
    .join()
}

/** How small a picture may be drawn that must be readable. */
const READABLE = 0.78

function Picture({
  machine,
  label,
  layout,
  stateMark = () => ({}),
  edgeMark = () => undefined,
  pale,
  readable = false,
}: GraphProps & { layout: Layout }) {
  const { width, height, boxes, lines } = layout
  const least = readable ? width * READABLE : Math.min(width, Math.max(560, width * 0.62))
  const region = useRef<HTMLElement>(null)
  const here = boxes.find(({ state }) => stateMark(state).now)?.state
  useLayoutEffect(() => showPresent(region.current), [here])
  // Pale lines first, so that lit ones are above them.
  const marked = lines.map((line) => ({ line, mark: edgeMark(line.edge) }))
  const ordered = marked.toSorted((a, b) => Number(a.mark?.lit ?? 0) - Number(b.mark?.lit ?? 0))
  return (
    // Scrolls by the keyboard as well, if it is wider than its panel.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <section class={pale ? 'graph pale' : 'graph'} aria-label={label} tabIndex={0} ref={region}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        style={{ maxWidth: `${width * 1.12}px`, minWidth: `${least}px` }}
        role={boxes.some(({ state }) => stateMark(state).href) ? 'group' : 'img'}
        aria-label={label}
      >
        {ordered.map(({ line, mark }) => (
          <Edge key={`${line.edge.from}>${line.edge.to}`} {...{ machine, line, mark }} />
        ))}
        {boxes.map((box) => (
          <Node key={box.state} {...{ machine, box, pale }} mark={stateMark(box.state)} />
        ))}
        {placeLabels(marked).map(({ key, text, x, y, anchor }) => (
          <text key={key} class="label" x={x} y={y} text-anchor={anchor}>
            {text}
          </text>
        ))}
      </svg>
    </section>
  )
}

/** On a narrow screen the present state may be outside of what is seen: scrolls to it. */
function showPresent(region: HTMLElement | null): void {
  const box = region?.querySelector('.now')?.getBoundingClientRect()
  if (!region || !box) return
  const own = region.getBoundingClientRect()
  if (box.left >= own.left && box.right <= own.right) return
  region.scrollLeft += box.left - own.left - (own.width - box.width) / 2
}

const TURN = { left: 0, right: 180, top: 90, bottom: -90 } as const

function Edge({
  machine,
  line,
  mark,
}: {
  machine: MachineData
  line: Line
  mark: EdgeMark | undefined
}) {
  const { edge, path, tip } = line
  const tone = toneOf(edge.to, machine.states[edge.to]?.role)
  const isLit = mark?.lit ?? false
  const side = isSideEdge(machine, edge)
  const classes = ['edge', side && 'side', isLit && 'lit'].filter(Boolean).join(' ')
  const width =
    mark?.traffic === undefined ? 2.2 : 1.4 + Math.min(4.6, Math.log10(1 + mark.traffic))
  return (
    <g class={`tone-${tone}`}>
      <title>{`${edge.from} → ${edge.to}: ${edge.on.join(', ')}`}</title>
      <path class={classes} d={path} style={isLit ? { strokeWidth: `${width}px` } : undefined} />
      <path
        class={isLit ? 'tip lit' : 'tip'}
        d="M0 0L-8.5 -4.4V4.4z"
        transform={`translate(${tip.x} ${tip.y}) rotate(${TURN[tip.side]})`}
      />
    </g>
  )
}

function Node({
  machine,
  box,
  mark,
  pale,
}: {
  machine: MachineData
  box: Box
  mark: StateMark
  pale: boolean | undefined
}) {
  const { state, x, y, width, height } = box
  const spec = machine.states[state]
  const tone = toneOf(state, spec?.role)
  const isPale = pale && !mark.seen && !mark.now
  const shown = [mark.now && 'now', mark.seen && 'seen', isPale && 'unseen']
  const classes = ['node', `tone-${tone}`, ...shown].filter(Boolean).join(' ')
  const lift = mark.says === undefined ? 0 : -9
  const room = Math.floor((width - 44) / (/[a-z]/.test(state) ? 7.2 : 8.8))
  const content = (
    <>
      <title>{spec?.meaning ?? state}</title>
      <rect class="box" width={width} height={height} rx={10} />
      <g transform={`translate(12 ${height / 2 - 6.5 + lift})`}>
        <SignShape tone={tone} />
      </g>
      <text class="word" x={31} y={height / 2 + 4.5 + lift}>
        {state.length > room ? `${state.slice(0, room - 1)}…` : state}
      </text>
      {mark.says !== undefined && (
        <text class="says" x={12} y={height / 2 + 17}>
          {mark.says}
        </text>
      )}
    </>
  )
  const place = { class: classes, transform: `translate(${x} ${y})` }
  if (mark.href === undefined) return <g {...place}>{content}</g>
  return (
    <a href={mark.href} {...place}>
      {content}
    </a>
  )
}
