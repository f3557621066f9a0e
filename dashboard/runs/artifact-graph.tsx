/** The artifacts of a run and the work items between them, with what is stale and why. */
import { useMemo } from 'preact/hooks'
import { entryOf, type Run } from '../../src/core/run/run.ts'
import { useView } from '../api/view.ts'
import { count, counted } from '../format.ts'
import type { Tone } from '../machine-data.ts'
import { hrefOf, place, setQuery } from '../router.ts'
import { Empty, Failure, Name } from '../ui/parts.tsx'
import { SignShape, State } from '../ui/state.tsx'
import {
  type ArtifactGraph,
  around,
  artifactId,
  firstOf,
  type GraphPicture,
  graphOf,
  type LinkLine,
  layOutParts,
  type PartBox,
  wayBetween,
} from './artifact-graph.ts'
import { Content } from './artifacts.tsx'
import { ITEM_TONES } from './item-tones.ts'
import type { RunMoment } from './load.ts'
import { explainResume, type ItemVerdicts, VERDICTS, verdictsOf } from './resume.tsx'

/** More boxes cannot be followed by looking at them. */
const PARTS_MAX = 90
const REASONS_MAX = 12

interface Shown {
  readonly whole: ArtifactGraph
  readonly picture: GraphPicture
  readonly isCut: boolean
}

/** The part of the graph that is drawn: around what is chosen, or around what is stale. */
function shownOf(run: Run, focus: readonly string[]): Shown {
  const whole = graphOf(run)
  const wanted = focus.map(artifactId).filter((id) => whole.parts.has(id))
  const part = wanted.length === 0 ? whole : around(whole, wanted)
  const shown = firstOf(part, PARTS_MAX)
  return { whole, picture: layOutParts(shown), isCut: shown.parts.size < part.parts.size }
}

function staleIn({ artifacts_index: index }: Run): string[] {
  return Object.keys(index).filter((name) => entryOf(index, name)?.stale_because !== null)
}

export function ArtifactGraphTab({ moment }: { moment: RunMoment }) {
  const { run, isNow } = moment
  const opened = place.value.query.get('artifact')
  const chosen = opened !== null && entryOf(run.artifacts_index, opened) ? opened : undefined
  const isAround = place.value.query.get('around') === 'yes'
  const stale = useMemo(() => staleIn(run), [run])
  const focus = isAround ? (chosen === undefined ? stale : [chosen]) : []
  const shown = useMemo(() => shownOf(run, focus), [run, isAround, chosen])
  const { whole, picture, isCut } = shown
  const { data, error } = useView(`${run.run_id} ${isNow ? run.last_seq : 0} graph`, (signal) =>
    isNow ? explainResume(run.run_id, signal) : Promise.resolve(undefined),
  )
  const way = useMemo(() => wayTo(whole, run, chosen), [whole, run, chosen])
  const verdicts = useMemo(() => verdictsOf(data), [data])
  if (whole.parts.size === 0) {
    return (
      <Empty title="Nothing to draw">
        The graph has what work items read and write. This run has no such artifact at this event.
      </Empty>
    )
  }
  const left = Object.keys(run.artifacts_index).length - countOf(whole)
  return (
    <div class="stack">
      <Failure error={error} />
      <div class="row small">
        <label class="row">
          <input
            type="checkbox"
            checked={isAround}
            onChange={() => setQuery({ around: isAround ? undefined : 'yes' }, { replace: true })}
          />
          {chosen === undefined ? 'Only around what is stale' : 'Only around the chosen one'}
        </label>
        <span class="muted">
          {counted(stale.length, 'stale artifact')}
          {isCut && `; the first ${count(PARTS_MAX)} boxes are drawn, choose one to see its part`}
          {left > 0 && `; ${count(left)} that no work item reads or writes are not drawn`}
        </span>
      </div>
      <Picture {...{ run, picture, chosen, way, verdicts }} />
      <Reasons run={run} graph={whole} names={chosen === undefined ? stale : [chosen]} />
      {chosen !== undefined && (
        <Content
          id={run.run_id}
          name={chosen}
          sha256={entryOf(run.artifacts_index, chosen)?.sha256 ?? ''}
        />
      )}
    </div>
  )
}

function countOf({ parts }: ArtifactGraph): number {
  return [...parts.values()].filter(({ kind }) => kind === 'artifact').length
}

/** The links that made the chosen artifact stale, as `from\nto`. */
function wayTo(graph: ArtifactGraph, run: Run, chosen: string | undefined): ReadonlySet<string> {
  const names = chosen === undefined ? [] : [chosen]
  const links = names.flatMap((name) => {
    const cause = entryOf(run.artifacts_index, name)?.stale_because ?? null
    const way = (cause === null ? undefined : wayBetween(graph, cause, name)) ?? []
    return way.slice(1).map((id, i) => `${way[i]}\n${id}`)
  })
  return new Set(links)
}

interface PictureProps {
  readonly run: Run
  readonly picture: GraphPicture
  readonly chosen: string | undefined
  readonly way: ReadonlySet<string>
  readonly verdicts: ItemVerdicts
}

/** How small the picture may become before it scrolls. */
const READABLE = 0.74

