/**
 * The keys of jobs that schedules make. There is at most one job for each type and key, so a tick
 * has at most one job. The engine refuses keys of users that begin with these prefixes.
 *
 *   schedule/<name>/<tick>        the job of a tick, which is in milliseconds since 1970
 *   schedule-run/<name>/<job id>  a job that an operator asked for, without a tick
 */
import { name as checkName } from '../checks.ts'

const TICK_PREFIX = 'schedule/'
const RUN_PREFIX = 'schedule-run/'

/** The longest name of a schedule. Its keys must not be longer than 255 characters. */
export const SCHEDULE_NAME_MAX = 200

/** Checks the name of a schedule. */
export function scheduleName(value: string): string | undefined {
  const why = checkName(value)
  if (why !== undefined || value.length <= SCHEDULE_NAME_MAX) return why
  return `must not be longer than ${SCHEDULE_NAME_MAX} characters; it has ${value.length}`
}

/** The key of the job of a tick. */
export function tickKey(name: string, tick: number): string {
  return `${TICK_PREFIX}${name}/${tick}`
}

/** The key of a job that an operator asked for. */
export function runKey(name: string, jobId: string): string {
  return `${RUN_PREFIX}${name}/${jobId}`
}

/** The schedule that made a job, and its tick; the tick is absent if an operator asked for it. */
export interface ScheduledKey {
  readonly name: string
  readonly tick?: number
}

/** Reads the key of a job; `undefined` if no schedule made the job. */
export function parseScheduleKey(key: string | null): ScheduledKey | undefined {
  if (key === null || !isReservedKey(key)) return undefined
  const end = key.lastIndexOf('/')
  const isTick = key.startsWith(TICK_PREFIX)
  const name = key.slice(isTick ? TICK_PREFIX.length : RUN_PREFIX.length, end)
  if (!isTick) return { name }
  const text = key.slice(end + 1)
  return /^-?\d{1,16}$/.test(text) ? { name, tick: Number(text) } : undefined
}

/** Whether only schedules may use a key. */
export function isReservedKey(key: string): boolean {
  return key.startsWith(TICK_PREFIX) || key.startsWith(RUN_PREFIX)
}
