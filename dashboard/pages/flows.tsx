/** Flows and batches: which of them need a person, and how far each is. */
import { type Answer, call } from '../api/client.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { progressText, verdictOf } from '../flows/tones.ts'
import { count } from '../format.ts'
import { conditionWords } from '../jobs/act.tsx'
import { flowHref, place } from '../router.ts'
import { FilterBar, type FilterField, filterIn } from '../ui/filters.tsx'
import { Pages } from '../ui/pages.tsx'
import { Cli, Empty, Failure, Meter, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'

type Row = Answer<'listFlows'>['items'][number]

const FIELDS: readonly FilterField[] = [
  { name: 'state', says: 'in this state', values: ['open', 'attention', 'done'] },
  { name: 'kind', says: 'only flows, or only batches', values: ['flow', 'batch'] },
  { name: 'key', says: 'with this key' },
]
const PAGE = 25

export function FlowsPage() {
  const filter = filterIn(FIELDS)
  const after = place.value.query.get('after') ?? undefined
  const view = useView(
    JSON.stringify([filter, after]),
    (signal) => {
      const query = { ...filter, progress: true, after, limit: PAGE }
      return call('listFlows', { query } as never, signal) as Promise<Answer<'listFlows'>>
    },
    after === undefined ? ON_FACTS : {},
  )
  const { data, error, reload } = view
  const rows = data?.items ?? []
  const isFiltered = Object.keys(filter).length > 0
  return (
    <>
      <Top title="Flows" />
      <div class="stack">
        <FilterBar fields={FIELDS} fallback="key" />
        <Failure error={error} retry={reload} />
        <Panel flush>
          {data !== undefined && rows.length === 0 ? (
            <NoFlows isFiltered={isFiltered} />
          ) : (
            <Table
              label="Flows"
              columns={COLUMNS}
              rows={rows}
              keyOf={({ flow }) => flow.id}
              hrefOf={({ flow }) => flowHref(flow.id)}
            />
          )}
        </Panel>
        <Pages after={after} next={data?.nextCursor ?? null} shown={rows.length} />
        <Cli line={['pawl flow list', ...conditionWords(filter)].join(' ')} />
      </div>
    </>
  )
}

function NoFlows({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No flow matches">Remove a condition to see more.</Empty>
  return (
    <Empty
      title="No flows yet"
      line="await pawl.flow((f) => f.add(report, input, { after: { page: f.add(render, page) } }))"
    >
      A flow is a set of jobs of which some wait for others. They are created together, and each
      starts when what it waits for has succeeded. A batch is many jobs of one type with a callback,
      made by <code>pawl.batch</code>.
    </Empty>
  )
}

const COLUMNS: readonly Column<Row>[] = [
  {
    title: 'Flow',
    cell: ({ flow }) => (
      <a class="plain" href={flowHref(flow.id)}>
        {flow.key === null ? <span class="mono">{flow.id}</span> : <Name text={flow.key} clip />}
      </a>
    ),
  },
  {
    title: 'State',
    tight: true,
    cell: ({ flow, progress }) => <State {...verdictOf(flow, progress)} />,
  },
  {
    title: 'Progress',
    cell: ({ progress }) =>
      progress === null ? (
        '–'
      ) : (
        <div class="run-progress" title={progressText(progress)}>
          <Meter
            part={progress.members === 0 ? 1 : progress.succeeded / progress.members}
            tone="succeeded"
            label="succeeded"
          />
          <span class="small nowrap">
            {count(progress.succeeded)} of {count(progress.members)}
          </span>
        </div>
      ),
  },
  {
    title: 'Needs a person',
    tight: true,
    number: true,
    cell: ({ progress }) =>
      progress === null || progress.parked === 0 ? (
        '–'
      ) : (
        <State tone="parked" word={count(progress.parked)} />
      ),
  },
  {
    title: 'Failed',
    tight: true,
    number: true,
    wide: true,
    cell: ({ progress }) =>
      progress === null || progress.failed === 0 ? (
        '–'
      ) : (
        <State tone="failed" word={count(progress.failed)} />
      ),
  },
  {
    title: 'Kind',
    tight: true,
    wide: true,
    cell: ({ flow }) => (
      <span class="muted">
        {flow.kind}
        {flow.open ? ', open' : ''}
      </span>
    ),
  },
  {
    title: 'Created',
    tight: true,
    number: true,
    cell: ({ flow }) => <Time at={flow.createdAt} />,
  },
]
