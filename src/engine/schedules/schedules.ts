/** Stores and reads schedules; see `pawl.schedules`. */
import type { JsonBounds } from '../../core/canonical-json.ts'
import { count, flag, oneOf } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks } from '../../core/fields.ts'
import type { ScheduleRules } from '../../core/schedule/definition.ts'
import { listTicks } from '../../core/schedule/ticks.ts'
import { decodeValue, encodeValue } from '../../core/values.ts'
import type {
  Schedule,
  ScheduleOrigin,
  ScheduleRecord,
  ScheduleRecordFilter,
} from '../../stores/contract/schedules.ts'
import type { Page, Requester, Store } from '../../stores/contract/store.ts'
import { ScheduleDamaged, ScheduleNotFound } from '../../stores/errors.ts'
import { admissionOf } from '../admission-options.ts'
import { InputInvalid } from '../errors.ts'
import { validate } from '../schema.ts'
import { ticksOf } from './cron.ts'
import type { ScheduleDefinition } from './define-schedule.ts'

/** How many ticks `next` returns at most. */
const NEXT_MAX = 1000

const NO_TIMES = { runAt: undefined, hold: undefined }

/** A schedule, as people and programs read it. */
export interface ScheduleInfo extends Omit<Schedule, 'rules' | 'input'> {
  /** The type of its jobs; `undefined` if the stored definition is damaged. */
  readonly type: string | undefined
  readonly input: unknown
  readonly timing: ScheduleRules['timing'] | undefined
  readonly overlap: ScheduleRules['overlap'] | undefined
  readonly catchUp: ScheduleRules['catchUp'] | undefined
  readonly jitterMs: number | undefined
  readonly pauseOnFailure: boolean | undefined
}

/** Which ticks a backfill makes up for. */
export interface BackfillOptions {
  /** Ticks that are not before this time. */
  readonly from: Date
  /** Ticks that are not after this time, and not later than now. */
  readonly to: Date
  /**
   * Whether the jobs run one after the other ('bufferAll') or all at once ('allowAll').
   * @defaultValue `'bufferAll'`
   */
  readonly overlap?: 'bufferAll' | 'allowAll'
  /**
   * Reports what would be done, and writes nothing.
   * @defaultValue `false`
   */
  readonly dryRun?: boolean
}

/** What a backfill did, or would do. */
export interface BackfillReport {
  /** Ticks that get a job, now or when the jobs before them have ended. */
  readonly ticks: readonly Date[]
  /** Ticks that have a job already. */
  readonly existing: readonly Date[]
  /** The jobs that were made. */
  readonly jobs: readonly string[]
}

/** What schedules need of Pawl. */
export interface SchedulesParts {
  readonly store: Store
  readonly bounds: JsonBounds
  readonly requester: Requester
}

const LIST: FieldChecks<{ limit?: number; after?: string }> = {
  limit: (value: number) => count(value, 1, 1000),
  after: () => undefined,
}

/** Stores and reads schedules; see `pawl.schedules`. */
export class Schedules {
  readonly #parts: SchedulesParts

  /** Use `pawl.schedules`. @internal */
  constructor(parts: SchedulesParts) {
    this.#parts = parts
  }

  /**
   * Stores a schedule. The same definition again writes nothing; a changed one counts from now, and
   * ticks before are not made up for. A paused schedule stays paused.
   */
  async put(definition: ScheduleDefinition): Promise<ScheduleInfo> {
    return this.putAs(definition, 'program')
  }

  /** @internal */
  async putAs(definition: ScheduleDefinition, origin: ScheduleOrigin): Promise<ScheduleInfo> {
    const { store, bounds, requester } = this.#parts
    checkScheduleDefinition(definition)
    const { name, job, input, rules } = definition
    const checked = await validate(job.schema, input)
    if (!checked.ok) throw new InputInvalid(job.name, checked.why)
    const text = encodeValue(input, bounds)
    const limitKeys = job.limits?.keysOf(checked.value)
    const admission = admissionOf(job.name, job.admission, checked.value, NO_TIMES)
    const made = {
      ...rules,
      job: { ...rules.job, ...(limitKeys !== undefined && { limitKeys }) },
      ...(admission !== undefined && { admission }),
    }
    const put = { name, rules: made, input: text, origin }
    const { result } = await store.schedules.put(put, ticksOf, requester)
    return infoOf(result.schedule)
  }

  /** Returns `undefined` if there is no such schedule. */
  async get(name: string): Promise<ScheduleInfo | undefined> {
    const schedule = await this.#parts.store.schedules.get(name)
    return schedule && infoOf(schedule)
  }

