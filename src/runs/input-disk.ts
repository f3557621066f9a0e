/** Files outside of runs, as far as runs look at them: they are only ever read. */
import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import type { FileInfo } from '../core/ports.ts'
import { systemFiles } from '../environment/files.ts'

/** The disk on which inputs lie; a test can bring its own. */
export interface InputDisk {
  /** Nothing where there is no such file; links are not followed. */
  info(path: string): Promise<FileInfo | undefined>
  /** The names in a folder, sorted. */
  list(path: string): Promise<string[]>
  /** All bytes of a file; a link at its name is refused. */
  read(path: string): Promise<Uint8Array>
}

/** The disk of this machine. */
export const inputDisk: InputDisk = {
  info: systemFiles.info,
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
