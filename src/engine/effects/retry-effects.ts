/**
 * Makes effects due again that are parked or wait for their next try. The caller selects them by
 * key or by filter. A filter is walked from the newest to the oldest effect, and each effect is
 * retried once.
 */
import { abortSignal, count, flag, listOf } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import { checkEffectFilter } from '../../stores/contract/filters.ts'
import type { EffectFilter, EffectInfo, Requester, Store } from '../../stores/contract/store.ts'
import { canRetry, parseKey } from '../../stores/effects.ts'
import { EffectDelivered, EffectNotFound } from '../errors.ts'
import { checkNotEmpty } from '../operators/selection.ts'
import { pagesOf } from '../pages.ts'

/**
 * One effect by its key, several by their keys, those that match a filter, or all; newest first.
 */
export type EffectSelection =
  | string
  | { readonly keys: readonly string[] }
  | ({ readonly filter: EffectFilter } & Part)
  | ({ readonly all: true } & Part)

interface Part {
  /** The largest number of effects to retry. */
  readonly limit?: number
}

interface RetryEffectsOptions {
  readonly dryRun?: boolean
  readonly signal?: AbortSignal
}

/** The result of `retryEffects`. */
export interface EffectsReport {
  readonly dryRun: boolean
  readonly matched: number
  /** Effects that are due now with fresh tries; in a dry run, those that would be. */
  readonly done: number
  /** Effects that are being delivered or due already; with a filter also delivered ones. */
  readonly same: number
  /** Keys of effects that were delivered, or that do not exist. */
  readonly refused: number
  /** The first of these. */
  readonly refusals: readonly EffectRefusal[]
  /** The first keys of the selection. */
  readonly sample: readonly string[]
  /** In a dry run by a filter: the selected keys, at most 10,000. */
  readonly keys?: readonly string[]
  /** Whether effects are left, because `limit` was reached or `signal` was aborted. */
  readonly more: boolean
}

/** An effect that was named, and that cannot be retried. */
interface EffectRefusal {
  readonly key: string
  readonly code: string
  readonly message: string
  readonly hint: string
}

const BATCH = 100
const JOB_PAGE = 1000
const KEYS_MAX = 10_000
const SAMPLE_MAX = 20

/**
 * Retries effects, a bounded number per transaction. A single key that cannot be retried throws
 * `EffectNotFound` or `EffectDelivered`.
 */
export async function retryEffects(
  store: Store,
  requester: Requester,
  selection: EffectSelection,
  options: RetryEffectsOptions = {},
): Promise<EffectsReport> {
  checkFields(options, OPTIONS, { what: 'options' })
  checkSelection(selection)
  const { dryRun = false, signal } = options
  const counts = { matched: 0, done: 0, same: 0, refused: 0 }
  const [sample, refusals]: [string[], EffectRefusal[]] = [[], []]
  const report = { dryRun, ...counts, refusals, sample, more: false }
  const isBulk = typeof selection === 'object' && !('keys' in selection)
  const listed: string[] = []
  for await (const { keys, more } of batchesOf(store, selection)) {
    if (signal?.aborted) return { ...report, more: true }
    const became = dryRun ? await foresee(store, keys) : await store.retryEffects(keys, requester)
    const retried = became.filter(Boolean).length
    const left = keys.filter((_, i) => !became[i])
    const errors = isBulk ? [] : await findRefusals(store, left)
    const [only] = errors
    if (typeof selection === 'string' && only !== undefined) throw only
    if (dryRun && isBulk) listed.push(...keys.slice(0, KEYS_MAX - listed.length))
    report.matched += keys.length
    report.done += retried
    report.same += left.length - errors.length
    report.refused += errors.length
    refusals.push(...errors.slice(0, SAMPLE_MAX - refusals.length).map(toldOf))
    report.sample.push(...keys.slice(0, SAMPLE_MAX - report.sample.length))
    report.more ||= more
  }
  return dryRun && isBulk ? { ...report, keys: listed } : report
}

