/**
 * Moments that all threads of a process can compare. Each thread corrects its own monotonic clock
 * if that clock is faked (`host-time.ts`), so readings of two threads can differ by a correction.
 * The sum of `elapsed` and `suspended` is the uptime of the machine, the same in all threads.
 */
import type { HostTime } from '../core/ports.ts'
import { systemHostTime } from './host-time.ts'

export interface Moment {
  readonly elapsedMs: number
  /** Null if the machine has no reliable uptime. */
  readonly suspendedMs: number | null
}

let ownHost: HostTime | undefined

function hostOfThread(): HostTime {
  ownHost ??= systemHostTime()
  return ownHost
}

export function momentNow(host = hostOfThread()): Moment {
  return { suspendedMs: host.suspended(), elapsedMs: host.elapsed() }
}

/** Returns the milliseconds since a moment of any thread of this process; never less than 0. */
export function msSince(moment: Moment, host = hostOfThread()): number {
  const now = momentNow(host)
  const suspendedMs =
    now.suspendedMs === null || moment.suspendedMs === null
      ? 0
      : now.suspendedMs - moment.suspendedMs
  return Math.max(0, Math.ceil(now.elapsedMs - moment.elapsedMs + suspendedMs))
}
