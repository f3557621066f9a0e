/**
 * Decides which ticks of a schedule are made up for, and which are missed.
 *
 * A tick is on time if it came at most `LATE_MS` ago. Ticks on time are always due. Older ticks are
 * late, and `catchUp` decides about them:
 *
 *   none     late ticks are missed
 *   latest   if no tick is on time, the last late tick within `withinMs` is due; others are missed
 *   all      late ticks within `withinMs` are due, in their order; older ones are missed
 *
 * The plan names every tick after the cursor up to now, either alone or in a range of missed ticks.
 * If more than `limit` ticks are due, the plan ends with the last of them, and the rest follows in
 * later plans. The cursor is the last tick that the plan names, and it never moves back.
 */
import { countTicks, lastTick, type TickSource } from './ticks.ts'

/** How old a tick may be and still count as on time. */
export const LATE_MS = 60_000
/** Missed ticks of a range are counted up to this number. */
export const COUNT_MAX = 1000

export const CATCH_UP_MODES = ['none', 'latest', 'all'] as const

/** How ticks are handled for which no worker made a job in time. */
export interface CatchUp {
  readonly mode: (typeof CATCH_UP_MODES)[number]
  readonly withinMs: number
}

/** A tick for which a job may be made. */
export interface DueTick {
  readonly kind: 'due'
  readonly tick: number
  /** The tick before it, as far as this plan and the cursor show. */
  readonly previous: number | null
  readonly isLate: boolean
}

/** Consecutive ticks for which no job is made. */
export interface MissedTicks {
  readonly kind: 'missed'
  readonly tick: number
  /** The last tick of the range; the same as `tick` if it is one. */
  readonly lastTick: number
  /** How many there are, counted up to `COUNT_MAX`. */
  readonly ticks: number
}

/** What a look at a schedule found. */
export interface TickPlan {
  readonly parts: readonly (DueTick | MissedTicks)[]
  readonly cursor: number
  /** The next tick after the cursor; `undefined` if there is none. */
  readonly next: number | undefined
}

/** What a plan starts from. */
export interface PlanRequest {
  /** The last tick that was dealt with, or the time from which the schedule counts. */
  readonly cursor: number
  /** The last tick that was dealt with; `null` if there was none. */
  readonly previous: number | null
  readonly now: number
  readonly catchUp: CatchUp
  /** How many ticks may be due in this plan. */
  readonly limit: number
}

/** Plans the ticks after the cursor up to now. */
export function planTicks(ticks: TickSource, request: PlanRequest): TickPlan {
  const { now, limit } = request
  const parts: (DueTick | MissedTicks)[] = []
  let { cursor, previous } = request
  const horizon = firstDueTime(ticks, request)
  const missed = missedUntil(ticks, cursor, horizon - 1)
  if (missed !== undefined) {
    parts.push(missed)
    cursor = missed.lastTick
    previous = missed.lastTick
  }
  let next = ticks.next(cursor)
  for (let due = 0; next !== undefined && next <= now && due < limit; due++) {
    parts.push({ kind: 'due', tick: next, previous, isLate: now - next > LATE_MS })
    cursor = next
    previous = next
    next = ticks.next(cursor)
  }
  return { parts, cursor, next }
}

/** From which time on ticks are due. */
function firstDueTime(ticks: TickSource, { cursor, now, catchUp }: PlanRequest): number {
  const onTime = now - LATE_MS
  if (catchUp.mode === 'none') return onTime
  const horizon = Math.min(onTime, now - catchUp.withinMs)
  if (catchUp.mode === 'all') return horizon
  const last = lastTick(ticks, cursor, now)
  return last === undefined ? horizon : Math.max(horizon, Math.min(last, onTime))
}

/** The ticks after the cursor up to a time, as one range; `undefined` if there is none. */
export function missedUntil(
  ticks: TickSource,
  cursor: number,
  until: number,
): MissedTicks | undefined {
  const tick = ticks.next(cursor)
  if (tick === undefined || tick > until) return undefined
  const last = lastTick(ticks, cursor, until) as number
  return {
    kind: 'missed',
    tick,
    lastTick: last,
    ticks: countTicks(ticks, cursor, until, COUNT_MAX),
  }
}
