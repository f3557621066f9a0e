/**
 * What a schedule says, as stores keep it: a canonical JSON text. The text holds everything that a
 * job needs, so that a worker without the code of the job can make it. The input of the job is kept
 * beside it. Two definitions are the same if their texts are.
 */
import type { Admission } from '../admission.ts'
import { decode, encode, type Json } from '../canonical-json.ts'
import { count, findBroken, flag, name, oneOf, optional, type Rule, record } from '../checks.ts'
import type { CommandInvalid } from '../errors.ts'
import type { CreateCommand } from '../job/commands.ts'
import { AHEAD_MAX_MS } from '../job/priority.ts'
import { limitKeys } from '../limits/keys.ts'
import { DELAY_MAX_MS, findPolicyFault, type JobPolicy } from '../retry.ts'
import { scheduleName } from './keys.ts'
import { OVERLAPS, type Overlap } from './overlap.ts'
import { CATCH_UP_MODES, type CatchUp } from './plan.ts'
import type { Timing } from './ticks.ts'

/** The version of the form in which definitions are stored. */
const FORM = 1
/** The shortest interval. */
const EVERY_MIN_MS = 1000

/** What every job of a schedule has. */
type ScheduledJob = Pick<
  CreateCommand,
  'type' | 'queue' | 'priority' | 'aheadMs' | 'timeoutMs' | 'policy' | 'limitKeys'
> & {
  readonly lifecycle: string
  readonly lifecycleVersion: number
}

/** What a schedule says. */
export interface ScheduleRules {
  readonly timing: Timing
  readonly overlap: Overlap
  readonly catchUp: CatchUp
  /** Each job is delayed by up to this time. */
  readonly jitterMs: number
  /** Whether the schedule is paused when one of its jobs has failed. */
  readonly pauseOnFailure: boolean
  readonly job: ScheduledJob
  /** What `rateLimit`, `debounce` and `singleton` of the job type say; checked for each job. */
  readonly admission?: Admission
}

/** The text that a store keeps. */
export function encodeRules(rules: ScheduleRules): string {
  return encode({ form: FORM, ...rules })
}

/** Reads a stored text; `undefined` if it is damaged or of a later form. */
export function decodeRules(text: string): ScheduleRules | undefined {
  try {
    const stored = decode(text) as unknown as ScheduleRules & { readonly form: number }
    const { form, ...rules } = stored
    return form === FORM && findRulesFault('stored', rules) === undefined ? rules : undefined
  } catch {
    return undefined
  }
}

/** Returns the first fault of a definition; `undefined` if it is well-formed. */
export function findRulesFault(schedule: string, rules: ScheduleRules): CommandInvalid | undefined {
  const { timing, overlap, catchUp, jitterMs, pauseOnFailure, job } = rules
  return (
    findBroken([
      ['name', scheduleName(schedule)],
      ['timing', record(timing)],
      ['catchUp', record(catchUp)],
      ['job', record(job)],
    ]) ??
    findBroken([
      ...timingRules(timing),
      ['overlap', oneOf(overlap, OVERLAPS)],
      ['catchUp.mode', oneOf(catchUp.mode, CATCH_UP_MODES)],
      ['catchUp.within', count(catchUp.withinMs, 0, DELAY_MAX_MS)],
      ['jitter', count(jitterMs, 0, DELAY_MAX_MS)],
      ['pauseOnFailure', flag(pauseOnFailure)],
      ...jobRules(job),
      ['admission', optional(rules.admission, record)],
    ])
  )
}

function timingRules(timing: Timing): Rule[] {
  if (timing.kind === 'every') {
    return [['every', count(timing.everyMs, EVERY_MIN_MS, DELAY_MAX_MS)]]
  }
  return [
    ['timing', oneOf(timing.kind, ['cron', 'every'])],
    ['cron', name(timing.cron)],
    ['timezone', name(timing.timezone)],
  ]
}

function jobRules(job: ScheduledJob): Rule[] {
  const { type, queue, lifecycle, lifecycleVersion, priority, timeoutMs, policy } = job
  return [
    ['type', name(type)],
    ['queue', name(queue)],
    ['lifecycle', name(lifecycle)],
    ['lifecycleVersion', count(lifecycleVersion, 1, Number.MAX_SAFE_INTEGER)],
    ['priority', optional(priority, (value) => count(value, -PRIORITY_MAX, PRIORITY_MAX))],
    ['aheadMs', optional(job.aheadMs, (value) => count(value, 0, AHEAD_MAX_MS))],
    ['timeout', optional(timeoutMs, (value) => count(value, 0, DELAY_MAX_MS))],
    ['policy', optional(policy, policyRule)],
    ['limitKeys', optional(job.limitKeys, limitKeys)],
  ]
}

const PRIORITY_MAX = 32_767

function policyRule(value: JobPolicy): string | undefined {
  return record(value) ?? record(value.retry) ?? findPolicyFault(value)?.join(' ')
}

/** A tick that waits until no job of its schedule is open. */
export interface BufferedTick {
  readonly tick: number
  readonly previous: number | null
  /** Whether an operator asked for it. */
  readonly isBackfill: boolean
}

/** The text of ticks that wait, as stores keep it. */
export function encodeBuffer(buffer: readonly BufferedTick[]): string {
  return JSON.stringify(
    buffer.map(({ tick, previous, isBackfill }) => [tick, previous, isBackfill ? 1 : 0]),
  )
}

/** Reads the ticks that wait; `undefined` if the text is damaged. */
export function decodeBuffer(text: string): BufferedTick[] | undefined {
  const entries = listIn(text)
  return entries?.every(isBufferEntry)
    ? entries.map(([tick, previous, backfill]) => ({ tick, previous, isBackfill: backfill === 1 }))
    : undefined
}

type BufferEntry = readonly [tick: number, previous: number | null, backfill: number]

function isBufferEntry(value: unknown): value is BufferEntry {
  if (!Array.isArray(value)) return false
  const [tick, previous] = value as Json[]
  return Number.isSafeInteger(tick) && (previous === null || Number.isSafeInteger(previous))
}

/** Reads a list of job ids; `undefined` if the text is damaged. */
export function decodeIds(text: string): string[] | undefined {
  const entries = listIn(text)
  return entries?.every((one): one is string => typeof one === 'string') ? entries : undefined
}

function listIn(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
