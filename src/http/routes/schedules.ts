/** Schedules: what they say, their ticks and changes, and what operators do to them. */
import { DELAY_MAX_MS } from '../../core/retry.ts'
import { SCHEDULE_NAME_MAX } from '../../core/schedule/keys.ts'
import { OVERLAPS } from '../../core/schedule/overlap.ts'
import { CATCH_UP_MODES } from '../../core/schedule/plan.ts'
import { decodeValue } from '../../core/values.ts'
import { defineSchedule, type ScheduleOptions } from '../../engine/schedules/define-schedule.ts'
import type { Schedule, ScheduleRecord } from '../../stores/contract/schedules.ts'
import { ScheduleNotFound } from '../../stores/errors.ts'
import { DRY_RUN, operatorOf, WHO, WHY } from '../operating.ts'
import { OPERATE, PAGING, pageOf, READ, type Route, type RouteCall } from '../route.ts'
import {
  anything,
  count,
  flag,
  list,
  name,
  nullable,
  oneOf,
  page,
  record,
  ref,
  text,
  time,
} from '../schema.ts'
import { jobTypeOf, LIFECYCLE } from './jobs-enqueue.ts'

const RECORDS_SHOWN = 10
const NEXT_SHOWN = 5
const NEXT_MAX = 1000

function nameOf({ schedule = '' }: RouteCall['params']): string {
  return schedule
}

function viewOf({ payloads }: RouteCall, schedule: Schedule) {
  const { rules, input, cursor: _, ...own } = schedule
  return {
    ...own,
    type: rules?.job.type ?? null,
    queue: rules?.job.queue ?? null,
    input: rules === undefined ? null : payloads.view(input),
    timing: rules?.timing ?? null,
    overlap: rules?.overlap ?? null,
    catchUp: rules?.catchUp ?? null,
    jitterMs: rules?.jitterMs ?? null,
    pauseOnFailure: rules?.pauseOnFailure ?? null,
    nextAt: own.nextAt ?? null,
    lastTick: own.lastTick ?? null,
    lastJob: own.lastJob ?? null,
    pausedAt: own.pausedAt ?? null,
    pausedBy: own.pausedBy ?? null,
    pauseNote: own.pauseNote ?? null,
  }
}

function recordOf(call: RouteCall, { before, after, ...own }: ScheduleRecord) {
  return {
    ...own,
    ...(before !== undefined && { before: keptIn(call, before) }),
    ...(after !== undefined && { after: keptIn(call, after) }),
  }
}

/** What a record keeps of a definition: a JSON text with JSON texts in it. */
function keptIn({ payloads }: RouteCall, kept: string) {
  const { definition, input, origin, version, ...rest } = JSON.parse(kept)
  if (typeof definition !== 'string' || typeof input !== 'string') return { about: rest }
  return { definition: payloads.view(definition), input: payloads.view(input), origin, version }
}

async function listSchedules(call: RouteCall): Promise<unknown> {
  const { items, next } = await call.pawl.store.schedules.list(pageOf(call))
  return { items: items.map((one) => viewOf(call, one)), nextCursor: next ?? null }
}

async function showSchedule(call: RouteCall): Promise<unknown> {
  const { pawl, params } = call
  const wanted = nameOf(params)
  const schedule = await pawl.store.schedules.get(wanted)
  if (schedule === undefined) throw new ScheduleNotFound(wanted)
  const records = await pawl.schedules.history(wanted, { limit: RECORDS_SHOWN })
  const next = schedule.rules === undefined ? [] : await pawl.schedules.next(wanted, NEXT_SHOWN)
  return {
    schedule: viewOf(call, schedule),
    next: next.map(Number),
    records: records.items.map((one) => recordOf(call, one)),
  }
}

async function nextTicks({ pawl, params, query }: RouteCall): Promise<unknown> {
  const { limit = NEXT_SHOWN } = query
  return { items: (await pawl.schedules.next(nameOf(params), limit)).map(Number) }
}

async function listRecords(call: RouteCall): Promise<unknown> {
  const { after: _, limit: __, ...filter } = call.query
  const { items, next } = await call.pawl.store.schedules.records(filter, pageOf(call))
  return { items: items.map((one) => recordOf(call, one)), nextCursor: next ?? null }
}

