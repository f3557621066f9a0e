/** The audit: every fact of every job, who caused it and why, by conditions; and its export. */
import { useState } from 'preact/hooks'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { type Answer, call, type Refused } from '../api/client.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { timeOf } from '../jobs/act.tsx'
import { moveOf, whoOf, whyOf } from '../jobs/ledger.tsx'
import { jobHref, place, setQuery } from '../router.ts'
import { FilterBar, type FilterField, filterIn } from '../ui/filters.tsx'
import { Cli, Empty, Failure, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { type Column, Table } from '../ui/table.tsx'

type Entry = Answer<'listFacts'>['items'][number]
type Query = NonNullable<Parameters<typeof call<'listFacts'>>[1]['query']>

const ACTORS = ['operator', 'doctor', 'worker', 'engine', 'client']
const VERBS = ['cancel', 'park', 'redrive', 'discard', 'run-now', 'force', 'repair', 'reschedule']
const OTHERS = ['create', 'claim', 'done', 'retry', 'fail', 'expire', 'stall', 'release', 'exhaust']

const FIELDS: readonly FilterField[] = [
  { name: 'operator', says: 'done by this operator' },
  { name: 'trigger', says: 'this verb', values: [...VERBS, ...OTHERS] },
  { name: 'jobId', says: 'of this job' },
  { name: 'actor', says: 'caused by this kind of actor', values: ACTORS },
  { name: 'worker', says: 'by this worker' },
  { name: 'fromState', says: 'out of this state' },
  { name: 'toState', says: 'into this state' },
  { name: 'reason', says: 'with this reason' },
  { name: 'from', says: 'since: 2h, 1d, 2026-11-18', values: ['1h', '1d', '7d'] },
  { name: 'before', says: 'before: 2h, 1d, 2026-11-18', values: ['1h', '1d', '7d'] },
]

const PAGE = 50
const TIMES: readonly string[] = ['from', 'before']

/** The conditions as the API takes them: times are numbers. */
function queryOf(filter: Readonly<Record<string, string>>): Query {
  const given = Object.entries(filter).map(([name, value]) => [
    name,
    TIMES.includes(name) ? timeOf(value) : value,
  ])
  return Object.fromEntries(given) as Query
}

const OPTIONS: Readonly<Record<string, string>> = {
  jobId: 'job',
  fromState: 'from-state',
  toState: 'to-state',
}

/** The conditions as options of the command line. */
function wordsOf(filter: Readonly<Record<string, string>>): string {
  return Object.entries(filter)
    .map(([name, value]) => ` --${OPTIONS[name] ?? name}=${shellWord(value)}`)
    .join('')
}

export function AuditPage() {
  const filter = filterIn(FIELDS)
  const after = place.value.query.get('after') ?? undefined
  const { data, error, reload } = useView(
    JSON.stringify([filter, after]),
    async (signal) => {
      const query = { ...queryOf(filter), order: 'newest', after, limit: PAGE } as const
      return call('listFacts', { query }, signal)
    },
    // Later pages do not change under the reader.
    after === undefined ? ON_FACTS : {},
  )
  const entries = data?.items ?? []
  const broken = data?.unreadable ?? []
  return (
    <>
      <Top title="Audit" actions={<Export filter={filter} />}>
        <Views filter={filter} />
      </Top>
      <div class="stack">
        <FilterBar fields={FIELDS} fallback="operator" hint="Filter: operator, trigger, jobId…" />
        <Failure error={error} retry={reload} />
        {broken.length > 0 && (
          <div class="notice bad">
            {broken.length} facts cannot be read: {broken[0]?.unreadable}. Look at the Doctor page.
          </div>
        )}
        <Panel flush>
          {data !== undefined && entries.length === 0 ? (
            <Empty title="No fact matches">
              Remove a condition. Every step of every job is a fact, with who caused it and why.
            </Empty>
          ) : (
            <Table label="Facts" columns={COLUMNS} rows={entries} keyOf={({ pos }) => pos} />
          )}
        </Panel>
        <Pages after={after} next={data?.nextCursor ?? null} />
        <Cli line={`pawl audit list${wordsOf(filter)}`} />
        <Cli line={`pawl audit export --format csv${wordsOf(filter)} --out facts.csv`} />
      </div>
    </>
  )
}

const VIEWS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['Everything', {}],
  ['Operators', { actor: 'operator' }],
  ['Repairs', { trigger: 'repair' }],
  ['Crashes', { trigger: 'expire' }],
]

