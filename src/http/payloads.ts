/**
 * Payloads as people see them: the stored JSON text, without secrets and of limited length. Parsing
 * a payload could change its numbers, and a large one would slow down every list.
 */
import { utf8Length } from '../core/canonical-json.ts'
import { redactJson } from './json-text.ts'
import { flag, type JsonSchema, record, text, whole } from './schema.ts'

/** A payload in an answer. */
export interface PayloadView {
  /** The size of the stored text. */
  readonly bytes: number
  readonly truncated: boolean
  readonly text: string
}

export const PAYLOAD: JsonSchema = {
  ...record({
    bytes: whole('the size of the stored text'),
    truncated: flag('whether `text` is only its beginning'),
    text: text('the stored JSON text, with the values of secret members replaced'),
  }),
  description: 'A payload: an input, a result, a progress or an effect.',
}

/** Names of members whose values are replaced, unless the API has a list of its own. */
export const SECRET_KEYS: readonly string[] = [
  ...['password', 'passwd', 'secret', 'token', 'authorization', 'cookie'],
  ...['apikey', 'api_key', 'privatekey', 'private_key', 'accesstoken', 'access_token'],
]

export class PayloadRules {
  readonly #secret: ReadonlySet<string>
  readonly #shownMax: number

  constructor(secretKeys: readonly string[], shownMax: number) {
    this.#secret = new Set(secretKeys.map((key) => key.toLowerCase()))
    this.#shownMax = shownMax
  }

  /** The whole text without secrets. */
  whole(stored: string): string {
    return this.#secret.size === 0 ? stored : redactJson(stored, this.#secret)
  }

  /** The beginning of the text without secrets. */
  view(stored: string): PayloadView {
    const safe = this.whole(stored)
    const truncated = safe.length > this.#shownMax
    const shown = truncated ? wellFormed(safe.slice(0, this.#shownMax)) : safe
    return { bytes: utf8Length(stored), truncated, text: shown }
  }
}

/** Removes the half of a surrogate pair that was cut. */
function wellFormed(cut: string): string {
  return /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut
}
