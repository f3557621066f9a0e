/**
 * The time of a SQLite file. All processes that use a file must agree on the time, whatever their
 * wall clocks say. The file therefore carries a time base, and every process adds the same number
 * to a clock that the kernel keeps for all of them:
 *
 *   file time = elapsed + offset − held back
 *
 *   elapsed     milliseconds since the boot by the monotonic clock, which nobody can step
 *   offset      in the file; set from wall time by the first process after a boot
 *   held back   a part of `elapsed` since the base was set, while the file is ahead of wall time:
 *               file time then runs slower by `SLOWED_BY`, until it has lost `behindMs` in all
 *
 * A process that finds the newest base damaged records a new one: by the base before it, or by wall
 * time. A process follows wall time in three other cases, and records it as a new base:
 *
 *   the base is of another boot
 *   it sees its own wall clock step (wall − elapsed changes by more than `STEP_MS`)
 *   its wall clock differs from file time, and no live worker on the file has another wall time
 *
 * If wall time is ahead, file time moves there at once, and every live lease is extended by the
 * same amount. If wall time is behind, file time runs slower. It never runs backwards. A process
 * whose wall clock differs from file time for any other reason keeps to file time, and says so.
 *
 * Some programs fake the monotonic clock of one process. The kernel's uptime shows that: it
 * includes the time for which the machine was suspended, so `uptime − elapsed` is the same in all
 * processes of a boot. A process in which it differs from the base's `suspendedMs` corrects its
 * own clock by the difference.
 */

/** Differences between wall time and file time up to this are ignored. */
export const STEP_MS = 1000
/** While the file is ahead of wall time, it loses this share of the time that passes. */
export const SLOWED_BY = 1 / 25
/** The uptime has a resolution of 10 ms; clocks that differ by no more than this agree. */
export const UPTIME_SLACK_MS = 100

/** The clocks of a machine at one moment. */
export interface HostReading {
  /** What the machine says the time is; can be stepped in both directions. */
  readonly wallMs: number
  /** Since the boot, by the monotonic clock, corrected. */
  readonly elapsedMs: number
  /** `uptime − elapsed`; null if the machine has no uptime that can be trusted. */
  readonly suspendedMs: number | null
}

const REASONS = [
  /** The first base of the file. */
  'first',
  /** The machine was started again. */
  'boot',
  /** Wall time was ahead: file time has moved forward. */
  'forward',
  /** Wall time was behind: file time runs slower. */
  'slower',
  /** Wall time and file time agree again before the end of a slow phase. */
  'agreed',
  /** The machine was suspended, and wall time did not move with it. */
  'resumed',
  /** The row of the newest base was damaged: the base before it, or wall time, counts. */
  'repaired',
] as const

/** Why a base was recorded. */
export type TimeBaseReason = (typeof REASONS)[number]

/** Whether a text is a reason for which bases are recorded. */
export function isTimeBaseReason(reason: string): reason is TimeBaseReason {
  return (REASONS as readonly string[]).includes(reason)
}

/** What the file says about its time. */
export interface TimeBase {
  /** Identifies the boot to which `offsetMs` belongs. */
  readonly boot: string
  readonly offsetMs: number
  /** The monotonic clock when the base was recorded. */
  readonly elapsedMs: number
  readonly suspendedMs: number | null
  /** By how much file time was ahead of wall time when the base was recorded. */
  readonly behindMs: number
  readonly reason: TimeBaseReason
  /** By how much file time moved forward when the base was recorded. */
  readonly movedMs: number
}

/** The file time at a moment of the monotonic clock, in whole milliseconds. */
export function fileTimeAt(base: TimeBase, elapsedMs: number): number {
  return Math.floor(elapsedMs + base.offsetMs - heldBackAt(base, elapsedMs))
}

/** By how much file time has been held back since the base was recorded. */
function heldBackAt(base: TimeBase, elapsedMs: number): number {
  const passed = Math.max(0, elapsedMs - base.elapsedMs)
  return Math.min(base.behindMs, passed * SLOWED_BY)
}