function Views({ filter }: { filter: Readonly<Record<string, string>> }) {
  const cleared = Object.fromEntries(
    [...FIELDS.map(({ name }) => name), 'after'].map((n) => [n, '']),
  )
  return (
    <nav class="row" aria-label="Views">
      {VIEWS.map(([title, wanted]) => (
        <button
          key={title}
          type="button"
          class="chip flat"
          aria-current={JSON.stringify(wanted) === JSON.stringify(filter) ? 'true' : undefined}
          onClick={() => setQuery({ ...cleared, ...wanted })}
        >
          {title}
        </button>
      ))}
    </nav>
  )
}

type Fact = Parameters<typeof whoOf>[0]
const factOf = ({ fact }: Entry) => fact as unknown as Fact

const COLUMNS: readonly Column<Entry>[] = [
  { title: 'When', tight: true, cell: ({ fact }) => <Time at={fact.at} /> },
  { title: 'Who', cell: (entry) => <Name text={whoOf(factOf(entry))} clip /> },
  { title: 'Actor', tight: true, wide: true, cell: ({ fact }) => fact.actor },
  { title: 'What', tight: true, cell: ({ fact }) => fact.trigger },
  { title: 'From → to', wide: true, tight: true, cell: (entry) => moveOf(factOf(entry)) },
  {
    title: 'Why',
    fill: true,
    cell: (entry) => (
      <span class="muted">
        <Name text={whyOf(factOf(entry))} clip />
      </span>
    ),
  },
  {
    title: 'Job',
    tight: true,
    cell: ({ fact }) => (
      <a class="mono" href={`${jobHref(fact.jobId)}?at=${fact.seq}`} title={fact.jobId}>
        …{fact.jobId.slice(-8)} #{fact.seq}
      </a>
    ),
  },
]

function Pages({ after, next }: { after: string | undefined; next: string | null }) {
  if (after === undefined && next === null) return null
  return (
    <nav class="row" aria-label="Pages of the list">
      {after !== undefined && (
        <button type="button" class="button" onClick={() => setQuery({ after: undefined })}>
          Newest
        </button>
      )}
      {next !== null && (
        <button type="button" class="button" onClick={() => setQuery({ after: next })}>
          Older
        </button>
      )}
    </nav>
  )
}

/** What one export has at most: a browser keeps it in memory. The command has no bound. */
const EXPORT_MAX = 20_000
const EXPORT_PAGE = 1000

/** Saves the matching facts as NDJSON, newest first, one page after another. */
function Export({ filter }: { filter: Readonly<Record<string, string>> }) {
  const [done, setDone] = useState<number>()
  const [error, setError] = useState<Refused>()
  const run = async () => {
    setDone(0)
    setError(undefined)
    try {
      await save(filter, setDone)
    } catch (failed) {
      setError(failed as Refused)
    }
    setDone(undefined)
  }
  return (
    <>
      {error && <Failure error={error} />}
      <button
        type="button"
        class="button"
        disabled={done !== undefined}
        title={`At most ${EXPORT_MAX} facts; pawl audit export has no bound`}
        onClick={() => void run()}
      >
        {done === undefined ? 'Export as NDJSON' : `${done} facts…`}
      </button>
    </>
  )
}

async function save(
  filter: Readonly<Record<string, string>>,
  told: (count: number) => void,
): Promise<void> {
  const lines: string[] = []
  let after: string | undefined
  do {
    const query = { ...queryOf(filter), order: 'newest', after, limit: EXPORT_PAGE } as const
    const page: Answer<'listFacts'> = await call('listFacts', { query })
    lines.push(...page.items.map((entry) => `${JSON.stringify(entry)}\n`))
    told(lines.length)
    after = page.nextCursor ?? undefined
  } while (after !== undefined && lines.length < EXPORT_MAX)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob(lines, { type: 'application/x-ndjson' }))
  link.download = 'facts.ndjson'
  link.click()
  URL.revokeObjectURL(link.href)
}
