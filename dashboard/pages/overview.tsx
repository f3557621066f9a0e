/** The overview: what needs a person first, then where jobs are and how they move. */

import type { Queue } from '../api/operations.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { count, rounded, span } from '../format.ts'
import { Graph } from '../graph/graph.tsx'
import type { Tone } from '../machine-data.ts'
import { roleOfState } from '../machines.ts'
import { LANE_MACHINE, laneOfState } from '../overview/lanes.ts'
import {
  loadOverview,
  type Movement,
  movementOf,
  type Overview,
  quantile,
} from '../overview/load.ts'
import { Spark } from '../overview/spark.tsx'
import { hrefOf, queueHref } from '../router.ts'
import { Count, Empty, Failure, Meter, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { Sign, State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { isUnserved, Served } from './queues.tsx'

export function OverviewPage() {
  const { data, error, reload } = useView('overview', loadOverview, ON_FACTS)
  return (
    <>
      <Top title="Overview" />
      <Failure error={error} retry={reload} />
      {data && <Body data={data} />}
    </>
  )
}

const laneOf = (state: string) => laneOfState(state, roleOfState(state))

function Body({ data }: { data: Overview }) {
  const { numbers, facts } = data
  const jobs = [...Object.values(numbers.lanes), ...Object.values(numbers.ended)]
  if (jobs.every((one) => one === 0) && numbers.queueCount === 0) {
    return (
      <Empty title="No jobs yet" line={`pawl job enqueue hello '{"name": "ada"}'`}>
        Jobs appear here as soon as your program enqueues one. Or enqueue one now:
      </Empty>
    )
  }
  const movement = movementOf(facts, numbers.now, laneOf)
  return (
    <div class="stack">
      <Needs data={data} />
      <div class="columns stretch">
        <Panel title={`Where jobs are, and how they moved in the last ${span(movement.spanMs)}`}>
          <Lanes data={data} movement={movement} />
        </Panel>
        <div class="stack rows">
          <Panel title="Started per minute">
            <Rate movement={movement} />
          </Panel>
          <Panel title="From ready to started">
            <Waits data={data} movement={movement} />
          </Panel>
        </div>
      </div>
      <Panel title="Queues" flush>
        <Table
          label="Queues"
          columns={QUEUE_COLUMNS}
          rows={numbers.queues}
          keyOf={({ name }) => name}
          hrefOf={({ name }) => queueHref(name)}
        />
      </Panel>
    </div>
  )
}

interface Need {
  readonly tone: Tone
  readonly number: number
  readonly word: string
  readonly says: string
  readonly href: string
}

function needsOf({ numbers, facts }: Overview): Need[] {
  const { lanes, queues, attention } = numbers
  const parked = facts.find(({ to }) => laneOf(to) === 'parked')
  const unserved = queues.filter(isUnserved)
  const ready = unserved.reduce((sum, queue) => sum + queue.lanes.ready, 0)
  const all: Need[] = [
    {
      ...{ tone: 'parked', number: attention.parkedJobs, word: 'parked' },
      says: parked?.error?.message ?? parked?.note ?? parked?.reason ?? 'wait for a person',
      href: hrefOf('/jobs', { lane: 'parked' }),
    },
    {
      ...{ tone: 'failed', number: attention.stalledJobs, word: 'stalled' },
      says: 'lease expired; approve their recovery',
      href: hrefOf('/jobs', { stalled: 'yes' }),
    },
    {
      ...{ tone: 'parked', number: attention.parkedEffects, word: 'parked effects' },
      says: 'committed, not delivered',
      href: hrefOf('/effects'),
    },
    {
      ...{ tone: 'blocked', number: lanes.blocked, word: 'blocked' },
      says: blockedText(attention.longBlocked[0]),
      href: hrefOf('/limits'),
    },
    {
      ...{ tone: 'failed', number: ready, word: 'unserved' },
      says: `no live worker: ${unserved.map(({ name }) => name).join(', ')}`,
      href: hrefOf('/queues'),
    },
    {
      ...{ tone: 'parked', number: attention.parkedFlows, word: 'flows held up' },
      says: 'a job of each is parked',
      href: hrefOf('/flows', { state: 'attention' }),
    },
    {
      ...{ tone: 'failed', number: attention.stuckHandlers, word: 'stuck handlers' },
      says: 'they ignore their abort signal',
      href: hrefOf('/workers'),
    },
    {
      ...{ tone: 'retrying', number: attention.missedTicks, word: 'ticks missed' },
      says: 'of schedules, in the last day',
      href: hrefOf('/schedules'),
    },
  ]
  return all.filter(({ number }) => number > 0)
}

type Blocked = Overview['numbers']['attention']['longBlocked'][number]

function blockedText(longest: Blocked | undefined): string {
  if (longest === undefined) return 'by limits, for less than a minute'
  const { limit, key, blocked, forMs } = longest
  return `${limit}${key === undefined ? '' : ` ${key}`}: ${count(blocked)} for ${span(forMs)}`
}

function Needs({ data }: { data: Overview }) {
  const needs = needsOf(data)
  if (needs.length === 0) {
    return (
      <section class="panel calm" aria-label="What needs a person">
        <State tone="succeeded" word="Nothing needs a person" />
      </section>
    )
  }
  return (
    <section class="needs" aria-label="What needs a person">
      {needs.map(({ tone, number, word, says, href }) => (
        <a key={word} class={`need tone-${tone}`} href={href}>
          <strong>
            <Sign tone={tone} />
            <span>
              <Count value={number} /> {word}
            </span>
          </strong>
          <p>
            <Name text={says} clip />
          </p>
        </a>
      ))}
    </section>
  )
}

const LANE_FILTERS: Readonly<Record<string, Record<string, string>>> = {
  waiting: { lane: 'waiting' },
  ready: { lane: 'ready' },
  running: { lane: 'held' },
  blocked: { lane: 'blocked' },
  parked: { lane: 'parked' },
  succeeded: { outcome: 'succeeded' },
  failed: { outcome: 'failed' },
  cancelled: { outcome: 'cancelled' },
}

function Lanes({ data, movement }: { data: Overview; movement: Movement }) {
  const { lanes, ended: byState, workers } = data.numbers
  const ended = endedByLane(byState)
  const numberIn = (lane: string) => lanes[lane === 'running' ? 'held' : (lane as 'ready')]
  const saysOf = (lane: string): string => {
    if (lane === 'waiting' && lanes.idle > 0) {
      return `${rounded(lanes.waiting)} + ${rounded(lanes.idle)} on hold`
    }
    if (lane === 'succeeded' && lanes.delivering > 0) {
      return `${rounded(ended.succeeded ?? 0)}, ${rounded(lanes.delivering)} deliver`
    }
    if (lane in ended) return rounded(ended[lane] ?? 0)
    if (lane === 'running' && workers.concurrency > 0) {
      return `${count(lanes.held)} of ${count(workers.concurrency)} slots`
    }
    return rounded(numberIn(lane))
  }
  return (
    <Graph
      machine={LANE_MACHINE}
      label="Where jobs are and how they moved"
      stateMark={(lane) => ({
        seen: true,
        says: saysOf(lane),
        href: hrefOf('/jobs', LANE_FILTERS[lane]),
      })}
      edgeMark={({ from, to }) => {
        const traffic = movement.edges.get(`${from}\n${to}`) ?? 0
        return { lit: traffic > 0, traffic, label: traffic > 0 ? rounded(traffic) : undefined }
      }}
    />
  )
}

/** Final states of all lifecycles, by how they ended. */
function endedByLane(ended: Readonly<Record<string, number>>): Record<string, number> {
  const sums: Record<string, number> = { succeeded: 0, failed: 0, cancelled: 0 }
  for (const [state, number] of Object.entries(ended)) {
    const lane = laneOf(state)
    if (Object.hasOwn(sums, lane)) sums[lane] = (sums[lane] ?? 0) + number
  }
  return sums
}

function Rate({ movement: { starts, spanMs } }: { movement: Movement }) {
  const perMinute = (starts.length * 60_000) / spanMs
  const rates = starts.map((one) => one * perMinute)
  const latest = rates.at(-1) ?? 0
  const text = (value: number) => (value < 10 ? value.toFixed(1) : count(value))
  return (
    <>
      <p class="small">
        <b class="big">{text(latest)}</b> now, {text(Math.max(...rates))} at most
      </p>
      <Spark values={rates} label={`Starts per minute in the last ${span(spanMs)}`} />
    </>
  )
}

function Waits({ data, movement: { waits } }: { data: Overview; movement: Movement }) {
  const [half, most] = [quantile(waits, 0.5), quantile(waits, 0.99)]
  const oldest = data.numbers.queues
    .filter(({ oldestReadyMs }) => oldestReadyMs !== undefined)
    .sort((a, b) => (b.oldestReadyMs ?? 0) - (a.oldestReadyMs ?? 0))[0]
  return (
    <dl class="facts right">
      <dt>median</dt>
      <dd>{half === undefined ? '–' : span(half)}</dd>
      <dt>99 of 100</dt>
      <dd>{most === undefined ? '–' : span(most)}</dd>
      <dt>oldest that is ready</dt>
      <dd>
        {oldest ? (
          <a href={hrefOf('/jobs', { lane: 'ready', queue: oldest.name })}>
            {span(oldest.oldestReadyMs ?? 0)} · <Name text={oldest.name} />
          </a>
        ) : (
          '–'
        )}
      </dd>
      <dt>live workers</dt>
      <dd>{count(data.numbers.workers.live)}</dd>
    </dl>
  )
}

const QUEUE_COLUMNS: readonly Column<Queue>[] = [
  {
    title: 'Queue',
    cell: ({ name }) => (
      <a class="plain" href={queueHref(name)}>
        <Name text={name} clip />
      </a>
    ),
  },
  { title: 'Ready', number: true, cell: ({ lanes }) => <Count value={lanes.ready ?? 0} /> },
  { title: 'Running', number: true, cell: ({ lanes }) => <Count value={lanes.held ?? 0} /> },
  { title: 'Waiting', number: true, wide: true, cell: ({ lanes }) => count(lanes.waiting ?? 0) },
  { title: 'Parked', number: true, wide: true, cell: ({ lanes }) => count(lanes.parked ?? 0) },
  {
    title: 'Depth',
    wide: true,
    cell: ({ lanes, maxDepth }) =>
      maxDepth === undefined ? (
        <span class="muted">no bound</span>
      ) : (
        <Meter part={(lanes.ready ?? 0) / Math.max(1, maxDepth)} label={`of ${count(maxDepth)}`} />
      ),
  },
  {
    title: 'Oldest ready',
    number: true,
    cell: ({ readySince }) => <Time at={readySince} />,
  },
  { title: 'Workers', cell: (queue) => <Served queue={queue} /> },
]
