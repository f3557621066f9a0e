/** Enqueues jobs through a store and returns their handles. */
import type { JsonBounds } from '../core/canonical-json.ts'
import type { Environment } from '../environment/system.ts'
import { CLIENT } from '../stores/contract/requester.ts'
import type { Enqueued, EnqueueItem, Requester, Store } from '../stores/contract/store.ts'
import type { SignalRequest } from '../stores/contract/waits.ts'
import { JobRemoved } from '../stores/errors.ts'
import { checkDeclared } from './define-signal.ts'
import { itemOf } from './enqueue-item.ts'
import { type HandleParts, JobHandle, jobOf, signalRequest } from './job-handle.ts'
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

const NOT_JOINED = {}

/** Enqueues jobs of one type in one transaction: all of them, or none if one is rejected. */
export async function enqueueAll(
  parts: EnqueueParts,
  definition: AnyJob,
  entries: readonly EnqueueEntry[],
  { tx, requester }: { readonly tx?: unknown; readonly requester?: Requester } = {},
): Promise<JobHandle[]> {
  const items: EnqueueItem[] = []
  const sent: SignalRequest[][] = []
  for (const entry of entries) {
    const item = itemBy(parts, definition, entry)
    items.push(item instanceof Promise ? await item : item)
    if (entry.signals !== undefined) {
      sent[items.length - 1] = await requestsOf(parts, definition, entry.signals)
    }
  }
  let hasEnded: HasEnded | undefined
  const onJoined = (ask: HasEnded) => {
    hasEnded = ask
  }
  const by = requester !== undefined && { requester }
  const { store } = parts
  const hasSignals = sent.some((requests) => requests.length > 0)
  const inside = async (joined: unknown) => {
    const own = tx === undefined ? { ...by, tx: joined } : { ...by, tx: joined, onJoined }
    const all = accepted(await store.enqueue(items, own))
    if (hasSignals) await sendAll(store, all, sent, requester ?? CLIENT, joined)
    return all
  }
  const results =
    tx !== undefined
      ? await inside(tx)
      : hasSignals
        ? await store.transaction(inside)
        : await enqueueItems(store, items, { ...by })
  const joined = hasEnded === undefined ? NOT_JOINED : { hasEnded }
  return results.map((result) => {
    if (result.kind !== 'removed') {
      return new JobHandle(parts, result.job, result.kind === 'created', joined)
    }
    const { removed } = result
    return new JobHandle(parts, removed, false, { removed })
  })
}

/** The signals that are sent together with a job. Throws `SignalInvalid`, `SignalUndeclared`. */
async function requestsOf(
  parts: EnqueueParts,
  definition: AnyJob,
  signals: NonNullable<EnqueueEntry['signals']>,
): Promise<SignalRequest[]> {
  const requests: SignalRequest[] = []
  for (const one of signals) {
    checkDeclared(definition, one.signal)
    requests.push(await signalRequest(parts, one))
  }
  return requests
}

/** Sends signals to jobs in the transaction in which they were enqueued; all or none. */
async function sendAll(
  store: Store,
  results: readonly Accepted[],
  sent: readonly (readonly SignalRequest[] | undefined)[],
  requester: Requester,
  tx: unknown,
): Promise<void> {
  for (const [i, requests = []] of sent.entries()) {
    const result = results[i] as Accepted
    if (requests.length > 0 && result.kind === 'removed') throw new JobRemoved(result.removed)
    for (const request of requests) {
      const { id } = (result as Exclude<Accepted, { kind: 'removed' }>).job
      jobOf(await store.waits.signal([id], request, requester, tx))
    }
  }
}

/** Checks the options of one job and builds its item; a promise only if a schema is asked. */
export function itemBy(
  { store, environment, bounds }: EnqueueParts,
  definition: AnyJob,
  { input, ...own }: EnqueueEntry,
): EnqueueItem | Promise<EnqueueItem> {
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
