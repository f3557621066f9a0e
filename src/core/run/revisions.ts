/**
 * How often the collections of a run were changed in place. What was worked out from a collection
 * holds for as long as this number stays. Only a fold changes a collection, and it counts here; all
 * others are as they were made, and have no number but 0.
 */
import type { Run } from './run.ts'

/** What a run holds by names. */
export type CollectionName = 'artifacts_index' | 'work_items' | 'section_states' | 'issues'

type Collection = Run[CollectionName]

/** The changes of each collection of one run, counted. */
export type Revisions = Record<CollectionName, number>

const owners = new WeakMap<Collection, { readonly name: CollectionName; counts: Revisions }>()

/** From now on the collections of this run have the revisions that its owner counts here. */
export function countRevisions(run: Run): Revisions {
  const counts: Revisions = { artifacts_index: 0, work_items: 0, section_states: 0, issues: 0 }
  for (const name of Object.keys(counts) as CollectionName[])
    owners.set(run[name], { name, counts })
  return counts
}

/** The revision of a collection. */
export function revisionOf(collection: Collection): number {
  const owner = owners.get(collection)
  return owner === undefined ? 0 : owner.counts[owner.name]
}
