/**
 * The two schemas in `specs/schemas`, which are the authority on what an event and a snapshot hold.
 * They are compiled once, when the first run is touched.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js'
import type { RunEvent } from '../../core/run/events.ts'
import type { Run } from '../../core/run/run.ts'

/** An event as it is written: with the hash of the line before it. */
export type ChainedEvent = RunEvent & { readonly prev: string }

/** What a snapshot holds. */
export interface Snapshot extends Run {
  readonly last_event_hash: string
  readonly sha256: string
}

/** Nothing where the value is an event; else what is wrong with it. */
export function findEventFault(value: unknown): string | undefined {
  validateEvent ??= compile('event')
  return validateEvent(value) ? undefined : faultOf(validateEvent)
}

/** Nothing where the value is a snapshot; else what is wrong with it. */
export function findSnapshotFault(value: unknown): string | undefined {
  validateSnapshot ??= compile('snapshot')
  return validateSnapshot(value) ? undefined : faultOf(validateSnapshot)
}

let validateEvent: ValidateFunction | undefined
let validateSnapshot: ValidateFunction | undefined

function compile(name: 'event' | 'snapshot'): ValidateFunction {
  // The sources and what is built from them stand at the same depth.
  const path = new URL(`../../../specs/schemas/${name}.schema.json`, import.meta.url)
  // Lengths are counted in UTF-16 units, as the core counts them, which is quicker; of that choice
  // the library would warn on the console. Patterns speak of ASCII alone, so they need no Unicode.
  const units = { unicode: false, unicodeRegExp: false }
  const options = { ...units, discriminator: true, allowUnionTypes: true, code: { regExp } }
  // Read here and not above: most processes never touch a run, and need not wait for it.
  const library = createRequire(import.meta.url)('ajv/dist/2020.js') as { Ajv2020: typeof Ajv2020 }
  const ajv = new library.Ajv2020({ ...options, logger: false })
  return ajv.compile(JSON.parse(readFileSync(path, 'utf8')))
}

/** What tests a pattern. Each event has two hashes or more, and a loop is twice as quick there. */
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
  const place = first?.instancePath ? `${first.instancePath.slice(1).replaceAll('/', '.')} ` : ''
  return `${place}${first?.message ?? 'is not valid'}`
}
