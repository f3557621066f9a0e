/** Reads values that a command line passes as JSON. */
import { size } from '../core/format.ts'
import { decodeValue } from '../core/values.ts'
import { UsageInvalid } from './errors.ts'
import { visible } from './visible.ts'

const INPUT_MAX = 64 * 1024 * 1024

/** Reads stdin to its end. `what` names the value in errors. */
export async function readAll(stdin: NodeJS.ReadStream, what: string): Promise<string> {
  const chunks: Buffer[] = []
  let read = 0
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk as Buffer)
    read += bytes.length
    if (read > INPUT_MAX) throw new UsageInvalid(`The ${what} is larger than ${size(INPUT_MAX)}`)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const NUMBERS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Parses a value. Throws if that would change a number: large integers lose digits. */
export function readJson(text: string, what: string): unknown {
  const value = parsed(text, what)
  for (const [number] of text.matchAll(NUMBERS)) {
    if (/^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number))) {
      throw new UsageInvalid(
        `JavaScript cannot represent the number ${number} exactly`,
        'Write it as a string.',
      )
    }
  }
  return value
}

/** Tags such as `{"@pawl:date":…}` become their values, so that the schema checks a Date. */
function parsed(text: string, what: string): unknown {
  try {
    JSON.parse(text)
  } catch (error) {
    const why = visible((error as Error).message)
    throw new UsageInvalid(`The ${what} is not JSON: ${why}`, `Quote it: '{"to":"ada"}'.`)
  }
  return decodeValue(text)
}
