/**
 * The files of this machine. No operation follows a link at the last part of its path; whoever
 * calls checks the folders above it.
 *
 * What is short is done in the calling thread, because the way to the pool and back takes longer:
 * see docs/decisions/0011-logs-are-written-in-this-thread.md.
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
 * On Linux a file can be told that each write is to be durable when it returns, which spares a call
 * for the sync. Elsewhere that promises less than a sync does, or nothing.
 */
const DURABLE_WRITES = process.platform === 'linux' ? constants.O_DSYNC : 0

/** A pipe in the place of a file must not keep whoever opens it waiting for ever. */
const FLAGS: Readonly<Record<FileMode, number>> = {
  read: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
  append: O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | DURABLE_WRITES,
  create: O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW,
}

/** Whoever owns the process may read and write; others may not. */
const FILE_RIGHTS = 0o600
const FOLDER_RIGHTS = 0o700

/** More than this is read and written without stopping the event loop. */
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
  /** Below zero once it is closed: the system gives numbers again, to other files. */
  #fd: number
  /** Whether what was written is durable without a sync. */
  readonly #isDurable: boolean
  /** What the pool does with the number; it is given back only after that. */
  readonly #pending = new Set<Promise<unknown>>()

  constructor(fd: number, isDurable: boolean) {
    this.#fd = fd
    this.#isDurable = isDurable
  }

  async append(bytes: Uint8Array): Promise<void> {
    let done = 0
    // A write may take less than it was given, for example when the disk is nearly full.
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

/** Windows cannot open a folder: there it is known by its number alone. */
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
    // Something above it is no folder any more, or may not be entered.
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

/** What was asked for, or nothing where it fails with this code. */
async function unless<T>(code: string, asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === code) return undefined
    throw error
  }
}
