/**
 * Archives of retention as files. Each process appends to a file of its own, whose name begins with
 * the time at which it was made:
 *
 *   2026-11-17T22-30-00-000Z-1b4e28ba-2fa1-4e0d-9d0a-0c5f0a3a1f11.ndjson
 *
 * What `archive` was called with is on the disk when it returns. After a failed write the next call
 * starts another file, so that at most the last line of a file is not whole; its job was not
 * removed. `pawl audit verify --archive` reads the files in any order.
 */
import { randomUUID } from 'node:crypto'
import { dirname, join, resolve } from 'node:path'
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, unchecked } from '../../core/fields.ts'
import { shown } from '../../core/format.ts'
import type { FileHandle, FileSystem } from '../../core/ports.ts'
import { systemFiles } from '../../environment/files.ts'

/** Where archives are written. */
export interface FolderArchiveOptions {
  /**
   * The size in bytes after which the next file is started.
   * @defaultValue 64 MiB
   */
  readonly bytesMax?: number
  /** The file system; tests replace it. @internal */
  readonly files?: FileSystem
}

const BYTES_MAX = 64 * 1024 * 1024
const FOLDERS_MAX = 64

/**
 * Makes an archive for the option `retention` that writes NDJSON files to a folder. The folder is
 * created if needed; only the owner of the process can read the files.
 */
export function toFolder(
  path: string,
  options: FolderArchiveOptions = {},
): (lines: string) => Promise<void> {
  checkFields(options, { bytesMax: unchecked, files: unchecked }, { what: 'options' })
  if (typeof path !== 'string' || path.trim() === '') {
    throw new CommandInvalid('path', `must be the path of a folder, not ${shown(path)}`)
  }
  const { bytesMax = BYTES_MAX, files = systemFiles } = options
  if (!Number.isSafeInteger(bytesMax) || bytesMax < 1) {
    throw new CommandInvalid('bytesMax', `must be a whole number from 1, not ${shown(bytesMax)}`)
  }
  const folder = new ArchiveFolder(resolve(path), bytesMax, files)
  return (lines) => folder.append(lines)
}

class ArchiveFolder {
  readonly #path: string
  readonly #bytesMax: number
  readonly #files: FileSystem
  #file: { readonly handle: FileHandle; readonly path: string; bytes: number } | undefined
  #last: Promise<void> = Promise.resolve()

  constructor(path: string, bytesMax: number, files: FileSystem) {
    this.#path = path
    this.#bytesMax = bytesMax
    this.#files = files
  }

  /** One call after the other: the lines of a call must be contiguous. */
  append(lines: string): Promise<void> {
    const mine = this.#last.then(() => this.#write(lines))
    this.#last = mine.catch(() => {})
    return mine
  }

  async #write(lines: string): Promise<void> {
    const bytes = Buffer.from(lines)
    const file = await this.#open()
    try {
      await file.handle.append(bytes)
      await file.handle.sync()
    } catch (error) {
      await this.#close()
      throw error
    }
    file.bytes += bytes.length
    if (file.bytes >= this.#bytesMax) await this.#close()
  }

  async #open() {
    // The file may have been moved away, for example to another disk.
    const isThere = this.#file && (await this.#files.info(this.#file.path)) !== undefined
    if (this.#file !== undefined && isThere) return this.#file
    await this.#close()
    await this.#createFolders(this.#path, 0)
    const time = new Date().toISOString().replace(/[:.]/g, '-')
    const path = join(this.#path, `${time}-${randomUUID()}.ndjson`)
    const handle = await this.#files.open(path, 'create')
    this.#file = { handle, path, bytes: 0 }
    await this.#files.syncFolder(this.#path)
    return this.#file
  }

  async #createFolders(path: string, depth: number): Promise<void> {
    if ((await this.#files.info(path)) !== undefined || depth > FOLDERS_MAX) return
    await this.#createFolders(dirname(path), depth + 1)
    await this.#files.createFolder(path)
    await this.#files.syncFolder(dirname(path))
  }

  async #close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.handle.close()
  }
}
