/**
 * The judge of schedules (P17): every tick made exactly one job, or has one record that says why
 * not. It computes ticks by a way of its own: it reads the local time of every minute.
 */
import type { Job } from 'pawl'
import type { ScheduleRecord } from 'pawl/operators'
import type { Store } from 'pawl/sqlite'
import type { Judged } from './checker.ts'

const MINUTE = 60_000

/** When a schedule of the simulation is due, in a form that both sides understand. */
export type SimTiming =
  | { readonly kind: 'every'; readonly everyMs: number }
  /** Each time that the local minute is a multiple. */
  | { readonly kind: 'steps'; readonly minutes: number; readonly timezone: string }
  /** Once a day, at this minute of the day. */
  | { readonly kind: 'daily'; readonly minute: number; readonly timezone: string }

/** The timing as the stored definition has it. */
export function cronOf(timing: Exclude<SimTiming, { kind: 'every' }>): string {
  if (timing.kind === 'steps') return `*/${timing.minutes} * * * *`
  return `${timing.minute % 60} ${Math.floor(timing.minute / 60)} * * *`
}

/** Every tick after one time and up to another. */
function ticksBetween(timing: SimTiming, after: number, until: number): number[] {
  if (timing.kind === 'every') {
    const first = (Math.floor(after / timing.everyMs) + 1) * timing.everyMs
    const length = Math.max(0, Math.floor((until - first) / timing.everyMs) + 1)
    return Array.from({ length }, (_, i) => first + i * timing.everyMs)
  }
  const isTick = tickTest(timing)
  const ticks: number[] = []
  // A day before, so that a day that has had its tick is known.
  const start = Math.floor(after / MINUTE) * MINUTE - 2 * 1440 * MINUTE
  for (let at = start; at <= until; at += MINUTE) {
    if (isTick(localOf(timing.timezone, at)) && at > after) ticks.push(at)
  }
  return ticks
}

interface LocalTime {
  readonly day: string
  readonly minute: number
}

/** Whether a schedule is due in a minute; to be asked for each minute in turn. */
function tickTest(timing: Exclude<SimTiming, { kind: 'every' }>): (local: LocalTime) => boolean {
  if (timing.kind === 'steps') return ({ minute }) => (minute % 60) % timing.minutes === 0
  let before: LocalTime | undefined
  let done = ''
  return (local) => {
    const earlier = before?.day === local.day ? before.minute : -1
    before = local
    // In a gap the minute is jumped over; if it comes twice, the day has had its tick.
    const isReached = earlier < timing.minute && local.minute >= timing.minute
    if (!isReached || done === local.day) return false
    done = local.day
    return true
  }
}

const formats = new Map<string, Intl.DateTimeFormat>()
const known = new Map<string, LocalTime>()

function localOf(timezone: string, at: number): LocalTime {
  const key = `${timezone} ${at}`
  const found = known.get(key)
  if (found !== undefined) return found
  let format = formats.get(timezone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-CA', {
      ...{ timeZone: timezone, hourCycle: 'h23', year: 'numeric', month: '2-digit' },
      ...{ day: '2-digit', hour: '2-digit', minute: '2-digit' },
    })
    formats.set(timezone, format)
  }
  const [day = '', time = ''] = format.format(at).split(', ')
  const [hour, minute] = time.split(':').map(Number)
  const local = { day, minute: (hour ?? 0) * 60 + (minute ?? 0) }
  known.set(key, local)
  return local
}

/** What the store says of one schedule. */
interface Evidence {
  readonly name: string
  /** Oldest first. */
  readonly records: readonly ScheduleRecord[]
  readonly jobs: ReadonlyMap<string, Job>
  readonly buffered: readonly number[]
  readonly cursor: number
  readonly isPaused: boolean
  readonly exists: boolean
}

/** How long before the end of the world workers may have been stopping. */
const STOPPING_MS = 5000

const MADE: readonly string[] = ['fired', 'late', 'backfilled']

