/**
 * Names that are asked for with every command: which artifacts are stale, and what was ever read.
 * A search through the whole run each time would take a run of ten thousand items minutes.
 *
 * They are found once for each collection of a run. Only a fold changes a collection in place, and
 * it keeps the names of its own.
 */
import type { Run } from './run.ts'

const stale = new WeakMap<Run['artifacts_index'], ReadonlySet<string>>()
const read = new WeakMap<Run['work_items'], ReadonlySet<string>>()

/** The names of all artifacts that are stale. */
export function staleNamesOf({ artifacts_index }: Run): ReadonlySet<string> {
  return found(stale, artifacts_index, () =>
    Object.entries(artifacts_index).flatMap(([name, own]) =>
      own.stale_because === null ? [] : [name],
    ),
  )
}

/** The names of everything that work items have read, and perhaps others. */
export function readNamesOf({ work_items }: Run): ReadonlySet<string> {
  return found(read, work_items, () =>
    Object.values(work_items).flatMap(({ inputs }) => Object.keys(inputs)),
  )
}

/** From now on the names are those of these sets, which the owner of the run keeps right. */
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
