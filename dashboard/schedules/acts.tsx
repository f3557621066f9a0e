/** What operators do to schedules: pause, resume, run now and backfill. */
import { type Signal, signal } from '@preact/signals'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { call } from '../api/client.ts'
import type { Schedule } from '../api/operations.ts'
import { now } from '../api/session.ts'
import { askControl, DryRun } from '../controls/act.tsx'
import { readDuration } from '../controls/duration.ts'
import { Field } from '../controls/field.tsx'
import { counted, exact } from '../format.ts'
import { jobHref } from '../router.ts'

const SAME = 'Nothing changed: it is so already.'

export function askToPause({ name }: Schedule, then: () => void): void {
  askControl({
    title: `Pause schedule ${name}`,
    verb: 'Pause',
    says: 'Its ticks make no jobs until it is resumed, and are recorded as missed.',
    ...{ command: 'pawl schedule pause', object: name },
    act: async (signed) => {
      const request = { params: { schedule: name }, body: signed }
      return (await call('pauseSchedule', request)).changed ? `${name} is paused.` : SAME
    },
    then,
  })
}

export function askToResume({ name }: Schedule, then: () => void): void {
  askControl({
    title: `Resume schedule ${name}`,
    verb: 'Resume',
    says: 'It counts from now on. Backfill makes up for ticks that were missed.',
    ...{ command: 'pawl schedule resume', object: name },
    act: async (signed) => {
      const request = { params: { schedule: name }, body: signed }
      return (await call('resumeSchedule', request)).changed ? `${name} is resumed.` : SAME
    },
    then,
  })
}

export function askToRunNow({ name, open }: Schedule, then: () => void): void {
  askControl({
    title: `Run ${name} now`,
    verb: 'Run now',
    says:
      open.length === 0
        ? 'Makes one job now. The next ticks stay as they are.'
        : `Makes one job now, beside ${counted(open.length, 'open job')}.`,
    ...{ command: 'pawl schedule run-now', object: name },
    act: async (signed) => {
      const { job } = await call('runScheduleNow', { params: { schedule: name }, body: signed })
      return <span>A job was made. {job && <a href={jobHref(job)}>Open it</a>}</span>
    },
    then,
  })
}

/** A duration ago, or a date; undefined if it is neither. */
function timeOf(text: string): number | undefined {
  const ago = readDuration(text)
  if (ago !== undefined) return now.value - ago
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : time
}

export function askToBackfill({ name }: Schedule, then: () => void): void {
  const from = signal('1d')
  const send = (body: { reason: string; operator?: string; dryRun?: boolean }) =>
    call('backfillSchedule', {
      params: { schedule: name },
      body: { ...body, from: timeOf(from.value) ?? now.value },
    })
  const preview = async () => {
    const { ticks, existing } = await send({ reason: 'preview', dryRun: true })
    const kept =
      existing.length === 0 ? '' : ` ${counted(existing.length, 'tick')} have one already.`
    return `${counted(ticks.length, 'job')} would be made, one after the other.${kept}`
  }
  askControl({
    title: `Backfill schedule ${name}`,
    verb: 'Backfill',
    says: 'Makes the jobs of ticks that have passed without one, at most 1000.',
    fields: <From text={from} ask={preview} />,
    isReady: () => timeOf(from.value) !== undefined,
    ...{ command: 'pawl schedule backfill', object: name },
    options: () => [`--from=${shellWord(from.value.trim())}`],
    act: async (signed) => `${counted((await send(signed)).ticks.length, 'tick')} backfilled.`,
    then,
  })
}

function From({ text, ask }: { text: Signal<string>; ask: () => Promise<string> }) {
  const time = timeOf(text.value)
  return (
    <>
      <Field
        label="Ticks from a date on, or from so long ago: 2d, 2026-11-17"
        text={text}
        fault={time === undefined ? 'Write a duration such as 2d, or a date.' : undefined}
      />
      {time !== undefined && (
        <>
          <p class="small muted">From {exact(time)}.</p>
          <DryRun of={text.value} ask={ask} />
        </>
      )}
    </>
  )
}
