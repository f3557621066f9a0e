/**
 * The canonical texts of what a run holds most of. They are written out, because their names and
 * the order of these are known, and are kept for as long as the collection is as it was: a state
 * that is entered or left changes nothing of ten thousand artifacts.
 */
import { encode, encodeText } from '../../core/canonical-json.ts'
import { revisionOf } from '../../core/run/revisions.ts'
import type { Artifact, Run, WorkItem } from '../../core/run/run.ts'

type Collection<T> = Readonly<Record<string, T>>

/** How large a snapshot may be. */
export const SNAPSHOT_BOUNDS = { depthMax: 8, bytesMax: 256 * 1024 * 1024 }

const texts = new WeakMap<object, { readonly revision: number; readonly text: string }>()

/** The text of a collection, by the text of each of its entries. */
export function collectionText<T extends Artifact | WorkItem>(
  collection: Collection<T> & Run['artifacts_index' | 'work_items'],
  textOf: (entry: T) => string,
): string {
  const revision = revisionOf(collection)
  const known = texts.get(collection)
  if (known?.revision === revision) return known.text
  // Joined at once: a text of many megabytes that grows piece by piece is slow to read.
  const pieces: string[] = []
  for (const key of Object.keys(collection).sort()) {
    pieces.push(pieces.length === 0 ? '{' : ',', encodeText(key), ':', textOf(collection[key] as T))
  }
  pieces.push(pieces.length === 0 ? '{}' : '}')
  const text = pieces.join('')
  texts.set(collection, { revision, text })
  return text
}

/** The text of an artifact. */
export function artifactText(artifact: Artifact): string {
  const { path, schema_id, sha256, stale_because, ts, work_item, writer_worker } = artifact
  const content = `"path":${encodeText(path)},"schema_id":${orNull(schema_id)},"sha256":"${sha256}"`
  const doubt = `"stale_because":${orNull(stale_because)},"ts":"${ts}"`
  const writer = `"work_item":${orNull(work_item)},"writer_worker":${encodeText(writer_worker)}`
  return `{${content},${doubt},${writer}}`
}

/** The text of a work item. */
export function itemText(item: WorkItem): string {
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