const changing = (verb: 'pause' | 'resume') => async (call: RouteCall) => {
  const operator = operatorOf(call)
  const schedule = nameOf(call.params)
  const done =
    verb === 'pause'
      ? await operator.pauseSchedule(schedule)
      : await operator.resumeSchedule(schedule)
  return { changed: done !== undefined, record: done === undefined ? null : recordOf(call, done) }
}

async function runNow(call: RouteCall): Promise<unknown> {
  const made = await operatorOf(call).runScheduleNow(nameOf(call.params))
  return { job: made.job ?? null, record: recordOf(call, made) }
}

async function remove(call: RouteCall): Promise<unknown> {
  return { record: recordOf(call, await operatorOf(call).removeSchedule(nameOf(call.params))) }
}

async function backfill(call: RouteCall): Promise<unknown> {
  const { from, to = call.pawl.store.now(), overlap = 'bufferAll', dryRun = false } = call.body
  const options = { from: new Date(from), to: new Date(to), overlap, dryRun }
  const report = await operatorOf(call).backfillSchedule(nameOf(call.params), options)
  const { ticks, existing, jobs } = report
  return { dryRun, ticks: ticks.map(Number), existing: existing.map(Number), jobs }
}

async function put(call: RouteCall): Promise<unknown> {
  const { type, queue, lifecycle, input = null, cron, timezone, everyMs, ...rest } = call.body
  const { overlap, catchUp, jitterMs, pauseOnFailure, dryRun = false } = rest
  const own = nameOf(call.params)
  const definition = defineSchedule({
    name: own,
    job: jobTypeOf(call, { type, queue, lifecycle }),
    input: decodeValue(JSON.stringify(input)),
    ...(cron !== undefined && { cron }),
    ...(timezone !== undefined && { timezone }),
    ...(everyMs !== undefined && { every: everyMs }),
    ...(overlap !== undefined && { overlap }),
    ...(catchUp !== undefined && { catchUp: catchUpOf(catchUp) }),
    ...(jitterMs !== undefined && { jitter: jitterMs }),
    ...(pauseOnFailure !== undefined && { pauseOnFailure }),
  } as ScheduleOptions<unknown>)
  const operator = operatorOf(call)
  const before = await call.pawl.store.schedules.get(own)
  if (!dryRun) await operator.putSchedule(definition)
  const after = dryRun ? before : await call.pawl.store.schedules.get(own)
  const changed = before?.version !== after?.version
  return { dryRun, changed, schedule: after === undefined ? null : viewOf(call, after) }
}

function catchUpOf({ mode, withinMs }: { mode: string; withinMs?: number }) {
  return { mode, ...(withinMs !== undefined && { within: withinMs }) }
}

const ROOT = '/api/v1/schedules'
const SCHEDULE = text('the name of a schedule', { minLength: 1, maxLength: SCHEDULE_NAME_MAX })
const span = (description: string) => count(description, 0, DELAY_MAX_MS)

const PUT = record(
  { ...WHY, type: name('the type of its jobs') },
  {
    ...WHO,
    ...DRY_RUN,
    queue: name('the queue, if the server does not know the job type'),
    lifecycle: LIFECYCLE,
    input: anything('the input of its jobs; null if absent'),
    cron: name('five fields, or six with a first one for seconds'),
    timezone: name('an IANA name; UTC if absent'),
    everyMs: count('instead of cron: the interval', 1000, DELAY_MAX_MS),
    overlap: oneOf(OVERLAPS, 'what to do if a job of the schedule is open; skip if absent'),
    catchUp: record(
      { mode: oneOf(CATCH_UP_MODES) },
      { withinMs: span('only ticks that are not older; a day if absent') },
    ),
    jitterMs: span('delays each job by up to this time'),
    pauseOnFailure: flag('whether it is paused when one of its jobs has failed'),
  },
)

