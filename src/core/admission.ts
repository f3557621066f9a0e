/**
 * The rules of admission, for enqueues of job types with `rateLimit`, `debounce` or `singleton`.
 * All of them are decided on one row for each job type, kind and key.
 *
 *   rate       at most `limit` jobs are created in every window of `periodMs`. The row counts them
 *              in slices of a hundredth of the period. A slice counts until its last millisecond is
 *              out of the window, so the bound holds in every window, and the row stays small
 *   debounce   a further enqueue replaces the input of the job that has not started, and moves its
 *              due time, but never beyond the first enqueue + `timeoutMs`
 *   singleton  one job that has neither ended nor is parked: `job`. With `latest` and `cancel` one
 *              more may wait for the end of that job: `next`
 */
import type { Job } from './job/job.ts'
import type { Lane } from './job/lanes.ts'

/** How many jobs of one key may be created in a window. */
export interface RateRule {
  readonly limit: number
  readonly periodMs: number
}

/** How long to wait for a further enqueue, and for how long at most. */
export interface DebounceRule {
  readonly periodMs: number
  readonly timeoutMs: number
}

export const SINGLETON_MODES = ['skip', 'cancel', 'latest'] as const
/** What to do if the one job of a key has not ended. */
export type SingletonMode = (typeof SINGLETON_MODES)[number]

/** What a new job is subject to; each rule with the key that its function returned. */
export interface Admission {
  readonly rate?: RateRule & { readonly key: string }
  readonly debounce?: DebounceRule & { readonly key: string }
  readonly singleton?: { readonly mode: SingletonMode; readonly key: string }
}

export const PERIOD_MAX_MS = 366 * 86_400_000
export const RATE_MAX = 1_000_000_000

const SLICES = 100

/** How many jobs were created in a slice of time, from its first millisecond. */
type Slice = readonly [from: number, count: number]

/** The slices of a key, the oldest first, and how long each is. */
export interface RateCounts {
  readonly sliceMs: number
  readonly slices: readonly Slice[]
}

/** No job was created yet. */
export const NO_COUNTS: RateCounts = { sliceMs: 1, slices: [] }

/** Reads counts. A text that `writeCounts` has not written counts as none. */
export function readCounts(text: string | null): RateCounts {
  try {
    const value = JSON.parse(text ?? '') as Partial<RateCounts> | null
    const { sliceMs = 0, slices } = value ?? {}
    const isRead = Number.isSafeInteger(sliceMs) && sliceMs > 0 && Array.isArray(slices)
    return isRead && slices.every(isSlice) ? { sliceMs, slices } : NO_COUNTS
  } catch {
    return NO_COUNTS
  }
}

function isSlice(slice: unknown): boolean {
  return Array.isArray(slice) && slice.length === 2 && slice.every(Number.isSafeInteger)
}

export function writeCounts({ sliceMs, slices }: RateCounts): string {
  return JSON.stringify({ sliceMs, slices })
}

/** Whether one more job may be created now, and the counts after it; or how long to wait. */
export type RateDecision =
  | { readonly isFree: true; readonly counts: RateCounts; readonly until: number }
  | { readonly isFree: false; readonly retryAfterMs: number }

/** Decides about one more job. A clock that was set back does not free anything. */
export function decideRate(before: RateCounts, rule: RateRule, clock: number): RateDecision {
  const sliceMs = Math.ceil(rule.periodMs / SLICES)
  const moved = resliced(before, sliceMs)
  const now = Math.max(clock, moved[moved.length - 1]?.[0] ?? 0)
  // The last millisecond of a slice is `from + sliceMs - 1`; it is out of a window that begins now.
  const current = moved.filter(([from]) => from + sliceMs - 1 + rule.periodMs >= now)
  let free = rule.limit
  for (const [, count] of current) free -= count
  if (free > 0) {
    const from = now - (now % sliceMs)
    return {
      isFree: true,
      counts: { sliceMs, slices: added(current, from) },
      until: from + sliceMs + rule.periodMs,
    }
  }
  let needed = 1 - free
  const last = current.find(([, count]) => {
    needed -= count
    return needed <= 0
  })
  const freeAt = (last?.[0] ?? now) + sliceMs + rule.periodMs
  return { isFree: false, retryAfterMs: freeAt - clock }
}

/** After a change of the period: each slice counts as if all its jobs came at its end. */
function resliced(counts: RateCounts, sliceMs: number): readonly Slice[] {
  if (counts.sliceMs === sliceMs) return counts.slices
  let slices: readonly Slice[] = []
  for (const [from, count] of counts.slices) {
    const end = from + counts.sliceMs - 1
    slices = added(slices, end - (end % sliceMs), count)
  }
  return slices
}

function added(slices: readonly Slice[], from: number, count = 1): readonly Slice[] {
  const last = slices[slices.length - 1]
  return last?.[0] === from
    ? [...slices.slice(0, -1), [from, last[1] + count]]
    : [...slices, [from, count]]
}

/** When a debounced job is due after one more enqueue. */
export function debouncedUntil(rule: DebounceRule, firstAt: number, now: number): number {
  return Math.min(now + rule.periodMs, firstAt + rule.timeoutMs)
}

/** A job as admission sees it. */
export interface SeenJob {
  readonly job: Job
  readonly lane: Lane
}

/** Whether a job counts: it has neither ended nor waits for a person. */
export function isLive(seen: SeenJob | undefined): seen is SeenJob {
  return seen !== undefined && seen.lane !== 'ended' && seen.lane !== 'parked'
}

/** Whether the input of a job can still be replaced. */
export function isFresh(seen: SeenJob | undefined): seen is SeenJob {
  return isLive(seen) && seen.job.attempt === 0
}

/** What to do with a new job of a key. */
export type SingletonDecision =
  /** Create it; it is the job of the key. */
  | 'create'
  /** Answer with the job of the key. */
  | 'skip'
  /** Give its input to the job of the key, or to the one that waits. */
  | 'replace job'
  | 'replace next'
  /** Create it so that it waits for the end of the job of the key. */
  | 'create next'
  /** The same after asking the job of the key, and the one that waits, to stop. */
  | 'cancel'

/** Decides about a new job, from the job of its key and the one that waits. */
export function decideSingleton(
  mode: SingletonMode,
  job: SeenJob | undefined,
  next: SeenJob | undefined,
): SingletonDecision {
  if (!isLive(job)) return 'create'
  if (mode === 'skip') return 'skip'
  if (mode === 'cancel') return 'cancel'
  if (isFresh(job)) return 'replace job'
  return isFresh(next) ? 'replace next' : 'create next'
}
