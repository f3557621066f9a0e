/**
 * Which jobs an operator means: one, several, or all that a filter shows. A filter is walked page
 * by page from the newest job to the oldest, by a key that never changes: a job is met once however
 * its state moves meanwhile, and jobs that are accepted after the walk began are not met at all.
 */
import { type Rule, text } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import type { JobFilter, Store } from '../../stores/store.ts'
import { pagesOf } from '../pages.ts'

/** One job by its id, several by theirs, or those that a filter shows, newest first. */
export type Selection =
  | string
  | { readonly ids: readonly string[] }
  | { readonly filter: JobFilter; readonly limit?: number }

/** How many jobs are read and changed at once: one page, one transaction. */
const BATCH = 100
const IDS_MAX = 10_000
const TEXT_MAX = 2000

/** A part of a selection: the jobs that are there, and the ids of which there are none. */
export interface Batch {
  readonly jobs: readonly Job[]
  readonly missing: readonly string[]
  /** Whether the limit ends the selection here although more jobs match. */
  readonly more: boolean
}

/** The jobs of a selection as they are when their turn comes. */
export async function* batchesOf(store: Store, selection: Selection): AsyncGenerator<Batch> {
  if (typeof selection === 'string') yield await readBatch(store, [selection])
  else if ('ids' in selection) yield* byIds(store, selection.ids)
  else yield* byFilter(store, selection.filter, selection.limit)
}

/** Refuses a selection that says less, or something else, than its author may think. */
export function checkSelection(selection: Selection): void {
  if (typeof selection === 'string') return
  if (typeof selection !== 'object' || selection === null) {
    throw new CommandInvalid('selection', 'must be an id, { ids } or { filter }')
  }
  if ('ids' in selection) {
    const { ids } = selection
    if (!Array.isArray(ids) || ids.length > IDS_MAX) {
      throw new CommandInvalid('ids', `must be a list of at most ${IDS_MAX}`)
    }
    return
  }
  const { filter, limit } = selection
  if (typeof filter !== 'object' || filter === null) {
    throw new CommandInvalid('filter', 'must be an object')
  }
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1)) {
    throw new CommandInvalid('limit', 'must be a whole number from 1')
  }
  for (const [field, why] of Object.entries(filter).map(ruleOf)) {
    if (why !== undefined) throw new CommandInvalid(`filter.${field}`, why)
  }
}

const TEXTS = ['state', 'lane', 'queue', 'type', 'tag', 'key', 'error']
const TIMES = ['createdFrom', 'createdBefore']

/** A field that is misspelt or undefined would widen the selection to everything. */
function ruleOf([field, value]: [string, unknown]): Rule {
  if (TEXTS.includes(field)) return [field, text(value as string, TEXT_MAX)]
  if (!TIMES.includes(field)) return [field, 'is not known']
  return [field, Number.isSafeInteger(value) ? undefined : 'must be a time in milliseconds']
}

async function* byIds(store: Store, ids: readonly string[]): AsyncGenerator<Batch> {
  const unique = [...new Set(ids)]
  for (let at = 0; at < unique.length; at += BATCH) {
    yield await readBatch(store, unique.slice(at, at + BATCH))
  }
}

async function readBatch(store: Store, ids: readonly string[]): Promise<Batch> {
  const texts = ids.filter((id) => typeof id === 'string')
  const found = new Map((await store.getMany(texts)).map((job) => [job.id, job]))
  const jobs = texts.flatMap((id) => found.get(id) ?? [])
  return { jobs, missing: ids.filter((id) => !found.has(id)).map(String), more: false }
}

async function* byFilter(store: Store, filter: JobFilter, limit?: number): AsyncGenerator<Batch> {
  const ask = (page: { limit: number; after?: string }) => store.list(filter, page)
  const walk = { size: BATCH, ...(limit !== undefined && { limit }) }
  for await (const { items, after, isFull } of pagesOf(ask, walk)) {
    const more = isFull && (await hasMore(store, filter, after))
    if (items.length > 0 || more) yield { jobs: items, missing: [], more }
  }
}

async function hasMore(
  store: Store,
  filter: JobFilter,
  after: string | undefined,
): Promise<boolean> {
  if (after === undefined) return false
  for await (const { items } of pagesOf((page) => store.list(filter, page), { size: 1, after })) {
    if (items.length > 0) return true
  }
  return false
}
