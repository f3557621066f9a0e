/** The log lines of schedules; see `log.ts`. */
import type { Logger } from '../../core/ports.ts'
import type { ScheduleEvent, ScheduleFailedEvent } from './events.ts'

const LEVELS = { fired: 'debug', backfilled: 'debug', late: 'info' } as const

/** Writes the line of an event of schedules. */
export function logSchedules(logger: Logger, event: ScheduleEvent | ScheduleFailedEvent): void {
  if (event.type === 'schedule') logSchedule(logger, event)
  else logScheduleFailed(logger, event)
}

/** Writes the line of a tick or of a change. */
function logSchedule(logger: Logger, { worker, record }: ScheduleEvent): void {
  const { schedule, action, tick, lastTick, ticks, job, reason, actor, operator, note } = record
  const fields = {
    event: `schedule.${action}`,
    schedule,
    worker_id: worker,
    ...(job !== undefined && { job_id: job }),
    ...(reason !== undefined && { reason }),
  }
  if (tick === undefined) {
    const who = { actor, ...(operator !== undefined && { operator }) }
    const why = note !== undefined && { note }
    logger.info({ ...fields, ...who, ...why }, `The schedule was changed: ${action}`)
    return
  }
  const range = lastTick !== undefined && { last_tick: lastTick, ticks }
  const level = action in LEVELS ? LEVELS[action as keyof typeof LEVELS] : 'warn'
  logger[level]({ ...fields, tick, ...range }, `A tick of the schedule was ${action}`)
}

/** Writes the line of a schedule that could not be looked at. */
function logScheduleFailed(logger: Logger, event: ScheduleFailedEvent): void {
  const { worker, schedule, error } = event
  const fields = { event: 'schedule.failed', schedule, worker_id: worker, code: error.code }
  logger.error({ ...fields, hint: error.hint }, error.message)
}
