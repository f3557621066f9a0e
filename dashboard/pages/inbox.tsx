/** What waits for people: jobs that wait for a signal or an approval, the longest wait first. */
import { useEffect } from 'preact/hooks'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { call } from '../api/client.ts'
import { canOperate } from '../api/session.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { counted, rounded } from '../format.ts'
import { Answers, type InboxItem } from '../inbox/answer.tsx'
import { setBadge } from '../numbers.ts'
import { jobHref } from '../router.ts'
import { FilterBar, type FilterField, filterIn } from '../ui/filters.tsx'
import { Cli, Empty, Failure, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { type Column, Table } from '../ui/table.tsx'

const FIELDS: readonly FilterField[] = [
  { name: 'waitsFor', says: 'jobs that wait for this signal' },
  { name: 'type', says: 'jobs of this type' },
]
const SHOWN = 100

export function InboxPage() {
  const filter = filterIn(FIELDS)
  const { data, error, reload } = useView(
    JSON.stringify(filter),
    (signal) => call('showInbox', { query: { ...filter, limit: SHOWN } }, signal),
    ON_FACTS,
  )
  const isAll = Object.keys(filter).length === 0
  const total = data?.total
  useEffect(() => {
    if (isAll && total !== undefined) {
      setBadge('/inbox', total > 0 ? { text: rounded(total), isHot: true } : undefined)
    }
  }, [isAll, total])
  return (
    <>
      <Top title="Inbox">
        {data && (
          <span class="muted">
            {counted(data.total, 'job')} {data.total === 1 ? 'waits' : 'wait'} for an answer
            {data.more && ', and there may be more'}
          </span>
        )}
      </Top>
      <div class="stack">
        <FilterBar fields={FIELDS} fallback="type" hint="Filter: type, waitsFor…" />
        <Failure error={error} retry={reload} />
        {data !== undefined && (
          <Panel flush>
            {data.items.length === 0 ? (
              <Nothing />
            ) : (
              <Table<InboxItem>
                label="What waits for people"
                columns={columnsOf(reload)}
                rows={data.items}
                keyOf={({ job, n }) => `${job.id} ${n}`}
              />
            )}
          </Panel>
        )}
        <Cli line={lineOf(filter)} />
      </div>
    </>
  )
}

function lineOf({ waitsFor = 'approval', type }: Readonly<Record<string, string>>): string {
  const own = type === undefined ? '' : ` --type=${shellWord(type)}`
  return `pawl job list --waits-for=${shellWord(waitsFor)}${own}`
}

function columnsOf(reload: () => void): readonly Column<InboxItem>[] {
  return [
    {
      title: 'Job',
      cell: ({ job }) => (
        <a class="plain" href={jobHref(job.id)}>
          <Name text={job.type} clip />
          {job.key !== null && (
            <span class="small muted">
              {' '}
              <Name text={job.key} clip />
            </span>
          )}
        </a>
      ),
    },
    { title: 'Waits for', cell: ({ signal }) => <Name text={signal} clip /> },
    {
      title: 'Input',
      wide: true,
      cell: ({ input }) => (
        <span class="mono muted">
          <Name text={input?.text ?? ''} clip />
        </span>
      ),
    },
    { title: 'Since', number: true, cell: ({ since }) => <Time at={since} /> },
    { title: 'Until', number: true, cell: ({ until }) => <Time at={until} none="no end" /> },
    ...(canOperate.value
      ? [
          {
            title: 'Answer',
            cell: (item: InboxItem) => (
              <span class="row nowrap">
                <Answers item={item} then={reload} />
              </span>
            ),
          },
        ]
      : []),
  ]
}

function Nothing() {
  return (
    <Empty
      title="Nothing waits for you"
      line="const answer = await waitForApproval({ timeout: '7d' })"
    >
      A job appears here while its handler waits for a signal or for an approval:
    </Empty>
  )
}
