/** Ticks as a strip: one sign for each, by days; what will come is at its end. */
import type { ScheduleRecord } from '../api/operations.ts'
import { count } from '../format.ts'
import type { Tone } from '../machine-data.ts'
import { jobHref } from '../router.ts'
import { Sign, State } from '../ui/state.tsx'
import { byDay, type Day, type ZoneFormat } from './days.ts'

export interface Tick {
  readonly at: number
  readonly tone: Tone
  readonly word: string
  readonly why: string
  /** More than one if a record is about several ticks. */
  readonly ticks: number
  readonly job?: string
}

const TONES: Readonly<Record<string, Tone>> = {
  fired: 'succeeded',
  late: 'retrying',
  backfilled: 'running',
  skipped: 'cancelled',
  missed: 'failed',
  next: 'scheduled',
}

const REASONS: Readonly<Record<string, string>> = {
  overlap: 'a job was open',
  'buffer-full': 'too many ticks waited',
  replaced: 'a later tick came first',
  late: 'no worker looked in time',
  paused: 'the schedule was paused',
  changed: 'the schedule was changed',
  removed: 'the schedule was removed',
  existing: 'the job was there already',
}

export const reasonText = (reason: string | undefined) =>
  reason === undefined ? '' : Object.hasOwn(REASONS, reason) ? (REASONS[reason] ?? '') : reason

/** The ticks of records, oldest first. A tick that was backfilled later is shown once. */
export function ticksOf(records: readonly ScheduleRecord[]): Tick[] {
  const byTime = new Map<number, Tick>()
  for (const { tick, action, reason, ticks = 1, job, at } of records) {
    if (tick === undefined || byTime.has(tick)) continue
    const delay = action === 'late' && at > tick ? `made ${count((at - tick) / 1000)} s late` : ''
    const why = [delay, reasonText(reason)].filter(Boolean).join(', ')
    byTime.set(tick, { at: tick, tone: TONES[action] ?? 'idle', word: action, why, ticks, job })
  }
  return [...byTime.values()].sort((a, b) => a.at - b.at)
}

export function nextTicks(times: readonly number[]): Tick[] {
  return times.map((at) => ({ at, tone: 'scheduled', word: 'next', why: '', ticks: 1 }))
}

const textOf = (tick: Tick, format: ZoneFormat) =>
  `${format.day(tick.at)} ${format.time(tick.at)}: ${tick.word}` +
  `${tick.ticks > 1 ? `, ${count(tick.ticks)} ticks` : ''}${tick.why === '' ? '' : `, ${tick.why}`}`

function Cell({ tick, format }: { tick: Tick; format: ZoneFormat }) {
  const text = textOf(tick, format)
  const content = (
    <>
      <Sign tone={tick.tone} />
      {tick.ticks > 1 && <b aria-hidden="true">×{count(tick.ticks)}</b>}
      <span class="hidden">{text}</span>
    </>
  )
  const classes = `tick tone-${tick.tone}`
  return (
    <li title={text}>
      {tick.job === undefined ? (
        <span class={classes}>{content}</span>
      ) : (
        <a class={classes} href={jobHref(tick.job)}>
          {content}
        </a>
      )}
    </li>
  )
}

/** A strip without days, for tables. */
export function ShortStrip({ ticks, format }: { ticks: readonly Tick[]; format: ZoneFormat }) {
  return (
    <ol class="strip short" aria-label="Last ticks">
      {ticks.map((tick) => (
        <Cell key={tick.at} tick={tick} format={format} />
      ))}
    </ol>
  )
}

/** A strip by days. Nights on which the clocks change are marked. */
export function Calendar({ ticks, format }: { ticks: readonly Tick[]; format: ZoneFormat }) {
  const days = byDay(ticks, ({ at }) => at, format)
  return (
    <div class="calendar">
      {days.map((day) => (
        <DayOf key={`${day.title} ${day.items[0]?.at}`} day={day} format={format} />
      ))}
    </div>
  )
}

function rangeOf(ticks: readonly Tick[], format: ZoneFormat): string {
  const [first, last] = [ticks[0], ticks.at(-1)].map((tick) => tick && format.time(tick.at))
  return first === last ? `${first}` : `${first}–${last}`
}

function DayOf({ day, format }: { day: Day<Tick>; format: ZoneFormat }) {
  const { title, shiftMinutes, items } = day
  const way = shiftMinutes > 0 ? 'forward' : 'back'
  return (
    <section class="day" aria-label={title}>
      <h3>
        {title} <span class="range">{rangeOf(items, format)}</span>
        {shiftMinutes !== 0 && (
          <span class="shift">
            clocks go {way} {Math.abs(shiftMinutes)} min
          </span>
        )}
      </h3>
      <ol class="strip">
        {items.map((tick) => (
          <Cell key={tick.at} tick={tick} format={format} />
        ))}
      </ol>
    </section>
  )
}

const LEGEND = [
  ['fired', 'made'],
  ['late', 'made late'],
  ['backfilled', 'backfilled'],
  ['skipped', 'skipped'],
  ['missed', 'missed'],
  ['next', 'next'],
] as const

/** The signs of the strip, as far as they occur. */
export function Legend({ ticks }: { ticks: readonly Tick[] }) {
  const seen = new Set(ticks.map(({ word }) => word))
  return (
    <p class="row small">
      {LEGEND.filter(([action]) => seen.has(action)).map(([action, word]) => (
        <State key={action} tone={TONES[action] ?? 'idle'} word={word} />
      ))}
    </p>
  )
}
