/** Files that a command makes. */
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { UsageInvalid } from './errors.ts'
import { visible } from './visible.ts'

/** Writes a file that must not be there yet: nothing is replaced. */
export async function writeNew(file: string, texts: AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(texts), createWriteStream(file, { flags: 'wx' }))
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall !== 'open') throw error
    throw new UsageInvalid(`${visible(file)} cannot be written to (${code})`, 'Name a new file.')
  }
}
