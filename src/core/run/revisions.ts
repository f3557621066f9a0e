/**
 * Counts how often the collections of a run were changed in place. A value that was derived from a
 * collection is valid while its revision stays the same. Only a fold changes collections in place,
 * and counts here. All other collections are immutable and have revision 0.
 */
import type { Run } from './run.ts'

/** The collections of a run. */
export type CollectionName = 'artifacts_index' | 'work_items' | 'section_states' | 'issues'

type Collection = Run[CollectionName]

/** The number of changes of each collection of one run. */
export type Revisions = Record<CollectionName, number>

const owners = new WeakMap<Collection, { readonly name: CollectionName; counts: Revisions }>()

/** Registers the collections of this run. The caller increments the returned counts. */
export function countRevisions(run: Run): Revisions {
  const counts: Revisions = { artifacts_index: 0, work_items: 0, section_states: 0, issues: 0 }
  for (const name of Object.keys(counts) as CollectionName[])
    owners.set(run[name], { name, counts })
  return counts
}

/** Returns the revision of a collection. */
export function revisionOf(collection: Collection): number {
  const owner = owners.get(collection)
  return owner === undefined ? 0 : owner.counts[owner.name]
}
