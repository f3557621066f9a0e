/**
 * The time of a SQLite file. All processes that use a file must agree on the time, even if their
 * wall clocks differ. The file therefore has a time base, and every process adds the same number to
 * a clock that the kernel keeps for all of them:
 *
 *   file time = elapsed + offset − held back
 *
 *   elapsed     milliseconds since the boot by the monotonic clock, which cannot be stepped
 *   offset      in the file; set from wall time by the first process after a boot
 *   held back   a part of `elapsed` since the base was set, while the file is ahead of wall time:
 *               file time then runs slower by `SLOWED_BY`, until it has lost `behindMs` in all
 *
 * If the newest base is damaged, the process that finds it records a new one, derived from the base
 * before it or from wall time. A process follows wall time, and records it as a new base, in three
 * other cases:
 *
 *   the base is of another boot
 *   it sees its own wall clock step (wall − elapsed changes by more than `STEP_MS`)
 *   its wall clock differs from file time, and no live worker on the file has another wall time
 *
 * If wall time is ahead, file time moves to it at once, and every live lease is extended by the
 * same amount. If wall time is behind, file time runs slower. It never runs backwards. A process
 * whose wall clock differs from file time for any other reason uses file time and reports the
 * difference.
 *
 * Some programs fake the monotonic clock of one process. The kernel's uptime shows this: it
 * includes the time for which the machine was suspended, so `uptime − elapsed` is the same in all
 * processes of a boot. A process in which it differs from the base's `suspendedMs` corrects its own
 * clock by the difference.
 */

/** Smaller differences between wall time and file time are ignored. */
export const STEP_MS = 1000
/** While the file is ahead of wall time, it loses this share of the time that passes. */
export const SLOWED_BY = 1 / 25
/** The uptime has a resolution of 10 ms. Clocks that differ by no more than this agree. */
export const UPTIME_SLACK_MS = 100

/** The clocks of a machine at one moment. */
export interface HostReading {
  /** The wall clock of the machine; it can be stepped in both directions. */
  readonly wallMs: number
  /** Milliseconds since the boot by the monotonic clock, corrected. */
  readonly elapsedMs: number
  /** `uptime − elapsed`; null if the machine has no reliable uptime. */
  readonly suspendedMs: number | null
}

const REASONS = [
  /** The first base of the file. */
  'first',
  /** The machine was restarted. */
  'boot',
  /** Wall time was ahead: file time has moved forward. */
  'forward',
  /** Wall time was behind: file time runs slower. */
  'slower',
  /** Wall time and file time agree again before the end of a slow phase. */
  'agreed',
  /** The machine was suspended, and wall time did not move with it. */
  'resumed',
  /**
   * The row of the newest base was damaged. This base comes from an older one or from wall time.
   */
  'repaired',
] as const

export type TimeBaseReason = (typeof REASONS)[number]

export function isTimeBaseReason(reason: string): reason is TimeBaseReason {
  return (REASONS as readonly string[]).includes(reason)
}

/** What the file stores about its time. */
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

/** Returns the file time at a time of the monotonic clock, in whole milliseconds. */
export function fileTimeAt(base: TimeBase, elapsedMs: number): number {
  return Math.floor(elapsedMs + base.offsetMs - heldBackAt(base, elapsedMs))
}

/** Returns by how much file time has been held back since the base was recorded. */
function heldBackAt(base: TimeBase, elapsedMs: number): number {
  const passed = Math.max(0, elapsedMs - base.elapsedMs)
  return Math.min(base.behindMs, passed * SLOWED_BY)
}

/** Returns how much file time must still be held back. */
export function leftToLose(base: TimeBase, elapsedMs: number): number {
  return base.behindMs - heldBackAt(base, elapsedMs)
}

/** Returns by how much file time is ahead of wall time; negative if it is behind. */
export function aheadOfWall(base: TimeBase, { wallMs, elapsedMs }: HostReading): number {
  return fileTimeAt(base, elapsedMs) - wallMs
}

/** Returns true if wall time and file time differ, and file time is not being held back for it. */
export function isDisputed(base: TimeBase, reading: HostReading): boolean {
  const leftMs = leftToLose(base, reading.elapsedMs)
  return Math.abs(aheadOfWall(base, reading) - leftMs) > STEP_MS
}

/** Returns true if a process of this boot can use the base. */
export function isOfBoot(base: TimeBase, boot: string, elapsedMs: number): boolean {
  // If the platform cannot identify a boot, a smaller monotonic clock shows a later boot.
  return base.boot === boot && elapsedMs >= base.elapsedMs - UPTIME_SLACK_MS
}

/** Returns the first base of a file or of a boot. File time does not fall below `lastMs`. */
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

/** Returns the base with which file time follows wall time; `undefined` if it already does. */
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

/** Returns a base with the same time for processes that start after the machine was suspended. */
export function afterSuspension(base: TimeBase, reading: HostReading): TimeBase {
  const { elapsedMs, suspendedMs } = reading
  const offsetMs = Math.ceil(fileTimeAt(base, elapsedMs) - elapsedMs)
  const behindMs = Math.ceil(leftToLose(base, elapsedMs))
  return { ...base, offsetMs, elapsedMs, suspendedMs, behindMs, reason: 'resumed', movedMs: 0 }
}

/** Returns by how much a process must correct its monotonic clock to agree with the base. */
export function correctionFor(
  base: TimeBase,
  measuredMs: number | null,
  presentMs: number,
): number {
  if (measuredMs === null || base.suspendedMs === null) return 0
  const differenceMs = measuredMs - base.suspendedMs
  if (Math.abs(differenceMs) <= UPTIME_SLACK_MS) return 0
  // Measurements vary by the resolution of the uptime. The correction must not vary with them.
  return Math.abs(differenceMs - presentMs) <= UPTIME_SLACK_MS ? presentMs : differenceMs
}
