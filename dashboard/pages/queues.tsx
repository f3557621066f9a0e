/** Queues: how deep, how old, how full, and whether anybody works on them. */
import { gateName } from '../../src/core/limits/keys.ts'
import { call } from '../api/client.ts'
import type { Limit, Queue } from '../api/operations.ts'
import { canOperate } from '../api/session.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { askToPause, askToResume } from '../controls/queue-acts.tsx'
import { count, counted } from '../format.ts'
import { queueHref } from '../router.ts'
import { Cli, Count, Empty, Failure, Meter, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { Use } from './limits.tsx'

interface QueueView {
  readonly queue: Queue
  /** How many jobs of the queue may run at once, if that is limited. */
  readonly limit: Limit | undefined
}

const LIMITS_MAX = 500

/** Queues with their limits, those that need a person first. */
async function loadQueues(signal: AbortSignal): Promise<readonly QueueView[]> {
  const { items } = await call('listQueues', {}, signal)
  const limits = await call('listLimits', { query: { limit: LIMITS_MAX } }, signal)
  const byName = new Map(limits.items.map((one) => [one.name, one]))
  return items
    .map((queue) => ({ queue, limit: byName.get(gateName('queue', queue.name)) }))
    .sort((a, b) => urgencyOf(b.queue) - urgencyOf(a.queue) || compare(a.queue, b.queue))
}

const compare = (a: Queue, b: Queue) => (a.name < b.name ? -1 : 1)

function urgencyOf(queue: Queue): number {
  if (isUnserved(queue)) return 2
  return queue.pausedAt === undefined ? 0 : 1
}

export const isUnserved = ({ lanes, workers, pausedAt }: Queue) =>
  lanes.ready > 0 && workers === 0 && pausedAt === undefined

export function QueuesPage() {
  const { data, error, reload } = useView('queues', loadQueues, ON_FACTS)
  return (
    <>
      <Top title="Queues">{data && data.length > 0 && <Summary queues={data} />}</Top>
      <div class="stack">
        <Failure error={error} retry={reload} />
        {data && (data.length === 0 ? <NoQueues /> : <List queues={data} reload={reload} />)}
      </div>
    </>
  )
}

function NoQueues() {
  return (
    <Panel>
      <Empty
        title="No queues yet"
        line={`pawl job enqueue hello '{"name": "ada"}' --queue greetings`}
      >
        A queue exists as soon as a job is enqueued in it. Enqueue one:
      </Empty>
    </Panel>
  )
}

function Summary({ queues }: { queues: readonly QueueView[] }) {
  const unserved = queues.filter(({ queue }) => isUnserved(queue)).length
  const paused = queues.filter(({ queue }) => queue.pausedAt !== undefined).length
  const all = queues.reduce((sum, { queue }) => sum + queue.lanes.ready, 0)
  return (
    <>
      <span class="muted small">{count(all)} ready jobs</span>
      {unserved > 0 && <State tone="failed" word={`${count(unserved)} without a live worker`} />}
      {paused > 0 && <State tone="cancelled" word={`${count(paused)} paused`} />}
    </>
  )
}

function List({ queues, reload }: { queues: readonly QueueView[]; reload: () => void }) {
  const deepest = Math.max(1, ...queues.map(({ queue }) => queue.lanes.ready))
  const action: Column<QueueView> = {
    title: 'Action',
    tight: true,
    wide: true,
    cell: ({ queue }) => <Toggle queue={queue} reload={reload} />,
  }
  return (
    <>
      <Panel flush>
        <Table
          label="Queues"
          rows={queues}
          keyOf={({ queue }) => queue.name}
          hrefOf={({ queue }) => queueHref(queue.name)}
          columns={[...columnsOf(deepest), ...(canOperate.value ? [action] : [])]}
        />
      </Panel>
      <Cli line="pawl queue list" />
    </>
  )
}

function columnsOf(deepest: number): Column<QueueView>[] {
  return [
    {
      title: 'Queue',
      cell: ({ queue }) => (
        <a class="plain" href={queueHref(queue.name)}>
          <Name text={queue.name} clip />
        </a>
      ),
    },
    { title: 'Served by', tight: true, cell: ({ queue }) => <Served queue={queue} /> },
    { title: 'Ready', number: true, cell: ({ queue }) => <Count value={queue.lanes.ready} /> },
    { title: 'Depth', wide: true, cell: ({ queue }) => <Depth queue={queue} deepest={deepest} /> },
    {
      title: 'Oldest ready',
      number: true,
      cell: ({ queue }) => <Time at={queue.readySince} />,
    },
    {
      title: 'Running',
      number: true,
      wide: true,
      cell: ({ queue }) => <Count value={queue.lanes.held} />,
    },
    { title: 'Use of its limit', wide: true, cell: ({ limit }) => <QueueUse limit={limit} /> },
    {
      title: 'Blocked',
      number: true,
      wide: true,
      cell: ({ queue }) => <Count value={queue.lanes.blocked} />,
    },
    {
      title: 'Waiting',
      number: true,
      wide: true,
      cell: ({ queue }) => <Count value={queue.lanes.waiting} />,
    },
    {
      title: 'Parked',
      number: true,
      wide: true,
      cell: ({ queue }) => <Count value={queue.lanes.parked} />,
    },
  ]
}

/** The depth: against its bound if it has one, otherwise against the deepest queue. */
function Depth({ queue: { lanes, maxDepth }, deepest }: { queue: Queue; deepest: number }) {
  const [most, label] =
    maxDepth === undefined
      ? [deepest, 'of the deepest queue']
      : [Math.max(1, maxDepth), `of ${count(maxDepth)} that may be ready`]
  const isFull = maxDepth !== undefined && lanes.ready >= maxDepth
  return (
    <span class="metered">
      <Meter part={lanes.ready / most} tone={isFull ? 'failed' : 'ready'} label={label} />
      {maxDepth !== undefined && <span class="small nowrap">of {count(maxDepth)}</span>}
    </span>
  )
}

export function QueueUse({ limit }: { limit: Limit | undefined }) {
  return limit === undefined ? <span class="muted">no limit</span> : <Use row={limit} />
}

export function Served({ queue }: { queue: Queue }) {
  const { pausedAt, pausedBy, workers } = queue
  if (pausedAt !== undefined) {
    return <State tone="cancelled" word={pausedBy ? `paused by ${pausedBy}` : 'paused'} />
  }
  if (workers > 0) return <span class="nowrap">{counted(workers, 'worker')}</span>
  if (isUnserved(queue)) return <State tone="failed" word="no live worker" />
  return <span class="muted">none</span>
}

function Toggle({ queue, reload }: { queue: Queue; reload: () => void }) {
  const isPaused = queue.pausedAt !== undefined
  const ask = () => (isPaused ? askToResume(queue, reload) : askToPause(queue, reload))
  return (
    <button type="button" class="button slim" aria-label={labelOf(queue)} onClick={ask}>
      {isPaused ? 'Resume…' : 'Pause…'}
    </button>
  )
}

const labelOf = ({ name, pausedAt }: Queue) =>
  `${pausedAt === undefined ? 'Pause' : 'Resume'} ${name}`
