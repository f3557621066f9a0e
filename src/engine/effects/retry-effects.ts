/**
 * Effects that operators try again: those that are parked, or that wait for their next try. Chosen
 * by their keys or by a filter, which is walked from the newest to the oldest, each effect once.
 */
import { CommandInvalid } from '../../core/errors.ts'
import type { Asker, EffectFilter, Store } from '../../stores/store.ts'
import { pagesOf } from '../pages.ts'

/** One effect by its key, several by theirs, or those that a filter shows, newest first. */
export type EffectSelection =
  | string
  | { readonly keys: readonly string[] }
  | { readonly filter: EffectFilter; readonly limit?: number }

/** What became of the effects that were selected. */
export interface EffectsReport {
  readonly dryRun: boolean
  readonly matched: number
  /** Due now, with fresh tries. In a dry run, those that were not delivered. */
  readonly done: number
  /** Not there, delivered, being delivered, or due already. */
  readonly same: number
  /** The first of the keys that were selected. */
  readonly sample: readonly string[]
  /** The limit, or the signal, ended it although there are more effects. */
  readonly more: boolean
}

const BATCH = 100
const KEYS_MAX = 10_000
const SAMPLE_MAX = 20
const FIELDS = ['jobId', 'state', 'type']

/** Retries effects, a bounded number in one transaction. */
export async function retryEffects(
  store: Store,
  asker: Asker,
  selection: EffectSelection,
  { dryRun = false, signal }: { readonly dryRun?: boolean; readonly signal?: AbortSignal } = {},
): Promise<EffectsReport> {
  checkSelection(selection)
  const report = { dryRun, matched: 0, done: 0, same: 0, sample: [] as string[], more: false }
  for await (const { keys, open, more } of batchesOf(store, selection)) {
    if (signal?.aborted) return { ...report, more: true }
    const retried = dryRun ? open : (await store.retryEffects(keys, asker)).filter(Boolean).length
    report.matched += keys.length
    report.done += retried
    report.same += keys.length - retried
    report.sample.push(...keys.slice(0, SAMPLE_MAX - report.sample.length))
    report.more ||= more
  }
  return report
}

/** A field that is misspelt or undefined would widen the selection to everything. */
function checkSelection(selection: EffectSelection): void {
  if (typeof selection === 'string') return
  if (typeof selection !== 'object' || selection === null) {
    throw new CommandInvalid('selection', 'must be a key, { keys } or { filter }')
  }
  if ('keys' in selection) {
    if (Array.isArray(selection.keys) && selection.keys.length <= KEYS_MAX) return
    throw new CommandInvalid('keys', `must be a list of at most ${KEYS_MAX}`)
  }
  const { filter, limit } = selection
  if (typeof filter !== 'object' || filter === null) {
    throw new CommandInvalid('filter', 'must be an object')
  }
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1)) {
    throw new CommandInvalid('limit', 'must be a whole number from 1')
  }
  for (const [field, value] of Object.entries(filter)) {
    if (!FIELDS.includes(field)) throw new CommandInvalid(`filter.${field}`, 'is not known')
    if (typeof value !== 'string' || value === '') {
      throw new CommandInvalid(`filter.${field}`, 'must not be empty')
    }
  }
}

interface Batch {
  readonly keys: readonly string[]
  /** How many of them were not delivered when they were read. */
  readonly open: number
  readonly more: boolean
}

async function* batchesOf(store: Store, selection: EffectSelection): AsyncGenerator<Batch> {
  if (typeof selection === 'string') yield { keys: [selection], open: 1, more: false }
  else if ('keys' in selection) {
    const keys = [...new Set(selection.keys)]
    for (let at = 0; at < keys.length; at += BATCH) {
      const some = keys.slice(at, at + BATCH)
      yield { keys: some, open: some.length, more: false }
    }
  } else yield* byFilter(store, selection.filter, selection.limit)
}

async function* byFilter(
  store: Store,
  filter: EffectFilter,
  limit?: number,
): AsyncGenerator<Batch> {
  const ask = (page: { limit: number; after?: string }) => store.listEffects(filter, page)
  const walk = { size: BATCH, ...(limit !== undefined && { limit }) }
  for await (const { items, after, isFull } of pagesOf(ask, walk)) {
    const open = items.filter(({ state }) => state !== 'delivered').length
    yield { keys: items.map(({ key }) => key), open, more: isFull && after !== undefined }
  }
}