  /** Schedules by name; pass `next` of a page as `after` for the next one. */
  async list(options: { limit?: number; after?: string } = {}): Promise<Page<ScheduleInfo>> {
    checkFields(options, LIST, { what: 'options' })
    const page = await this.#parts.store.schedules.list(options)
    return { ...page, items: page.items.map(infoOf) }
  }

  /** The next ticks after now. A paused schedule makes no jobs of them. */
  async next(name: string, ticks = 1): Promise<Date[]> {
    const why = count(ticks, 1, NEXT_MAX)
    if (why !== undefined) throw new CommandInvalid('ticks', why)
    const { store } = this.#parts
    const schedule = await store.schedules.get(name)
    if (schedule === undefined) throw new ScheduleNotFound(name)
    if (schedule.rules === undefined) throw new ScheduleDamaged(name)
    const source = ticksOf(schedule.rules.timing)
    const after = Math.max(store.now(), schedule.cursor)
    return listTicks(source, after, Number.MAX_SAFE_INTEGER, ticks).map((tick) => new Date(tick))
  }

  /** What became of each tick, and who changed the schedule; newest first. */
  history(
    name: string,
    options: { limit?: number; after?: string; kind?: ScheduleRecordFilter['kind'] } = {},
  ): Promise<Page<ScheduleRecord>> {
    const { kind, ...page } = options
    const filter = { schedule: name, ...(kind !== undefined && { kind }) }
    return this.#parts.store.schedules.records(filter, page)
  }

  /** Makes up for ticks that have passed, at most 1000. A tick that has a job keeps it. */
  async backfill(name: string, options: BackfillOptions): Promise<BackfillReport> {
    checkFields(options, BACKFILL, { what: 'options' })
    const { from, to, overlap = 'bufferAll', dryRun = false } = options
    for (const [field, value] of Object.entries({ from, to })) {
      if (value === undefined) throw new CommandInvalid(field, 'must be given')
    }
    const { store, requester } = this.#parts
    const request = { from: from.getTime(), to: to.getTime(), overlap, dryRun }
    const done = await store.schedules.backfill(name, request, ticksOf, requester)
    return {
      ticks: done.ticks.map((tick) => new Date(tick)),
      existing: done.existing.map((tick) => new Date(tick)),
      jobs: done.jobs.map(({ id }) => id),
    }
  }

  /** Removes a schedule; its jobs and its history stay. */
  async remove(name: string): Promise<ScheduleRecord> {
    const { store, requester } = this.#parts
    return (await store.schedules.remove(name, ticksOf, requester)).result
  }

  /** Makes no jobs of ticks any more; `undefined` if it is paused already. @internal */
  async pause(name: string): Promise<ScheduleRecord | undefined> {
    const { store, requester } = this.#parts
    return (await store.schedules.pause(name, requester)).result
  }

  /** Makes jobs of ticks again; `undefined` if it is not paused. @internal */
  async resume(name: string): Promise<ScheduleRecord | undefined> {
    const { store, requester } = this.#parts
    return (await store.schedules.resume(name, ticksOf, requester)).result
  }

  /** Makes a job now; returns the record, which has the id of the job. @internal */
  async runNow(name: string): Promise<ScheduleRecord> {
    const { store, requester } = this.#parts
    const { records } = await store.schedules.run(name, requester)
    return records[0] as ScheduleRecord
  }
}

function date(value: Date): string | undefined {
  const isDate = value instanceof Date && !Number.isNaN(value.getTime())
  return isDate ? undefined : 'must be a valid Date'
}

const BACKFILL: FieldChecks<BackfillOptions> = {
  from: date,
  to: date,
  overlap: (value: string) => oneOf(value, ['bufferAll', 'allowAll']),
  dryRun: flag,
}

/** Throws `CommandInvalid` if a value is not a schedule. */
function checkScheduleDefinition(value: ScheduleDefinition): void {
  const isDefinition = typeof value === 'object' && typeof value?.rules === 'object'
  if (isDefinition) return
  throw new CommandInvalid('schedule', 'must be a schedule, which defineSchedule returns')
}

/** A schedule, as people and programs read it. */
function infoOf({ rules, input, ...schedule }: Schedule): ScheduleInfo {
  return {
    ...schedule,
    type: rules?.job.type,
    input: rules === undefined ? undefined : decodeValue(input),
    timing: rules?.timing,
    overlap: rules?.overlap,
    catchUp: rules?.catchUp,
    jitterMs: rules?.jitterMs,
    pauseOnFailure: rules?.pauseOnFailure,
  }
}
