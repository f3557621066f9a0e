/**
 * How errors of SQLite are told apart, and how to wait while others hold a lock. Waiting inside
 * SQLite would block the event loop, so connections never do: what is busy is tried again after a
 * pause with jitter, until the time-out.
 */
import { messageOf, PawlError } from '../../core/errors.ts'
import type { Environment } from '../../environment/system.ts'
import { StoreBusy, StoreFailed } from '../errors.ts'

const PAUSE_MIN_MS = 1
/** How long whoever waits for the file does not try, at most. */
export const PAUSE_MAX_MS = 25

/** Whether another connection held the lock that was needed. */
export function isBusy(error: unknown): boolean {
  return /database (table |schema )?is locked|SQLITE_BUSY/.test(messageOf(error))
}

/** Whether a unique constraint refused the write. */
export function isUniqueViolation(error: unknown): boolean {
  return /UNIQUE constraint failed/.test(messageOf(error))
}

/** What was thrown as one of our errors: what the driver throws has no code of ours (P16). */
export function toPawlError(error: unknown): PawlError {
  return error instanceof PawlError ? error : new StoreFailed(messageOf(error), error)
}

/** Does what may find the database busy, again and again until it is not. */
export async function whileBusy<T>(
  environment: Environment,
  timeoutMs: number,
  action: () => T,
): Promise<T> {
  const { clock, random, timers } = environment
  const start = clock.now()
  for (let pause = PAUSE_MIN_MS; ; pause = Math.min(pause * 2, PAUSE_MAX_MS)) {
    try {
      return action()
    } catch (error) {
      if (!isBusy(error)) throw error
    }
    const waited = clock.now() - start
    if (waited >= timeoutMs) throw new StoreBusy(waited)
    const delay = Math.ceil(pause * (0.5 + random.next() / 2))
    await new Promise<void>((done) => timers.after(delay, done))
  }
}
