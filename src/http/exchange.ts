/**
 * A request and its reply as plain data. The handler knows nothing of its surroundings: two thin
 * doors, `Request`/`Response` and `node:http`, convert to and from these types. The door of Node
 * does not build a `Request`, which would take several times as long as most requests.
 */

/** A request. */
export interface Incoming {
  readonly method: string
  /** The target as the client sent it: a path with a query. */
  readonly target: string
  /** Returns a header by its name in lower case. */
  readonly header: (name: string) => string | undefined
  readonly body: AsyncIterable<Uint8Array> | undefined
  /** The address of the client; undefined if the door does not know it. */
  readonly peer: string | undefined
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
}

/** The body of a reply: a text, bytes, or texts that are written one after the other. */
export type OutgoingBody = string | Uint8Array | AsyncIterable<string | Uint8Array>

/** A reply. */
export interface Outgoing {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: OutgoingBody | undefined
}

/** A reply of a route that is not JSON, or has headers of its own. */
export class Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: OutgoingBody | undefined

  constructor(
    body: OutgoingBody | undefined,
    headers: Readonly<Record<string, string>>,
    status = 200,
  ) {
    this.status = status
    this.headers = headers
    this.body = body
  }
}
