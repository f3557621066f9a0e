/**
 * Selects jobs by id, by several ids, or by a filter. A filter is read page by page from the newest
 * job to the oldest, by a key that never changes. So each job is read once, also if its state
 * changes meanwhile, and jobs enqueued after the start are not read.
 */
import { count, flag, listOf } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Job } from '../../core/job/job.ts'
import { checkJobFilter } from '../../stores/contract/filters.ts'
import type { JobFilter, Store } from '../../stores/contract/store.ts'
import { JobDamaged } from '../../stores/errors.ts'
import { pagesOf } from '../pages.ts'
import { LISTED_MAX } from './report.ts'

/** One job by its id, several by their ids, those that match a filter, or all; newest first. */
export type Selection =
  | string
  | { readonly ids: readonly string[] }
  | ({ readonly filter: JobFilter } & Part)
  | ({ readonly all: true } & Part)

interface Part {
  /** The largest number of jobs. */
  readonly limit?: number
  /**
   * Only these jobs: usually `ids` from a dry run with the same filter. A job that no longer
   * matches the filter is reported as `E_JOB_CHANGED` and not changed.
   */
  readonly among?: readonly string[]
}

/** How many jobs are read and changed in one transaction. */
const BATCH = 100
const IDS_MAX = 10_000

/** A part of a selection: the jobs found, and the ids without a job. */
export interface Batch {
  readonly jobs: readonly Job[]
  readonly missing: readonly string[]
  /** Why jobs that were asked for by their ids cannot be read. */
  readonly damaged?: readonly JobDamaged[]
  /** Ids of `among` that no longer match the filter. */
  readonly moved?: readonly string[]
  /** Whether `limit` ends the selection although more jobs match. */
  readonly more: boolean
  /** Whether a job is changed only if its `seq` is still the one that was read. */
  readonly isGuarded: boolean
}

/** Reads the selected jobs batch by batch. */
export async function* batchesOf(store: Store, selection: Selection): AsyncGenerator<Batch> {
  if (typeof selection === 'string') yield await readBatch(store, [selection])
  else if ('ids' in selection) yield* byIds(store, selection.ids)
  else yield* byFilter(store, filterOf(selection), selection)
}

function filterOf(selection: Exclude<Selection, string | { ids: unknown }>): JobFilter {
  return 'filter' in selection ? selection.filter : {}
}

/** Values are not checked: an id without a job, or of a wrong type, is reported as missing. */
const idList = (max: number) => (ids: readonly string[]) => listOf(ids, max, unchecked)

const PART: FieldChecks<Part> = {
  limit: (value) => count(value, 1, Number.MAX_SAFE_INTEGER),
  among: idList(LISTED_MAX),
}

/** Throws `CommandInvalid` for a selection that is ambiguous, empty or has unknown fields. */
export function checkSelection(selection: Selection): void {
  if (typeof selection === 'string') return
  const isObject = typeof selection === 'object' && selection !== null
  const ways = isObject ? ['ids', 'filter', 'all'].filter((way) => way in selection) : []
  const rules = { what: 'selection', refuseUndefined: true }
  if (ways.length !== 1) {
    throw new CommandInvalid('selection', 'must be an id, { ids }, { filter } or { all: true }')
  }
  if ('ids' in selection) {
    checkFields(selection, { ids: idList(IDS_MAX) }, rules)
    return
  }
  if ('all' in selection) {
    checkFields(selection, { all: flag, ...PART }, rules)
    if (!selection.all) throw new CommandInvalid('all', 'must be true')
  } else {
    checkFields(selection, { filter: unchecked, ...PART }, rules)
    checkJobFilter(selection.filter, 'filter.')
    checkNotEmpty(selection.filter)
  }
  if (selection.among !== undefined && selection.limit !== undefined) {
    throw new CommandInvalid('among', 'must not be given together with limit')
  }
}

/** An empty filter would select all jobs, and is mostly a mistake. */
export function checkNotEmpty(filter: object): void {
  if (Object.keys(filter).length > 0) return
  throw new CommandInvalid('filter', 'has no condition; to select everything, use { all: true }')
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
  const unread = ids.filter((id) => !found.has(id)).map(String)
  const damaged = (await Promise.all(unread.map((id) => damageOf(store, id)))).flat()
  const named = new Set(damaged.map(({ details }) => details.jobId))
  return {
    jobs,
    missing: unread.filter((id) => !named.has(id)),
    damaged,
    more: false,
    isGuarded: false,
  }
}

/** Reads of many jobs leave out those that cannot be read; the read of one says why. */
async function damageOf(store: Store, id: string): Promise<JobDamaged[]> {
  try {
    await store.get(id)
    return []
  } catch (error) {
    if (error instanceof JobDamaged) return [error]
    throw error
  }
}

async function* byFilter(
  store: Store,
  filter: JobFilter,
  { limit, among }: Part,
): AsyncGenerator<Batch> {
  const ask = (page: { limit: number; after?: string }) => store.list(filter, page)
  const walk = { size: BATCH, ...(limit !== undefined && { limit }) }
  const left = among && new Set(among)
  for await (const { items, after, isFull } of pagesOf(ask, walk)) {
    const jobs = left === undefined ? items : items.filter(({ id }) => left.delete(id))
    const more = isFull && (await hasMore(store, filter, after))
    if (jobs.length > 0 || more) yield { jobs, missing: [], more, isGuarded: true }
    if (left?.size === 0) return
  }
  if (left !== undefined && left.size > 0) {
    yield { jobs: [], missing: [], moved: [...left].map(String), more: false, isGuarded: true }
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
