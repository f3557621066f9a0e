/**
 * What an audit reads from the ledger: which facts, in which order, with or without their payloads.
 * The ledger is read in windows whose size does not depend on the filter, so that a rare match
 * cannot make one statement long. The database checks conditions on columns. Conditions on the JSON
 * of a fact or on its path are checked here; the database only narrows the search.
 */
import { type ActorKind, FACT_CODES, type Fact, type FactTrigger } from '../core/job/facts.ts'
import type { Page, TailEntry, UnreadableFact } from './contract/store.ts'
import { readFact } from './damage.ts'
import type { FactRow, Value } from './rows.ts'

/** Which facts an audit shows; conditions are combined. */
export interface AuditFilter {
  readonly jobId?: string
  readonly actor?: ActorKind
  /** The person who acted. */
  readonly operator?: string
  /** Whatever belongs to an attempt of this worker: its claims, reports, and their expiry. */
  readonly worker?: string
  /** What happened. */
  readonly trigger?: FactTrigger
  /** The state that the step left, at its beginning or on its way. */
  readonly fromState?: string
  /** The state that the step entered, on its way or at its end; after leaving `fromState`. */
  readonly toState?: string
  readonly reason?: string
  /** Not before this time, in milliseconds. */
  readonly from?: number
  /** Before this time. */
  readonly before?: number
}

/** How an audit is read. */
export interface AuditOptions {
  readonly limit?: number
  /** The position of the last entry, or of a page that ended there. */
  readonly after?: string
  /** `oldest` if absent: in the order of the ledger. */
  readonly order?: 'oldest' | 'newest'
  /** Also the payload of each fact. */
  readonly payloads?: boolean
}

/** A fact with its position in the ledger. */
export interface AuditEntry extends TailEntry {
  /** JSON text, or null if the fact has none; absent if payloads were not requested. */
  readonly payload?: string | null
}

/** What databases write differently. */
export interface AuditWords {
  /** Whether a text contains another. */
  readonly contains: (text: string, part: string) => string
  readonly ledger: string
}

/** A condition on the row `l` of the ledger, with one "?" for its value. */
export type Condition = readonly [sql: string, value: Value]

/** The conditions that the database can check, without the job. */
export function conditionsOf(filter: AuditFilter, words: AuditWords): Condition[] {
  const { actor, trigger, from, before, operator, reason, worker } = filter
  const { contains, ledger } = words
  const inData = contains(`coalesce(l.data, '')`, '?')
  const onPath = contains(`'>' || l.path || '>'`, '?')
  // Only a claim names its worker; what follows belongs to it until the next claim.
  const holder = `(SELECT c.worker FROM ${ledger} AS c
    WHERE c.job = l.job AND c.seq <= l.seq AND c.worker IS NOT NULL
    ORDER BY c.seq DESC LIMIT 1)`
  const all: [string, Value | undefined][] = [
    ['l.actor = ?', actor],
    ['l.kind = ?', trigger && FACT_CODES[trigger]],
    ['l.at >= ?', from],
    ['l.at < ?', before],
    [inData, fieldOf('operator', operator)],
    [inData, fieldOf('reason', reason)],
    [onPath, filter.fromState && `>${filter.fromState}>`],
    [onPath, filter.toState && `>${filter.toState}>`],
    [`(l.actor = 'worker' OR l.attempt IS NOT NULL) AND ${holder} = ?`, worker],
  ]
  return all.filter((condition): condition is [string, Value] => condition[1] !== undefined)
}

/** A field of a fact as `factData` writes it. */
function fieldOf(name: string, value: string | undefined): string | undefined {
  return value === undefined ? undefined : `"${name}":${JSON.stringify(value)}`
}

/** The conditions that need the whole fact. */
function isMeant({ operator, reason, fromState, toState }: AuditFilter, fact: Fact) {
  if (operator !== undefined && fact.operator !== operator) return false
  if (reason !== undefined && fact.reason !== reason) return false
  return fromState === undefined && toState === undefined
    ? true
    : hasMoved(fact, fromState, toState)
}

/** Whether a step left one state and, after that, entered the other. */
function hasMoved(fact: Fact, from: string | undefined, to: string | undefined): boolean {
  // It stayed where it was: no edge was taken.
  if (fact.from === fact.to && fact.via === undefined) return false
  const states = [fact.from, ...(fact.via ?? []), fact.to]
  const left = from === undefined ? 0 : states.indexOf(from)
  if (left < 0 || left === states.length - 1) return false
  return to === undefined || states.indexOf(to, left + 1) > 0
}

/** The columns of a fact; the payload only if it is requested. */
export function columnsOf({ payloads }: AuditOptions): string {
  const columns = ['seq', 'kind', 'version', 'at', 'path', 'actor', 'attempt', 'statuses', 'claim']
  const more = ['worker', 'lease_until', 'data', ...(payloads ? ['payload'] : [])]
  return [...columns, ...more].map((column) => `l.${column}`).join(', ')
}

/** A row of the ledger with its position; without an id if its job is gone. */
export type AuditRow = FactRow & {
  readonly position: string
  readonly job_id: string | null
  readonly payload?: string | null
}

const PAGE_DEFAULT = 50
const PAGE_MAX = 1000

/** A page while it is being filled. */
export class AuditPage {
  /** How many facts are read between two checks of the time; fewer with payloads. */
  readonly chunk: number
  readonly #filter: AuditFilter
  readonly #limit: number
  readonly #items: AuditEntry[] = []
  /** A fact that cannot be read is always shown, because the filter cannot be applied to it. */
  readonly #unreadable: UnreadableFact[] = []

  constructor(filter: AuditFilter, { limit = PAGE_DEFAULT, payloads }: AuditOptions) {
    this.#filter = filter
    this.#limit = Math.min(limit, PAGE_MAX)
    const most = payloads ? 100 : 1000
    // If only times are asked for, nearly every fact that is read is shown.
    const isWide = Object.keys(filter).every((name) => name === 'from' || name === 'before')
    this.chunk = isWide ? Math.max(1, Math.min(most, this.#limit)) : most
  }

  get isFull(): boolean {
    return this.#items.length >= this.#limit
  }

  /** Adds the rows that match; returns the page when it is full. */
  take(rows: readonly AuditRow[]): Page<AuditEntry> | undefined {
    for (const row of rows) {
      // A fact without its job cannot say whose it was; seals notice that it is missing.
      if (row.job_id === null) continue
      const { position: pos, payload } = row
      const read = readFact(pos, row.job_id, row)
      if ('unreadable' in read) {
        this.#unreadable.push(read)
        continue
      }
      const { fact } = read
      if (!isMeant(this.#filter, fact)) continue
      this.#items.push({ pos, fact, ...(payload !== undefined && { payload }) })
      if (this.isFull) return { ...this.#page, next: pos }
    }
    return undefined
  }

  /** The page as it is; with a cursor if there may be more. */
  end(next?: string): Page<AuditEntry> {
    if (next === undefined) return this.#page
    return { ...this.#page, next, partial: true }
  }

  get #page(): Page<AuditEntry> {
    const unreadable = this.#unreadable
    return { items: this.#items, ...(unreadable.length > 0 && { unreadable }) }
  }
}