/** Judges every schedule of a store in which nothing goes on any more. */
export async function judgeSchedules(
  store: Store,
  jobs: readonly Job[],
  timingOf: (definition: string) => SimTiming,
): Promise<Judged[]> {
  const records: ScheduleRecord[] = []
  let after: string | undefined
  do {
    const page = await store.schedules.records({}, { limit: 1000, ...(after && { after }) })
    records.push(...page.items)
    after = page.next
  } while (after !== undefined)
  records.reverse()
  const rows = new Map((await store.schedules.list({ limit: 1000 })).items.map((s) => [s.name, s]))
  const byId = new Map(jobs.map((job) => [job.id, job]))
  const judged = [...judgeJobs(records, jobs)]
  for (const name of new Set(records.map(({ schedule }) => schedule))) {
    const row = rows.get(name)
    const evidence: Evidence = {
      name,
      records: records.filter(({ schedule }) => schedule === name),
      jobs: byId,
      buffered: row?.buffered ?? [],
      cursor: row?.cursor ?? 0,
      isPaused: row?.pausedAt !== undefined,
      exists: row !== undefined,
    }
    judged.push(...judgeTicks(evidence, timingOf, store.now()), ...judgeMade(evidence))
  }
  return judged
}

function broken(job: string, what: string): Judged {
  return { promise: 'P17', job, what, facts: [] }
}

/** Each job that a tick made has one record, and each such record has its job. */
function judgeJobs(records: readonly ScheduleRecord[], jobs: readonly Job[]): Judged[] {
  const made = records.filter(({ action, reason }) => MADE.includes(action) && reason === undefined)
  const counts = new Map<string, number>()
  for (const { job = '' } of made) counts.set(job, (counts.get(job) ?? 0) + 1)
  return jobs.flatMap(({ id, key }) => {
    if (!key?.startsWith('schedule/')) return []
    const count = counts.get(id) ?? 0
    return count === 1 ? [] : [broken(id, `was made by ${count} records of ticks`)]
  })
}

function judgeMade({ name, records, jobs }: Evidence): Judged[] {
  return records.flatMap(({ action, job = '', tick, reason }) => {
    if (!MADE.includes(action)) return []
    const made = jobs.get(job)
    if (made === undefined) return [broken(job, `of ${name} was recorded and is not there`)]
    const isOwn = made.key === `schedule/${name}/${tick}` || reason === 'existing'
    return isOwn ? [] : [broken(job, `of ${name} has the key ${made.key}`)]
  })
}

/** The times during which each definition was in force. */
function periodsOf(records: readonly ScheduleRecord[], end: number) {
  const changes = records.filter(({ action }) => action === 'put' || action === 'remove')
  return changes.flatMap(({ action, at, after }, i) => {
    if (action === 'remove' || after === undefined) return []
    const { definition } = JSON.parse(after) as { definition: string }
    return [{ definition, from: at, to: changes[i + 1]?.at ?? end }]
  })
}

function judgeTicks(
  { name, records, buffered, cursor, isPaused, exists }: Evidence,
  timingOf: (definition: string) => SimTiming,
  now: number,
): Judged[] {
  const judged: Judged[] = []
  const isBackfill = ({ action, reason }: ScheduleRecord) =>
    action === 'backfilled' || reason?.startsWith('backfill ')
  const own = records.filter((record) => record.tick !== undefined && !isBackfill(record))
  const singles = new Map<number, number>()
  const note = (tick: number) => singles.set(tick, (singles.get(tick) ?? 0) + 1)
  for (const { tick = 0, lastTick } of own) if (lastTick === undefined) note(tick)
  const backfilled = new Set(
    records.flatMap(({ action, tick }) => (action === 'backfilled' ? (tick ?? 0) : [])),
  )
  const ranges = own.flatMap(({ tick = 0, lastTick }) =>
    lastTick === undefined ? [] : [[tick, lastTick] as const],
  )
  const expected = new Set<number>()
  for (const { definition, from, to } of periodsOf(records, exists ? now : cursor)) {
    for (const tick of ticksBetween(timingOf(definition), from, to)) {
      expected.add(tick)
      const covering = ranges.filter(([first, last]) => tick >= first && tick <= last).length
      const waits = buffered.includes(tick) ? 1 : 0
      const count = (singles.get(tick) ?? 0) + covering + waits
      // The workers stop at the end of the world, and may not have seen its last ticks.
      const isOpen = tick > cursor && (isPaused || tick > now - STOPPING_MS)
      const isMadeUp = backfilled.has(tick) || waits > 0
      if (count === 1 || (isOpen && count === 0) || (count === 2 && isMadeUp && waits > 0)) continue
      judged.push(broken(`${name}/${new Date(tick).toISOString()}`, `has ${count} records`))
    }
  }
  for (const tick of [...singles.keys(), ...ranges.flat()]) {
    if (expected.has(tick)) continue
    judged.push(broken(`${name}/${new Date(tick).toISOString()}`, 'is no tick of its schedule'))
  }
  return judged
}
