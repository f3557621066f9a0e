/**
 * The time by which all processes on a file judge leases and due times. The rule is in
 * `../../core/time-base.ts`; here it is applied to the file. Every write transaction reads the
 * newest base while it holds the write lock, and records a new one if this process must; so a base
 * and everything that is decided by it are written together or not at all.
 */

import { messageOf } from '../../core/errors.ts'
import { CLOCK_SLACK_MS } from '../../core/job/fence.ts'
import { LANES } from '../../core/job/lanes.ts'
import type { Clock, HostTime } from '../../core/ports.ts'
import {
  afterSuspension,
  aheadOfWall,
  correctionFor,
  fileTimeAt,
  firstBase,
  followWall,
  type HostReading,
  isDisputed,
  isOfBoot,
  isTimeBaseReason,
  leftToLose,
  STEP_MS,
  type TimeBase,
  UPTIME_SLACK_MS,
} from '../../core/time-base.ts'
import type { TimeChange, TimeStatus } from '../store-time.ts'
import { SILENT_AFTER_MS } from '../worker-info.ts'
import type { Connection } from './connect.ts'

/** JavaScript cannot count above this: such a number was not written by Pawl. */
const NUMBER_MAX = 9_000_000_000_000_000
const SELECT_NEWEST = `
  SELECT number FROM pawl_time WHERE number < ${NUMBER_MAX} ORDER BY number DESC LIMIT 1`
