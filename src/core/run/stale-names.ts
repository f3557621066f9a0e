/**
 * Which artifacts of a run are stale. Whether a work item is fresh is asked for every item, and a
 * search through all artifacts each time would take a run of ten thousand items minutes.
 *
 * The names are found once for each index of artifacts. Only a fold changes an index in place, and
 * it keeps the names of its own.
 */
import type { Run } from './run.ts'

const known = new WeakMap<Run['artifacts_index'], ReadonlySet<string>>()

/** The names of all artifacts that are stale. */
export function staleNamesOf({ artifacts_index: index }: Run): ReadonlySet<string> {
  const found = known.get(index) ?? find(index)
  known.set(index, found)
  return found
}

/** From now on the names are those of this set, which the owner of the index keeps right. */
export function keepStaleNames({ artifacts_index: index }: Run, names: ReadonlySet<string>): void {
  known.set(index, names)
}

function find(index: Run['artifacts_index']): ReadonlySet<string> {
  const names = new Set<string>()
  for (const [name, { stale_because }] of Object.entries(index)) {
    if (stale_because !== null) names.add(name)
  }
  return names
}
