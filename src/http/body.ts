/** Reads the body of a request within its bounds, before anything else looks at it. */
import { size } from '../core/format.ts'
import { RequestRefused } from './errors.ts'
import type { Incoming } from './exchange.ts'
import { type JsonTextBounds, jsonFault } from './json-text.ts'

export interface BodyBounds extends JsonTextBounds {
  readonly bytesMax: number
  /** How long a client may take to send it. */
  readonly timeoutMs: number
}

/** Returns the value of a JSON body; undefined if there is none. Throws `RequestRefused`. */
export async function readJson(request: Incoming, bounds: BodyBounds): Promise<unknown> {
  const bytes = await readBytes(request, bounds)
  if (bytes.length === 0) return undefined
  checkType(request)
  const text = decode(bytes)
  const fault = jsonFault(text, bounds)
  if (fault !== undefined) throw new RequestRefused(400, `The body ${fault}`)
  try {
    return JSON.parse(text)
  } catch {
    throw new RequestRefused(400, 'The body is not JSON')
  }
}

/** A form of a web page cannot send this type without asking the server first (CORS). */
function checkType({ header }: Incoming): void {
  const type = header('content-type') ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new RequestRefused(415, 'The body must be application/json')
  }
}

async function readBytes(request: Incoming, bounds: BodyBounds): Promise<Uint8Array> {
  const { header, body } = request
  const { bytesMax } = bounds
  const encoding = header('content-encoding') ?? 'identity'
  // A compressed body of a few kilobytes can become gigabytes.
  if (encoding.toLowerCase() !== 'identity') {
    throw new RequestRefused(415, 'The body must not be compressed')
  }
  const tooLarge = () => new RequestRefused(413, `The body is larger than ${size(bytesMax)}`)
  if (Number(header('content-length') ?? 0) > bytesMax) throw tooLarge()
  if (body === undefined) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of untilTime(body, bounds.timeoutMs)) {
    bytes += chunk.length
    if (bytes > bytesMax) throw tooLarge()
    chunks.push(chunk)
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks)
}

/** Throws `RequestRefused` if the chunks have not all come in time. */
async function* untilTime(
  body: AsyncIterable<Uint8Array>,
  timeoutMs: number,
): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new RequestRefused(408, 'The body was not sent in time'))
    }, timeoutMs)
  })
  late.catch(() => {})
  let isWhole = false
  try {
    while (true) {
      const { done, value } = await Promise.race([chunks.next(), late])
      if (done) {
        isWhole = true
        return
      }
      yield value
    }
  } finally {
    clearTimeout(timer)
    // A pending `next` delays `return`, so its end is not awaited.
    if (!isWhole) chunks.return?.().catch(() => {})
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new RequestRefused(400, 'The body is not UTF-8')
  }
}
