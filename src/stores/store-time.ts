/** What a store says about its own time. */

import { span } from '../core/format.ts'
import type { Logger } from '../core/ports.ts'
import type { TimeBaseReason } from '../core/time-base.ts'

/** The time of a store. */
export interface StoreTime {
  /** The time by which this store judges leases and due times. */
  now(): number
  /**
   * How the store's time relates to this process's wall clock. Absent, or `undefined`, if the time
   * comes from elsewhere: from a database server, or from a test.
   */
  timeStatus?(): TimeStatus | undefined
}

/** A change of the time of a store, or a wall clock that differs from it. */
export interface TimeChange {
  /** `disputed`: this process's wall clock differs, and the store's time did not change. */
  readonly reason: Exclude<TimeBaseReason, 'first'> | 'disputed'
  /** By how much the time of the store moved forward; live leases were extended by as much. */
  readonly movedMs: number
  /** By how much the time of the store is ahead of this process's wall clock; may be negative. */
  readonly aheadMs: number
}

/** How the time of a store relates to the wall clock of this process. */
export interface TimeStatus {
  readonly aheadMs: number
  /** By how much the time of the store is still to be held back. */
  readonly leftMs: number
  /** The last recorded change. */
  readonly last: {
    readonly reason: TimeBaseReason
    readonly movedMs: number
    readonly at: number
  }
}

/** A change as one sentence. */
function sayTimeChange({ reason, movedMs, aheadMs }: TimeChange): string {
  const difference = span(Math.abs(aheadMs))
  switch (reason) {
    case 'boot':
      return 'The machine was started again; the time of the file begins at wall time'
    case 'forward':
      return `The wall clock was ${span(movedMs)} ahead: the time of the file and its leases moved`
    case 'slower':
      return `The wall clock is ${difference} behind: the time of the file runs slower`
    case 'agreed':
      return 'The wall clock and the time of the file agree again'
    case 'resumed':
      return 'The machine was suspended; the time of the file did not count that time'
    case 'repaired':
      return 'The newest time base of the file was damaged; the one before it or wall time counts'
    case 'disputed': {
      const where = aheadMs > 0 ? 'behind' : 'ahead of'
      return `The wall clock of this process is ${difference} ${where} the time of the file`
    }
  }
}

/** Logs a change: as a warning if the wall clock was stepped or differs. */
export function logTimeChange(logger: Logger | undefined, change: TimeChange): void {
  const { reason, movedMs, aheadMs } = change
  const isWarning = ['forward', 'slower', 'disputed', 'repaired'].includes(reason)
  const fields = { event: `store.time_${reason}`, moved_ms: movedMs, ahead_ms: aheadMs }
  logger?.[isWarning ? 'warn' : 'info'](fields, sayTimeChange(change))
}
