import { hash } from 'node:crypto'

/** Returns the SHA-256 of bytes, or of a text in UTF-8, in lower-case hex. */
export function sha256Of(content: Uint8Array | string): string {
  return hash('sha256', content, 'hex')
}
