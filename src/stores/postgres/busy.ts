/**
 * Classifies errors of the database, and says after which of them a verb tries again.
 *
 *   conflict   others were in the way (deadlock, serialization, lock time-out): nothing was done
 *   away       the server cannot be reached, or takes no writes now, as a standby does or a primary
 *              that is being switched: nothing was done by this try
 *   lost       the connection broke, or no answer came: the statement may have been done or not, so
 *              the next try gets `redo`, and must find out
 *   failed     anything else; trying again would not help
 *
 * After a lost try of a write nothing is final until a later try has found out what it did. If that
 * fails, the caller gets `OutcomeUnknown`.
 */
import { messageOf, PawlError } from '../../core/errors.ts'
import type { Environment } from '../../environment/system.ts'
import {
  OutcomeUnknown,
  StoreBusy,
  StoreDenied,
  StoreFailed,
  StoreFull,
  StoreIoFailed,
  StoreMalformed,
  StoreUnavailable,
} from '../errors.ts'
import { codeOf } from '../outage.ts'
import { isSilence, NO_CONNECTION } from './answer.ts'

const PAUSE_MIN_MS = 5
const PAUSE_MAX_MS = 500

/** The part of a verb's time that a statement may wait for a lock. */
export const LOCK_SHARE = 0.3

type Kind = 'conflict' | 'away' | 'lost' | 'failed'

/** Serialization failure, deadlock, lock time-out, statement time-out. */
const CONFLICTS = new Set(['40001', '40P01', '55P03', '57014'])

/**
 * The server said so itself, and did nothing: 25006 a write on a read-only server, 53300 too many
 * connections, 57P03 it is starting, stopping or recovering.
 */
const AWAY = new Set(['25006', '53300', '57P03'])

/**
 * Class 08: connections. 57Pxx: the server or the session was ended. 25P03, 25P04: so was the
 * transaction, for lack of time. 40003: the completion of a statement is not known.
 */
const LOST = /^(08...|57P..|25P03|25P04|40003)$/

/** Errors of the network, as the platform names them. */
const NETWORK = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENET|ENOENT|ESOCKET)/

/** What the driver says without a code when a connection is gone or was never made. */
const GONE = /Connection terminated|timeout|socket|not queryable|Client has encountered/i

/** What a server says that takes no writes, if a library has removed the code. */
const READ_ONLY = /cannot execute .* in a read-only transaction/
const NOT_NOW = /the database system is (starting up|shutting down|in recovery|not yet accepting)/

/** The kind of an error. */
export function kindOf(error: unknown): Kind {
  if (error instanceof StoreUnavailable) return error.details.outcome === 'none' ? 'away' : 'lost'
  if (error instanceof PawlError) return 'failed'
  const code = codeOf(error)
  if (CONFLICTS.has(code)) return 'conflict'
  if (AWAY.has(code)) return 'away'
  if (LOST.test(code) || NETWORK.test(code)) return 'lost'
  if (code !== '') return 'failed'
  const message = messageOf(error)
  if (READ_ONLY.test(message) || NOT_NOW.test(message)) return 'away'
  return GONE.test(message) ? 'lost' : 'failed'
}

/** Whether the connection cannot be used any more after an error. */
export function endsConnection(error: unknown): boolean {
  const kind = kindOf(error)
  return kind === 'lost' || kind === 'away'
}

/**
 * How long a verb may take, over all of its tries and statements. It is measured by the time of the
 * process and not by the clock of the environment, which a test may move: a server does not follow.
 */
export class Patience {
  readonly environment: Environment
  readonly #start = performance.now()
  readonly #timeoutMs: number
  readonly #refusedMs: number

  /** `refusedMs` bounds the time in which nothing listens at the address; see `isRefused`. */
  constructor(environment: Environment, timeoutMs: number, refusedMs = timeoutMs) {
    this.environment = environment
    this.#timeoutMs = timeoutMs
    this.#refusedMs = refusedMs
  }

  get waitedMs(): number {
    return Math.round(performance.now() - this.#start)
  }

  get leftMs(): number {
    return this.#timeoutMs - this.waitedMs
  }

  /** Returns true if the time is up for calls that fail with this error. */
  isUpFor(error: unknown): boolean {
    return this.leftMs <= 0 || (this.waitedMs >= this.#refusedMs && isRefused(error))
  }

  /**
   * Whether the wait for a lock would still end in time. A try whose answer comes too late is worse
   * than no further try: its outcome would be unknown.
   */
  get allowsLocks(): boolean {
    return this.leftMs >= this.#timeoutMs * LOCK_SHARE
  }
}

/**
 * Returns true if nothing listens at the address, or the host does not exist. A wrong address looks
 * the same, so an opening does not try for as long as during other outages.
 */
function isRefused(error: unknown): boolean {
  const code = error instanceof StoreUnavailable ? error.details.cause : codeOf(error)
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'ENOENT'
}

/** Whether an error says only that the time of this try was over. */
function isOutOfTime(error: unknown): boolean {
  const message = messageOf(error)
  return message.includes(NO_CONNECTION) || isSilence(message)
}

/** What is repeated. */
interface Repeated {
  /** Reading has no outcome that could be unknown. */
  readonly isRead?: boolean
  /**
   * Whether something may have been done although no answer came; `redo` tells that the answer to
   * a try was lost.
   */
  readonly isUnsure?: (redo: boolean) => boolean
}

/**
 * Repeats `action` after conflicts and broken connections until it is done. `redo` says that an
 * earlier try may have been done already.
 */
export async function untilDone<T>(
  patience: Patience,
  action: (redo: boolean) => Promise<T>,
  { isRead = false, isUnsure }: Repeated = {},
): Promise<T> {
  const { random, timers } = patience.environment
  let redo = false
  // The last tries of a call have little time. That it ran out says nothing about the outage.
  let telling: unknown
  const isUnknown = () => !isRead && (isUnsure === undefined ? redo : isUnsure(redo))
  for (let pause = PAUSE_MIN_MS; ; pause = Math.min(pause * 2, PAUSE_MAX_MS)) {
    try {
      return await action(redo)
    } catch (error) {
      const kind = kindOf(error)
      if (kind === 'lost') redo = true
      if (kind === 'conflict') telling = undefined
      else if (telling === undefined || !isOutOfTime(error)) telling = error
      if (kind === 'failed') throw isUnknown() ? new OutcomeUnknown(error) : toPawlError(error)
      const delay = Math.min(Math.ceil(pause * (0.5 + random.next() / 2)), patience.leftMs)
      if (delay > 0) await new Promise<void>((done) => timers.after(delay, done))
      const isLate = patience.isUpFor(error) || (kind === 'conflict' && !patience.allowsLocks)
      if (isLate) throw givenUp(kind, patience.waitedMs, telling ?? error, isUnknown())
    }
  }
}

function givenUp(kind: Kind, waitedMs: number, error: unknown, isUnknown: boolean): PawlError {
  if (kind !== 'conflict') {
    return new StoreUnavailable(waitedMs, error, isUnknown ? 'unknown' : 'none')
  }
  return isUnknown ? new OutcomeUnknown(error) : new StoreBusy(waitedMs)
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
  const Failure = BY_STATE[codeOf(error)] ?? StoreFailed
  return new Failure(messageOf(error), error)
}
