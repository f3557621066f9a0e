/** Limits: what blocks jobs now, how full each limit is, and who has set its number. */
import { call } from '../api/client.ts'
import type { Gate, Limit } from '../api/operations.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { count, counted, span } from '../format.ts'
import { setBadge } from '../numbers.ts'
import { limitHref, place, setQuery } from '../router.ts'
import { Cli, Count, Empty, Failure, Meter, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'

interface Limits {
  readonly blocking: readonly Gate[]
  readonly limits: readonly Limit[]
  readonly next: string | null
}

const BLOCKING_MAX = 100
const PAGE = 100

async function loadLimits(after: string | undefined, signal: AbortSignal): Promise<Limits> {
  const gates = await call('listGates', { query: { waiting: true, limit: BLOCKING_MAX } }, signal)
  const found = await call('listLimits', { query: { after, limit: PAGE } }, signal)
  const blocking = gates.items
    .filter(({ blocked }) => blocked > 0)
    .toSorted((a, b) => (a.blockedSince ?? 0) - (b.blockedSince ?? 0))
  const full = blocking.length
  setBadge('/limits', full === 0 ? undefined : { text: `${count(full)} full`, isHot: true })
  return { blocking, limits: found.items, next: found.nextCursor }
}

export function LimitsPage() {
  const after = place.value.query.get('after') ?? undefined
  const load = (signal: AbortSignal) => loadLimits(after, signal)
  const { data, error, reload } = useView(`limits ${after}`, load, ON_FACTS)
  return (
    <>
      <Top title="Limits">{data && <Verdict data={data} />}</Top>
      <div class="stack">
        <Failure error={error} retry={reload} />
        {data && <Body data={data} />}
      </div>
    </>
  )
}

function Verdict({ data: { blocking, limits } }: { data: Limits }) {
  if (limits.length === 0) return null
  if (blocking.length === 0) return <State tone="succeeded" word="no job is blocked" />
  const jobs = blocking.reduce((sum, { blocked }) => sum + blocked, 0)
  return <State tone="blocked" word={`${counted(jobs, 'job')} blocked`} />
}

function Body({ data: { blocking, limits, next } }: { data: Limits }) {
  if (limits.length === 0 && blocking.length === 0) {
    return (
      <Panel>
        <Empty
          title="No limits yet"
          line={'pawl limit set queue/mail --concurrency 10 --reason "the relay allows ten"'}
        >
          A job type gets a limit with the option concurrency of defineJob. Every queue can have one
          without a change of code:
        </Empty>
      </Panel>
    )
  }
  return (
    <>
      {blocking.length > 0 && (
        <Panel title="What blocks jobs now, longest first" flush>
          <Table
            label="What blocks jobs now"
            rows={blocking}
            keyOf={({ name, key }) => `${name} ${key}`}
            hrefOf={({ limit, key }) => limitHref(limit, key)}
            columns={BLOCKING}
          />
        </Panel>
      )}
      <Panel title="All limits" flush>
        <Table
          label="All limits"
          rows={limits.map((limit) => withKeys(limit, blocking))}
          keyOf={({ name, key }) => `${name} ${key}`}
          hrefOf={({ limit, key }) => limitHref(limit, key)}
          columns={LIMITS}
        />
      </Panel>
      {next && (
        <div class="row">
          <button type="button" class="button" onClick={() => setQuery({ after: next })}>
            Next page
          </button>
        </div>
      )}
      <Cli line="pawl limit list --blocked" />
    </>
  )
}

/** The numbers of a limit with those of its keys that block jobs. */
function withKeys(limit: Limit, blocking: readonly Gate[]): Limit {
  if (limit.key !== undefined) return limit
  const keys = blocking.filter(({ limit: name, key }) => name === limit.limit && key !== undefined)
  const used = keys.reduce((sum, gate) => sum + gate.used, limit.used)
  const blocked = keys.reduce((sum, gate) => sum + gate.blocked, limit.blocked)
  return keys.length === 0 ? limit : { ...limit, used, blocked, max: null }
}

type Shown = Pick<Gate, 'limit' | 'key' | 'used' | 'max' | 'kind' | 'opensAt'>

function Limited({ row: { limit, key } }: { row: Shown }) {
  return (
    <a class="plain limited" href={limitHref(limit, key)}>
      <Name text={limit} clip />
      {key !== undefined && (
        <span class="chip flat">
          <Name text={key} clip />
        </span>
      )}
    </a>
  )
}

/** How full it is, as a bar and as numbers. */
export function Use({ row: { used, max, kind, opensAt } }: { row: Shown }) {
  if (kind === 'throttle') {
    return opensAt === undefined ? (
      <span class="muted">open</span>
    ) : (
      <span>
        opens <Time at={opensAt} />
      </span>
    )
  }
  if (max === null) return <span class="nowrap">{count(used)} run</span>
  return (
    <span class="metered">
      <Meter
        part={max === 0 ? 1 : used / max}
        tone={used >= max ? 'blocked' : 'running'}
        label={`${count(used)} of ${count(max)} may run`}
      />
      <span class="small nowrap">
        {count(used)} of {count(max)}
      </span>
    </span>
  )
}

const BLOCKING: readonly Column<Gate>[] = [
  { title: 'Limit', cell: (gate) => <Limited row={gate} /> },
  { title: 'Blocked', number: true, cell: ({ blocked }) => <Count value={blocked} /> },
  {
    title: 'Oldest blocked',
    number: true,
    cell: ({ blockedSince }) => <Time at={blockedSince} />,
  },
  { title: 'Use', cell: (gate) => <Use row={gate} /> },
]

/** What the code says, or an operator. */
export function valueText({ setting, kind }: Pick<Limit, 'setting' | 'kind'>): string {
  const { max, periodMs, burst } = setting
  if (kind === 'throttle' && periodMs !== null) {
    const extra = burst ? `, burst ${count(burst)}` : ''
    return `${max === null ? '∞' : count(max)} in ${span(periodMs)}${extra}`
  }
  return max === null ? 'no number' : `${count(max)} at once`
}

const LIMITS: readonly Column<Limit>[] = [
  { title: 'Limit', cell: (limit) => <Limited row={limit} /> },
  { title: 'Use', cell: (limit) => <Use row={limit} /> },
  { title: 'Blocked', number: true, cell: ({ blocked }) => <Count value={blocked} /> },
  { title: 'In the code', wide: true, cell: valueText },
  {
    title: 'Set by an operator',
    wide: true,
    cell: ({ setting: { override, overrideBy, overrideAt } }) =>
      override === null ? (
        <span class="muted">–</span>
      ) : (
        <span>
          <b>{count(override)}</b> by <Name text={overrideBy ?? 'somebody'} clip />,{' '}
          <Time at={overrideAt} />
        </span>
      ),
  },
]
