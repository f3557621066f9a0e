/**
 * Classifies errors of SQLite, and waits while others hold a lock. Waiting inside SQLite would
 * block the event loop, so connections never do: what is busy is tried again after a pause with
 * jitter, until the time-out.
 */
import { messageOf, PawlError } from '../../core/errors.ts'
import type { Environment } from '../../environment/system.ts'
import {
  StoreBusy,
  StoreDenied,
  StoreFailed,
  StoreFull,
  StoreIoFailed,
  StoreMalformed,
} from '../errors.ts'

const PAUSE_MIN_MS = 1
/** The longest pause between two tries to get the lock. */
export const PAUSE_MAX_MS = 25

/** Whether another connection held the lock that was needed. */
export function isBusy(error: unknown): boolean {
  return /database (table |schema )?is locked|SQLITE_BUSY/.test(messageOf(error))
}

/** Whether a unique constraint refused the write. */
export function isUniqueViolation(error: unknown): boolean {
  return /UNIQUE constraint failed/.test(messageOf(error))
}

/** Whether a row refers to one that is not there. */
export function isForeignKeyViolation(error: unknown): boolean {
  return /FOREIGN KEY constraint failed/.test(messageOf(error))
}

type StoreError = new (why: string, cause: unknown) => PawlError

/** SQLite's primary result codes that have an error of their own. */
const BY_CODE: Readonly<Record<number, StoreError>> = {
  3: StoreDenied, // SQLITE_PERM
  8: StoreDenied, // SQLITE_READONLY
  10: StoreIoFailed, // SQLITE_IOERR
  11: StoreMalformed, // SQLITE_CORRUPT
  13: StoreFull, // SQLITE_FULL
  23: StoreDenied, // SQLITE_AUTH
}
/** The -shm file could not grow. On a disk that is full, that comes before SQLITE_FULL. */
const IOERR_SHMSIZE = 4874

/** Converts an error of the driver, which has no code of ours (P16). */
export function toPawlError(error: unknown): PawlError {
  if (error instanceof PawlError) return error
  return toStoreFailure(error) ?? new StoreFailed(messageOf(error), error)
}

/**
 * Converts an error that no statement of a user can cause, such as a full disk. Returns `undefined`
 * for all others: a constraint of the user's own table, a syntax error.
 */
export function toStoreFailure(error: unknown): PawlError | undefined {
  const code = resultCodeOf(error)
  const Failure = code === IOERR_SHMSIZE ? StoreFull : BY_CODE[code & 0xff]
  return Failure && new Failure(messageOf(error), error)
}

/** Runs the store's own part of a transaction; errors of a user's function are left as they are. */
export function typed<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw toPawlError(error)
  }
}

/** The extended result code of SQLite; 0 if the error has none. */
function resultCodeOf(error: unknown): number {
  const { errcode } = (error ?? {}) as { errcode?: unknown }
  return typeof errcode === 'number' ? errcode : 0
}

/** Repeats `action` until the database is not busy. */
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
