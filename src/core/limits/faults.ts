/** What can be wrong with a gate, and how it is made right. For the doctor. */
import { DELAY_MAX_MS } from '../retry.ts'
import { type Gate, type LimitSettings, maxOf, rateOf } from './gates.ts'
import { CONCURRENCY_MAX, isRate } from './keys.ts'
import { type Rate, unitTime } from './throttle.ts'

/**
 * What is wrong with a gate:
 *
 *   count     `used` is not the number of jobs that are held and count in it
 *   stranded  it blocks jobs, and no worker will look at it
 *   values    it has a time or a number that Pawl never writes
 */
export type GateProblem = 'count' | 'stranded' | 'values'

/** What the jobs of a store say about a gate. */
export interface GateJobs {
  /** How many are held and count in it. */
  readonly held: number
  /** Whether it blocks any. */
  readonly blocks: boolean
}

/** Returns what is wrong with a gate. */
export function gateProblems(
  gate: Gate,
  { held, blocks }: GateJobs,
  settings: LimitSettings,
  now: number,
): GateProblem[] {
  return [
    ...(gate.used === held ? [] : (['count'] as const)),
    ...(blocks && !isLookedAt(gate, settings) ? (['stranded'] as const) : []),
    ...(isPlausible(gate, rateOf(gate, settings), now) ? [] : (['values'] as const)),
  ]
}

/** Whether a blocked job is made ready: by the end of one that runs, or by a look of a worker. */
function isLookedAt(gate: Gate, settings: LimitSettings): boolean {
  if (!gate.waiting) return false
  return gate.openAt !== null || (!isRate(gate.key) && gate.used >= maxOf(gate, settings))
}

/** Clocks of processes differ, and the clock of a store can be set. */
const SLACK_MS = 24 * 60 * 60 * 1000

function isPlausible(gate: Gate, rate: Rate | undefined, now: number): boolean {
  const { asked, askedAt, tat, closedUntil, openAt } = gate
  const last = now + Math.max(DELAY_MAX_MS, 2 * fullMs(rate)) + SLACK_MS
  const times = [(tat ?? 0) / 1000, closedUntil ?? 0, openAt ?? 0]
  const isNumber = asked === null || (asked >= 0 && asked <= CONCURRENCY_MAX)
  return isNumber && (askedAt ?? 0) <= now + SLACK_MS && times.every((at) => at <= last)
}

/** How long the gate is closed after as many units as it allows. */
function fullMs(rate: Rate | undefined): number {
  return rate === undefined ? 0 : (rate.limit * unitTime(rate)) / 1000
}

/**
 * Returns the gate as the jobs say. What cannot be known is taken as if units had just started, so
 * that no window has too many. A worker looks at it at once.
 */
export function mendGate(
  gate: Gate,
  { held, blocks }: GateJobs,
  settings: LimitSettings,
  now: number,
): Gate {
  const rate = rateOf(gate, settings)
  const own = isPlausible(gate, rate, now) ? gate : withoutValues(gate, rate, now)
  return { ...own, used: held, waiting: blocks, openAt: blocks ? now : null }
}

function withoutValues(gate: Gate, rate: Rate | undefined, now: number): Gate {
  const closed = rate === undefined ? null : now * 1000 + rate.burst * unitTime(rate)
  return { ...gate, asked: null, askedAt: null, tat: closed, closedUntil: null, openAt: null }
}

/** Returns the largest number of jobs that may run; `undefined` if it is not known for sure. */
export function knownMax(gate: Gate, settings: LimitSettings): number | undefined {
  const max = maxOf(gate, settings)
  // The number of a job counts from the moment of a claim that no record has.
  const isAsked = gate.asked !== null && maxOf({ ...gate, asked: null }, settings) !== max
  return isRate(gate.key) || isAsked || !Number.isFinite(max) ? undefined : max
}
