/**
 * Notices when this process has lost SQLite's locks on the file of a store.
 *
 * SQLite locks a file with POSIX advisory locks. They belong to the process, not to a descriptor:
 * when anything in the process closes any descriptor of the file, the kernel releases all locks of
 * the process on it. SQLite works around that for its own descriptors, inside one copy of the
 * library. A second copy (better-sqlite3 beside node:sqlite) or a plain `fs.readFile` of the file
 * does not take part. Afterwards SQLite still believes that it holds the locks: another connection
 * then deletes the write-ahead log, and what is committed to the deleted log is lost.
 *
 * On Linux the locks can be seen. A connection in WAL mode holds two for as long as it is open:
 *
 *   the file        a read lock that ends at byte 1073742335 (SQLite's SHARED lock)
 *   the -shm file   a read lock that ends at byte 128 (the "dead man switch")
 *
 * /proc/self/fdinfo/N lists the locks that were taken through descriptor N. SQLite opens the -shm
 * file once in each copy of the library, so two descriptors of it mean two libraries; and the lock
 * then moves to the later descriptor. The writer looks before and after each COMMIT, so that no
 * write is acknowledged that a deleted log has received. One look takes about 3 µs for each lock.
 *
 * Windows binds locks to handles and has no such fault. On macOS and other systems the locks cannot
 * be seen: there, only `join.ts` refuses handles of another library. The test is
 * `test/stores/sqlite-second-library.test.ts`.
 */
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs'
import { StoreUnsafe } from '../errors.ts'

const DESCRIPTORS = '/proc/self/fd'
const LOCKS = '/proc/self/fdinfo'
/** How the line of each lock ends. */
const SHARED_LOCK = Buffer.from(' 1073742335\n')
const DEAD_MAN_SWITCH = Buffer.from(' 128\n')
/** A few lines: the lock may come after some that a transaction took. */
const BYTES_MAX = 4096

/** One lock, by an open file that lists it. */
class WatchedLock {
  readonly #path: string
  readonly #end: Buffer
  readonly #buffer = Buffer.alloc(BYTES_MAX)
  #list: number

  private constructor(path: string, end: Buffer, list: number) {
    this.#path = path
    this.#end = end
    this.#list = list
  }

  /** Returns `undefined` if no descriptor of this process lists the lock. */
  static find(path: string, end: Buffer, open: readonly Descriptor[]): WatchedLock | undefined {
    const list = openListOf(path, end, open)
    return list === undefined ? undefined : new WatchedLock(path, end, list)
  }

  get isHeld(): boolean {
    const length = readSync(this.#list, this.#buffer, 0, BYTES_MAX, 0)
    return this.#buffer.subarray(0, length).includes(this.#end)
  }

  /** Whether another descriptor of this process has the lock; that one is watched from now on. */
  findAgain(open: readonly Descriptor[]): boolean {
    const list = openListOf(this.#path, this.#end, open)
    if (list === undefined) return false
    closeSync(this.#list)
    this.#list = list
    return true
  }

  close(): void {
    closeSync(this.#list)
  }
}

/** The locks of this process on one file. */
export class FileGuard {
  readonly #path: string
  readonly #shared: WatchedLock
  readonly #switch: WatchedLock
  #unsafe: StoreUnsafe | undefined
  #isClosed = false

  private constructor(path: string, shared: WatchedLock, deadManSwitch: WatchedLock) {
    this.#path = path
    this.#shared = shared
    this.#switch = deadManSwitch
  }

  /**
   * Watches a file on which a connection is open. Returns `undefined` if the system does not show
   * the locks. Throws `StoreUnsafe` if another library has the file open.
   */
  static open(path: string): FileGuard | undefined {
    try {
      const open = descriptors()
      if (openOn(`${path}-shm`, open).length > 1) throw secondLibrary(path)
      const shared = WatchedLock.find(path, SHARED_LOCK, open)
      if (shared === undefined) return undefined
      const deadManSwitch = WatchedLock.find(`${path}-shm`, DEAD_MAN_SWITCH, open)
      if (deadManSwitch !== undefined) return new FileGuard(path, shared, deadManSwitch)
      shared.close()
    } catch (error) {
      if (error instanceof StoreUnsafe) throw error
      // No /proc, or one that must not be read.
    }
    return undefined
  }

  /** Whether the file was found unsafe; that does not change until the process is restarted. */
  get isUnsafe(): boolean {
    return this.#unsafe !== undefined
  }

  /** Throws `StoreUnsafe` if a second library has opened the file. */
  assertAlone(): void {
    if (this.#unsafe !== undefined) throw this.#unsafe
    if (!this.#isClosed && !this.#switch.isHeld) this.#search()
  }

  /** Throws `StoreUnsafe` if a lock of this process on the file is gone. */
  assertLocked(): void {
    this.assertAlone()
    if (!this.#isClosed && !this.#shared.isHeld) this.#search()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#shared.close()
    this.#switch.close()
  }

  /** A lock may move to another descriptor of the same library when connections are closed. */
  #search(): void {
    const open = descriptors()
    const isShared = openOn(`${this.#path}-shm`, open).length > 1
    if (!isShared && this.#shared.findAgain(open) && this.#switch.findAgain(open)) return
    this.#unsafe = isShared ? secondLibrary(this.#path) : locksLost(this.#path)
    throw this.#unsafe
  }
}

const abandoned = new Set<object>()

/**
 * Keeps connections of an unsafe file open until the process ends. Closing the last one, which the
 * garbage collector would do as well, deletes the log that others write to.
 */
export function abandon(...connections: readonly object[]): void {
  for (const connection of connections) abandoned.add(connection)
}

function secondLibrary(path: string): StoreUnsafe {
  return new StoreUnsafe(path, 'a second SQLite library has the file open')
}

function locksLost(path: string): StoreUnsafe {
  const why =
    'its locks are gone, because something other than this SQLite library has closed the file'
  return new StoreUnsafe(path, why)
}

/** A descriptor of this process, and what it is open on. */
type Descriptor = readonly [descriptor: string, path: string]

function descriptors(): Descriptor[] {
  return readdirSync(DESCRIPTORS).flatMap((descriptor): Descriptor[] => {
    try {
      return [[descriptor, readlinkSync(`${DESCRIPTORS}/${descriptor}`)]]
    } catch {
      // It was closed in between.
      return []
    }
  })
}

function openOn(path: string, open: readonly Descriptor[]): Descriptor[] {
  return open.filter(([, own]) => own === path)
}

/** Opens the list of the descriptor through which a lock was taken. */
function openListOf(path: string, end: Buffer, open: readonly Descriptor[]): number | undefined {
  const found = openOn(path, open).find(([descriptor]) =>
    readFileSync(`${LOCKS}/${descriptor}`).includes(end),
  )
  return found === undefined ? undefined : openSync(`${LOCKS}/${found[0]}`, 'r')
}
