/** Reads the files outside of a run that are its inputs. Nothing is written there. */
import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import type { FileInfo } from '../core/ports.ts'
import { systemFiles } from '../environment/files.ts'

/** The file operations that inputs need. Tests can replace them. */
export interface InputDisk {
  /** Returns `undefined` if the file does not exist. Does not follow links. */
  info(path: string): Promise<FileInfo | undefined>
  /** Returns the names in a folder, sorted. */
  list(path: string): Promise<string[]>
  /** Returns all bytes of a file. Throws if the path is a link. */
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
