/**
 * One flow or batch: what it waits for, the graph of its jobs with the times at which dependencies
 * arrived, and the chain of jobs that decides when it is done. The rail goes back to any moment.
 */
import type { NodeStatus } from '../../src/audit/flow-points.ts'
import { type Answer, call } from '../api/client.ts'
import { canOperate, now } from '../api/session.ts'
import { useView, type View } from '../api/view.ts'
import { lineOf } from '../controls/act.tsx'
import { askForFlow } from '../flows/acts.tsx'
import { FlowPicture } from '../flows/graph.tsx'
import { NODE_TONES, progressText, verdictOf } from '../flows/tones.ts'
import { clock, count, counted, exact, span } from '../format.ts'
import { jobTone } from '../machines.ts'
import { hrefOf, jobHref, place, setQuery } from '../router.ts'
import { Rail } from '../ui/history.tsx'
import { Cli, Copy, Empty, Failure, Name, Panel, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'

type Graph = Answer<'showFlowGraph'>
type Job = Answer<'listJobs'>['items'][number]

interface Shown {
  readonly graph: Graph
  /** Jobs that failed or are parked; the first ones. */
  readonly troubled: readonly Job[]
}

const TROUBLED_MAX = 20
/** A larger flow is asked for from time to time, and not at each fact. */
const LARGE = 2000
const EVERY_MS = 5000

async function load(id: string, at: number | undefined, signal: AbortSignal): Promise<Shown> {
  const params = { id }
  const graph = await call('showFlowGraph', { params, query: { at } }, signal)
  if (at !== undefined) return { graph, troubled: [] }
  const query = { flow: id, limit: TROUBLED_MAX }
  const parked = await call('listJobs', { query: { ...query, lane: 'parked' } }, signal)
  const failed = await call('listJobs', { query: { ...query, outcome: 'failed' } }, signal)
  const isKnown = new Set(parked.items.map((job) => job.id))
  const rest = failed.items.filter((job) => !isKnown.has(job.id))
  return { graph, troubled: [...parked.items, ...rest].slice(0, TROUBLED_MAX) }
}

function momentIn(): number | undefined {
  const given = Number(place.value.query.get('at') ?? Number.NaN)
  return Number.isSafeInteger(given) && given >= 0 ? given : undefined
}

export function FlowPage({ flow: id }: { flow: string }) {
  const at = momentIn()
  // Ids of nodes begin like the id of their flow.
  const isOwn = (jobId: string) => jobId.startsWith(id.slice(0, 13))
  const size = { value: 0 }
  const view = useView(`${id} ${at ?? 'now'}`, (signal) => load(id, at, signal), {
    on: ({ jobId }) => at === undefined && size.value < LARGE && isOwn(jobId),
    everyMs: EVERY_MS,
  })
  const { data, error, reload } = view
  if (data === undefined) return <Missing id={id} view={view} />
  size.value = data.graph.flow.size
  const travel = (to: number | undefined) =>
    setQuery({ at: to === undefined ? undefined : String(to) }, { replace: true })
  return (
    <>
      <Head graph={data.graph} isNow={at === undefined} reload={reload} />
      <div class="stack">
        <Failure error={error} retry={reload} />
        <Why graph={data.graph} at={at} />
        <Panel title={titleOf(data.graph, at)} aside="times since it was created">
          <FlowPicture {...data.graph} />
          <Moments graph={data.graph} at={at} travel={travel} />
        </Panel>
        <Path graph={data.graph} at={at ?? now.value} />
        <Troubled jobs={data.troubled} />
        <Cli line={cliOf(id, at)} />
      </div>
    </>
  )
}

function titleOf({ flow }: Graph, at: number | undefined): string {
  const all = `Its ${counted(flow.size, 'job')}`
  return at === undefined ? all : `${all}, as they were at ${clock(at)}`
}

function cliOf(id: string, at: number | undefined): string {
  return lineOf(
    'pawl flow show',
    id,
    at === undefined ? [] : [`--at ${new Date(at).toISOString()}`],
  )
}

function Missing({ id, view: { error, reload } }: { id: string; view: View<Shown> }) {
  if (error === undefined) return <p class="muted">Loading the flow…</p>
  if (error.status !== 404) return <Failure error={error} retry={reload} />
  return (
    <Empty title="There is no such flow" line="pawl flow list">
      The store has no flow or batch with the id <Name text={id} />. Retention deletes a flow with
      its last job.
    </Empty>
  )
}

interface HeadProps {
  readonly graph: Graph
  readonly isNow: boolean
  readonly reload: () => void
}

function Head({ graph: { flow, progress }, isNow, reload }: HeadProps) {
  const canRedrive = progress.parked + progress.failed > 0 || flow.state === 'attention'
  const button = (verb: 'cancel' | 'redrive', title: string, isPrimary: boolean) => (
    <button
      type="button"
      class={isPrimary ? 'button primary' : 'button'}
      onClick={() => askForFlow(verb, flow, reload)}
    >
      {title}
    </button>
  )
  return (
    <Top
      title={flow.key ?? (flow.kind === 'batch' ? 'Batch' : 'Flow')}
      actions={
        canOperate.value &&
        isNow && (
          <>
            {flow.state !== 'done' && button('cancel', 'Cancel…', false)}
            {canRedrive && button('redrive', 'Redrive…', true)}
          </>
        )
      }
    >
      <State {...verdictOf(flow, progress)} />
      <span class="mono muted">
        {flow.id} <Copy text={flow.id} />
      </span>
      <a class="small" href={hrefOf('/jobs', { flow: flow.id })}>
        all jobs
      </a>
    </Top>
  )
}

/** The first line is a sentence: how far it is, and what holds it up. */
function Why({ graph, at }: { graph: Graph; at: number | undefined }) {
  const { flow, progress } = graph
  const last = graph.critical.at(-1)
  const took = last?.endedAt ? `, after ${span(last.endedAt - flow.createdAt)}` : ''
  return (
    <section class="panel why" aria-label="How far it is">
      <p>
        {flow.state === 'done' ? `Done${took}: ` : ''}
        {progressText(progress)}. {at === undefined && <HeldUp graph={graph} />}
      </p>
      {flow.state === 'attention' && at === undefined && (
        <Cli line={lineOf('pawl flow redrive', flow.id, ['--reason …'])} />
      )}
    </section>
  )
}

const MOVING: readonly NodeStatus[] = ['running', 'ready', 'scheduled', 'parked', 'failed']

/** The job at the end of the chain of waits. */
function HeldUp({ graph: { flow, critical } }: { graph: Graph }) {
  if (flow.state === 'done') return null
  const cause = critical.find(({ status }) => MOVING.includes(status))
  if (cause === undefined) {
    return <>{flow.open ? 'It is open: members can be added until it is closed.' : ''}</>
  }
  return (
    <>
      It waits for{' '}
      <a href={jobHref(cause.job)}>
        <Name text={`${cause.type} #${cause.n}`} />
      </a>
      , which {cause.status === 'failed' ? 'has failed' : `is ${cause.status}`}.
    </>
  )
}

/** The rail of moments. Its last position is now. */
function Moments({
  graph: { flow, moments },
  at,
  travel,
}: {
  graph: Graph
  at: number | undefined
  travel: (to: number | undefined) => void
}) {
  const last = moments.length
  const here =
    at === undefined ? last : Math.max(1, moments.filter((moment) => moment <= at).length)
  const shown = at ?? moments[last - 1] ?? flow.createdAt
  const move = (to: number | undefined) =>
    travel(to === undefined || to >= last ? undefined : moments[to - 1])
  return (
    <Rail
      at={here}
      last={last}
      move={move}
      label="The moments of the flow"
      first="created"
      final="now"
    >
      <b>{at === undefined ? 'now' : `+${span(shown - flow.createdAt)}`}</b>{' '}
      <span class="mono" title={exact(shown)}>
        {clock(shown)}
      </span>
    </Rail>
  )
}

/** The critical path as bars on one line of time. */
function Path({ graph: { flow, critical }, at }: { graph: Graph; at: number }) {
  if (critical.length < 2) return null
  const end = Math.max(...critical.map(({ endedAt }) => endedAt ?? at))
  const length = Math.max(1, end - flow.createdAt)
  const percent = (time: number) => `${((time - flow.createdAt) / length) * 100}%`
  const shown = critical.slice(-PATH_MAX)
  return (
    <Panel title="Critical path" aside="the jobs that decide when it is done">
      {critical.length > shown.length && (
        <p class="small muted">
          The last {count(shown.length)} of {count(critical.length)} jobs.
        </p>
      )}
      <ol class="gantt">
        {shown.map(({ n, job, type, status, startedAt, endedAt }) => (
          <li key={n} class={`tone-${NODE_TONES[status]}`}>
            <span class="key">
              <State tone={NODE_TONES[status]} word="" />
              <a class="name" href={jobHref(job)} title={type}>
                <bdi>{`${type} #${n}`}</bdi>
              </a>
            </span>
            <span class="track">
              {startedAt !== null && (
                <i
                  style={{
                    left: percent(startedAt),
                    width: `max(2px, ${(((endedAt ?? at) - startedAt) / length) * 100}%)`,
                  }}
                />
              )}
            </span>
            <span class="small nowrap">
              {startedAt === null ? status : span((endedAt ?? at) - startedAt)}
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  )
}

const PATH_MAX = 30

function Troubled({ jobs }: { jobs: readonly Job[] }) {
  if (jobs.length === 0) return null
  return (
    <Panel title="Jobs that failed or need a person" flush>
      <Table<Job>
        label="Jobs that failed or need a person"
        rows={jobs}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => jobHref(id)}
        columns={[
          {
            title: 'Job',
            cell: ({ id, type, node }) => (
              <a class="plain" href={jobHref(id)}>
                <Name text={`${type} #${node ?? ''}`} clip />
              </a>
            ),
          },
          {
            title: 'State',
            tight: true,
            cell: (job) => (
              <State
                tone={job.blockedReason === null ? jobTone(job) : 'parked'}
                word={job.blockedReason === null ? job.state : 'parked'}
              />
            ),
          },
          {
            title: 'Why',
            fill: true,
            cell: ({ error, blockedReason, reason }) => (
              <Name text={blockedReason ?? error?.message ?? reason ?? '–'} clip />
            ),
          },
        ]}
      />
    </Panel>
  )
}
