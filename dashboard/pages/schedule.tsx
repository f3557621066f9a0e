/** One schedule: its ticks as a calendar, what became of each and why, and what comes next. */
import { call } from '../api/client.ts'
import type { Schedule, ScheduleRecord } from '../api/operations.ts'
import { canOperate, now } from '../api/session.ts'
import { ON_FACTS, useView } from '../api/view.ts'
import { lineOf } from '../controls/act.tsx'
import { exact, relative, span } from '../format.ts'
import { hrefOf, jobHref, queueHref } from '../router.ts'
import { askToBackfill, askToPause, askToResume, askToRunNow } from '../schedules/acts.tsx'
import type { ZoneFormat } from '../schedules/days.ts'
import { Calendar, Legend, nextTicks, reasonText, ticksOf } from '../schedules/strip.tsx'
import { Cli, Empty, Failure, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { formatOf, timingText } from './schedules.tsx'

interface Shown {
  readonly schedule: Schedule
  readonly next: readonly number[]
  readonly ticks: readonly ScheduleRecord[]
  readonly changes: readonly ScheduleRecord[]
}

const TICKS_MAX = 240
const NEXT = 12

async function load(name: string, signal: AbortSignal): Promise<Shown> {
  const params = { schedule: name }
  const { schedule } = await call('showSchedule', { params }, signal)
  const next = await call('listNextTicks', { params, query: { limit: NEXT } }, signal)
  const of = (kind: 'tick' | 'change', limit: number) =>
    call('listScheduleRecords', { query: { schedule: name, kind, limit } }, signal)
  const ticks = await of('tick', TICKS_MAX)
  const changes = await of('change', 50)
  return { schedule, next: next.items, ticks: ticks.items, changes: changes.items }
}

export function SchedulePage({ schedule: name }: { schedule: string }) {
  const view = useView(`schedule ${name}`, (signal) => load(name, signal), ON_FACTS)
  const { data, error, reload } = view
  return (
    <>
      <Top title={name} actions={data && <Buttons schedule={data.schedule} reload={reload} />}>
        <a class="small" href={hrefOf('/schedules')}>
          all schedules
        </a>
        {data && <Verdict schedule={data.schedule} />}
      </Top>
      <div class="stack">
        <Failure error={error} retry={reload} />
        {data && <Body {...data} />}
      </div>
    </>
  )
}

function Verdict({ schedule: { pausedAt, pausedBy, pauseNote, nextAt } }: { schedule: Schedule }) {
  if (pausedAt === null) {
    return (
      <span class="muted small">
        next <Time at={nextAt} none="never" />
      </span>
    )
  }
  return (
    <>
      <State tone="cancelled" word="paused" />
      <span class="muted small">
        <Time at={pausedAt} /> by <Name text={pausedBy ?? 'the engine'} />
        {pauseNote && (
          <>
            : <Name text={pauseNote} />
          </>
        )}
      </span>
    </>
  )
}

function Buttons({ schedule, reload }: { schedule: Schedule; reload: () => void }) {
  if (!canOperate.value) return null
  const button = (title: string, ask: (of: Schedule, then: () => void) => void) => (
    <button type="button" class="button" onClick={() => ask(schedule, reload)}>
      {title}
    </button>
  )
  return (
    <>
      {button('Run now…', askToRunNow)}
      {button('Backfill…', askToBackfill)}
      {schedule.pausedAt === null ? button('Pause…', askToPause) : button('Resume…', askToResume)}
    </>
  )
}

function Body({ schedule, next, ticks, changes }: Shown) {
  const format = formatOf(schedule)
  const past = ticksOf(ticks)
  const isPaused = schedule.pausedAt !== null
  const all = [...past, ...(isPaused ? [] : nextTicks(next))]
  return (
    <>
      <Panel title="Ticks" aside={`times in ${format.zone}`}>
        {all.length === 0 ? (
          <Empty title="No ticks yet" line={lineOf('pawl schedule next', schedule.name)} />
        ) : (
          <>
            <Calendar ticks={all} format={format} />
            <Legend ticks={all} />
          </>
        )}
      </Panel>
      <div class="columns even">
        <Panel title="What it makes">
          <Definition schedule={schedule} />
        </Panel>
        <Panel title={isPaused ? 'Next ticks: missed while it is paused' : 'Next ticks'}>
          <Next times={next} format={format} />
        </Panel>
      </div>
      <Troubles ticks={ticks} format={format} />
      {changes.length > 0 && (
        <Panel title="Changes" flush>
          <Changes records={changes} />
        </Panel>
      )}
      <Cli line={lineOf('pawl schedule history', schedule.name)} />
    </>
  )
}

const OVERLAPS: Readonly<Record<string, string>> = {
  skip: 'skip the tick',
  bufferOne: 'wait, one at most',
  bufferAll: 'wait, all of them',
  cancelOther: 'cancel the open job',
  allowAll: 'run beside it',
}

function Definition({ schedule }: { schedule: Schedule }) {
  const { type, queue, overlap, catchUp, jitterMs, open, input } = schedule
  return (
    <dl class="facts">
      <dt>when</dt>
      <dd>
        <Name text={timingText(schedule)} />
      </dd>
      <dt>job type</dt>
      <dd>
        <a href={hrefOf('/jobs', { type: type ?? undefined })}>
          <Name text={type ?? '–'} />
        </a>
        {queue !== null && (
          <>
            {' '}
            in <a href={queueHref(queue)}>{<Name text={queue} />}</a>
          </>
        )}
      </dd>
      <dt>if a job is open</dt>
      <dd>{overlap === null ? '–' : OVERLAPS[overlap]}</dd>
      <dt>after an outage</dt>
      <dd>{catchUp === null ? '–' : catchUpText(catchUp)}</dd>
      {jitterMs !== null && jitterMs > 0 && (
        <>
          <dt>jitter</dt>
          <dd>up to {span(jitterMs)}</dd>
        </>
      )}
      <dt>open jobs</dt>
      <dd>
        {open.length === 0 && 'none'}
        {open.slice(0, 5).map((id) => (
          <a key={id} class="mono" href={jobHref(id)}>
            {id.slice(-8)}{' '}
          </a>
        ))}
        {open.length > 5 && `and ${open.length - 5} more`}
      </dd>
      {input !== null && (
        <>
          <dt>input</dt>
          <dd class="mono">
            <Name text={input.text} clip />
          </dd>
        </>
      )}
    </dl>
  )
}

function catchUpText({ mode, withinMs }: NonNullable<Schedule['catchUp']>): string {
  if (mode === 'none') return 'missed ticks stay missed'
  const what = mode === 'latest' ? 'the latest missed tick' : 'all missed ticks'
  return `make up for ${what}, up to ${span(withinMs)} old`
}

function Next({ times, format }: { times: readonly number[]; format: ZoneFormat }) {
  if (times.length === 0) return <p class="muted">There is no next tick.</p>
  return (
    <ol class="times">
      {times.slice(0, 6).map((at) => (
        <li key={at}>
          <span>
            {format.day(at)} {format.time(at)}
            {format.shiftOn(at) !== 0 && <span class="shift">clocks change</span>}
          </span>
          <time class="muted" dateTime={new Date(at).toISOString()} title={exact(at)}>
            {relative(at, now.value)}
          </time>
        </li>
      ))}
    </ol>
  )
}

/** Ticks that made no job or made it late, with the reason. */
function Troubles({ ticks, format }: { ticks: readonly ScheduleRecord[]; format: ZoneFormat }) {
  const bad = ticks.filter(({ action }) => action !== 'fired').slice(0, 30)
  if (bad.length === 0) return null
  return (
    <Panel title="Ticks that were late, skipped, missed or backfilled" flush>
      <Table
        label="Ticks with a reason"
        rows={bad}
        keyOf={({ number }) => String(number)}
        columns={[
          {
            title: 'Tick',
            tight: true,
            cell: ({ tick = 0, ticks: many = 1 }) =>
              `${format.day(tick)} ${format.time(tick)}${many > 1 ? ` and ${many - 1} more` : ''}`,
          },
          {
            title: 'Result',
            tight: true,
            cell: (record) => {
              const [tick] = ticksOf([record])
              return <State tone={tick?.tone ?? 'idle'} word={record.action} />
            },
          },
          {
            title: 'Why',
            cell: ({ reason, tick = 0, at, action }) =>
              action === 'late' ? (
                `made ${span(at - tick)} after its time`
              ) : (
                <Name text={reasonText(reason) || 'by an operator'} />
              ),
          },
          {
            title: 'Job',
            tight: true,
            wide: true,
            cell: ({ job }) =>
              job === undefined ? '–' : <a href={jobHref(job)}>{job.slice(-8)}</a>,
          },
        ]}
      />
    </Panel>
  )
}

const WORDS: Readonly<Record<string, string>> = {
  put: 'stored',
  pause: 'paused',
  resume: 'resumed',
  run: 'run now',
  backfill: 'backfilled',
  remove: 'removed',
}

function Changes({ records }: { records: readonly ScheduleRecord[] }) {
  return (
    <Table
      label="Changes"
      rows={records}
      keyOf={({ number }) => String(number)}
      columns={[
        { title: 'When', tight: true, cell: ({ at }) => <Time at={at} /> },
        { title: 'Change', tight: true, cell: ({ action }) => WORDS[action] ?? action },
        { title: 'By', cell: ({ operator, actor }) => <Name text={operator ?? actor} clip /> },
        { title: 'Reason', cell: ({ note }) => <Name text={note ?? '–'} /> },
      ]}
    />
  )
}
