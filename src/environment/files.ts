/**
 * The file system of this machine. No operation follows a link at the last part of its path.
 * Callers check the folders above it.
 *
 * Short operations run in the calling thread, because the thread pool adds more time than they
 * take: see docs/decisions/0011-logs-are-written-in-this-thread.md.
 */
import * as fs from 'node:fs'
import * as inPool from 'node:fs/promises'
import { promisify } from 'node:util'
import type { FileHandle, FileInfo, FileMode, FileSystem, FolderHandle } from '../core/ports.ts'

const { constants } = fs
const {
  O_APPEND,
  O_CREAT,
  O_DIRECTORY = 0,
  O_EXCL,
  O_NOFOLLOW = 0,
  O_RDONLY,
  O_RDWR,
  O_NONBLOCK = 0,
} = constants

/**
 * On Linux a file can be opened so that each write is durable when it returns. That saves the call
 * to sync. On other platforms the flag promises less than a sync.
 */
const DURABLE_WRITES = process.platform === 'linux' ? constants.O_DSYNC : 0

/** O_NONBLOCK: if a pipe has the name of the file, opening it must not block. */
const FLAGS: Readonly<Record<FileMode, number>> = {
  read: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
  append: O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | DURABLE_WRITES,
  create: O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW,
}

/** Only the owner of the process may read and write. */
const FILE_RIGHTS = 0o600
const FOLDER_RIGHTS = 0o700

/** Larger reads and writes use the thread pool, so that they do not block the event loop. */
const BLOCKING_BYTES_MAX = 256 * 1024

/** The file system of a real process. */
export const systemFiles: FileSystem = {
  open,
  async info(path) {
    const stats = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return stats && infoOf(stats)
  },
  async list(path) {
    return ((await unless('ENOENT', inPool.readdir(path))) ?? []).sort()
  },
  async createFolder(path) {
    const made = await unless(
      'EEXIST',
      inPool.mkdir(path, FOLDER_RIGHTS).then(() => true),
    )
    return made ?? false
  },
  async openFolder(path) {
    const seen = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return seen && new SystemFolder(path, seen)
  },
  rename: inPool.rename,
  async remove(path) {
    await unless('ENOENT', inPool.unlink(path))
  },
  async syncFolder(path) {
    // Windows cannot open a folder, and keeps its entries in its own log.
    if (process.platform === 'win32') return
    const handle = await inPool.open(path, O_RDONLY | O_NOFOLLOW)
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  },
}

async function open(path: string, mode: 'append' | 'create'): Promise<FileHandle>
async function open(path: string, mode: FileMode): Promise<FileHandle | undefined>
async function open(path: string, mode: FileMode): Promise<FileHandle | undefined> {
  const isDurable = mode === 'append' && DURABLE_WRITES !== 0
  const opened = async () => new SystemFile(fs.openSync(path, FLAGS[mode], FILE_RIGHTS), isDurable)
  return mode === 'read' ? unless('ENOENT', opened()) : opened()
}

const pooled = {
  read: promisify(fs.read),
  write: promisify(fs.write),
  truncate: promisify(fs.ftruncate),
  sync: promisify(fs.fsync),
}

class SystemFile implements FileHandle {
  /** Negative after closing: the system reuses descriptors for other files. */
  #fd: number
  /** Whether written bytes are durable without a sync. */
  readonly #isDurable: boolean
  /** Operations of the thread pool on the descriptor. It is closed only after they have ended. */
  readonly #pending = new Set<Promise<unknown>>()

  constructor(fd: number, isDurable: boolean) {
    this.#fd = fd
    this.#isDurable = isDurable
  }

  async append(bytes: Uint8Array): Promise<void> {
    let done = 0
    // A write may be partial, for example if the disk is nearly full.
    while (done < bytes.length) {
      const writing = pooled.write(this.#fd, bytes, done, bytes.length - done)
      done += (await this.#inPool(writing)).bytesWritten
    }
  }

  async appendDurably(bytes: Uint8Array): Promise<void> {
    if (bytes.length > BLOCKING_BYTES_MAX) {
      await this.append(bytes)
      return this.sync()
    }
    for (let done = 0; done < bytes.length; ) {
      done += fs.writeSync(this.#fd, bytes, done, bytes.length - done)
    }
    if (!this.#isDurable) fs.fsyncSync(this.#fd)
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const bytes = Buffer.allocUnsafeSlow(length)
    for (let done = 0; done < length; ) {
      const read = await this.#readInto(bytes, done, offset)
      if (read === 0) return bytes.subarray(0, done)
      done += read
    }
    return bytes
  }

  async info(): Promise<FileInfo> {
    return infoOf(fs.fstatSync(this.#fd, { bigint: true }))
  }

  truncate(length: number): Promise<void> {
    return this.#inPool(pooled.truncate(this.#fd, length))
  }

  sync(): Promise<void> {
    return this.#inPool(pooled.sync(this.#fd))
  }

  async close(): Promise<void> {
    const fd = this.#fd
    this.#fd = -1
    await Promise.allSettled(this.#pending)
    if (fd >= 0) fs.closeSync(fd)
  }

  async #inPool<T>(work: Promise<T>): Promise<T> {
    this.#pending.add(work)
    try {
      return await work
    } finally {
      this.#pending.delete(work)
    }
  }

  #readInto(bytes: Buffer, done: number, offset: number): number | Promise<number> {
    const left = bytes.length - done
    if (left <= BLOCKING_BYTES_MAX) return fs.readSync(this.#fd, bytes, done, left, offset + done)
    const reading = this.#inPool(pooled.read(this.#fd, bytes, done, left, offset + done))
    return reading.then(({ bytesRead }) => bytesRead)
  }
}

/** Windows cannot open a folder. There it is identified by its inode number alone. */
class SystemFolder implements FolderHandle {
  readonly path: string
  readonly #own: fs.BigIntStats
  #fd: number

  constructor(path: string, seen: fs.BigIntStats) {
    const canOpen = process.platform !== 'win32'
    this.#fd = canOpen ? fs.openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) : -1
    this.#own = canOpen ? fs.fstatSync(this.#fd, { bigint: true }) : seen
    // With the dot, the last part of the path is the folder itself and not the link to it.
    const through = `/proc/self/fd/${this.#fd}/.`
    const there = canOpen ? lookAt(through) : undefined
    this.path = there !== undefined && isSameFolder(there, this.#own) ? through : path
  }

  async isAt(path: string): Promise<boolean> {
    const there = lookAt(path)
    return there !== undefined && isSameFolder(there, this.#own)
  }

  async close(): Promise<void> {
    const fd = this.#fd
    this.#fd = -1
    if (fd >= 0) fs.closeSync(fd)
  }
}

function lookAt(path: string): fs.BigIntStats | undefined {
  try {
    return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    // A part of the path is no longer a folder, or may not be entered.
    return undefined
  }
}

function isSameFolder(a: fs.BigIntStats, b: fs.BigIntStats): boolean {
  return a.isDirectory() && a.dev === b.dev && a.ino === b.ino
}

function infoOf(stats: fs.BigIntStats): FileInfo {
  return {
    size: Number(stats.size),
    kind: kindOf(stats),
    modifiedAtMs: Number(stats.mtimeMs),
    modified: String(stats.mtimeNs),
    inode: String(stats.ino),
  }
}

function kindOf(stats: fs.BigIntStats): FileInfo['kind'] {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'folder'
  return stats.isSymbolicLink() ? 'link' : 'other'
}

/** Returns the result of `asked`; `undefined` if it fails with this code. */
async function unless<T>(code: string, asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === code) return undefined
    throw error
  }
}
