/**
 * The files of this machine. No operation follows a link at the last part of its path; whoever
 * calls checks the folders above it.
 */
import { type BigIntStats, constants, fsyncSync, writeSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import type { FileHandle, FileInfo, FileMode, FileSystem } from '../core/ports.ts'

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_RDONLY, O_RDWR, O_NONBLOCK = 0 } = constants

/** A pipe in the place of a file must not keep whoever opens it waiting for ever. */
const FLAGS: Readonly<Record<FileMode, number>> = {
  read: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
  append: O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK,
  create: O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW,
}

/** Whoever owns the process may read and write; others may not. */
const FILE_RIGHTS = 0o600
const FOLDER_RIGHTS = 0o700

/** More than this is written without stopping the event loop. */
const BLOCKING_BYTES_MAX = 256 * 1024

/** The file system of a real process. */
export const systemFiles: FileSystem = {
  open,
  async info(path) {
    const stats = await unless('ENOENT', fs.lstat(path, { bigint: true }))
    return stats && infoOf(stats)
  },
  async list(path) {
    return ((await unless('ENOENT', fs.readdir(path))) ?? []).sort()
  },
  async createFolder(path) {
    const made = await unless(
      'EEXIST',
      fs.mkdir(path, FOLDER_RIGHTS).then(() => true),
    )
    return made ?? false
  },
  rename: fs.rename,
  async remove(path) {
    await unless('ENOENT', fs.unlink(path))
  },
  async syncFolder(path) {
    // Windows cannot open a folder, and keeps its entries in its own log.
    if (process.platform === 'win32') return
    const handle = await fs.open(path, O_RDONLY | O_NOFOLLOW)
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
  const opening = fs.open(path, FLAGS[mode], FILE_RIGHTS)
  const handle = mode === 'read' ? await unless('ENOENT', opening) : await opening
  return handle && new SystemFile(handle)
}

class SystemFile implements FileHandle {
  readonly #handle: fs.FileHandle

  constructor(handle: fs.FileHandle) {
    this.#handle = handle
  }

  async append(bytes: Uint8Array): Promise<void> {
    let done = 0
    // A write may take less than it was given, for example when the disk is nearly full.
    while (done < bytes.length) {
      const { bytesWritten } = await this.#handle.write(bytes, done, bytes.length - done)
      done += bytesWritten
    }
  }

  /** In this thread: see docs/decisions/0011-logs-are-written-in-this-thread.md. */
  async appendDurably(bytes: Uint8Array): Promise<void> {
    if (bytes.length > BLOCKING_BYTES_MAX) {
      await this.append(bytes)
      return this.sync()
    }
    const { fd } = this.#handle
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(fd, bytes, done, bytes.length - done)
    }
    fsyncSync(fd)
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const bytes = Buffer.allocUnsafeSlow(length)
    let done = 0
    while (done < length) {
      const { bytesRead } = await this.#handle.read(bytes, done, length - done, offset + done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    return bytes.subarray(0, done)
  }

  async info(): Promise<FileInfo> {
    return infoOf(await this.#handle.stat({ bigint: true }))
  }

  truncate(length: number): Promise<void> {
    return this.#handle.truncate(length)
  }

  sync(): Promise<void> {
    return this.#handle.sync()
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

function infoOf(stats: BigIntStats): FileInfo {
  return {
    size: Number(stats.size),
    kind: kindOf(stats),
    modifiedAtMs: Number(stats.mtimeMs),
    modified: String(stats.mtimeNs),
    inode: String(stats.ino),
  }
}

function kindOf(stats: BigIntStats): FileInfo['kind'] {
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
