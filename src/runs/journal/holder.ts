import { hostname } from 'node:os'
import type { Clock } from '../../core/ports.ts'
import type { Holder } from './journal.ts'

/** This process, as the holder of a run from now on. */
export function thisProcess(clock: Clock): Holder {
  const since = new Date(clock.now()).toISOString()
  return { host: hostname(), pid: process.pid, since }
}
