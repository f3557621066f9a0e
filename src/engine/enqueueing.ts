/** Enqueues jobs through a store and returns their handles. */
import type { JsonBounds } from '../core/canonical-json.ts'
import type { Environment } from '../environment/system.ts'
import type { Enqueued, EnqueueItem, Requester, Store } from '../stores/contract/store.ts'
import { itemOf } from './enqueue-item.ts'
import { type HandleParts, JobHandle } from './job-handle.ts'
import type { AnyJob } from './job-types.ts'
import { checkJobOptions, type EnqueueOptions } from './options.ts'
import type { HasEnded } from './results.ts'
import type { EnqueueOne } from './worker/children.ts'

/** What enqueueing needs besides the parts of handles. */
export interface EnqueueParts extends HandleParts {
  readonly environment: Pick<Environment, 'ids'>
  readonly bounds: JsonBounds
}

/** One job to enqueue. */
export interface EnqueueEntry extends Omit<EnqueueOptions, 'tx'> {
  readonly input: unknown
}

/** Enqueues jobs of one type in one transaction: all of them, or none if one is rejected. */
export async function enqueueAll(
  parts: EnqueueParts,
  definition: AnyJob,
  entries: readonly EnqueueEntry[],
  { tx, requester }: { readonly tx?: unknown; readonly requester?: Requester } = {},
): Promise<JobHandle[]> {
  const items: EnqueueItem[] = []
  for (const entry of entries) items.push(await itemBy(parts, definition, entry))
  let hasEnded: HasEnded | undefined
  const onJoined = (ask: HasEnded) => {
    hasEnded = ask
  }
  const by = requester !== undefined && { requester }
  const results =
    tx === undefined
      ? await enqueueItems(parts.store, items, { ...by })
      : accepted(await parts.store.enqueue(items, { ...by, tx, onJoined }))
  const joined = hasEnded === undefined ? {} : { hasEnded }
  return results.map((result) => {
    if (result.kind !== 'removed') {
      return new JobHandle(parts, result.job, result.kind === 'created', joined)
    }
    const { removed } = result
    return new JobHandle(parts, removed, false, { removed })
  })
}

/** Checks the options of one job and builds its item. */
export function itemBy(
  { store, environment, bounds }: EnqueueParts,
  definition: AnyJob,
  { input, ...own }: EnqueueEntry,
): Promise<EnqueueItem> {
  checkJobOptions(own)
  const context = { ids: environment.ids, bounds, now: () => store.now() }
  return itemOf(definition, input, own, context)
}

/**
 * Enqueues items in one transaction: all of them, or none if one is rejected. The items of one call
 * of a store are independent of each other, so several need a transaction around the call.
 */
export async function enqueueItems(
  store: Store,
  items: readonly EnqueueItem[],
  options: { readonly requester?: Requester } = {},
): Promise<Accepted[]> {
  if (items.length <= 1) return accepted(await store.enqueue(items, options))
  return store.transaction(async (tx) => accepted(await store.enqueue(items, { ...options, tx })))
}

type Accepted = Exclude<Enqueued, { kind: 'rejected' }>

/** Throws the first rejection. */
function accepted(results: readonly Enqueued[]): Accepted[] {
  return results.map((result) => {
    if (result.kind === 'rejected') throw result.error
    return result
  })
}

/** The function with which attempts enqueue jobs. */
export function enqueueOneBy(parts: EnqueueParts): EnqueueOne {
  const enqueue = async (
    definition: AnyJob,
    input: unknown,
    { tx, ...own }: EnqueueOptions,
    requester: Requester,
  ) => {
    const options = { requester, ...(tx !== undefined && { tx }) }
    const [handle] = await enqueueAll(parts, definition, [{ input, ...own }], options)
    return handle as JobHandle
  }
  return Object.assign(enqueue, {
    find: (id: string) => parts.store.get(id),
    handleOf: ({ id }: { readonly id: string }) => new JobHandle(parts, { id }, false),
  })
}
