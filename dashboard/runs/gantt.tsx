/** Work items on a line of time: each attempt is a bar. */
import { now } from '../api/session.ts'
import { clock, count, exact, span } from '../format.ts'
import type { Tone } from '../machine-data.ts'
import { Empty, Name } from '../ui/parts.tsx'
import { Sign } from '../ui/state.tsx'
import type { RunData, RunMoment } from './load.ts'
import { type ItemBar, type ItemRow, itemRows, timeOf } from './walk.ts'

/** More bars cannot be compared by looking at them; the table of items has the others. */
const ROWS_MAX = 40

const TONES: Readonly<Record<ItemBar['end'], Tone>> = {
  finished: 'succeeded',
  failed: 'failed',
  interrupted: 'cancelled',
  running: 'running',
}

export function Gantt({ data, moment }: { data: RunData; moment: RunMoment }) {
  const until = data.events.filter(({ seq }) => seq <= moment.at)
  const rows = itemRows(until)
  if (rows.length === 0) {
    return <Empty title="No work items yet">A node starts one with `run.work(key, …)`.</Empty>
  }
  // In the past, an item that had not ended was running.
  const isHeld = data.holder !== null || !moment.isNow
  const end = isHeld && moment.isNow ? now.value : timeOf(until.at(-1)?.ts ?? '')
  const shown = rows.slice(-ROWS_MAX)
  const start = Math.min(...shown.flatMap(({ bars }) => bars.map(({ from }) => from)))
  const scale: Scale = { start, length: Math.max(1, end - start), end, isHeld }
  return (
    <>
      {rows.length > shown.length && (
        <p class="small muted">
          The last {count(shown.length)} of {count(rows.length)} items that have started.
        </p>
      )}
      <ol class="gantt">
        {shown.map((row) => (
          <Item key={row.key} row={row} scale={scale} />
        ))}
      </ol>
      <div class="spread small muted gantt-axis">
        <span title={exact(start)}>{clock(start)}</span>
        <span>{span(scale.length)}</span>
        <span title={exact(end)}>{clock(end)}</span>
      </div>
    </>
  )
}

interface Scale {
  readonly start: number
  readonly length: number
  readonly end: number
  /** Whether a process works on the run, so that unfinished items are running. */
  readonly isHeld: boolean
}

function Item({ row: { key, bars }, scale }: { row: ItemRow; scale: Scale }) {
  const { start, length, end, isHeld } = scale
  const part = (ms: number) => `${Math.min(100, Math.max(0, (ms / length) * 100))}%`
  const ends = bars.map((bar) => (bar.end === 'running' && !isHeld ? 'interrupted' : bar.end))
  const last = ends.at(-1) ?? 'running'
  const total = bars.reduce((sum, bar) => sum + ((bar.to ?? end) - bar.from), 0)
  const says = `${last}${bars.length > 1 ? `, ${bars.length} attempts` : ''}, ${span(total)}`
  return (
    <li class={`tone-${TONES[last]}`}>
      <span class="key">
        <Sign tone={TONES[last]} /> <Name text={key} clip />
      </span>
      <div class="track" role="img" aria-label={says} title={says}>
        {bars.map((bar, i) => (
          <i
            key={bar.from}
            class={`tone-${TONES[ends[i] ?? 'running']}`}
            style={{
              left: `min(calc(100% - 4px), ${part(bar.from - start)})`,
              width: `max(4px, ${part((bar.to ?? end) - bar.from)})`,
            }}
          />
        ))}
      </div>
      <span class="small muted nowrap">
        {bars.length > 1 ? `${bars.length} × · ` : ''}
        {span(total)}
      </span>
    </li>
  )
}
