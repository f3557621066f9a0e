/**
 * How many retries wait in each queue, for the window over which further ones are spread. A bounded
 * number of the jobs that are due next is read, so the count takes the same time however many jobs
 * wait.
 */
import type { Command } from '../core/job/commands.ts'
import { RETRIES_AHEAD_MAX } from '../core/retry.ts'

/** How many of the waiting jobs are read. */
export const WAITING_LOOK_MAX = RETRIES_AHEAD_MAX

/** A job that waits for its time. */
export interface WaitingRow {
  readonly queue: string
  readonly failures: number
  readonly crashes: number
}

/** Whether a command may make its job wait for a retry. */
export function mayRetry({ kind }: Pick<Command, 'kind'>): boolean {
  return kind === 'fail' || kind === 'expire'
}

/** The retries of one transaction. */
export class WaitingRetries {
  readonly #counts = new Map<string, number>()

  constructor(rows: readonly WaitingRow[]) {
    for (const { queue, failures, crashes } of rows) {
      if (failures + crashes > 0) this.next(queue)
    }
  }

  /** How many retries wait in a queue; one more does from now on. */
  next(queue: string): number {
    const count = this.#counts.get(queue) ?? 0
    this.#counts.set(queue, count + 1)
    return count
  }
}
