/** Workers: what each does, the state of its machine, the jobs that it holds, its heartbeat. */
import { useMemo } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Job, Worker } from '../api/operations.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { count, counted } from '../format.ts'
import { Graph } from '../graph/graph.tsx'
import { type MachineData, type MachineEdge, type Tone, toneOf } from '../machine-data.ts'
import { machineOf } from '../machines.ts'
import { hrefOf, jobHref, place, queueHref } from '../router.ts'
import { Cli, Empty, Failure, Meter, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'

interface Workers {
  readonly workers: readonly Worker[]
  /** Jobs that are held now; at most `HELD_MAX`. */
  readonly held: readonly Job[]
}

const HELD_MAX = 500

async function load(signal: AbortSignal): Promise<Workers> {
  const { items } = await call('listWorkers', {}, signal)
  const held = await call('listJobs', { query: { lane: 'held', limit: HELD_MAX } }, signal)
  const workers = items.toSorted((a, b) => Number(b.live) - Number(a.live) || b.seenAt - a.seenAt)
  return { workers, held: held.items }
}

export function WorkersPage() {
  const { data, error, reload } = useView('workers', load, ON_FACTS)
  return (
    <>
      <Top title="Workers">{data && data.workers.length > 0 && <Verdict {...data} />}</Top>
      <div class="stack">
        <Failure error={error} retry={reload} />
        {data && (data.workers.length === 0 ? <None /> : <Body {...data} />)}
      </div>
    </>
  )
}

function None() {
  return (
    <Panel>
      <Empty title="No worker has reported yet" line="pawl work --jobs ./jobs.ts">
        A worker claims ready jobs and runs them, in your program (pawl.work()) or in a process of
        its own:
      </Empty>
    </Panel>
  )
}

function Verdict({ workers }: Workers) {
  const live = workers.filter((one) => one.live)
  const running = live.reduce((sum, one) => sum + one.running, 0)
  const slots = live.reduce((sum, one) => sum + one.concurrency, 0)
  if (live.length === 0) return <State tone="failed" word="no live worker" />
  return (
    <>
      <State tone="succeeded" word={`${count(live.length)} live`} />
      <span class="muted small">
        {count(running)} of {count(slots)} slots in use
      </span>
    </>
  )
}

function Body({ workers, held }: Workers) {
  const wanted = place.value.query.get('worker')
  const chosen = workers.find(({ id }) => id === wanted) ?? workers[0]
  return (
    <>
      <Panel title="All workers" flush>
        <Table
          label="Workers"
          rows={workers}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOf('/workers', { worker: id })}
          classOf={(one) => (one === chosen ? 'chosen' : undefined)}
          columns={COLUMNS}
        />
      </Panel>
      {chosen && <Chosen worker={chosen} all={workers} held={held} />}
      <Cli line="pawl worker list" />
    </>
  )
}

const ACTIVITIES: Readonly<Record<Worker['activity'], Tone>> = {
  working: 'running',
  idle: 'waiting',
  draining: 'retrying',
  gone: 'failed',
}