/** Returns for each key whether the effect would become due. */
async function foresee(store: Store, keys: readonly string[]): Promise<boolean[]> {
  const effects = await effectsOf(store, keys)
  return keys.map((key) => {
    const effect = effects.get(key)
    return effect !== undefined && canRetry(effect, store.now())
  })
}

/** The errors of effects that were not made due because they do not exist or were delivered. */
async function findRefusals(
  store: Store,
  keys: readonly string[],
): Promise<(EffectNotFound | EffectDelivered)[]> {
  const effects = await effectsOf(store, keys)
  return keys.flatMap((key): (EffectNotFound | EffectDelivered)[] => {
    const effect = effects.get(key)
    if (effect === undefined) return [new EffectNotFound(key)]
    return effect.state === 'delivered' ? [new EffectDelivered(key)] : []
  })
}

function toldOf(error: EffectNotFound | EffectDelivered): EffectRefusal {
  const { code, message, hint, details } = error
  return { key: String(details.key), code, message, hint }
}

/** The effects of all jobs that the keys name, by key. */
async function effectsOf(
  store: Store,
  keys: readonly string[],
): Promise<ReadonlyMap<string, EffectInfo>> {
  const jobs = new Set(keys.flatMap((key) => parseKey(key)?.jobId ?? []))
  const found = new Map<string, EffectInfo>()
  for (const jobId of jobs) {
    const ask = (page: { limit: number; after?: string }) => store.listEffects({ jobId }, page)
    for await (const { items } of pagesOf(ask, { size: JOB_PAGE })) {
      for (const effect of items) found.set(effect.key, effect)
    }
  }
  return found
}

const PART: FieldChecks<Part> = { limit: (value) => count(value, 1, Number.MAX_SAFE_INTEGER) }
const OPTIONS: FieldChecks<RetryEffectsOptions> = { dryRun: flag, signal: abortSignal }

function checkSelection(selection: EffectSelection): void {
  if (typeof selection === 'string') return
  const isObject = typeof selection === 'object' && selection !== null
  const ways = isObject ? ['keys', 'filter', 'all'].filter((way) => way in selection) : []
  const rules = { what: 'selection', refuseUndefined: true }
  if (ways.length !== 1) {
    throw new CommandInvalid('selection', 'must be a key, { keys }, { filter } or { all: true }')
  }
  if ('keys' in selection) {
    checkFields(selection, { keys: keyList }, rules)
    return
  }
  if ('all' in selection) {
    checkFields(selection, { all: flag, ...PART }, rules)
    if (!selection.all) throw new CommandInvalid('all', 'must be true')
    return
  }
  checkFields(selection, { filter: unchecked, ...PART }, rules)
  checkEffectFilter(selection.filter, 'filter.')
  checkNotEmpty(selection.filter)
}

function keyList(keys: readonly string[]): string | undefined {
  return listOf(keys, KEYS_MAX, (key) => (typeof key === 'string' ? undefined : 'must be texts'))
}

interface Batch {
  readonly keys: readonly string[]
  readonly more: boolean
}

async function* batchesOf(store: Store, selection: EffectSelection): AsyncGenerator<Batch> {
  if (typeof selection === 'string') yield { keys: [selection], more: false }
  else if ('keys' in selection) {
    const keys = [...new Set(selection.keys)]
    for (let at = 0; at < keys.length; at += BATCH) {
      yield { keys: keys.slice(at, at + BATCH), more: false }
    }
  } else {
    yield* byFilter(store, 'filter' in selection ? selection.filter : {}, selection.limit)
  }
}

async function* byFilter(
  store: Store,
  filter: EffectFilter,
  limit?: number,
): AsyncGenerator<Batch> {
  const ask = (page: { limit: number; after?: string }) => store.listEffects(filter, page)
  const walk = { size: BATCH, ...(limit !== undefined && { limit }) }
  for await (const { items, after, isFull } of pagesOf(ask, walk)) {
    yield { keys: items.map(({ key }) => key), more: isFull && after !== undefined }
  }
}
