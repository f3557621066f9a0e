/**
 * Room on the disk of a file. SQLite writes to the write-ahead log first and back into the file
 * later, by default when the log has 1000 pages. On a disk that is nearly full that is too late:
 * the log takes the last room, and writing back needs room for pages that are new to the file. So
 *
 *   before the disk is full   the log is written back and emptied as soon as less than twice its
 *                             size is free; the file can grow by no more than the log is long
 *   when the disk is full     no transaction begins until the log could be written back: it would
 *                             use up the room that was freed
 *
 * A reader that needs the log prevents it from being emptied. Then transactions go on.
 */
import { statfsSync, statSync } from 'node:fs'
import type { Clock } from '../../core/ports.ts'
import { StoreFull } from '../errors.ts'
import type { Connection } from './connect.ts'

/** After how many transactions the room is looked at; a transaction of one job has 30 kB of log. */
const LOOK_EVERY = 16
/** How often it is tried whether a full disk has room again. */
const TRY_EVERY_MS = 100

/** The room on the disk of one connection. */
export class DiskRoom {
  readonly #connection: Connection
  readonly #clock: Clock
  #path: string | undefined
  /** The disk was full, and the log has not been written back since. */
  #full: StoreFull | undefined
  #triedAt = 0
  #transactions = 0

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection
    this.#clock = clock
  }

  /** Looks at the disk of this file from now on. */
  watch(path: string): void {
    this.#path = path
  }

  /** A transaction has committed: keeps the log short if the disk is nearly full. */
  look(): void {
    this.#transactions++
    if (this.#path === undefined || this.#transactions % LOOK_EVERY !== 0) return
    if (isNearlyFull(this.#path)) this.#emptyLog()
  }

  /** Throws `StoreFull` while the log cannot be written back; looks now and then if it can. */
  assert(): void {
    if (this.#full === undefined) return
    if (Math.abs(this.#clock.now() - this.#triedAt) >= TRY_EVERY_MS) this.#emptyLog()
    if (this.#full !== undefined) throw this.#full
  }

  /** Makes room if an error says that there is none. Returns whether to try once more. */
  make(error: unknown): boolean {
    // What `assert` has thrown was tried a moment ago.
    if (!(error instanceof StoreFull) || error === this.#full) return false
    this.#full = error
    return this.#emptyLog()
  }

  /** Returns whether the log is empty now. */
  #emptyLog(): boolean {
    this.#triedAt = this.#clock.now()
    try {
      const row = this.#connection.get<{ busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)')
      this.#full = undefined
      return row?.busy === 0
    } catch {
      return false
    }
  }
}

/** Whether less than twice the size of the log is free. Opens neither file. */
function isNearlyFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path)
    const { size } = statSync(`${path}-wal`)
    return bavail * bsize < 2 * size
  } catch {
    return false
  }
}
