import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Clock } from '../../core/ports.ts'
import type { Holder } from './journal.ts'

/** Returns this process as a holder since now. */
export function thisProcess(clock: Clock): Holder {
  const since = new Date(clock.now()).toISOString()
  return { host: hostname(), pid: process.pid, since }
}

/** A process that started this much later than the note did not write it. */
const START_SLACK_MS = 5000

/**
 * Returns false if the holder's process has ended. Of a process on another machine nothing is
 * known, so the answer is true. The system may have given the process id to another process since.
 */
export function mayLive({ host, pid, since }: Holder): boolean {
  if (host !== hostname()) return true
  if (pid === process.pid) return true
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  const startedAtMs = statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.ctimeMs
  return startedAtMs === undefined || startedAtMs < Date.parse(since) + START_SLACK_MS
}
