/** The way of a run through its machine, and the rail of its events. */
import { clock, exact, span } from '../format.ts'
import { type EdgeMark, Graph, type StateMark } from '../graph/graph.tsx'
import { machineOf } from '../machines.ts'
import { Rail } from '../ui/history.tsx'
import { Empty, Name } from '../ui/parts.tsx'
import { saysOf } from './event-text.ts'
import type { RunData, RunMoment } from './load.ts'
import { machineFrom, pictureOf, timeOf, type Visits, walkOf } from './walk.ts'

interface Props {
  readonly data: RunData
  readonly moment: RunMoment
  readonly travel: (to: number | undefined) => void
}

export function RunLife(props: Props) {
  const { data, moment } = props
  const { machine: named } = data.run
  const known = machineOf('run', named.name, named.version)
  const machine = known ?? machineFrom(data.events, named.name)
  const walk = walkOf(data.events.filter(({ seq }) => seq <= moment.at))
  const future = walkOf(data.events)
  const trail = new Set(moment.run.stable_trail)
  const stateMark = (state: string): StateMark => {
    const visits = walk.states.get(state)
    const isNow = state === moment.run.run_state
    if (visits === undefined && !isNow && !trail.has(state)) {
      return future.states.has(state) ? { says: 'later' } : {}
    }
    const says = visits && textOf(visits)
    return { seen: true, now: isNow, says: says === '' ? undefined : says }
  }
  const edgeMark = ({ from, to }: { from: string; to: string }): EdgeMark => {
    const visits = walk.edges.get(`${from}\n${to}`)
    if (visits === undefined) return { lit: false }
    return { lit: true, label: visits.times > 1 ? `${visits.times} ×` : undefined }
  }
  return (
    <>
      {machine === undefined ? (
        <Empty title={`The machine ${named.name} is not known here`} />
      ) : (
        <Graph
          machine={pictureOf(machine)}
          label={`The way of the run through ${machine.name}: it is ${moment.run.run_state}`}
          stateMark={stateMark}
          edgeMark={edgeMark}
          pale
        />
      )}
      {known === undefined && machine !== undefined && (
        <p class="small muted">
          This server does not know the machine <Name text={named.name} />: the picture has the
          states that the run has visited.
        </p>
      )}
      <History {...props} />
    </>
  )
}

function textOf({ times, ms }: Visits): string {
  const spent = ms > 0 ? span(ms) : ''
  if (times === 1) return spent
  return `${times} ×${spent === '' ? '' : ` · ${spent}`}`
}

function History({ data, moment, travel }: Props) {
  const here = data.events.find(({ seq }) => seq === moment.at)
  const first = data.events[0]
  const last = data.events.at(-1)
  return (
    <Rail
      at={moment.at}
      last={data.run.last_seq}
      move={travel}
      label="The events of the run"
      first={first?.seq === 1 ? `#1 ${first.type}` : '#1'}
      final={`#${data.run.last_seq} ${last?.type ?? ''}`}
    >
      <b>
        #{moment.at} {here?.type}
      </b>{' '}
      {here && (
        <>
          <span class="mono" title={exact(timeOf(here.ts))}>
            {clock(timeOf(here.ts))}
          </span>{' '}
          · <Name text={saysOf(here)} />
        </>
      )}
    </Rail>
  )
}
