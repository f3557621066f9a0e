/**
 * The snapshot of a run, version 1: `snapshot.json`.
 *
 * One object in canonical JSON, in UTF-8, ended by one line feed: the run as its events fold to it,
 * the hash of the last line, and `sha256`, the SHA-256 of the object without that field. The fields
 * are those of `specs/schemas/snapshot.schema.json`, which is the authority. It says nothing that
 * the log does not say, and is the same, byte for byte, whenever it is made from the same lines.
 *
 * By its own hash a damaged snapshot is told from one that contradicts its log: the first is made
 * anew, the second proves that the log was cut or replaced.
 */
import { encode } from '../core/canonical-json.ts'
import type { Run } from '../core/run/run.ts'
import { sha256Of } from './hash.ts'
import { findSnapshotFault, type Snapshot } from './schemas.ts'
import { artifactText, collectionText, itemText, SNAPSHOT_BOUNDS } from './snapshot-text.ts'

/** The text of the snapshot of a run whose last line has this hash. */
export function encodeSnapshot(run: Run, lastHash: string): string {
  const texts = [`"last_event_hash":"${lastHash}"`]
  for (const [name, value] of Object.entries(run)) texts.push(`"${name}":${textOf(name, value)}`)
  // Written once, not once to be hashed and once to be kept: it may be many megabytes.
  const sha256 = sha256Of(objectOf(texts))
  return `${objectOf([...texts, `"sha256":"${sha256}"`])}\n`
}

function textOf(name: string, value: unknown): string {
  switch (name) {
    case 'artifacts_index':
      return collectionText(value as Run['artifacts_index'], artifactText)
    case 'work_items':
      return collectionText(value as Run['work_items'], itemText)
    default:
      return encode(value, SNAPSHOT_BOUNDS)
  }
}

/** A canonical object of its fields; the quote at the end of a name sorts before all letters. */
function objectOf(fields: readonly string[]): string {
  return `{${[...fields].sort().join(',')}}`
}

/** What was read: a snapshot, or why it is none. */
export type ReadSnapshot =
  | { readonly kind: 'valid'; readonly snapshot: Snapshot }
  | { readonly kind: 'invalid'; readonly why: string }

/** Reads the text of a run's snapshot. */
export function decodeSnapshot(runId: string, text: string): ReadSnapshot {
  const invalid = (why: string): ReadSnapshot => ({ kind: 'invalid', why })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return invalid(text === '' ? 'it is empty' : 'it is not JSON')
  }
  const fault = findSnapshotFault(value)
  if (fault !== undefined) return invalid(fault)
  const snapshot = value as Snapshot
  if (snapshot.run_id !== runId) return invalid(`it belongs to run ${snapshot.run_id}`)
  return hasItsHash(text, snapshot)
    ? { kind: 'valid', snapshot }
    : invalid('its own hash does not fit it')
}

/** The run that a snapshot holds. */
export function runOf(snapshot: Snapshot): Run {
  const { last_event_hash: _hash, sha256: _sum, ...run } = snapshot
  return run
}

/** A canonical text need not be written again to be hashed: its own hash is cut out of it. */
function hasItsHash(text: string, { sha256, ...rest }: Snapshot): boolean {
  const own = `"sha256":"${sha256}",`
  const place = text.lastIndexOf(own)
  const before = text.slice(0, place)
  const after = text.slice(place + own.length, -1)
  if (sha256Of(`${before}${after}`) === sha256) return true
  return sha256Of(encode(rest, SNAPSHOT_BOUNDS)) === sha256
}
