/**
 * Changes of a queue's settings, and the records of them; the same rules in every store.
 *
 * A record says who changed a queue, when and why, and its settings before and after. A request
 * that changes nothing writes nothing: a program that sets the same bounds at every start leaves
 * one record, and a repeated request whose reply was lost leaves no second one. Records are never
 * changed or deleted, also not by retention.
 */
import { count, findBroken, NOTE_MAX, name, oneOf, optional, text } from '../core/checks.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'
import { ACTORS, type ActorKind } from '../core/job/facts.ts'
import { DELAY_MAX_MS } from '../core/retry.ts'
import type { QueueLimits, Requester } from './contract/store.ts'
import type { QueueRow } from './queue-info.ts'

/** The settings of a queue; `null` if it is not paused or has no such bound. */
export interface QueueSettings {
  readonly pausedAt: number | null
  readonly maxDepth: number | null
  readonly maxWaitMs: number | null
}

/** One change of a queue's settings. */
export interface QueueRecord {
  /** Grows with every record of the store; gaps are possible. */
  readonly number: number
  readonly at: number
  readonly queue: string
  /** The verb that changed it. */
  readonly action: 'pause' | 'resume' | 'limit'
  readonly actor: ActorKind
  readonly operator?: string
  /** Why, in the operator's words. */
  readonly note?: string
  readonly before: QueueSettings
  readonly after: QueueSettings
}

/** Which records are listed; those of every queue if it is empty. */
export interface QueueRecordFilter {
  readonly queue?: string
}

/** A change that is asked for. */
export type QueueChange =
  | { readonly action: 'pause' | 'resume'; readonly queue: string }
  | { readonly action: 'limit'; readonly queue: string; readonly limits: QueueLimits }

/** A record as both databases store it. */
export interface QueueRecordRow {
  readonly number: number
  readonly at: number
  readonly queue: string
  readonly action: QueueRecord['action']
  readonly actor: ActorKind
  readonly operator: string | null
  readonly note: string | null
  readonly paused_at_before: number | null
  readonly paused_at: number | null
  readonly max_depth_before: number | null
  readonly max_depth: number | null
  readonly max_wait_ms_before: number | null
  readonly max_wait_ms: number | null
}

/** The columns of a record but its number, in the order of `valuesOf`. */
export const QUEUE_RECORD_COLUMNS = `at, queue, action, actor, operator, note,
  paused_at_before, paused_at, max_depth_before, max_depth, max_wait_ms_before, max_wait_ms`

/** A bound on a queue is checked by counting jobs, so it must not be larger than this. */
const DEPTH_MAX = 1_000_000

const LIMITS: FieldChecks<QueueLimits> = {
  maxDepth: (max: number | null) => optional(max ?? undefined, (n) => count(n, 0, DEPTH_MAX)),
  maxWaitMs: (max: number | null) => optional(max ?? undefined, (n) => count(n, 0, DELAY_MAX_MS)),
}

const FILTER: FieldChecks<QueueRecordFilter> = { queue: name }

/** Throws `CommandInvalid` if a change cannot be made. An operator needs a name and a reason. */
export function checkQueueChange(change: QueueChange, requester: Requester): void {
  const { actor, operator, note } = requester
  const isOperator = actor === 'operator'
  const rules = [
    ['queue', name(change.queue)],
    ['actor', oneOf(actor, ACTORS)],
    ['operator', isOperator ? name(operator) : optional(operator, name)],
    ['note', isOperator ? noteText(note) : optional(note, noteText)],
  ] as const
  const broken = findBroken(rules)
  if (broken !== undefined) throw broken
  if (change.action === 'limit') {
    checkFields(change.limits, LIMITS, { what: 'limits' })
  }
}

function noteText(note: string | undefined): string | undefined {
  return text(note, NOTE_MAX)
}

