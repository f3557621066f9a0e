/** One queue: where its jobs are, who works on it, its limits, and who changed it. */
import { gateName } from '../../src/core/limits/keys.ts'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { call } from '../api/client.ts'
import type { Limit, Queue, QueueRecord } from '../api/operations.ts'
import { canOperate } from '../api/session.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { lineOf } from '../controls/act.tsx'
import { askToLimit, askToPause, askToResume } from '../controls/queue-acts.tsx'
import { count, rounded, span } from '../format.ts'
import { Graph } from '../graph/graph.tsx'
import { LANE_MACHINE } from '../overview/lanes.ts'
import { hrefOf, limitHref } from '../router.ts'
import { Cli, Empty, Failure, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { isUnserved, QueueUse, Served } from './queues.tsx'

interface Shown {
  readonly queue: Queue
  readonly records: readonly QueueRecord[]
  readonly limit: Limit | undefined
}

async function load(name: string, signal: AbortSignal): Promise<Shown> {
  const { queue, records } = await call('showQueue', { params: { queue: name } }, signal)
  const limits = await call('listLimits', { query: { limit: 500 } }, signal)
  const gate = gateName('queue', name)
  return { queue, records, limit: limits.items.find((one) => one.name === gate) }
}

export function QueuePage({ queue: name }: { queue: string }) {
  const { data, error, reload } = useView(`queue ${name}`, (signal) => load(name, signal), ON_FACTS)
  return (
    <>
      <Top title={name} actions={data && <Buttons queue={data.queue} reload={reload} />}>
        <a class="small" href={hrefOf('/queues')}>
          all queues
        </a>
        {data && <Served queue={data.queue} />}
      </Top>
      <div class="stack">
        <Failure error={error} retry={reload} />
        {data && <Body {...data} />}
      </div>
    </>
  )
}

function Buttons({ queue, reload }: { queue: Queue; reload: () => void }) {
  if (!canOperate.value) return null
  const isPaused = queue.pausedAt !== undefined
  return (
    <>
      <button type="button" class="button" onClick={() => askToLimit(queue, reload)}>
        Limit…
      </button>
      <button
        type="button"
        class="button"
        onClick={() => (isPaused ? askToResume(queue, reload) : askToPause(queue, reload))}
      >
        {isPaused ? 'Resume…' : 'Pause…'}
      </button>
    </>
  )
}

const FILTERS: Readonly<Record<string, string>> = { running: 'held' }
const ENDED = ['succeeded', 'failed', 'cancelled']

function Body({ queue, records, limit }: Shown) {
  const { name, lanes } = queue
  return (
    <>
      {isUnserved(queue) && (
        <div class="notice bad">
          No live worker serves this queue: {count(lanes.ready)} ready jobs wait. Start one:{' '}
          <code>pawl work --jobs ./jobs.ts --queue={shellWord(name)}</code>
        </div>
      )}
      <div class="columns">
        <Panel title="Where its jobs are">
          <Graph
            machine={LANE_MACHINE}
            label="Where the jobs of the queue are"
            pale
            stateMark={(state) => {
              if (ENDED.includes(state)) {
                return { href: hrefOf('/jobs', { queue: name, outcome: state }) }
              }
              const lane = FILTERS[state] ?? state
              const number = lanes[lane as keyof Queue['lanes']]
              const href = hrefOf('/jobs', { queue: name, lane })
              return { says: rounded(number), seen: number > 0, href }
            }}
          />
        </Panel>
        <Panel title="Its limits">
          <Settings queue={queue} limit={limit} />
        </Panel>
      </div>
      <Panel title="Changes" flush>
        {records.length === 0 ? (
          <Empty
            title="Never changed"
            line={lineOf('pawl queue pause', name, ['--reason "INC-7"'])}
          >
            A pause or a limit is recorded here with name and reason.
          </Empty>
        ) : (
          <Records records={records} />
        )}
      </Panel>
      <Cli line={lineOf('pawl queue show', name)} />
    </>
  )
}

function Settings({ queue, limit }: { queue: Queue; limit: Limit | undefined }) {
  const { lanes, readySince, maxDepth, maxWaitMs, pausedAt, pauseReason, pausedBy } = queue
  return (
    <dl class="facts">
      <dt>oldest ready</dt>
      <dd>
        <Time at={readySince} />
      </dd>
      <dt>ready at most</dt>
      <dd>{maxDepth === undefined ? 'no limit' : `${count(lanes.ready)} of ${count(maxDepth)}`}</dd>
      <dt>ready for at most</dt>
      <dd>{maxWaitMs === undefined ? 'no limit' : span(maxWaitMs)}</dd>
      <dt>may run</dt>
      <dd>
        {limit ? (
          <a class="plain" href={limitHref(limit.limit)}>
            <QueueUse limit={limit} />
          </a>
        ) : (
          'no limit'
        )}
      </dd>
      {pausedAt !== undefined && (
        <>
          <dt>paused</dt>
          <dd>
            <Time at={pausedAt} /> by <Name text={pausedBy ?? 'somebody'} />:{' '}
            <Name text={pauseReason ?? 'no reason'} />
          </dd>
        </>
      )}
    </dl>
  )
}

function changeText({ action, after }: QueueRecord): string {
  if (action !== 'limit') return action === 'pause' ? 'paused' : 'resumed'
  const depth = after.maxDepth === null ? 'any number' : count(after.maxDepth)
  const wait = after.maxWaitMs === null ? 'any time' : span(after.maxWaitMs)
  return `ready: ${depth}, for ${wait}`
}

function Records({ records }: { records: readonly QueueRecord[] }) {
  return (
    <Table
      label="Changes"
      rows={records}
      keyOf={({ number }) => String(number)}
      columns={[
        { title: 'When', tight: true, cell: ({ at }) => <Time at={at} /> },
        { title: 'Change', cell: changeText },
        { title: 'By', cell: ({ operator, actor }) => <Name text={operator ?? actor} clip /> },
        { title: 'Reason', cell: ({ note }) => <Name text={note ?? '–'} /> },
      ]}
    />
  )
}
