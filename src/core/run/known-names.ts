/**
 * Two sets of names that every command needs: the stale artifacts, and everything that was read.
 * Without them, a run of ten thousand items would spend minutes searching.
 *
 * The sets are computed once for each collection of a run. Only a fold changes a collection in
 * place, and it updates its own sets.
 */
import type { Run } from './run.ts'

const stale = new WeakMap<Run['artifacts_index'], ReadonlySet<string>>()
const read = new WeakMap<Run['work_items'], ReadonlySet<string>>()

/** Returns the names of all stale artifacts. */
export function staleNamesOf({ artifacts_index }: Run): ReadonlySet<string> {
  return found(stale, artifacts_index, () =>
    Object.entries(artifacts_index).flatMap(([name, own]) =>
      own.stale_because === null ? [] : [name],
    ),
  )
}

/** Returns the names of everything that work items have read. It may contain further names. */
export function readNamesOf({ work_items }: Run): ReadonlySet<string> {
  return found(read, work_items, () =>
    Object.values(work_items).flatMap(({ inputs }) => Object.keys(inputs)),
  )
}

/** Registers sets for a run. The owner of the run must keep them up to date. */
export function keepNames(
  { artifacts_index, work_items }: Run,
  names: { readonly stale: ReadonlySet<string>; readonly read: ReadonlySet<string> },
): void {
  stale.set(artifacts_index, names.stale)
  read.set(work_items, names.read)
}

function found<Collection extends object>(
  known: WeakMap<Collection, ReadonlySet<string>>,
  collection: Collection,
  find: () => string[],
): ReadonlySet<string> {
  const names = known.get(collection) ?? new Set(find())
  known.set(collection, names)
  return names
}
