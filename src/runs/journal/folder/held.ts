/**
 * The open folder of a held run. It is opened once, and all files in it are reached through the
 * open handle: on Linux by `/proc/self/fd/<n>`, which leads to the same folder even if another
 * folder has its name now. So a link in the place of the folder cannot make the holder write
 * elsewhere.
 *
 * Before each write, the name is compared with the handle by device and inode. If they differ, the
 * write throws `PathRefused`. The folder of artifacts is held in the same way.
 *
 * On systems without `/proc` only the comparison protects: a swap between the comparison and the
 * write is detected at the next write.
 */
import type { FileSystem, FolderHandle } from '../../../core/ports.ts'
import { PathRefused } from '../errors.ts'
import type { Disk } from './disk.ts'

/** A disk with the open folder of one run. */
export interface HeldDisk extends Disk {
  readonly held: HeldFolder
}

const MOVED = 'was moved, removed or replaced while the run was held'

export class HeldFolder {
  /** The path of the folder, for messages and for the comparison. */
  readonly name: string
  /** The path through the open handle. */
  readonly path: string
  readonly #files: FileSystem
  readonly #handle: FolderHandle
  readonly #inner = new Map<string, FolderHandle>()

  private constructor(files: FileSystem, name: string, handle: FolderHandle) {
    this.#files = files
    this.name = name
    this.path = handle.path
    this.#handle = handle
  }

  /** Opens a folder. Returns `undefined` if it does not exist. Throws `PathRefused` for a link. */
  static async open(
    files: FileSystem,
    above: string,
    name: string,
  ): Promise<HeldFolder | undefined> {
    const own = `${above}/${name}`
    const parent = await openFolder(files, above, above)
    try {
      const handle = parent && (await openFolder(files, `${parent.path}/${name}`, own))
      return handle && new HeldFolder(files, own, handle)
    } finally {
      await parent?.close()
    }
  }

  /** Throws `PathRefused` if this folder, or an inner one, was moved or replaced. */
  async assertInPlace(): Promise<void> {
    if (!(await this.#handle.isAt(this.name))) throw new PathRefused(this.name, MOVED)
    for (const [name, handle] of this.#inner) {
      if (await handle.isAt(`${this.path}/${name}`)) continue
      throw new PathRefused(`${this.name}/${name}`, MOVED)
    }
  }

  /** Opens a folder in this one and returns its path, or `undefined` if it does not exist. */
  async inner(name: string): Promise<string | undefined> {
    const known = this.#inner.get(name)
    if (known !== undefined) return known.path
    const handle = await openFolder(this.#files, `${this.path}/${name}`, `${this.name}/${name}`)
    // Another call may have opened it meanwhile.
    const first = this.#inner.get(name)
    if (first === undefined && handle !== undefined) this.#inner.set(name, handle)
    else await handle?.close()
    return (first ?? handle)?.path
  }

  /** Returns a path below the handle as a path below `name`, for messages. */
  shown(path: string): string {
    for (const [name, handle] of this.#inner) {
      if (path.startsWith(handle.path))
        return `${this.name}/${name}${path.slice(handle.path.length)}`
    }
    return path.startsWith(this.path) ? `${this.name}${path.slice(this.path.length)}` : path
  }

  async close(): Promise<void> {
    for (const handle of this.#inner.values()) await handle.close()
    this.#inner.clear()
    await this.#handle.close()
  }
}

/** Runs a function with an open folder. Returns `undefined` if the folder does not exist. */
export async function withHeld<T>(
  disk: Disk,
  name: string,
  act: (disk: HeldDisk) => Promise<T>,
): Promise<T | undefined> {
  const held = await HeldFolder.open(disk.files, disk.root, name)
  if (held === undefined) return undefined
  try {
    return await act({ ...disk, held })
  } finally {
    await held.close()
  }
}

async function openFolder(
  files: FileSystem,
  path: string,
  shown: string,
): Promise<FolderHandle | undefined> {
  const info = await files.info(path)
  if (info !== undefined && info.kind !== 'folder') throw PathRefused.kind(shown, info, 'folder')
  try {
    return await files.openFolder(path)
  } catch (error) {
    // The folder was replaced between the check and the opening.
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    if (code === 'ENOTDIR' || code === 'ELOOP') throw PathRefused.kind(shown, LINK, 'folder')
    throw error
  }
}

const LINK = { kind: 'link' } as const
