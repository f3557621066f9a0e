/**
 * The ticks of schedules. Cron expressions are read by `croner`, which no other file imports.
 *
 * When clocks change, an expression with one fixed second, minute and hour runs once each day: when
 * the gap ends if its time does not exist, and at the first of two equal times. All others follow
 * elapsed time through both nights. `test/engine/schedule-dst.test.ts` pins these rules.
 */
import { Cron } from 'croner'
import { CommandInvalid, messageOf } from '../../core/errors.ts'
import { shown } from '../../core/format.ts'
import { everyTicks, type TickSource, type Timing } from '../../core/schedule/ticks.ts'

/** Reading an expression takes longer than finding its next tick. */
const CACHE_MAX = 10_000
const cache = new Map<string, TickSource>()

/**
 * Returns the ticks of a timing. Throws `CommandInvalid` if the expression is none, or this process
 * does not know the time zone.
 */
export function ticksOf(timing: Timing): TickSource {
  if (timing.kind === 'every') return everyTicks(timing.everyMs)
  const { cron, timezone } = timing
  const key = `${timezone}\n${cron}`
  const known = cache.get(key)
  if (known !== undefined) return known
  const ticks = cronTicks(cron, timezone)
  if (cache.size >= CACHE_MAX) cache.clear()
  cache.set(key, ticks)
  return ticks
}

/** What the parser found, without its own name. */
function faultIn(error: unknown): string {
  return messageOf(error).replace(/^(?:\w*Error: )?CronPattern: /, '')
}

function cronTicks(expression: string, timezone: string): TickSource {
  checkZone(timezone)
  checkExpression(expression)
  let cron: Cron
  try {
    cron = new Cron(expression, { timezone, paused: true })
  } catch (error) {
    throw new CommandInvalid('cron', `is not a cron expression: ${faultIn(error)}`, CRON_HINT)
  }
  return {
    next(after) {
      try {
        return cron.nextRun(new Date(after))?.getTime()
      } catch (error) {
        throw new CommandInvalid('cron', `has no next time: ${messageOf(error)}`, CRON_HINT)
      }
    },
  }
}

const CRON_HINT =
  'Use five fields (minute, hour, day, month, weekday), or six with a first one for seconds.'

/**
 * `croner` also reads dates, and replaces `?` by the time of the process, so that the ticks of two
 * processes would differ.
 */
function checkExpression(expression: string): void {
  const isDate = /^\d{4}-/.test(expression)
  if (isDate) throw new CommandInvalid('cron', 'must be a cron expression, not a date', CRON_HINT)
  if (!expression.includes('?')) return
  throw new CommandInvalid('cron', 'must not contain "?"', 'Use * instead of ?.')
}

/** Only names: the rules of an offset such as +02:00 do not follow those of a place. */
function checkZone(timezone: string): void {
  try {
    if (!/^[A-Za-z]/.test(timezone)) throw new RangeError()
    new Intl.DateTimeFormat('en', { timeZone: timezone })
  } catch {
    const why = `must be an IANA time zone such as Europe/Berlin or UTC, not ${shown(timezone)}`
    throw new CommandInvalid('timezone', why)
  }
}

/** The version of the time zone data of this process. */
export function zoneDataVersion(): string | undefined {
  return process.versions.tz
}