function Picture(props: PictureProps) {
  const { picture, way } = props
  const { width, height, boxes, lines } = picture
  const label = 'What was made of what'
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <section class="graph parts" aria-label={label} tabIndex={0}>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        style={{ maxWidth: `${width}px`, minWidth: `${width * READABLE}px` }}
        role={boxes.length > 0 ? 'group' : 'img'}
        aria-label={label}
      >
        {lines.map((line) => (
          <Line key={`${line.from}\n${line.to}`} line={line} isLit={way.has(keyOf(line))} />
        ))}
        {boxes.map((box) =>
          box.kind === 'artifact' ? (
            <ArtifactBox key={box.id} {...props} box={box} />
          ) : (
            <ItemBox key={box.id} {...props} box={box} />
          ),
        )}
      </svg>
    </section>
  )
}

const keyOf = ({ from, to }: LinkLine) => `${from}\n${to}`

function Line({ line, isLit }: { line: LinkLine; isLit: boolean }) {
  const { path, tip, hasChanged } = line
  const classes = ['edge', hasChanged && 'changed', isLit && 'lit'].filter(Boolean).join(' ')
  return (
    <g class="tone-retrying">
      {hasChanged && <title>The item read another version than there is now</title>}
      <path class={classes} d={path} />
      <circle class={isLit || hasChanged ? 'tip lit' : 'tip'} cx={tip.x} cy={tip.y} r={3} />
    </g>
  )
}

/** How many characters a box has room for. */
const ROOM = { artifact: 18, item: 15 } as const

/** The end of a path says more than its beginning. */
function clipped(name: string, room: number): string {
  const characters = [...name]
  if (characters.length <= room) return name
  return `${characters.slice(0, 5).join('')}…${characters.slice(6 - room).join('')}`
}

function Label({ box }: { box: PartBox }) {
  return (
    <text class="word" x={26} y={box.height / 2 + 4.2}>
      {clipped(box.name, ROOM[box.kind])}
    </text>
  )
}

function Mark({ box, tone }: { box: PartBox; tone: Tone }) {
  return (
    <g transform={`translate(8 ${box.height / 2 - 6.5})`}>
      <SignShape tone={tone} />
    </g>
  )
}

function ArtifactBox({ run, box, chosen }: PictureProps & { box: PartBox }) {
  const because = entryOf(run.artifacts_index, box.name)?.stale_because ?? null
  const tone: Tone = because === null ? 'succeeded' : 'retrying'
  const isChosen = box.name === chosen
  const says = because === null ? 'fresh' : `stale because of ${because}`
  const query = Object.fromEntries(place.value.query)
  const artifact = isChosen ? undefined : box.name
  const link = {
    class: `node seen tone-${tone}${isChosen ? ' now' : ''}`,
    transform: `translate(${box.x} ${box.y})`,
    'aria-label': `${box.name}: ${says}`,
    'aria-current': isChosen ? ('true' as const) : undefined,
  }
  return (
    <a href={hrefOf(place.value.path, { ...query, artifact })} {...link}>
      <title>{`${box.name}\n${says}`}</title>
      <rect
        class={because === null ? 'box' : 'box stale'}
        width={box.width}
        height={box.height}
        rx={7}
      />
      <Mark box={box} tone={tone} />
      <Label box={box} />
    </a>
  )
}

function ItemBox({ run, box, verdicts }: PictureProps & { box: PartBox }) {
  const item = entryOf(run.work_items, box.name)
  const verdict = verdicts.get(box.name)
  const isRedone = verdict !== undefined && verdict.verdict !== 'skip'
  const status = item?.status ?? 'unknown'
  const tone = isRedone ? VERDICTS[verdict.verdict][0] : (ITEM_TONES[status] ?? 'idle')
  const says = isRedone ? `a resume: ${VERDICTS[verdict.verdict][1]}` : status
  return (
    <g class={`node item tone-${tone}`} transform={`translate(${box.x} ${box.y})`}>
      <title>{`${box.name}\n${says}`}</title>
      <rect class="box" width={box.width} height={box.height} rx={box.height / 2} />
      <Mark box={box} tone={tone} />
      <Label box={box} />
    </g>
  )
}

/** Each stale artifact with the way on which it became stale, as text. */
function Reasons({
  run,
  graph,
  names,
}: {
  run: Run
  graph: ArtifactGraph
  names: readonly string[]
}) {
  const stale = names.filter((name) => entryOf(run.artifacts_index, name)?.stale_because !== null)
  if (stale.length === 0) return null
  return (
    <section aria-label="Why">
      <ul class="reasons">
        {stale.slice(0, REASONS_MAX).map((name) => (
          <Reason key={name} {...{ run, graph, name }} />
        ))}
      </ul>
      {stale.length > REASONS_MAX && (
        <p class="small muted">And {count(stale.length - REASONS_MAX)} more: choose one above.</p>
      )}
    </section>
  )
}

function Reason({ run, graph, name }: { run: Run; graph: ArtifactGraph; name: string }) {
  const cause = entryOf(run.artifacts_index, name)?.stale_because ?? name
  const way = wayBetween(graph, cause, name) ?? []
  const between = way.slice(1, -1).flatMap((id) => graph.parts.get(id) ?? [])
  return (
    <li>
      <State tone="retrying" word="stale" />
      <p>
        <Name text={name} />, because <Name text={cause} />{' '}
        {cause === name ? 'is missing or was changed' : 'has changed'}
        {between.length > 0 && (
          <span class="muted">
            {', by way of '}
            {between.map((part, i) => (
              <>
                {i > 0 && ' → '}
                <Name text={part.name} />
              </>
            ))}
          </span>
        )}
        .
      </p>
    </li>
  )
}