const COLUMNS: readonly Column<Worker>[] = [
  {
    title: 'Worker',
    cell: ({ id }) => (
      <a class="plain" href={hrefOf('/workers', { worker: id })}>
        <Name text={id} clip />
      </a>
    ),
  },
  {
    title: 'Does',
    tight: true,
    cell: ({ activity }) => <State tone={ACTIVITIES[activity]} word={activity} />,
  },
  {
    title: 'Slots',
    wide: true,
    cell: ({ running, concurrency }) => (
      <span class="metered">
        <Meter
          part={running / Math.max(1, concurrency)}
          label={`${count(running)} of ${count(concurrency)} slots`}
        />
        <span class="small nowrap">
          {count(running)} of {count(concurrency)}
        </span>
      </span>
    ),
  },
  { title: 'Heartbeat', tight: true, cell: ({ seenAt }) => <Time at={seenAt} /> },
  { title: 'Up since', tight: true, wide: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
  {
    title: 'Queues',
    wide: true,
    cell: ({ queues }) => <Name text={queues?.join(', ') ?? 'all'} clip />,
  },
  {
    title: 'Version',
    tight: true,
    wide: true,
    cell: ({ version }) => <Name text={version ?? '–'} clip />,
  },
]

function Chosen({
  worker,
  all,
  held,
}: {
  worker: Worker
  all: readonly Worker[]
  held: readonly Job[]
}) {
  const whole = machineOf('worker', 'worker')
  const machine = useMemo(() => whole && loopOf(whole, worker.state), [whole, worker.state])
  const own = held.filter(({ execution }) => execution?.worker === worker.id)
  const others = (state: string) => all.filter((one) => one.live && one.state === state).length
  return (
    <>
      <Panel title="Where its loop is" aside={<Name text={worker.id} clip />}>
        {machine && (
          <Graph
            machine={machine}
            readable
            label={`The loop of ${worker.id} is in ${worker.state}`}
            stateMark={(state) => ({
              now: state === worker.state && worker.live,
              seen: others(state) > 0,
              says: others(state) > 0 ? counted(others(state), 'worker') : undefined,
            })}
          />
        )}
      </Panel>
      <Panel title="What it is">
        <Facts worker={worker} />
      </Panel>
      <Panel title={`Jobs that it holds: ${count(own.length)}`} flush>
        {own.length === 0 ? (
          <Empty title={worker.live ? 'It holds no job now' : 'It is gone and holds no job'} />
        ) : (
          <Held jobs={own} />
        )}
      </Panel>
    </>
  )
}

/**
 * The machine without the edges that every state has, to ErrorWait and to Draining, so that the
 * loop is visible; a state is left out if no edge is left, unless the worker is in it.
 */
function loopOf(machine: MachineData, state: string): MachineData {
  const isOfLoop = ({ from, on, because }: MachineEdge) =>
    because === undefined && (on[0] !== 'exception' || from === 'Processing')
  const edges = machine.edges.filter(isOfLoop)
  const used = new Set([state, ...edges.flatMap(({ from, to }) => [from, to])])
  const states = Object.entries(machine.states).filter(([name]) => used.has(name))
  return { ...machine, states: Object.fromEntries(states), edges }
}

function Facts({ worker }: { worker: Worker }) {
  const { state, queues, types = [], renewal, renewalAdvice, stuck, silent, schedules } = worker
  return (
    <dl class="facts">
      <dt>state</dt>
      <dd>
        <State tone={worker.live ? toneOf(state) : 'failed'} word={worker.live ? state : 'gone'} />
      </dd>
      <dt>queues</dt>
      <dd>
        {queues === undefined
          ? 'all'
          : queues.map((name) => (
              <a key={name} class="listed" href={queueHref(name)}>
                <Name text={name} clip />
              </a>
            ))}
      </dd>
      <dt>job types</dt>
      <dd>
        <Name text={types.length === 0 ? '–' : types.join(', ')} />
      </dd>
      <dt>schedules</dt>
      <dd>
        <Name
          text={schedules === undefined || schedules.length === 0 ? '–' : schedules.join(', ')}
        />
      </dd>
      <dt>renews leases by</dt>
      <dd>
        {renewal ?? '–'}
        {renewalAdvice && <span class="muted">: {renewalAdvice}</span>}
      </dd>
      {(stuck > 0 || silent.length > 0) && (
        <>
          <dt>stuck handlers</dt>
          <dd>
            <State tone="failed" word={count(Math.max(stuck, silent.length))} />
          </dd>
        </>
      )}
    </dl>
  )
}

function Held({ jobs }: { jobs: readonly Job[] }) {
  return (
    <Table
      label="Jobs that it holds"
      rows={jobs}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => jobHref(id)}
      columns={[
        {
          title: 'Job',
          cell: ({ id, type }) => (
            <a class="plain" href={jobHref(id)}>
              <Name text={type} clip />
            </a>
          ),
        },
        { title: 'Queue', cell: ({ queue }) => <Name text={queue} clip /> },
        { title: 'Attempt', number: true, cell: ({ attempt }) => count(attempt) },
        { title: 'Started', tight: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
        {
          title: 'Lease',
          tight: true,
          wide: true,
          cell: ({ execution }) => <Time at={execution?.leaseUntil} />,
        },
      ]}
    />
  )
}
