/** The schemas of limits, schedules and retention. */
import { ACTORS } from '../core/job/facts.ts'
import { ENDED_WORDS } from '../core/retention.ts'
import { OVERLAPS } from '../core/schedule/overlap.ts'
import { CATCH_UP_MODES } from '../core/schedule/plan.ts'
import { TICK_RESULTS } from '../stores/contract/schedules.ts'
import {
  flag,
  type JsonSchema,
  list,
  nullable,
  oneOf,
  open,
  record,
  ref,
  text,
  time,
  whole,
} from './schema.ts'

const ACTOR = oneOf(ACTORS)

const GATE = {
  name: text('the full name'),
  limit: text('the name of the limit, as in requests'),
  kind: oneOf(['concurrency', 'throttle']),
  used: whole('how many jobs run'),
  max: nullable(whole('how many may run, or start in a period; null: any number')),
  blocked: whole('how many jobs it blocks, counted up to 10000'),
}

const GATE_MORE = {
  key: text('the key, if the limit has keys'),
  opensAt: time('throttles: no job starts before this time'),
  blockedSince: time('since when the first of them is blocked'),
}

const VALUES = {
  max: nullable(whole('what the code says; null if a function of the input says')),
  periodMs: nullable(whole('throttles: the period')),
  burst: nullable(whole()),
  version: whole('of the code that declared it; 0 if no code has'),
  override: nullable(whole("the operator's number, which counts until it is reset")),
}

const SETTING = record({
  name: text(),
  ...VALUES,
  declaredAt: nullable(time()),
  overrideAt: nullable(time()),
  overrideBy: nullable(text()),
  overrideNote: nullable(text()),
})

const LIMIT_RECORD = record(
  {
    name: text('the full name'),
    limit: text(),
    number: whole(),
    at: time(),
    action: oneOf(['declare', 'set', 'reset']),
    actor: ACTOR,
    before: record(VALUES),
    after: record(VALUES),
  },
  { key: text(), operator: text(), note: text() },
)

const HOLDER = record({
  id: text('the job'),
  type: text(),
  worker: text(),
  startedAt: time(),
  leaseUntil: time(),
})

const TIMING = {
  anyOf: [
    record({ kind: oneOf(['cron']), cron: text(), timezone: text() }),
    record({ kind: oneOf(['every']), everyMs: whole() }),
  ],
}

const SCHEDULE = record({
  name: text(),
  type: nullable(text('of its jobs; null if the stored definition is damaged')),
  queue: nullable(text()),
  input: nullable(ref('Payload')),
  timing: nullable(TIMING),
  overlap: nullable(oneOf(OVERLAPS)),
  catchUp: nullable(record({ mode: oneOf(CATCH_UP_MODES), withinMs: whole() })),
  jitterMs: nullable(whole()),
  pauseOnFailure: nullable(flag()),
  origin: oneOf(['code', 'program'], 'createPawl({ schedules }), or a later call'),
  version: whole('counts the definitions that it has had'),
  nextAt: nullable(time('the next tick')),
  buffered: list(time(), { description: 'ticks that wait until no job is open' }),
  open: list(text(), { description: 'jobs that had not ended when it was last looked at' }),
  lastTick: nullable(time()),
  lastJob: nullable(text()),
  pausedAt: nullable(time()),
  pausedBy: nullable(text()),
  pauseNote: nullable(text()),
  createdAt: time(),
  changedAt: time(),
})

const KEPT = {
  anyOf: [
    record({
      definition: ref('Payload'),
      input: ref('Payload'),
      origin: oneOf(['code', 'program']),
      version: whole(),
    }),
    record({ about: open('what the change concerned') }),
  ],
}

const SCHEDULE_RECORD = record(
  {
    number: whole(),
    at: time(),
    schedule: text(),
    action: oneOf([...TICK_RESULTS, 'put', 'pause', 'resume', 'run', 'backfill', 'remove']),
    actor: ACTOR,
  },
  {
    operator: text(),
    note: text(),
    tick: time(),
    lastTick: time('the last tick of a range of missed ticks'),
    ticks: whole('how many ticks the range has, counted up to 1000'),
    previous: time('the tick before'),
    job: text('the job that was made, or because of which none was made'),
    reason: text('why no job was made'),
    before: KEPT,
    after: KEPT,
  },
)

const RETENTION_REPORT = record({
  dryRun: flag(),
  removed: whole('how many jobs were removed, or would be'),
  keys: whole('how many keys of these jobs stay taken'),
  classes: list(
    record(
      { outcome: oneOf(ENDED_WORDS), keepMs: whole(), removed: whole(), keys: whole() },
      { types: list(text()) },
    ),
  ),
  complete: flag('false if it was stopped before everything was looked at'),
})

export const FLOW_COMPONENTS: Readonly<Record<string, JsonSchema>> = {
  Gate: record(GATE, GATE_MORE),
  Limit: record({ ...GATE, setting: SETTING }, GATE_MORE),
  LimitDetails: record(
    {
      ...GATE,
      setting: nullable(SETTING),
      holders: list(HOLDER, { description: 'the jobs that started first' }),
      records: list(ref('LimitRecord'), { description: 'the last changes' }),
    },
    GATE_MORE,
  ),
  LimitRecord: LIMIT_RECORD,
  Schedule: SCHEDULE,
  ScheduleRecord: SCHEDULE_RECORD,
  RetentionReport: RETENTION_REPORT,
}
