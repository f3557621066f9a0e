/** Jobs: one filter bar kept in the address, pages by cursor, and actions on the filter. */
import { useState } from 'preact/hooks'
import { type Answer, call } from '../api/client.ts'
import { canOperate } from '../api/session.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { count } from '../format.ts'
import { askFor, conditionWords, type JobFilter, type Selection, toFilter } from '../jobs/act.tsx'
import { SavedViews } from '../jobs/saved-views.tsx'
import { APPROVE, VERBS, type Verb } from '../jobs/verbs.ts'
import { jobTone } from '../machines.ts'
import { jobHref, place } from '../router.ts'
import { FilterBar, type FilterField, filterIn } from '../ui/filters.tsx'
import { Pages } from '../ui/pages.tsx'
import { Cli, Empty, Failure, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'

type Job = Answer<'listJobs'>['items'][number]

const STATES = ['queued', 'running', 'retrying', 'scheduled', 'quarantined', 'failed', 'succeeded']
const LANES = ['ready', 'waiting', 'held', 'parked', 'idle', 'ended']

const JOB_FIELDS: readonly FilterField[] = [
  { name: 'state', says: 'in this state', values: [...STATES, 'cancelled', 'created'] },
  { name: 'type', says: 'of this job type' },
  { name: 'queue', says: 'of this queue' },
  { name: 'lane', says: 'in this lane, in any lifecycle', values: LANES },
  { name: 'outcome', says: 'ended so', values: ['succeeded', 'failed', 'cancelled'] },
  { name: 'stalled', says: 'whose recovery waits for an approval', values: ['yes'] },
  { name: 'error', says: 'whose last error has this text' },
  { name: 'tag', says: 'with this tag' },
  { name: 'key', says: 'with this key' },
  { name: 'flow', says: 'of this flow, or invoked by this job' },
  { name: 'createdFrom', says: 'created since: 2h, 1d, 2026-11-18', values: ['1h', '1d', '7d'] },
  { name: 'createdBefore', says: 'created before: 2h, 1d', values: ['1h', '1d', '7d'] },
]

const PAGE = 50

export function JobsPage() {
  const filter = filterIn(JOB_FIELDS)
  const after = place.value.query.get('after') ?? undefined
  const key = JSON.stringify([filter, after])
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const view = useView(
    key,
    (signal) => call('listJobs', { query: { ...toFilter(filter), after, limit: PAGE } }, signal),
    // Later pages do not change under the reader.
    after === undefined ? ON_FACTS : {},
  )
  const { data, error, reload } = view
  const jobs = data?.items ?? []
  const isFiltered = Object.keys(filter).length > 0
  return (
    <>
      <Top title="Jobs">
        <SavedViews filter={filter} />
      </Top>
      <div class="stack">
        <div class="row">
          <FilterBar fields={JOB_FIELDS} fallback="type" />
          {canOperate.value && jobs.length > 0 && (
            <Bulk filter={filter} chosen={chosen} then={() => finish(reload, setChosen)} />
          )}
        </div>
        <Failure error={error} retry={reload} />
        {(data !== undefined || error === undefined) && (
          <Panel flush>
            {data !== undefined && jobs.length === 0 ? (
              <NoJobs isFiltered={isFiltered} />
            ) : (
              <Table
                label="Jobs"
                columns={COLUMNS}
                rows={jobs}
                keyOf={({ id }) => id}
                hrefOf={({ id }) => jobHref(id)}
                {...(canOperate.value && { chosen, choose: setChosen })}
              />
            )}
          </Panel>
        )}
        <Damaged damaged={data?.damaged ?? []} />
        <Pages after={after} next={data?.nextCursor ?? null} shown={jobs.length} />
        <Cli line={listLine(filter)} />
      </div>
    </>
  )
}

function finish(reload: () => void, setChosen: (keys: ReadonlySet<string>) => void): void {
  setChosen(new Set())
  reload()
}

function listLine(filter: JobFilter): string {
  return ['pawl job list', ...conditionWords(filter)].join(' ')
}

function errorOf({ error, blockedReason, reason }: Job): string {
  return error?.message ?? blockedReason ?? reason ?? ''
}

const COLUMNS: readonly Column<Job>[] = [
  {
    title: 'Type',
    cell: (job) => (
      <a class="plain" href={jobHref(job.id)}>
        <Name text={job.type} clip />
      </a>
    ),
  },
  { title: 'State', tight: true, cell: (job) => <State tone={jobTone(job)} word={job.state} /> },
  { title: 'Queue', tight: true, cell: ({ queue }) => <Name text={queue} clip />, wide: true },
  {
    title: 'Why',
    fill: true,
    cell: (job) => (
      <span class="muted">
        <Name text={errorOf(job)} clip />
      </span>
    ),
  },
  { title: 'Attempt', number: true, wide: true, cell: ({ attempt }) => attempt || '–' },
  { title: 'Due', number: true, wide: true, cell: (job) => <Due job={job} /> },
  { title: 'Changed', number: true, cell: ({ updatedAt }) => <Time at={updatedAt} /> },
  { title: 'Created', number: true, wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    title: 'Id',
    tight: true,
    wide: true,
    cell: ({ id }) => (
      // The beginning of an id is its time, which many jobs share.
      <span class="mono muted" title={id}>
        …{id.slice(-8)}
      </span>
    ),
  },
]

/** When it starts next; nothing once it has ended. */
function Due({ job }: { job: Job }) {
  return <Time at={job.outcome === null && job.execution === null ? job.runAt : null} />
}

function NoJobs({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) {
    return <Empty title="No job matches">Remove a condition, or look at another state.</Empty>
  }
  return (
    <Empty title="No jobs yet" line={`pawl job enqueue hello '{"name": "ada"}'`}>
      Enqueue one from your program, or here:
    </Empty>
  )
}

function Damaged({ damaged }: { damaged: Answer<'listJobs'>['damaged'] }) {
  if (damaged === undefined || damaged.length === 0) return null
  return (
    <div class="notice bad">
      {count(damaged.length)} rows cannot be read: {damaged[0]?.why}. Look at the Doctor page.
    </div>
  )
}

/** The most that one request changes. */
const BULK_MAX = 10_000

function Bulk({
  filter,
  chosen,
  then,
}: {
  filter: JobFilter
  chosen: ReadonlySet<string>
  then: () => void
}) {
  const selection: Selection = chosen.size > 0 ? { ids: [...chosen] } : { filter, limit: BULK_MAX }
  const verbs = filter.stalled === 'yes' ? [APPROVE, ...VERBS] : VERBS
  const act = (verb: Verb) => {
    const spec = verbs.find((one) => one.verb === verb)
    if (spec !== undefined) askFor(spec, selection, then)
  }
  return (
    <select
      class="field"
      aria-label={chosen.size > 0 ? 'Act on the chosen jobs' : 'Act on all matching jobs'}
      value=""
      onChange={(event) => {
        const { value } = event.currentTarget
        event.currentTarget.value = ''
        act(value as Verb)
      }}
    >
      <option value="">
        {chosen.size > 0 ? `Act on ${chosen.size} chosen…` : 'Act on all matching…'}
      </option>
      {verbs.map(({ verb, title }) => (
        <option key={verb} value={verb}>
          {title}
        </option>
      ))}
    </select>
  )
}
