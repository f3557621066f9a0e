/** Everything that is stored of a run, in tabs: events, artifacts, items, issues, changes. */
import { count } from '../format.ts'
import type { Tone } from '../machine-data.ts'
import { place, setQuery } from '../router.ts'
import { Diff } from '../ui/history.tsx'
import { Empty, Lines, Name, Tabs, Time } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { ArtifactGraphTab } from './artifact-graph.tsx'
import { Artifacts } from './artifacts.tsx'
import { Events } from './events.tsx'
import { ITEM_TONES } from './item-tones.ts'
import type { RunData, RunMoment } from './load.ts'
import { More } from './more.tsx'
import { Resume } from './resume.tsx'
import { timeOf } from './walk.ts'

interface Props {
  readonly data: RunData
  readonly moment: RunMoment
  readonly travel: (to: number | undefined) => void
}

export function RunDetails(props: Props) {
  const { moment } = props
  const { run } = moment
  const chosen = place.value.query.get('tab') ?? 'events'
  const open = Object.values(run.issues).filter(({ status }) => status === 'open').length
  const tabs = [
    { id: 'events', label: `Events ${count(run.last_seq)}` },
    { id: 'artifacts', label: `Artifacts ${count(Object.keys(run.artifacts_index).length)}` },
    { id: 'graph', label: 'Artifact graph' },
    { id: 'items', label: `Work items ${count(Object.keys(run.work_items).length)}` },
    { id: 'issues', label: `Issues ${count(open)} open` },
    { id: 'changes', label: `Changes at #${moment.at}` },
    { id: 'resume', label: 'What a resume would do' },
    { id: 'run', label: 'All fields' },
  ]
  const choose = (id: string) =>
    setQuery(
      { tab: id === 'events' ? undefined : id, artifact: undefined, around: undefined },
      { replace: true },
    )
  return (
    <section class="panel flush" aria-label="Details">
      <Tabs tabs={tabs} chosen={chosen} choose={choose} />
      <div class="tab-body" role="tabpanel" aria-labelledby={`tab-${chosen}`}>
        {chosen === 'events' && <Events {...props} />}
        {chosen === 'artifacts' && <Artifacts moment={moment} />}
        {chosen === 'graph' && <ArtifactGraphTab moment={moment} />}
        {chosen === 'items' && <Items moment={moment} />}
        {chosen === 'issues' && <Issues moment={moment} />}
        {chosen === 'changes' && <Diff changes={moment.changes.slice(0, ROWS_MAX)} />}
        {chosen === 'resume' && <Resume id={run.run_id} seq={props.data.run.last_seq} />}
        {chosen === 'run' && <Lines text={JSON.stringify(run, null, 2).slice(0, TEXT_MAX)} />}
      </div>
    </section>
  )
}

const ROWS_MAX = 500
const TEXT_MAX = 200_000

function Items({ moment: { run } }: { moment: RunMoment }) {
  const rows = Object.entries(run.work_items)
  if (rows.length === 0) return <Empty title="No work items" />
  return (
    <>
      <Table
        label="Work items"
        rows={rows.slice(0, ROWS_MAX)}
        keyOf={([key]) => key}
        columns={[
          { title: 'Item', cell: ([key]) => <Name text={key} clip /> },
          {
            title: 'Status',
            tight: true,
            cell: ([, { status }]) => <State tone={ITEM_TONES[status] ?? 'idle'} word={status} />,
          },
          { title: 'Attempts', number: true, cell: ([, { attempts }]) => count(attempts) },
          {
            title: 'Reads',
            fill: true,
            cell: ([, { inputs }]) => (
              <span class="muted">
                <Name text={Object.keys(inputs).join(', ')} clip />
              </span>
            ),
          },
          { title: 'Error', cell: ([, { error }]) => <Name text={error ?? ''} clip /> },
          {
            title: 'Started',
            number: true,
            wide: true,
            cell: ([, item]) => <Time at={timeOf(item.started_at)} />,
          },
        ]}
      />
      <More all={rows.length} shown={ROWS_MAX} line={`pawl run show ${run.run_id} --json`} />
    </>
  )
}

const SEVERITIES: Readonly<Record<string, Tone>> = {
  blocker: 'parked',
  error: 'failed',
  warning: 'retrying',
}

function Issues({ moment: { run } }: { moment: RunMoment }) {
  const rows = Object.entries(run.issues)
  if (rows.length === 0) {
    return <Empty title="No issues">A node opens one with `run.issue.open`.</Empty>
  }
  return (
    <Table
      label="Issues"
      rows={rows.slice(0, ROWS_MAX)}
      keyOf={([name]) => name}
      columns={[
        {
          title: 'Status',
          tight: true,
          cell: ([, { status, severity }]) =>
            status === 'open' ? (
              <State tone={SEVERITIES[severity] ?? 'failed'} word={`open ${severity}`} />
            ) : (
              <State tone="succeeded" word="resolved" />
            ),
        },
        { title: 'Issue', cell: ([name]) => <Name text={name} clip /> },
        { title: 'What', prose: true, cell: ([, { message }]) => <Name text={message} /> },
        {
          title: 'Opened',
          number: true,
          cell: ([, issue]) => <Time at={timeOf(issue.opened_at)} />,
        },
        {
          title: 'Resolved',
          number: true,
          wide: true,
          cell: ([, { resolved_at: at }]) => <Time at={at === null ? null : timeOf(at)} />,
        },
      ]}
    />
  )
}