/** How much file time is still to be held back. */
export function leftToLose(base: TimeBase, elapsedMs: number): number {
  return base.behindMs - heldBackAt(base, elapsedMs)
}

/** By how much file time is ahead of wall time; negative if it is behind. */
export function aheadOfWall(base: TimeBase, { wallMs, elapsedMs }: HostReading): number {
  return fileTimeAt(base, elapsedMs) - wallMs
}

/** Whether wall time and file time differ, and file time is not on its way to wall time. */
export function isDisputed(base: TimeBase, reading: HostReading): boolean {
  const leftMs = leftToLose(base, reading.elapsedMs)
  return Math.abs(aheadOfWall(base, reading) - leftMs) > STEP_MS
}

/** Whether a base can be used by a process of this boot. */
export function isOfBoot(base: TimeBase, boot: string, elapsedMs: number): boolean {
  // Without an identity of the boot, a monotonic clock that is behind shows a later boot.
  return base.boot === boot && elapsedMs >= base.elapsedMs - UPTIME_SLACK_MS
}

/** The first base of a file or of a boot; file time does not fall below `lastMs`. */
export function firstBase(
  boot: string,
  { wallMs, elapsedMs, suspendedMs }: HostReading,
  lastMs: number | undefined,
  reason: 'first' | 'boot' | 'repaired',
): TimeBase {
  const startMs = Math.max(wallMs, lastMs ?? wallMs)
  const aheadMs = startMs - wallMs
  return {
    boot,
    offsetMs: Math.ceil(startMs - elapsedMs),
    elapsedMs,
    suspendedMs,
    behindMs: aheadMs > STEP_MS ? aheadMs : 0,
    reason,
    movedMs: 0,
  }
}

/** The base by which file time follows wall time; `undefined` if it does so already. */
export function followWall(base: TimeBase, reading: HostReading): TimeBase | undefined {
  const { wallMs, elapsedMs, suspendedMs } = reading
  const nowMs = fileTimeAt(base, elapsedMs)
  const aheadMs = nowMs - wallMs
  if (aheadMs < -STEP_MS) {
    const moved = { reason: 'forward', movedMs: -aheadMs, behindMs: 0 } as const
    const offsetMs = Math.ceil(wallMs - elapsedMs)
    return { ...base, ...moved, offsetMs, elapsedMs, suspendedMs }
  }
  if (!isDisputed(base, reading)) return undefined
  const behindMs = aheadMs > STEP_MS ? aheadMs : 0
  const reason = behindMs > 0 ? 'slower' : 'agreed'
  const offsetMs = Math.ceil(nowMs - elapsedMs)
  return { ...base, offsetMs, elapsedMs, suspendedMs, behindMs, reason, movedMs: 0 }
}

/** The same time, for processes that start after the machine was suspended. */
export function afterSuspension(base: TimeBase, reading: HostReading): TimeBase {
  const { elapsedMs, suspendedMs } = reading
  const offsetMs = Math.ceil(fileTimeAt(base, elapsedMs) - elapsedMs)
  const behindMs = Math.ceil(leftToLose(base, elapsedMs))
  return { ...base, offsetMs, elapsedMs, suspendedMs, behindMs, reason: 'resumed', movedMs: 0 }
}

/** By how much a process must correct its monotonic clock to agree with the base. */
export function correctionFor(
  base: TimeBase,
  measuredMs: number | null,
  presentMs: number,
): number {
  if (measuredMs === null || base.suspendedMs === null) return 0
  const differenceMs = measuredMs - base.suspendedMs
  if (Math.abs(differenceMs) <= UPTIME_SLACK_MS) return 0
  // Measurements vary by the resolution of the uptime; the time must not vary with them.
  return Math.abs(differenceMs - presentMs) <= UPTIME_SLACK_MS ? presentMs : differenceMs
}
