import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Clock } from '../../core/ports.ts'
import type { Holder } from './journal.ts'

/** This process, as the holder of a run from now on. */
export function thisProcess(clock: Clock): Holder {
  const since = new Date(clock.now()).toISOString()
  return { host: hostname(), pid: process.pid, since }
}

/** A process whose time of start is this much later than a note was not the one that wrote it. */
const START_SLACK_MS = 5000

/**
 * Whether a holder may still be at work: of another machine nothing is known. A note outlives the
 * process that wrote it, and its number may have been given to another process since then.
 */
export function mayLive({ host, pid, since }: Holder): boolean {
  if (host !== hostname()) return true
  if (pid === process.pid) return true
  try {
    process.kill(pid, 0)
  } catch (error) {
    // It is there, and belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  const startedAtMs = statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.ctimeMs
  return startedAtMs === undefined || startedAtMs < Date.parse(since) + START_SLACK_MS
}
