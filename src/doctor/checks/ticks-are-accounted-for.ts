import { tickKey } from '../../core/schedule/keys.ts'
import type { TickSource } from '../../core/schedule/ticks.ts'
import type { Schedule, ScheduleRecord } from '../../stores/contract/schedules.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { Finding } from '../finding.ts'
import { shellWord } from '../shell-word.ts'
import type { StoreCheck } from './check.ts'
import { schedulesOf } from './schedules-keep-time.ts'

/** How many of the last ticks of each schedule are checked. */
const TICKS_MAX = 1000

type Found = Omit<Finding, 'check'>

/** Every tick has one record that made a job, or one that says why not; see P17. */
export const ticksAreAccountedFor: StoreCheck = {
  name: 'ticks-are-accounted-for',
  promise: 'P17',
  says: 'Every tick of a schedule made exactly one job, or has a record that says why not.',
  look: async ({ store, ticksOf }) => {
    if (ticksOf === undefined) return []
    const found: Found[] = []
    for await (const schedule of schedulesOf(store)) {
      if (schedule.rules === undefined) continue
      found.push(...(await checkTicks(store, schedule, ticksOf(schedule.rules.timing))))
    }
    return found
  },
}

async function checkTicks(
  store: Store,
  { name, changedAt, buffered }: Schedule,
  ticks: TickSource,
): Promise<Found[]> {
  const filter = { schedule: name, kind: 'tick' } as const
  const { items } = await store.schedules.records(filter, { limit: TICKS_MAX })
  const made = items.filter(({ action }) => MADE.includes(action))
  const first = made.filter(({ reason }) => reason !== 'existing')
  const own = items.filter((record) => (record.tick ?? 0) > changedAt && !isBackfill(record))
  return [
    ...twiceIn(first).map((tick) => found(name, `tick ${said(tick)} made two jobs`, { tick })),
    ...gapsIn(
      own,
      buffered.filter((tick) => tick > changedAt),
      ticks,
    ).map((tick) =>
      found(
        name,
        `tick ${said(tick)} has neither a job nor a record`,
        { tick },
        backfill(name, tick),
      ),
    ),
    ...(await strayJobs(store, name, made)),
  ]
}

/** A tick that an operator made up for, or wanted to, has another record, of when it came. */
function isBackfill({ action, reason = '' }: ScheduleRecord): boolean {
  return action === 'backfilled' || reason.startsWith('backfill ')
}

const MADE: readonly string[] = ['fired', 'late', 'backfilled']

function twiceIn(made: readonly ScheduleRecord[]): number[] {
  const ticks = made.map(({ tick = 0 }) => tick)
  return [...new Set(ticks.filter((tick, i) => ticks.indexOf(tick) !== i))]
}

/** The first tick of each gap between the oldest and the newest record. */
function gapsIn(
  records: readonly ScheduleRecord[],
  buffered: readonly number[],
  ticks: TickSource,
): number[] {
  const ranges = [
    ...records.map(({ tick = 0, lastTick = tick }) => [tick, lastTick] as const),
    ...buffered.map((tick) => [tick, tick] as const),
  ].toSorted(([a], [b]) => a - b)
  let covered = ranges[0]?.[1]
  const gaps: number[] = []
  for (const [from, to] of ranges) {
    const next = ticks.next(covered as number)
    if (next !== undefined && next < from) gaps.push(next)
    covered = Math.max(covered as number, to)
  }
  return gaps
}

/** Jobs that belong to another tick than their record says. Retention may have removed others. */
async function strayJobs(
  store: Store,
  name: string,
  made: readonly ScheduleRecord[],
): Promise<Found[]> {
  const byJob = new Map(made.map((record) => [record.job ?? '', record]))
  const jobs = await store.getMany([...byJob.keys()])
  return jobs.flatMap(({ id, key }) => {
    const { tick = 0, reason } = byJob.get(id) ?? {}
    if (key === tickKey(name, tick) || reason === 'existing') return []
    return [found(name, `job ${id} is not the job of its tick`, { tick, job: id })]
  })
}

function said(tick: number): string {
  return new Date(tick).toISOString()
}

function backfill(name: string, tick: number): string {
  const times = `--from ${said(tick)} --to ${said(tick)}`
  return `pawl schedule backfill ${shellWord(name)} ${times} --reason …`
}

function found(name: string, what: string, evidence: object, advice?: string): Found {
  return {
    ...{ promise: 'P17', severity: 'error', subject: `schedule ${name}`, what },
    evidence: { schedule: name, ...evidence },
    ...(advice !== undefined && { advice }),
  }
}
