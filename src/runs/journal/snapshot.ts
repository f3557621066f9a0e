/**
 * The snapshot of a run, version 1: `snapshot.json`.
 *
 * One object in canonical JSON, in UTF-8, ended by one line feed: the fold of the events, the hash
 * of the last line, and `sha256`, the SHA-256 of the object without that field. The authority on
 * its fields is `specs/schemas/snapshot.schema.json`. It contains no information that the log does
 * not contain. The same lines always make the same snapshot, byte for byte.
 *
 * `sha256` distinguishes a damaged snapshot from one that contradicts its log. The first is written
 * again. The second proves that the log was cut or replaced.
 */
import { encode, encodeText } from '../../core/canonical-json.ts'
import { revisionOf } from '../../core/run/revisions.ts'
import type { Artifact, Run, WorkItem } from '../../core/run/run.ts'
import { sha256Of } from './hash.ts'
import { findSnapshotFault, type Snapshot } from './schemas.ts'
import type { KnownLine } from './source.ts'

/** Returns the text of the snapshot of a run whose last line has this hash. */
export function encodeSnapshot(run: Run, lastHash: string): string {
  const fields = new Map([['last_event_hash', `"${lastHash}"`]])
  for (const [name, value] of Object.entries(run)) fields.set(name, textOf(name, value))
  // The text may have many megabytes, so its parts are encoded once.
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

/** Joins fields to a canonical object in one step, because each further step copies the text. */
function objectOf(fields: ReadonlyMap<string, string>, end = ''): string {
  const pieces: string[] = []
  for (const name of [...fields.keys()].sort()) {
    pieces.push(pieces.length === 0 ? '{"' : ',"', name, '":', fields.get(name) as string)
  }
  pieces.push('}', end)
  return pieces.join('')
}

/**
 * Returns the last line that a snapshot contains, or `undefined` if its `sha256` is wrong. The text
 * is searched instead of parsed, because it may have ten thousand entries. The search is safe: no
 * field before the match has numbers under these names, and no field between the match and `sha256`
 * has lists.
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

/** Returns true if a text is the snapshot of this run and conforms to the schema. */
export function isSnapshotOf(run: Run, lastHash: string, text: string): boolean {
  if (text !== encodeSnapshot(run, lastHash)) return false
  // The texts are equal, so the run is checked instead of the parsed text. Any hash will do.
  const fields = { ...run, last_event_hash: lastHash, sha256: lastHash }
  return findSnapshotFault(fields) === undefined
}

export type ReadSnapshot =
  | { readonly kind: 'valid'; readonly snapshot: Snapshot }
  | { readonly kind: 'invalid'; readonly why: string }

/** Parses and checks the text of a run's snapshot. */
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
    : invalid('its hash is wrong')
}

export function runOf(snapshot: Snapshot): Run {
  const { last_event_hash: _hash, sha256: _sum, ...run } = snapshot
  return run
}

type Collection<T> = Readonly<Record<string, T>>

const SNAPSHOT_BOUNDS = { depthMax: 8, bytesMax: 256 * 1024 * 1024 }

const texts = new WeakMap<object, { readonly revision: number; readonly text: string }>()

/**
 * Returns the canonical text of a collection. The text is cached until the collection changes: a
 * change of state does not change ten thousand artifacts. Entries are written out field by field,
 * because their names and order are known.
 */
function collectionText<T extends Artifact | WorkItem>(
  collection: Collection<T> & Run['artifacts_index' | 'work_items'],
  textOf: (entry: T) => string,
): string {
  const revision = revisionOf(collection)
  const known = texts.get(collection)
  if (known?.revision === revision) return known.text
  // Joined in one step: a text of many megabytes that grows piece by piece is slow to read.
  const pieces: string[] = []
  for (const key of Object.keys(collection).sort()) {
    pieces.push(pieces.length === 0 ? '{' : ',', encodeText(key), ':', textOf(collection[key] as T))
  }
  pieces.push(pieces.length === 0 ? '{}' : '}')
  const text = pieces.join('')
  texts.set(collection, { revision, text })
  return text
}

function artifactText(artifact: Artifact): string {
  const { path, schema_id, sha256, stale_because, ts, work_item, writer_worker } = artifact
  const content = `"path":${encodeText(path)},"schema_id":${orNull(schema_id)},"sha256":"${sha256}"`
  const doubt = `"stale_because":${orNull(stale_because)},"ts":"${ts}"`
  const writer = `"work_item":${orNull(work_item)},"writer_worker":${encodeText(writer_worker)}`
  return `{${content},${doubt},${writer}}`
}

function itemText(item: WorkItem): string {
  const { attempts, code, declared, error, finished_at, inputs, started_at, status, worker } = item
  const names = encode(declared, SNAPSHOT_BOUNDS)
  const work = `"attempts":${attempts},"code":${orNull(code)},"declared":${names}`
  const end = `"error":${orNull(error)},"finished_at":${orNull(finished_at)}`
  const read = `"inputs":${encode(inputs, SNAPSHOT_BOUNDS)}`
  const start = `"started_at":"${started_at}","status":"${status}"`
  return `{${work},${end},${read},${start},"worker":${encodeText(worker)}}`
}

function orNull(text: string | null): string {
  return text === null ? 'null' : encodeText(text)
}
