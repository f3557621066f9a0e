/**
 * Which jobs an operator means: one, several, or all that a filter shows. A filter is walked page
 * by page from the newest job to the oldest, by a key that never changes: a job is met once however
 * its state moves meanwhile, and jobs that are accepted after the walk began are not met at all.
 */
import { count, flag, listOf } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Job } from '../../core/job/job.ts'
import { checkJobFilter } from '../../stores/filters.ts'
import type { JobFilter, Store } from '../../stores/store.ts'
import { pagesOf } from '../pages.ts'
import { LISTED_MAX } from './report.ts'

/** One job by its id, several by theirs, those that a filter shows, or all; newest first. */
export type Selection =
  | string
  | { readonly ids: readonly string[] }
  | ({ readonly filter: JobFilter } & Part)
  | ({ readonly all: true } & Part)

/** Which part of a filter, or of all jobs, is meant. */
interface Part {
  /** At most so many jobs. */
  readonly limit?: number
  /**
   * Only these, in general the `ids` of a dry run with the same filter. One that the filter no
   * longer shows is reported as `E_JOB_CHANGED`, and not changed.
   */
  readonly among?: readonly string[]
}

/** How many jobs are read and changed at once: one page, one transaction. */
const BATCH = 100
const IDS_MAX = 10_000

/** A part of a selection: the jobs that are there, and the ids of which there are none. */
export interface Batch {
  readonly jobs: readonly Job[]
  readonly missing: readonly string[]
  /** Listed before, and no longer shown by the filter. */
  readonly moved?: readonly string[]
  /** Whether the limit ends the selection here although more jobs match. */
  readonly more: boolean
  /** Whether these jobs are meant only as they were read: others may have moved them since. */
  readonly isGuarded: boolean
}

/** The jobs of a selection as they are when their turn comes. */
export async function* batchesOf(store: Store, selection: Selection): AsyncGenerator<Batch> {
  if (typeof selection === 'string') yield await readBatch(store, [selection])
  else if ('ids' in selection) yield* byIds(store, selection.ids)
  else yield* byFilter(store, filterOf(selection), selection)
}

function filterOf(selection: Exclude<Selection, string | { ids: unknown }>): JobFilter {
  return 'filter' in selection ? selection.filter : {}
}

/** Any text, or what is no text: whether a job has this id is found out when it is looked for. */
const idList = (max: number) => (ids: readonly string[]) => listOf(ids, max, unchecked)

const PART: FieldChecks<Part> = {
  limit: (value) => count(value, 1, Number.MAX_SAFE_INTEGER),
  among: idList(LISTED_MAX),
}

/** Refuses a selection that says less, or something else, than its author may think. */
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

/** An empty filter is a mistake more often than a wish to change everything. */
export function checkNotEmpty(filter: object): void {
  if (Object.keys(filter).length > 0) return
  throw new CommandInvalid('filter', 'has no condition; to select everything, say { all: true }')
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
  return {
    jobs,
    missing: ids.filter((id) => !found.has(id)).map(String),
    more: false,
    isGuarded: false,
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
