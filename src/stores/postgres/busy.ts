/**
 * How errors of the database are told apart, and which of them a verb meets by trying again.
 *
 *   conflict   others were in the way (deadlock, serialization, lock time-out): nothing was done
 *   lost       the connection broke, or no answer came: what was asked may have been done or not,
 *              so the next try is told, and must find out
 *   failed     anything else; trying again would not help
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
  StoreUnavailable,
} from '../errors.ts'

const PAUSE_MIN_MS = 5
const PAUSE_MAX_MS = 500

type Kind = 'conflict' | 'lost' | 'failed'

/** Serialization failure, deadlock, lock time-out, statement time-out. */
const CONFLICTS = new Set(['40001', '40P01', '55P03', '57014'])

/** Errors of the network, as the platform names them. */
const NETWORK = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENET|ENOENT|ESOCKET)/

/** What the driver says without a code when a connection is gone or was never made. */
const GONE = /Connection terminated|timeout|socket|not queryable|Client has encountered/i

/** The kind of an error. */
export function kindOf(error: unknown): Kind {
  if (error instanceof StoreUnavailable) return 'lost'
  if (error instanceof PawlError) return 'failed'
  const code = sqlStateOf(error)
  if (CONFLICTS.has(code)) return 'conflict'
  // Class 08: connections; 53300: too many of them; 57Pxx: the server or the session was ended.
  if (/^08|^53300$|^57P|^25P03$|^25P04$/.test(code) || NETWORK.test(code)) return 'lost'
  return code === '' && GONE.test(messageOf(error)) ? 'lost' : 'failed'
}

/**
 * The code of an error: of PostgreSQL or of the platform; empty where it has none. Libraries may
 * have wrapped the error of their driver.
 */
export function sqlStateOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown }
  if (typeof code === 'string') return code
  return cause === undefined || cause === null ? '' : sqlStateOf(cause)
}

/**
 * Does what may meet conflicts or a broken connection, again and again until it is done. `redo`
 * tells that an earlier try may have been done already.
 */
export async function untilDone<T>(
  environment: Environment,
  timeoutMs: number,
  action: (redo: boolean) => Promise<T>,
): Promise<T> {
  const { clock, random, timers } = environment
  const start = clock.now()
  let redo = false
  for (let pause = PAUSE_MIN_MS; ; pause = Math.min(pause * 2, PAUSE_MAX_MS)) {
    try {
      return await action(redo)
    } catch (error) {
      const kind = kindOf(error)
      if (kind === 'failed') throw toPawlError(error)
      if (kind === 'lost') redo = true
      const waited = clock.now() - start
      if (waited >= timeoutMs) {
        throw kind === 'conflict' ? new StoreBusy(waited) : new StoreUnavailable(waited, error)
      }
    }
    const delay = Math.ceil(pause * (0.5 + random.next() / 2))
    await new Promise<void>((done) => timers.after(delay, done))
  }
}

type StoreError = new (why: string, cause: unknown) => PawlError

/** SQLSTATEs that have an error of their own. */
const BY_STATE: Readonly<Record<string, StoreError>> = {
  '42501': StoreDenied, // insufficient_privilege
  '53100': StoreFull, // disk_full
  '58030': StoreIoFailed, // io_error
  XX001: StoreMalformed, // data_corrupted
  XX002: StoreMalformed, // index_corrupted
}

/** An error of the database as one of ours. */
export function toPawlError(error: unknown): PawlError {
  if (error instanceof PawlError) return error
  const Failure = BY_STATE[sqlStateOf(error)] ?? StoreFailed
  return new Failure(messageOf(error), error)
}
