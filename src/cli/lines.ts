/** The lines of a file, which may be of any size; a line may not. */
import { createReadStream } from 'node:fs'
import { UsageInvalid } from './errors.ts'
import { visible } from './visible.ts'

const LINE_MAX = 128 * 1024 * 1024

/** Lines end with a line feed, and nothing else; the platform's own reader has no bound. */
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
        if (length > LINE_MAX) throw new UsageInvalid(`${visible(file)} has a line without end`)
      }
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof UsageInvalid || code === undefined) throw error
    throw new UsageInvalid(`${visible(file)} cannot be read (${code})`, 'Name another file.')
  }
  if (length > 0) yield rest.join('')
}

/** The lines of a file as JSON values; blank ones are left out. */
export async function* valuesIn(file: string): AsyncGenerator<unknown> {
  let number = 0
  for await (const line of linesIn(file)) {
    number++
    if (line.trim() === '') continue
    try {
      yield JSON.parse(line) as unknown
    } catch {
      throw new UsageInvalid(`Line ${number} of ${visible(file)} is no JSON`, 'Name another file.')
    }
  }
}
