/** The log of a run: a window of its events around the chosen one, of one type if asked for. */
import type { RunEvent } from '../../src/core/run/events.ts'
import { call } from '../api/client.ts'
import { useView } from '../api/view.ts'
import { clock, count, exact } from '../format.ts'
import { place, setQuery } from '../router.ts'
import { Failure, Name } from '../ui/parts.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { saysOf } from './event-text.ts'
import type { RunData, RunMoment } from './load.ts'
import { timeOf } from './walk.ts'

/** Rows on the screen. A multiple of it is where windows begin, so that they stay still. */
const WINDOW = 60

interface Props {
  readonly data: RunData
  readonly moment: RunMoment
  readonly travel: (to: number | undefined) => void
}

export function Events(props: Props) {
  const { data } = props
  const first = data.events[0]?.seq ?? 1
  // Events before those of the page are asked for when somebody goes there.
  return props.moment.at < first ? <Earlier {...props} /> : <Window {...props} all={data.events} />
}

function Earlier(props: Props) {
  const { data, moment } = props
  const from = Math.floor((moment.at - 1) / WINDOW) * WINDOW + 1
  const id = data.run.run_id
  const {
    data: page,
    error,
    reload,
  } = useView(`${id} ${from}`, (signal) =>
    call('listRunEvents', { params: { id }, query: { from, limit: WINDOW } }, signal),
  )
  if (page === undefined) return <Failure error={error} retry={reload} />
  return <Window {...props} all={page.items as unknown as RunEvent[]} />
}

function Window({ data, moment, travel, all }: Props & { all: readonly RunEvent[] }) {
  const type = place.value.query.get('type') ?? ''
  const wanted = type === '' ? all : all.filter((event) => event.type === type)
  const here = wanted.findLastIndex(({ seq }) => seq <= moment.at)
  const end = moment.isNow ? wanted.length : Math.min(wanted.length, here + 1 + WINDOW / 2)
  const rows = wanted.slice(Math.max(0, end - WINDOW), end)
  const types = [...new Set(all.map((event) => event.type))].sort()
  const classOf = ({ seq }: RunEvent) =>
    seq > moment.at ? 'later' : seq === moment.at && !moment.isNow ? 'chosen' : undefined
  return (
    <>
      <div class="row">
        <select
          class="field"
          aria-label="Events of this type"
          value={type}
          onChange={(event) =>
            setQuery({ type: event.currentTarget.value || undefined }, { replace: true })
          }
        >
          <option value="">All types</option>
          {types.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        <span class="small muted">
          {rows.length < data.run.last_seq &&
            `${count(rows.length)} of ${count(data.run.last_seq)} events; the rail moves to others`}
        </span>
      </div>
      <Table
        label="Events"
        columns={columnsOf(travel)}
        rows={rows.toReversed()}
        keyOf={({ seq }) => String(seq)}
        classOf={classOf}
      />
    </>
  )
}

function columnsOf(travel: (to: number) => void): Column<RunEvent>[] {
  return [
    {
      title: '#',
      number: true,
      tight: true,
      cell: ({ seq }) => (
        <button
          type="button"
          class="seq"
          onClick={() => travel(seq)}
          aria-label={`Go to event ${seq}`}
        >
          {seq}
        </button>
      ),
    },
    {
      title: 'When',
      tight: true,
      cell: ({ ts }) => (
        <span class="mono" title={exact(timeOf(ts))}>
          {clock(timeOf(ts))}
        </span>
      ),
    },
    { title: 'Event', tight: true, cell: ({ type }) => type },
    { title: 'What', cell: (event) => <Name text={saysOf(event)} /> },
    {
      title: 'Who',
      tight: true,
      wide: true,
      cell: ({ actor }) => (
        <span class="muted">
          <Name text={actor} clip />
        </span>
      ),
    },
  ]
}
