/**
 * What a changed artifact makes stale, and whether a work item must run (promise P14). A finished
 * item runs again only if it is forced, if something that it read has changed, or if one of its
 * outputs is stale. A change of code counts only if its version was declared.
 */
import type { StartBecause } from './events.ts'
import { staleNamesOf } from './known-names.ts'
import { entryOf, type Run, type WorkItem } from './run.ts'

/** Returns the names of all artifacts that depend on this one, directly or indirectly. */
export function downstreamOf(run: Run, artifact: string): string[] {
  const outputs = outputsByInput(run)
  const reached = new Set([artifact])
  // A Set also iterates over names that are added during the loop.
  for (const name of reached) for (const output of outputs.get(name) ?? []) reached.add(output)
  reached.delete(artifact)
  return [...reached].sort()
}

/** Returns, for everything that items read, what those items wrote. */
function outputsByInput(run: Run): Map<string, string[]> {
  const outputs = new Map<string, string[]>()
  for (const [output, { work_item }] of Object.entries(run.artifacts_index)) {
    const item = work_item === null ? undefined : entryOf(run.work_items, work_item)
    for (const input of Object.keys(item?.inputs ?? {})) {
      const own = outputs.get(input)
      if (own === undefined) outputs.set(input, [output])
      else own.push(output)
    }
  }
  return outputs
}

/** What is known about a work item before it starts. */
export interface ItemRequest {
  readonly key: string
  /** What it declares to read: artifact or parameter name → hash. */
  readonly inputs: Readonly<Record<string, string>>
  readonly code: string | null
  readonly forced: boolean
}

/** Why an item must run, or that it is fresh. */
export type Freshness =
  | { readonly kind: 'fresh' }
  | {
      readonly kind: 'run'
      readonly because: StartBecause
      /** The artifact or parameter that changed, if that is the reason. */
      readonly artifact?: string
    }

/** Returns whether a work item must run, and why. */
export function freshnessOf(run: Run, request: ItemRequest): Freshness {
  const item = entryOf(run.work_items, request.key)
  if (item === undefined) return { kind: 'run', because: 'new' }
  if (item.status === 'started') return { kind: 'run', because: 'interrupted' }
  if (item.status === 'failed') return { kind: 'run', because: 'failed' }
  if (request.forced) return { kind: 'run', because: 'forced' }
  if (request.code !== null && request.code !== item.code) {
    return { kind: 'run', because: 'code_changed' }
  }
  const artifact = findChangedInput(run, item, request) ?? staleOutputsOf(run, request.key)[0]
  return artifact === undefined ? { kind: 'fresh' } : { kind: 'run', because: 'stale', artifact }
}

function findChangedInput(run: Run, item: WorkItem, request: ItemRequest): string | undefined {
  const names = Object.keys({ ...item.inputs, ...request.inputs }).sort()
  return names.find((name) => {
    const now = entryOf(request.inputs, name) ?? entryOf(run.artifacts_index, name)?.sha256
    // Unknown: a parameter that was read, but is neither declared nor an artifact.
    if (now === undefined) return item.declared.includes(name)
    return now !== entryOf(item.inputs, name)
  })
}

/**
 * Returns true if a finished item is stale although nothing changed: everything that it read has
 * its old hash and is no longer stale. Its outputs can then be revalidated.
 */
export function isUnchanged(run: Run, request: ItemRequest): boolean {
  const item = entryOf(run.work_items, request.key)
  const { because } = freshnessOf(run, request) as { readonly because?: StartBecause }
  if (item === undefined || because !== 'stale') return false
  if (findChangedInput(run, item, request) !== undefined) return false
  return Object.keys(item.inputs).every(
    (name) => (entryOf(run.artifacts_index, name)?.stale_because ?? null) === null,
  )
}

/** Returns the names of the stale outputs of an item. */
export function staleOutputsOf(run: Run, key: string): string[] {
  const stale = [...staleNamesOf(run)]
  return stale.filter((name) => entryOf(run.artifacts_index, name)?.work_item === key).sort()
}
