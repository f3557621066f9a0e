// A client for tests: unlike `fetch` it can send any Host and Origin.
import { request } from 'node:http'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: the schemas of the document check it
  readonly json: any
}

export interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as it is if it is a text or bytes, and as JSON otherwise. */
  readonly body?: unknown
}

/** Sends a request; `target` is what the request line contains. */
export function send(
  base: string,
  method: string,
  target: string,
  { headers = {}, body }: Sent = {},
): Promise<Answer> {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array
  const content = body === undefined ? undefined : isRaw ? body : JSON.stringify(body)
  const type = content === undefined ? {} : { 'content-type': 'application/json' }
  const { hostname, port } = new URL(base)
  const length =
    content === undefined ? {} : { 'content-length': String(Buffer.byteLength(content)) }
  return new Promise((resolve, reject) => {
    let hasAnswer = false
    const sent = request(
      { hostname, port, method, path: target, headers: { ...type, ...length, ...headers } },
      (response) => {
        hasAnswer = true
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const { statusCode: status = 0 } = response
          const given = response.headers as Record<string, string>
          const isJson = /[/+]json$/.test((given['content-type'] ?? '').split(';')[0] ?? '')
          const json = isJson && text !== '' ? JSON.parse(text) : undefined
          resolve({ status, headers: given, text, json })
        })
      },
    )
    // The server may close the connection while a body that it has refused is still sent.
    sent.on('error', (error) => !hasAnswer && reject(error))
    sent.end(content)
  })
}
