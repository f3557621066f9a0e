/** The life of a job on its machine: states with the time spent in them, edges that were taken. */
import { clock, exact, span } from '../format.ts'
import { type EdgeMark, Graph, type StateMark } from '../graph/graph.tsx'
import { machineOf } from '../machines.ts'
import { Rail } from '../ui/history.tsx'
import { Empty } from '../ui/parts.tsx'
import type { JobData, Moment } from './load.ts'
import { type Visit, walkOf } from './walk.ts'

export function Life({
  data,
  moment,
  travel,
}: {
  data: JobData
  moment: Moment
  travel: (to: number | undefined) => void
}) {
  const { job } = moment
  const machine = machineOf('job', job.lifecycle, job.lifecycleVersion)
  const walk = walkOf(moment.facts)
  const future = walkOf(data.facts)
  const stateMark = (state: string): StateMark => {
    const visited = walk.states.get(state)
    const isNow = state === job.state
    if (visited === undefined) {
      return future.states.has(state) ? { says: 'later' } : {}
    }
    const says = isNow ? saysNow(moment) : saysOf(visited)
    return { seen: true, now: isNow, says: says === '' ? undefined : says }
  }
  const edgeMark = ({ from, to }: { from: string; to: string }): EdgeMark => {
    const visited = walk.edges.get(`${from}\n${to}`)
    if (visited === undefined) return { lit: false }
    const times = visited.times > 1 ? `${visited.times}× ` : ''
    return { lit: true, label: `${times}${span(visited.ms / visited.times)}` }
  }
  return (
    <>
      {machine === undefined ? (
        <Empty title={`The lifecycle ${job.lifecycle} is not known here`} />
      ) : (
        <Graph
          machine={machine}
          label={`The way of the job through ${machine.name}: it is ${job.state}`}
          stateMark={stateMark}
          edgeMark={edgeMark}
          pale
        />
      )}
      <History data={data} moment={moment} travel={travel} />
    </>
  )
}

function saysOf({ times, ms }: Visit): string {
  const spent = ms > 0 ? span(ms) : ''
  if (times === 1) return spent
  return `${times} ×${spent === '' ? '' : ` · ${spent} in all`}`
}

function saysNow({ job }: Moment): string {
  if (job.execution !== null && job.outcome === null) return `attempt ${job.attempt}`
  return job.reason ?? `since ${clock(job.updatedAt).slice(0, 8)}`
}

function History({
  data,
  moment,
  travel,
}: {
  data: JobData
  moment: Moment
  travel: (to: number | undefined) => void
}) {
  const first = data.facts[0]
  const last = data.facts.at(-1)
  const here = moment.facts.at(-1)
  if (first === undefined || last === undefined || here === undefined) return null
  const offset = first.seq - 1
  return (
    <Rail
      at={moment.at - offset}
      last={data.facts.length}
      move={(to) => travel(to === undefined ? undefined : to + offset)}
      label="The facts of the job"
      first={`#${first.seq} ${first.trigger}`}
      final={`#${last.seq} ${last.trigger}`}
    >
      <b>
        #{here.seq} {here.trigger}
      </b>{' '}
      <span class="mono" title={exact(here.at)}>
        {clock(here.at)}
      </span>
      {changedText(moment)}
    </Rail>
  )
}

const TOLD_MAX = 3
const TOLD: readonly string[] = [
  ...['state', 'attempt', 'failures', 'crashes', 'releases', 'outcome', 'reason', 'priority'],
  'blockedReason',
]

/** The change at a fact, as one sentence. */
function changedText({ changes, facts }: Moment): string {
  if (facts.length === 1) return ' · the job was created'
  const told = changes.filter(({ path }) => path.length === 1 && TOLD.includes(path[0] ?? ''))
  if (told.length === 0) return ''
  const texts = told
    .slice(0, TOLD_MAX)
    .map(({ path, before, after }) => `${path[0]} ${before ?? '–'} → ${after ?? '–'}`)
  const more = told.length > TOLD_MAX ? `, ${told.length - TOLD_MAX} more` : ''
  return ` · changed: ${texts.join(', ')}${more}`
}
