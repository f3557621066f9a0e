/** Runs: where each of them is, how much of its work is finished, and what is open. */
import { type Answer, call } from '../api/client.ts'
import { canOperate } from '../api/session.ts'
import { useView } from '../api/view.ts'
import { count } from '../format.ts'
import { machineOf } from '../machines.ts'
import { place, runHref, setQuery } from '../router.ts'
import { askToStart } from '../runs/act.tsx'
import { runTone } from '../runs/tone.ts'
import { Cli, Empty, Failure, Meter, Name, Panel, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'

type Summary = Answer<'listRuns'>['items'][number]

const PAGE = 50
const EVERY_MS = 3000

export function RunsPage() {
  const after = place.value.query.get('after') ?? undefined
  const { data, error, reload } = useView(
    `runs ${after}`,
    (signal) => call('listRuns', { query: { order: 'newest', after, limit: PAGE } }, signal),
    // Events of runs are not in the ledger, so no fact reports them.
    after === undefined ? { everyMs: EVERY_MS } : {},
  )
  const definitions = useView('definitions', (signal) => call('listRunDefinitions', {}, signal))
  const known = definitions.data?.items ?? []
  const runs = data?.items ?? []
  const start = () => askToStart(known, reload)
  return (
    <>
      <Top
        title="Runs"
        actions={
          canOperate.value &&
          known.length > 0 && (
            <button type="button" class="button primary" onClick={start}>
              Start a run…
            </button>
          )
        }
      />
      <div class="stack">
        <Failure error={error} retry={reload} />
        <Panel flush>
          {data !== undefined && runs.length === 0 ? (
            <NoRuns />
          ) : (
            <Table
              label="Runs"
              columns={COLUMNS}
              rows={runs}
              keyOf={({ runId }) => runId}
              hrefOf={({ runId }) => runHref(runId)}
            />
          )}
        </Panel>
        <Pages after={after} next={data?.nextCursor ?? null} />
        <Cli line="pawl run list" />
      </div>
    </>
  )
}

function NoRuns() {
  return (
    <Empty
      title="No runs here"
      line={`pawl run start docs '{"folder":"docs"}' --runs ./runs.ts --id docs-7`}
    >
      A run is a process with states whose finished work is not repeated. This server shows the
      folder of runs if there is one or if it was started with --runs, otherwise those in the store.
    </Empty>
  )
}

function stateOf({ state, machine }: Summary) {
  if (typeof state !== 'string') return <State tone="failed" word="no valid snapshot" />
  const known = typeof machine === 'string' ? machineOf('run', machine) : undefined
  return <State tone={runTone(state, known)} word={state} />
}

const COLUMNS: readonly Column<Summary>[] = [
  {
    title: 'Run',
    cell: ({ runId }) => (
      <a class="plain" href={runHref(runId)}>
        <Name text={runId} clip />
      </a>
    ),
  },
  { title: 'State', tight: true, cell: stateOf },
  {
    title: 'Work items',
    cell: ({ items, finished }) =>
      items === 0 ? (
        <span class="muted">none yet</span>
      ) : (
        <div class="run-progress">
          <Meter part={finished / items} tone="succeeded" label="finished" />
          <span class="small nowrap">
            {count(finished)} of {count(items)}
          </span>
        </div>
      ),
  },
  {
    title: 'Open issues',
    number: true,
    tight: true,
    cell: ({ openIssues }) =>
      openIssues === 0 ? '–' : <State tone="failed" word={count(openIssues)} />,
  },
  {
    title: 'Events',
    number: true,
    tight: true,
    wide: true,
    cell: ({ events }) => (typeof events === 'number' ? count(events) : '–'),
  },
  {
    title: 'Machine',
    wide: true,
    cell: ({ machine }) => (
      <span class="muted">
        <Name text={typeof machine === 'string' ? machine : '–'} clip />
      </span>
    ),
  },
]

function Pages({ after, next }: { after: string | undefined; next: string | null }) {
  if (after === undefined && next === null) return null
  return (
    <nav class="row" aria-label="Pages of the list">
      {after !== undefined && (
        <button type="button" class="button" onClick={() => setQuery({ after: undefined })}>
          First page
        </button>
      )}
      {next !== null && (
        <button type="button" class="button" onClick={() => setQuery({ after: next })}>
          More runs
        </button>
      )}
    </nav>
  )
}
