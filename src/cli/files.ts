/** Files that commands read and write. Their size is not bounded; the length of a line is. */
import { createReadStream, createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { size } from '../core/format.ts'
import { UsageInvalid } from './errors.ts'
import { visible } from './visible.ts'

const LINE_MAX = 128 * 1024 * 1024

/** Lines end with a line feed only. `readline` of Node has no bound for a line. */
export async function* linesIn(file: string): AsyncGenerator<string> {
  let rest: string[] = []
  let length = 0
  try {
    for await (const chunk of createReadStream(file, 'utf8')) {
      const parts = (chunk as string).split('\n')
      for (const [i, part] of parts.entries()) {
        if (i > 0) {
          yield rest.join('')
          rest = []
          length = 0
        }
        rest.push(part)
        length += part.length
        if (length > LINE_MAX)
          throw new UsageInvalid(`${visible(file)} has a line of more than ${size(LINE_MAX)}`)
      }
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof UsageInvalid || code === undefined) throw error
    throw new UsageInvalid(
      `${visible(file)} cannot be read (${code})`,
      'Check the path and the content of the file.',
    )
  }
  if (length > 0) yield rest.join('')
}

/** Parses the lines of a file as JSON; skips blank ones. */
export async function* valuesIn(file: string): AsyncGenerator<unknown> {
  let number = 0
  for await (const line of linesIn(file)) {
    number++
    if (line.trim() === '') continue
    try {
      yield JSON.parse(line) as unknown
    } catch {
      throw new UsageInvalid(
        `Line ${number} of ${visible(file)} is not JSON`,
        'Check the path and the content of the file.',
      )
    }
  }
}

/** Writes a new file; an existing one is never replaced. */
export async function writeNew(file: string, texts: AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(texts), createWriteStream(file, { flags: 'wx' }))
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    if (syscall !== 'open') throw error
    throw new UsageInvalid(
      `${visible(file)} cannot be created (${code})`,
      'Use the path of a new file.',
    )
  }
}
