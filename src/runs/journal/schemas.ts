/**
 * Checks events and snapshots against the schemas in `specs/schemas`, which are the authority.
 * `schema-texts.ts` embeds them. They are compiled when the first run is used.
 */
import { createRequire } from 'node:module'
import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js'
import type { RunEvent } from '../../core/run/events.ts'
import type { Run } from '../../core/run/run.ts'
import { ownUrl } from '../../environment/own-url.ts'
import { EVENT_SCHEMA, SNAPSHOT_SCHEMA } from './schema-texts.ts'

/** An event of a log, with the hash of the line before it. */
export type ChainedEvent = RunEvent & { readonly prev: string }

export interface Snapshot extends Run {
  readonly last_event_hash: string
  readonly sha256: string
}

/** Returns what is wrong with an event, or `undefined` if it is valid. */
export function findEventFault(value: unknown): string | undefined {
  validateEvent ??= compile('event')
  return validateEvent(value) ? undefined : faultOf(validateEvent)
}

/** Returns what is wrong with a snapshot, or `undefined` if it is valid. */
export function findSnapshotFault(value: unknown): string | undefined {
  validateSnapshot ??= compile('snapshot')
  return validateSnapshot(value) ? undefined : faultOf(validateSnapshot)
}

let validateEvent: ValidateFunction | undefined
let validateSnapshot: ValidateFunction | undefined

function compile(name: 'event' | 'snapshot'): ValidateFunction {
  // Lengths are counted in UTF-16 units, as in the core, which is faster; `logger: false` stops the
  // library's warning about it. The patterns match ASCII only, so they need no Unicode.
  const units = { unicode: false, unicodeRegExp: false }
  const options = { ...units, discriminator: true, allowUnionTypes: true, code: { regExp } }
  // Loaded here, because most processes never use a run.
  const library = createRequire(ownUrl(import.meta.url))('ajv/dist/2020.js') as {
    Ajv2020: typeof Ajv2020
  }
  const ajv = new library.Ajv2020({ ...options, logger: false })
  return ajv.compile(JSON.parse(name === 'event' ? EVENT_SCHEMA : SNAPSHOT_SCHEMA))
}

/** Tests patterns. Each event has at least two hashes; a loop is twice as fast for them. */
const regExp = Object.assign(
  (pattern: string, flags: string) =>
    pattern === SHA256 ? { test: isSha256 } : new RegExp(pattern, flags),
  { code: 'new RegExp' },
)

const SHA256 = '^[0-9a-f]{64}$'
const HEX_DIGITS = Uint8Array.from({ length: 128 }, (_, unit) =>
  '0123456789abcdef'.includes(String.fromCharCode(unit)) ? 1 : 0,
)

function isSha256(text: string): boolean {
  if (text.length !== 64) return false
  for (let i = 0; i < 64; i++) if (HEX_DIGITS[text.charCodeAt(i)] !== 1) return false
  return true
}

function faultOf({ errors }: ValidateFunction): string {
  const [first] = errors ?? []
  const field = first?.instancePath ? `${first.instancePath.slice(1).replaceAll('/', '.')} ` : ''
  return `${field}${first?.message ?? 'is not valid'}`
}