const READING: readonly Route[] = [
  {
    method: 'GET',
    path: ROOT,
    operation: 'listSchedules',
    summary: 'Lists schedules by name: job type, timing, next and last tick, pauses.',
    roles: READ,
    query: PAGING,
    answer: page(ref('Schedule')),
    run: listSchedules,
  },
  {
    method: 'GET',
    path: '/api/v1/schedule-records',
    operation: 'listScheduleRecords',
    summary: 'Lists each tick with its result and each change with its operator, newest first.',
    roles: READ,
    query: {
      schedule: SCHEDULE,
      kind: oneOf(['tick', 'change'], 'only ticks or only changes'),
      ...PAGING,
    },
    answer: page(ref('ScheduleRecord')),
    run: listRecords,
  },
  {
    method: 'GET',
    path: `${ROOT}/{schedule}`,
    operation: 'showSchedule',
    summary: 'Shows a schedule with its next ticks and its last records.',
    roles: READ,
    errors: [404],
    answer: record({
      schedule: ref('Schedule'),
      next: list(time(), { description: 'the next ticks' }),
      records: list(ref('ScheduleRecord')),
    }),
    run: showSchedule,
  },
  {
    method: 'GET',
    path: `${ROOT}/{schedule}/next`,
    operation: 'listNextTicks',
    summary: 'Lists the next ticks of a schedule. A paused schedule makes no jobs of them.',
    roles: READ,
    query: { limit: count(`how many; ${NEXT_SHOWN} if absent`, 1, NEXT_MAX) },
    errors: [404],
    answer: record({ items: list(time()) }),
    run: nextTicks,
  },
]

const ACTING: readonly Route[] = [
  {
    method: 'POST',
    path: `${ROOT}/{schedule}`,
    operation: 'putSchedule',
    summary: 'Stores a schedule. A changed one counts from now; a paused one stays paused.',
    roles: OPERATE,
    body: PUT,
    errors: [404],
    answer: record({ dryRun: flag(), changed: flag(), schedule: nullable(ref('Schedule')) }),
    run: put,
  },
  ...(['pause', 'resume'] as const).map(
    (verb): Route => ({
      method: 'POST',
      path: `${ROOT}/{schedule}/${verb}`,
      operation: `${verb}Schedule`,
      summary: {
        pause: 'Pauses a schedule: its ticks make no jobs, and are missed.',
        resume: 'Resumes a paused schedule, from now on.',
      }[verb],
      roles: OPERATE,
      body: record(WHY, WHO),
      errors: [404],
      answer: record({
        changed: flag('false if there was nothing to do'),
        record: nullable(ref('ScheduleRecord')),
      }),
      run: changing(verb),
    }),
  ),
  {
    method: 'POST',
    path: `${ROOT}/{schedule}/run-now`,
    operation: 'runScheduleNow',
    summary: 'Makes a job of a schedule now, also if another one is open.',
    roles: OPERATE,
    body: record(WHY, WHO),
    errors: [404],
    answer: record({ job: nullable(text()), record: ref('ScheduleRecord') }),
    run: runNow,
  },
  {
    method: 'POST',
    path: `${ROOT}/{schedule}/backfill`,
    operation: 'backfillSchedule',
    summary: 'Makes up for ticks that have passed without a job, at most 1000.',
    roles: OPERATE,
    body: record(
      { ...WHY, from: time('ticks at this time or later') },
      {
        ...WHO,
        ...DRY_RUN,
        to: time('ticks at this time or earlier; now if absent'),
        overlap: oneOf(['bufferAll', 'allowAll'], 'one after the other, or all at once'),
      },
    ),
    errors: [404],
    answer: record({
      dryRun: flag(),
      ticks: list(time(), { description: 'ticks that get a job, now or later' }),
      existing: list(time(), { description: 'ticks that have a job already' }),
      jobs: list(text(), { description: 'the jobs that were made' }),
    }),
    run: backfill,
  },
  {
    method: 'POST',
    path: `${ROOT}/{schedule}/remove`,
    operation: 'removeSchedule',
    summary: 'Removes a schedule; its jobs and its records stay.',
    details: 'A program that has it in createPawl({ schedules }) stores it again.',
    roles: OPERATE,
    body: record(WHY, WHO),
    errors: [404],
    answer: record({ record: ref('ScheduleRecord') }),
    run: remove,
  },
]

export const routes: readonly Route[] = [...READING, ...ACTING]
