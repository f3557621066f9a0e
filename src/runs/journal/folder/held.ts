/**
 * The folder of a run that is held. It is opened once, and every file in it is then reached through
 * that opening: on Linux by `/proc/self/fd/<n>`, which leads to the same folder even if its name
 * leads elsewhere by now. So whoever puts a link in the place of the folder while the run is held
 * cannot make the holder write to another folder, at whatever moment it happens.
 *
 * Before each write the name is compared with the opening, by device and inode. If they differ, the
 * write is refused with `PathRefused`. The folder of artifacts is held in the same way.
 *
 * A system without `/proc` has the comparison alone: a swap between it and the write that follows
 * goes unnoticed until the next write.
 */
import type { FileSystem, FolderHandle } from '../../../core/ports.ts'
import { PathRefused } from '../errors.ts'
import type { Disk } from './disk.ts'

/** A disk on which the folder of one run is held. */
export interface HeldDisk extends Disk {
  readonly held: HeldFolder
}

const MOVED = 'was moved, removed or replaced while the run was held'

/** An open folder, its folder of artifacts, and the names under which both must be found. */
export class HeldFolder {
  /** The name of the folder, for people and for the comparison. */
  readonly name: string
  /** By this path its files are reached. */
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

  /** Holds a folder below another; nothing if there is none. What is no folder is refused. */
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

  /** Throws `PathRefused` if the folder, or one in it that is held, is no longer in its place. */
  async assertInPlace(): Promise<void> {
    if (!(await this.#handle.isAt(this.name))) throw new PathRefused(this.name, MOVED)
    for (const [name, handle] of this.#inner) {
      if (await handle.isAt(`${this.path}/${name}`)) continue
      throw new PathRefused(`${this.name}/${name}`, MOVED)
    }
  }

  /** The path of a folder in this one, held from now on; nothing if there is none. */
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

  /** A path below the folder, by the name that people know. */
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

/** Does something in a folder below another that is held for as long; nothing if there is none. */
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
    // Between the look and the opening, something else has taken its place.
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    if (code === 'ENOTDIR' || code === 'ELOOP') throw PathRefused.kind(shown, LINK, 'folder')
    throw error
  }
}

const LINK = { kind: 'link' } as const