const SELECT_BASE = 'SELECT * FROM pawl_time WHERE number = ?'
const INSERT_BASE = `
  INSERT INTO pawl_time
    (number, at, boot, offset_ms, elapsed_ms, suspended_ms, behind_ms, reason, moved_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
const DELETE_OLD = 'DELETE FROM pawl_time WHERE number <= ?'
const ROWS_MAX = 100

const SELECT_EARLIER = `
  SELECT number FROM pawl_time WHERE number < ? ORDER BY number DESC LIMIT 3`

/** In the order of their positions, facts were written at times that never fall. */
const SELECT_LAST = `
  SELECT at FROM (SELECT at FROM pawl_ledger ORDER BY pos DESC LIMIT 3)
  WHERE at BETWEEN 0 AND ${NUMBER_MAX}`

/** A live worker whose wall clock differs from that of this process: ?1 is now, ?2 the latter. */
const SELECT_OTHER_WALL = `
  SELECT 1 FROM pawl_workers
  WHERE seen_at BETWEEN ?1 - ${SILENT_AFTER_MS - 1} AND ?1 + ${CLOCK_SLACK_MS}
    AND abs(ahead_ms - ?2) > ${STEP_MS} LIMIT 1`
/** How often a process whose wall clock differs asks whether the others' do as well. */
const DISPUTE_MS = 5000

/**
 * Everything that would end because file time moves forward; ?1 is by how much, ?2 the time before.
 * The duration of a lease that has ended already does not change. A test compares this list with
 * the columns of the schema.
 */
export const EXTEND_LEASES: readonly string[] = [
  `UPDATE pawl_jobs SET lease_until = lease_until + ?1
    WHERE lane = ${LANES.held} AND lease_until > ?2`,
  'UPDATE pawl_runs SET lease_until = lease_until + ?1 WHERE lease_until > ?2',
  'UPDATE pawl_duties SET lease_until = lease_until + ?1 WHERE lease_until > ?2',
  `UPDATE pawl_outbox SET run_at = run_at + ?1
   WHERE state = 'pending' AND claim IS NOT NULL AND run_at > ?2`,
  `UPDATE pawl_workers SET seen_at = seen_at + ?1, ahead_ms = ahead_ms + ?1
   WHERE ?2 IS NOT NULL`,
]

interface BaseRow {
  readonly number: number
  readonly at: number
  readonly boot: string
  readonly offset_ms: number
  readonly elapsed_ms: number
  readonly suspended_ms: number | null
  readonly behind_ms: number
  readonly reason: string
  readonly moved_ms: number
}

interface State {
  readonly number: number
  readonly base: TimeBase
  /** When the base was recorded, by file time. */
  readonly at: number
  /** What is added to the monotonic clock of this process. */
  readonly correctionMs: number
  /** Wall time less the monotonic clock when this process looked last. */
  readonly leadMs: number
  /** When it last compared its wall clock with those of others, by the monotonic clock. */
  readonly comparedMs: number
}

export type OnTimeChange = (change: TimeChange) => void

/** How often a process that only reads looks for a newer base. */
const REFRESH_MS = 100

/** The time of a file, as one connection of a process sees it. */
export class FileClock implements Clock {
  readonly #clock: Clock
  readonly #host: HostTime | undefined
  readonly #onChange: OnTimeChange
  readonly #mayChange: boolean
  #isOpen = false
  #state: State | undefined
  /** What the open transaction has recorded or compared; others see it when it is committed. */
  #pending: State | undefined
  #untold: TimeChange[] = []
  #latest = Number.NEGATIVE_INFINITY
  #refreshedAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, onChange: OnTimeChange, mayChange = true) {
    this.#clock = clock
    this.#host = clock.host
    this.#onChange = onChange
    this.#mayChange = mayChange
  }

  /**
   * The time of the file, by the last durable base that this process saw. A base that a transaction
   * has recorded does not count before its commit: after a rollback, time would have run back.
   */
  now(): number {
    if (this.#host === undefined) return this.#clock.now()
    const state = this.#state
    if (state === undefined) return Math.floor(this.#host.wall())
    const now = fileTimeAt(state.base, this.#host.elapsed() + state.correctionMs)
    this.#latest = Math.max(this.#latest, now)
    return this.#latest
  }

  /** The time for what the open transaction writes. */
  nowInside(): number {
    const state = this.#pending
    if (this.#host === undefined || state === undefined) return this.now()
    if (state.number === this.#state?.number) return this.now()
    return fileTimeAt(state.base, this.#host.elapsed() + state.correctionMs)
  }

  /** By how much that time is ahead of the wall clock of this process. */
  aheadInside(): number | undefined {
    const host = this.#host
    if (host === undefined || (this.#pending ?? this.#state) === undefined) return undefined
    return this.nowInside() - Math.floor(host.wall())
  }

  /** Adopts the file's base or makes one; the tables must exist, the write lock must be held. */
  open(connection: Connection): number {
    this.#isOpen = true
    return this.begin(connection)
  }

  /** The time of a transaction that has begun; may record a new base in it. */
  begin(connection: Connection): number {
    const host = this.#host
    if (host === undefined || !this.#isOpen) return this.now()
    const known = this.#pending ?? this.#state
    const newest = readNewest(connection)
    // Without its table the file has no time base; the doctor must get in and restore it.
    if (newest === 'no-table') return this.now()
    const isKnown = known !== undefined && known.number === newest
    const row = isKnown ? undefined : readBase(connection, newest)
    const adopted = isKnown ? known : row && this.#adopt(host, row)
    // A base that others have recorded is durable. Before the first one, nothing is followed yet.
    if (known !== undefined && !isKnown && adopted !== undefined) this.#use(adopted)
    if (adopted === undefined && row !== undefined && !isSound(row)) {
      this.#recordAgain(connection, host, row.number)
    } else if (adopted === undefined) this.#recordFirst(connection, host, row, 'boot')
    else if (this.#mayChange) this.#follow(connection, host, known, adopted)
    else this.#use(adopted)
    return this.nowInside()
  }

  /** What `begin` has recorded is durable. */
  committed(): void {
    if (this.#pending !== undefined) this.#use(this.#pending)
    this.#pending = undefined
    if (this.#untold.length === 0) return
    for (const change of this.#untold.splice(0)) this.#onChange(change)
  }

  /** What `begin` has recorded is undone, and will be done again. */
  rolledBack(): void {
    this.#pending = undefined
    this.#untold = []
  }

  /** Adopts a newer base without a write transaction; records nothing. */
  refresh(connection: Connection): void {
    const host = this.#host
    if (host === undefined || !this.#isOpen || this.#pending !== undefined) return
    const elapsed = host.elapsed()
    if (elapsed - this.#refreshedAt < REFRESH_MS) return
    this.#refreshedAt = elapsed
    const newest = readNewest(connection)
    if (newest === 'no-table' || newest === this.#state?.number) return
    const row = readBase(connection, newest)
    this.#use((row && this.#adopt(host, row)) ?? this.#state)
  }

  /** How the time of the file and the wall clock of this process differ. */
  status(): TimeStatus | undefined {
    const host = this.#host
    const state = this.#state
    if (host === undefined || state === undefined) return undefined
    const { base, correctionMs, at } = state
    const aheadMs = this.now() - Math.floor(host.wall())
    const leftMs = Math.round(leftToLose(base, host.elapsed() + correctionMs))
    return { aheadMs, leftMs, last: { reason: base.reason, movedMs: base.movedMs, at } }
  }

  /** The state with the base of a row; nothing if the row is damaged or of another boot. */
  #adopt(host: HostTime, row: BaseRow): State | undefined {
    if (!isSound(row)) return undefined
    const base = toBase(row)
    const measuredMs = correctionFor(base, host.suspended(), this.#state?.correctionMs ?? 0)
    const correctionMs = isBelievable(base, host, measuredMs) ? measuredMs : 0
    const elapsedMs = host.elapsed() + correctionMs
    if (!isOfBoot(base, host.boot, elapsedMs)) return undefined
    const leadMs = host.wall() - elapsedMs
    return { number: row.number, base, at: row.at, correctionMs, leadMs, comparedMs: elapsedMs }
  }

  #recordFirst(
    connection: Connection,
    host: HostTime,
    row: BaseRow | undefined,
    why: 'boot' | 'repaired',
    number = (row?.number ?? 0) + 1,
  ): void {
    const reading = readingOf(host, 0)
    const reason = row === undefined && why === 'boot' ? 'first' : why
    // The time of the last base counts as well: heartbeats and reports write no facts.
    const lastMs = lastFactAt(connection, reading.wallMs, row?.at)
    const base = firstBase(host.boot, reading, lastMs, reason)
    this.#record(connection, base, number, 0, reading)
  }

  /** Records a base in place of a damaged one: by the one before it, or else by wall time. */
  #recordAgain(connection: Connection, host: HostTime, damaged: number): void {
    const numbers = connection.all<{ number: number }>(SELECT_EARLIER, damaged)
    const rows = numbers.flatMap(({ number }) => readBase(connection, number) ?? [])
    const row = rows.find(isSound)
    const state = row && this.#adopt(host, row)
    if (state !== undefined) {
      const reading = readingOf(host, state.correctionMs)
      const base = { ...afterSuspension(state.base, reading), reason: 'repaired' } as const
      const lastMs = lastFactAt(connection, reading.wallMs, state.at) ?? 0
      if (fileTimeAt(base, reading.elapsedMs) >= lastMs) {
        this.#record(connection, base, damaged + 1, state.correctionMs, reading)
        return
      }
    }
    this.#recordFirst(connection, host, row, 'repaired', damaged + 1)
  }

  /** Records a new base if this process must; `known` is what it saw last. */
  #follow(connection: Connection, host: HostTime, known: State | undefined, state: State): void {
    const reading = readingOf(host, state.correctionMs)
    const { elapsedMs } = reading
    const leadMs = reading.wallMs - elapsedMs
    const { base, number, correctionMs } = state
    const hasStepped = known === state && Math.abs(leadMs - state.leadMs) > STEP_MS
    const isFirst = known === undefined
    const mustCompare =
      isDisputed(base, reading) && (isFirst || elapsedMs - state.comparedMs > DISPUTE_MS)
    const mayFollow = hasStepped || (mustCompare && !hasOtherWall(connection, base, reading))
    const followed = mayFollow ? followWall(base, reading) : undefined
    const next = followed ?? (hasSlept(base, reading) ? afterSuspension(base, reading) : base)
    if (next !== base) {
      this.#record(connection, next, number + 1, correctionMs, reading)
      return
    }
    if (mustCompare && isFirst) {
      const aheadMs = aheadOfWall(base, reading)
      this.#untold.push({ reason: 'disputed', movedMs: 0, aheadMs })
    }
    const comparedMs = mustCompare ? elapsedMs : state.comparedMs
    if (known !== state || hasStepped || mustCompare) {
      this.#pending = { ...state, leadMs, comparedMs }
    }
  }

  #record(
    connection: Connection,
    base: TimeBase,
    number: number,
    correctionMs: number,
    reading: HostReading,
  ): void {
    const at = fileTimeAt(base, reading.elapsedMs)
    const { boot, offsetMs, elapsedMs, suspendedMs, behindMs, reason, movedMs } = base
    const values = [boot, offsetMs, elapsedMs, suspendedMs, behindMs, reason, movedMs]
    connection.run(INSERT_BASE, number, at, ...values)
    connection.run(DELETE_OLD, number - ROWS_MAX)
    if (movedMs > 0) {
      for (const sql of EXTEND_LEASES) connection.run(sql, movedMs, at - movedMs)
    }
    const leadMs = reading.wallMs - reading.elapsedMs
    this.#pending = { number, base, at, correctionMs, leadMs, comparedMs: elapsedMs }
    if (reason !== 'first') {
      this.#untold.push({ reason, movedMs, aheadMs: at - reading.wallMs })
    }
  }

  /**
   * What this process said by an older base does not count any more. While it did not look, others
   * may have made file time slower; if it kept to what it said, it would be ahead of them.
   */
  #use(state: State | undefined): void {
    if (state?.number !== this.#state?.number) this.#latest = Number.NEGATIVE_INFINITY
    this.#state = state
  }
}

/** A process that was stopped between two readings would see a step of its wall clock. */
const READING_MS = 20

function readingOf(host: HostTime, correctionMs: number): HostReading {
  const suspended = host.suspended()
  const beforeMs = host.elapsed()
  let wallMs = host.wall()
  let elapsedMs = host.elapsed()
  if (elapsedMs - beforeMs > READING_MS) {
    wallMs = host.wall()
    elapsedMs = host.elapsed()
  }
  const suspendedMs = suspended === null ? null : suspended - correctionMs
  return { wallMs: Math.floor(wallMs), elapsedMs: elapsedMs + correctionMs, suspendedMs }
}

function hasOtherWall(connection: Connection, base: TimeBase, reading: HostReading): boolean {
  const now = fileTimeAt(base, reading.elapsedMs)
  return connection.get(SELECT_OTHER_WALL, now, aheadOfWall(base, reading)) !== undefined
}

/** Whether the machine was suspended since the base was recorded. */
function hasSlept(base: TimeBase, { suspendedMs }: HostReading): boolean {
  if (base.suspendedMs === null || suspendedMs === null) return false
  return suspendedMs - base.suspendedMs > UPTIME_SLACK_MS
}

/** The number of the newest base; null if there is none. */
function readNewest(connection: Connection): number | null | 'no-table' {
  try {
    return connection.get<{ number: number | null }>(SELECT_NEWEST)?.number ?? null
  } catch (error) {
    if (/no such (table|column)/.test(messageOf(error))) return 'no-table'
    throw error
  }
}

/** A row that cannot be read has no values that a base could have. */
function readBase(connection: Connection, number: number | null): BaseRow | undefined {
  if (number === null) return undefined
  try {
    return connection.get<BaseRow>(SELECT_BASE, number)
  } catch (error) {
    if (!/too large/.test(messageOf(error))) throw error
    return { ...UNREADABLE, number }
  }
}

const UNREADABLE: Omit<BaseRow, 'number'> = {
  at: Number.NaN,
  boot: '',
  offset_ms: Number.NaN,
  elapsed_ms: Number.NaN,
  suspended_ms: null,
  behind_ms: Number.NaN,
  reason: '',
  moved_ms: Number.NaN,
}

/**
 * Whether Pawl can have written a row. The time at which it was written follows from two other
 * columns, so a change of any of the three shows.
 */
function isSound({ at, offset_ms, elapsed_ms, behind_ms, moved_ms, reason }: BaseRow): boolean {
  if (![at, offset_ms, behind_ms, moved_ms].every(Number.isSafeInteger)) return false
  const isCount = at >= 0 && behind_ms >= 0 && moved_ms >= 0
  return isCount && at === Math.floor(elapsed_ms + offset_ms) && isTimeBaseReason(reason)
}

/** Beyond this, file time that is ahead of wall time needs a second witness. */
const BELIEVED_MS = 24 * 60 * 60 * 1000

/** A correction of the monotonic clock by which alone file time would be far in the future. */
function isBelievable(base: TimeBase, host: HostTime, correctionMs: number): boolean {
  if (correctionMs <= BELIEVED_MS) return true
  const aheadMs = fileTimeAt(base, host.elapsed() + correctionMs) - host.wall()
  return aheadMs <= BELIEVED_MS || aheadMs - correctionMs > BELIEVED_MS
}

/**
 * The time of the last fact, or of the last base if that is later. A fact that is far ahead of wall
 * time counts only if another one, or the base, is near it: `at` may be damaged in one of them.
 */
function lastFactAt(
  connection: Connection,
  wallMs: number,
  baseMs: number | undefined,
): number | undefined {
  const facts = connection.all<{ at: number }>(SELECT_LAST).map(({ at }) => at)
  const times = [...facts, ...(baseMs === undefined ? [] : [baseMs])].sort((a, b) => b - a)
  const isNear = (at: number) => times.filter((other) => at - other <= BELIEVED_MS).length > 1
  return times.find((at) => at <= wallMs + BELIEVED_MS || times.length === 1 || isNear(at))
}

function toBase(row: BaseRow): TimeBase {
  return {
    boot: row.boot,
    offsetMs: row.offset_ms,
    elapsedMs: row.elapsed_ms,
    suspendedMs: row.suspended_ms,
    behindMs: row.behind_ms,
    reason: row.reason as TimeBase['reason'],
    movedMs: row.moved_ms,
  }
}
