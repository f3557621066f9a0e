/** Files outside of runs, as far as runs look at them: they are only ever read. */

import { constants } from 'node:fs'
import { lstat, open, readdir } from 'node:fs/promises'

/** What a file system tells of a file without reading it. */
export interface InputInfo {
  readonly kind: 'file' | 'folder' | 'link' | 'other'
  readonly size: number
  readonly modifiedAtMs: number
  /** In the finest unit that the file system has. */
  readonly modified: string
  readonly inode: string
}

/** The disk on which inputs lie; a test can bring its own. */
export interface InputDisk {
  /** Nothing where there is no such file; links are not followed. */
  info(path: string): Promise<InputInfo | undefined>
  /** The names in a folder, sorted. */
  list(path: string): Promise<string[]>
  /** All bytes of a file; a link at its name is refused. */
  read(path: string): Promise<Uint8Array>
}

/** The disk of this machine. */
export const inputDisk: InputDisk = {
  async info(path) {
    try {
      const stat = await lstat(path, { bigint: true })
      return {
        kind: kindOf(stat),
        size: Number(stat.size),
        modifiedAtMs: Number(stat.mtimeMs),
        modified: String(stat.mtimeNs),
        inode: String(stat.ino),
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  },
  async list(path) {
    return (await readdir(path)).sort()
  },
  async read(path) {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      return await file.readFile()
    } finally {
      await file.close()
    }
  },
}

function kindOf(stat: {
  isFile(): boolean
  isDirectory(): boolean
  isSymbolicLink(): boolean
}): InputInfo['kind'] {
  if (stat.isFile()) return 'file'
  if (stat.isDirectory()) return 'folder'
  return stat.isSymbolicLink() ? 'link' : 'other'
}