/** Throws `CommandInvalid` if a filter of records is not one. */
export function checkQueueRecordFilter(filter: QueueRecordFilter): void {
  checkFields(filter, FILTER, { what: 'filter', refuseUndefined: true })
}

/** The settings of a queue that was never changed. */
export const UNSET: QueueSettings = { pausedAt: null, maxDepth: null, maxWaitMs: null }

/** The settings that the row of a queue holds; a queue that was never changed has no row. */
export function settingsOf(row: QueueRow | undefined): QueueSettings {
  if (row === undefined) return UNSET
  return { pausedAt: row.paused_at, maxDepth: row.max_depth, maxWaitMs: row.max_wait_ms }
}

/** The settings after a change; `undefined` if they stay the same. */
export function settingsAfter(
  before: QueueSettings,
  change: QueueChange,
  now: number,
): QueueSettings | undefined {
  if (change.action !== 'limit') {
    const isPause = change.action === 'pause'
    if (isPause !== (before.pausedAt === null)) return undefined
    return { ...before, pausedAt: isPause ? now : null }
  }
  const { maxDepth = before.maxDepth, maxWaitMs = before.maxWaitMs } = change.limits
  const isSame = maxDepth === before.maxDepth && maxWaitMs === before.maxWaitMs
  return isSame ? undefined : { ...before, maxDepth, maxWaitMs }
}

/** The record of a change, before it has a number. */
export function recordOf(
  { queue, action }: QueueChange,
  { actor, operator, note }: Requester,
  at: number,
  before: QueueSettings,
  after: QueueSettings,
): Omit<QueueRecord, 'number'> {
  return {
    at,
    queue,
    action,
    actor,
    ...(operator !== undefined && { operator }),
    ...(note !== undefined && { note }),
    before,
    after,
  }
}

/** The note about a queue whose settings the doctor restored. */
export const RESTORED = 'its settings were not those of its last record'

/** Who has paused a queue after this record, by the record or by the row of the queue. */
export function pausedByAfter(
  { action, actor, operator, after }: QueueRecord,
  row: QueueRow | undefined,
): string | null {
  if (action !== 'limit') return operator ?? actor
  return after.pausedAt === null ? null : (row?.paused_by ?? null)
}

/** The values of a record, in the order of `QUEUE_RECORD_COLUMNS`. */
export function valuesOf(record: Omit<QueueRecord, 'number'>): (string | number | null)[] {
  const { at, queue, action, actor, operator = null, note = null, before, after } = record
  return [
    ...[at, queue, action, actor, operator, note],
    ...[before.pausedAt, after.pausedAt],
    ...[before.maxDepth, after.maxDepth],
    ...[before.maxWaitMs, after.maxWaitMs],
  ]
}

/** A record as it was stored. */
function toQueueRecord(row: QueueRecordRow): QueueRecord {
  const { number, at, queue, action, actor, operator, note } = row
  return {
    number,
    at,
    queue,
    action,
    actor,
    ...(operator !== null && { operator }),
    ...(note !== null && { note }),
    before: {
      pausedAt: row.paused_at_before,
      maxDepth: row.max_depth_before,
      maxWaitMs: row.max_wait_ms_before,
    },
    after: { pausedAt: row.paused_at, maxDepth: row.max_depth, maxWaitMs: row.max_wait_ms },
  }
}

const PAGE_DEFAULT = 50
const PAGE_MAX = 1000

/** How many records a page has. */
export function pageSizeOf(limit: number | undefined): number {
  return Math.min(limit ?? PAGE_DEFAULT, PAGE_MAX)
}

/** The page of these rows; one more than `size` was read. */
export function toRecordPage(
  rows: readonly QueueRecordRow[],
  size: number,
): { readonly items: QueueRecord[]; readonly next?: string } {
  const items = rows.slice(0, size).map(toQueueRecord)
  const last = items.at(-1)
  return rows.length > size && last !== undefined ? { items, next: String(last.number) } : { items }
}
