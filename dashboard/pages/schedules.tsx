/** Schedules: when each ticks next, and what became of its last ticks. */
import { call } from '../api/client.ts'
import type { Schedule, ScheduleRecord } from '../api/operations.ts'
import { now } from '../api/session.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { count, counted, span } from '../format.ts'
import { place, scheduleHref, setQuery } from '../router.ts'
import { ZoneFormat } from '../schedules/days.ts'
import { Legend, ShortStrip, ticksOf } from '../schedules/strip.tsx'
import { Cli, Empty, Failure, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'

interface Schedules {
  readonly schedules: readonly Schedule[]
  readonly records: readonly ScheduleRecord[]
  readonly next: string | null
}

const PAGE = 100
const RECORDS_MAX = 1000
const SHOWN = 18

async function load(after: string | undefined, signal: AbortSignal): Promise<Schedules> {
  const found = await call('listSchedules', { query: { after, limit: PAGE } }, signal)
  const query = { kind: 'tick', limit: RECORDS_MAX } as const
  const { items } = await call('listScheduleRecords', { query }, signal)
  return { schedules: found.items, records: items, next: found.nextCursor }
}

export function SchedulesPage() {
  const after = place.value.query.get('after') ?? undefined
  const view = useView(`schedules ${after}`, (signal) => load(after, signal), ON_FACTS)
  const { data, error, reload } = view
  return (
    <>
      <Top title="Schedules">{data && <Verdict data={data} />}</Top>
      <div class="stack">
        <Failure error={error} retry={reload} />
        {data && (data.schedules.length === 0 ? <None /> : <List data={data} />)}
      </div>
    </>
  )
}

function None() {
  return (
    <Panel>
      <Empty
        title="No schedules yet"
        line="defineSchedule({ name: 'nightly', job: report, cron: '0 2 * * *' })"
      >
        A schedule makes a job at each of its ticks, exactly once, on however many machines. Define
        one, and give it to the option schedules of createPawl:
      </Empty>
    </Panel>
  )
}

const DAY_MS = 86_400_000

function Verdict({ data: { schedules, records } }: { data: Schedules }) {
  const recent = records.filter(({ action, at }) => action === 'missed' && at > now.value - DAY_MS)
  const missed = recent.reduce((sum, { ticks = 1 }) => sum + ticks, 0)
  const paused = schedules.filter(({ pausedAt }) => pausedAt !== null).length
  return (
    <>
      {missed > 0 && <State tone="failed" word={`${counted(missed, 'tick')} missed in a day`} />}
      {paused > 0 && <State tone="cancelled" word={`${count(paused)} paused`} />}
    </>
  )
}

/** When a schedule ticks, in a few words. */
export function timingText({ timing }: Schedule): string {
  if (timing === null) return 'unreadable'
  return timing.kind === 'cron'
    ? `${timing.cron} · ${timing.timezone}`
    : `every ${span(timing.everyMs)}`
}

/** Times of a schedule are shown in its own zone. */
export function formatOf({ timing }: Schedule): ZoneFormat {
  return new ZoneFormat(timing?.kind === 'cron' ? timing.timezone : undefined)
}

interface Row {
  readonly schedule: Schedule
  readonly records: readonly ScheduleRecord[]
}

function List({ data: { schedules, records, next } }: { data: Schedules }) {
  const byName = new Map<string, ScheduleRecord[]>()
  for (const record of records) {
    const own = byName.get(record.schedule) ?? []
    own.push(record)
    byName.set(record.schedule, own)
  }
  const rows = schedules.map((schedule) => ({
    schedule,
    records: byName.get(schedule.name) ?? [],
  }))
  return (
    <>
      <Panel flush>
        <Table
          label="Schedules"
          rows={rows}
          keyOf={({ schedule }) => schedule.name}
          hrefOf={({ schedule }) => scheduleHref(schedule.name)}
          columns={COLUMNS}
        />
      </Panel>
      <Legend ticks={ticksOf(records)} />
      {next && (
        <div class="row">
          <button type="button" class="button" onClick={() => setQuery({ after: next })}>
            Next page
          </button>
        </div>
      )}
      <Cli line="pawl schedule list" />
    </>
  )
}

const COLUMNS: readonly Column<Row>[] = [
  {
    title: 'Schedule',
    cell: ({ schedule: { name } }) => (
      <a class="plain" href={scheduleHref(name)}>
        <Name text={name} clip />
      </a>
    ),
  },
  {
    title: 'Next',
    tight: true,
    cell: ({ schedule: { pausedAt, nextAt } }) =>
      pausedAt === null ? (
        <Time at={nextAt} none="never" />
      ) : (
        <State tone="cancelled" word="paused" />
      ),
  },
  {
    title: 'Last ticks',
    tight: true,
    cell: ({ schedule, records }) =>
      records.length === 0 ? (
        <span class="muted">none yet</span>
      ) : (
        <ShortStrip ticks={ticksOf(records).slice(-SHOWN)} format={formatOf(schedule)} />
      ),
  },
  {
    title: 'When',
    wide: true,
    cell: ({ schedule }) => <span class="nowrap">{timingText(schedule)}</span>,
  },
  {
    title: 'Makes',
    wide: true,
    cell: ({ schedule: { type } }) => <Name text={type ?? '–'} clip />,
  },
  {
    title: 'Open',
    number: true,
    wide: true,
    cell: ({ schedule: { open } }) => count(open.length),
  },
]
