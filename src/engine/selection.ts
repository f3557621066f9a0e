/**
 * Which jobs an operator means: one, several, or all that a filter shows. A filter is walked page
 * by page from the newest job to the oldest, by a key that never changes: a job is met once however
 * its state moves meanwhile, and jobs that are accepted after the walk began are not met at all.
 */
import { type Rule, text } from '../core/checks.ts'
import { CommandInvalid } from '../core/errors.ts'
import type { Job } from '../core/job/job.ts'
import type { JobFilter, Store } from '../stores/store.ts'

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
  const jobs: Job[] = []
  const missing: string[] = []
  for (const id of ids) {
    const job = typeof id === 'string' ? await store.get(id) : undefined
    if (job === undefined) missing.push(String(id))
    else jobs.push(job)
  }
  return { jobs, missing, more: false }
}

async function* byFilter(
  store: Store,
  filter: JobFilter,
  limit = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<Batch> {
  let left = limit
  let after: string | undefined
  do {
    const size = Math.min(BATCH, left)
    const page = await store.list(filter, { limit: size, ...(after !== undefined && { after }) })
    left -= page.items.length
    after = page.next
    const more = left === 0 && (await hasMore(store, filter, after))
    if (page.items.length > 0 || more) yield { jobs: page.items, missing: [], more }
  } while (after !== undefined && left > 0)
}

async function hasMore(
  store: Store,
  filter: JobFilter,
  place: string | undefined,
): Promise<boolean> {
  let after = place
  while (after !== undefined) {
    const page = await store.list(filter, { limit: 1, after })
    if (page.items.length > 0) return true
    after = page.next
  }
  return false
}
