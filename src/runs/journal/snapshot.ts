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
import { encode } from '../../core/canonical-json.ts'
import type { Run } from '../../core/run/run.ts'
import { sha256Of } from './hash.ts'
import { findSnapshotFault, type Snapshot } from './schemas.ts'
import { artifactText, collectionText, itemText, SNAPSHOT_BOUNDS } from './snapshot-text.ts'
import type { KnownLine } from './source.ts'

/** The text of the snapshot of a run whose last line has this hash. */
export function encodeSnapshot(run: Run, lastHash: string): string {
  const fields = new Map([['last_event_hash', `"${lastHash}"`]])
  for (const [name, value] of Object.entries(run)) fields.set(name, textOf(name, value))
  // Written once, not once to be hashed and once to be kept: it may be many megabytes.
  const sha256 = sha256Of(objectOf(fields))
  fields.set('sha256', `"${sha256}"`)
  return objectOf(fields, '\n')
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

/** A canonical object of its fields, joined at once: whatever is put around it copies all of it. */
function objectOf(fields: ReadonlyMap<string, string>, end = ''): string {
  const pieces: string[] = []
  for (const name of [...fields.keys()].sort()) {
    pieces.push(pieces.length === 0 ? '{"' : ',"', name, '":', fields.get(name) as string)
  }
  pieces.push('}', end)
  return pieces.join('')
}

/**
 * The line of the log of which a run's snapshot speaks; nothing where its own hash does not fit it.
 * It is found without reading the rest, of which most is in ten thousand entries. Nothing before it
 * has numbers under these names, and nothing between it and the own hash has lists.
 */
export function claimOf(runId: string, text: string): KnownLine | undefined {
  const found = CLAIM.exec(text)
  if (found === null || found[3] !== runId) return undefined
  OWN_HASH.lastIndex = found.index
  const own = OWN_HASH.exec(text)
  if (own === null) return undefined
  const rest = `${text.slice(0, own.index)}${text.slice(own.index + own[0].length, -1)}`
  if (sha256Of(rest) !== own[1] || !text.endsWith('}\n')) return undefined
  return { seq: Number(found[2]), hash: found[1] as string }
}

const MACHINE = /"machine":\{"name":"(?:[^"\\]|\\.)*","version":\d+\},"max_fix_attempts":\d+/
const CLAIM = new RegExp(
  `"last_event_hash":"([0-9a-f]{64})","last_seq":(\\d{1,16}),${MACHINE.source},"run_id":"([^"]*)"`,
)
const OWN_HASH = /"sha256":"([0-9a-f]{64})",(?="stable_trail":\[)/g

/** Whether a text is the snapshot of this run, byte for byte, and fits its schema. */
export function isSnapshotOf(run: Run, lastHash: string, text: string): boolean {
  if (text !== encodeSnapshot(run, lastHash)) return false
  // Having the same text, the run stands for what would be read from it; but for the own hash.
  const fields = { ...run, last_event_hash: lastHash, sha256: lastHash }
  return findSnapshotFault(fields) === undefined
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
  const { sha256, ...rest } = snapshot
  return claimOf(runId, text) !== undefined || sha256Of(encode(rest, SNAPSHOT_BOUNDS)) === sha256
    ? { kind: 'valid', snapshot }
    : invalid('its own hash does not fit it')
}

/** The run that a snapshot holds. */
export function runOf(snapshot: Snapshot): Run {
  const { last_event_hash: _hash, sha256: _sum, ...run } = snapshot
  return run
}
