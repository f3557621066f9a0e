/**
 * Effects as rows of the outbox, the same in every store.
 *
 * An effect is delivered under the key of its row: job id, name and number. Its receiver recognises
 * a repetition by that key, so a row that was changed must not be delivered. `mark` contains the
 * key under which the effect was declared, and a checksum of key, type and payload.
 */
import { crc32 } from 'node:zlib'
import type { StrayEffect } from './contract/examination.ts'
import type {
  EffectFilter,
  EffectInfo,
  EffectReport,
  EffectState,
  HeldEffect,
  Page,
  Requester,
} from './contract/store.ts'

/** The row of an effect, with the id of its job. */
export interface EffectRow {
  readonly eid: number
  readonly job_id: string
  readonly type: string
  readonly name: string
  readonly n: number
  readonly state: EffectState
  readonly tries: number
  readonly run_at: number
  readonly error: string | null
  readonly payload: string
  readonly claim: string | null
  /** Null in rows of releases that wrote none. */
  readonly mark: string | null
}

/** The state that a report leaves an effect in. */
export const STATE_AFTER: Readonly<Record<EffectReport['kind'], EffectState>> = {
  delivered: 'delivered',
  retry: 'pending',
  released: 'pending',
  parked: 'parked',
}

/** Why an effect is parked whose row does not refer to a job of its type. */
export const ORPHANED = 'its job is missing, or is of another type'

/** Why an effect is parked whose row is not as it was declared. */
export const ALTERED = 'its row is not what was declared under its key'

/** The note about an effect that the doctor moved back under its key. */
export const RETURNED = 'it was not under the key of its mark'

/** The mark of an effect that is declared. */
export function markOf(effect: Pick<EffectRow, 'job_id' | 'type' | 'name' | 'n' | 'payload'>) {
  const key = keyOf(effect)
  const sum = crc32(`${key} ${effect.type} ${effect.payload}`)
  return `${key}-${sum.toString(16).padStart(8, '0')}`
}

/** The key under which an effect was declared; `undefined` without a mark, or if it is damaged. */
function keyInMark(mark: string | null): EffectKey | undefined {
  return mark === null ? undefined : parseKey(mark.slice(0, -9))
}

type Candidate = Omit<StrayEffect, 'declared'> & Pick<EffectRow, 'payload'>

/**
 * Returns rows that disagree with their marks, with the key that each mark contains. A mark counts
 * only if its checksum agrees with the rest of the row under that key. Otherwise the mark or the
 * payload was changed, and the declared key is not known.
 */
export function straysAmong(rows: readonly Candidate[]): StrayEffect[] {
  return rows.flatMap(({ payload, ...row }) => {
    const declared = keyInMark(row.mark)
    if (declared === undefined) return []
    const { jobId: job_id, name, n } = declared
    // The type of a notice is its name.
    const isOwn = [row.job_type, name].some((type) => {
      return markOf({ job_id, type, name, n, payload }) === row.mark
    })
    return isOwn ? [{ ...row, declared }] : []
  })
}

/** Why an effect must not be delivered; `undefined` if it may. */
export function strayWhy(row: Omit<EffectRow, 'job_id'> & { job_id: string | null }) {
  const { job_id, mark } = row
  if (job_id === null) return ORPHANED
  return mark === null || mark === markOf({ ...row, job_id }) ? undefined : ALTERED
}

/** The key is the same for every delivery: by it the receiver recognises a repetition. */
function keyOf({ job_id, name, n }: Pick<EffectRow, 'job_id' | 'name' | 'n'>): string {
  return `${job_id}/${name}/${n}`
}

/** The effect as a dispatcher holds it. */
export function toHeldEffect(claim: string, row: EffectRow): HeldEffect {
  return {
    ref: row.eid,
    claim,
    jobId: row.job_id,
    jobType: row.type,
    name: row.name,
    key: keyOf(row),
    payload: row.payload,
    tries: row.tries,
  }
}

/** The effect as an operator sees it. */
export function toEffectInfo(row: EffectRow): EffectInfo {
  return {
    key: keyOf(row),
    jobId: row.job_id,
    jobType: row.type,
    name: row.name,
    n: row.n,
    state: row.state,
    tries: row.tries,
    runAt: row.run_at,
    ...(row.claim !== null && { claimed: true as const }),
    ...(row.error !== null && { error: row.error }),
    payload: row.payload,
  }
}

/** An effect that a commit declares. */
interface Declared {
  readonly name: string
  readonly payload: string
}

/** Effects of a commit with their numbers: the same name again gets the next number. */
export function numbered(effects: readonly Declared[]): (Declared & { readonly n: number })[] {
  const numbers = new Map<string, number>()
  return effects.map(({ name, payload }) => {
    const n = (numbers.get(name) ?? 0) + 1
    numbers.set(name, n)
    return { name, n, payload }
  })
}

/** The parts of a key. A name may contain slashes; a job id and a number cannot. */
export interface EffectKey {
  readonly jobId: string
  readonly name: string
  readonly n: number
}

/** Whether `retryEffects` would make an effect due: the same condition as in its statements. */
export function canRetry(effect: EffectInfo, now: number): boolean {
  const { state, runAt, tries, claimed } = effect
  if (state === 'delivered' || (claimed && runAt > now)) return false
  return state === 'parked' || runAt > now || tries > 0
}

/** Parses a key; returns `undefined` if the text is not one. */
export function parseKey(key: string): EffectKey | undefined {
  const found = /^([0-9a-f-]{36})\/(.+)\/(\d{1,9})$/.exec(key)
  return found === null
    ? undefined
    : { jobId: found[1] as string, name: found[2] as string, n: Number(found[3]) }
}

/** The requester of a retry, with the effect, which the ledger records. */
export function requesterFor({ name, n }: EffectKey, requester: Requester): Requester {
  return { ...requester, metadata: { ...requester.metadata, effect: `${name}/${n}` } }
}

/** The columns that a list reads first: a whole effect may be large. */
export type SeenEffect = Pick<EffectRow, 'eid' | 'state' | 'type'>

const PAGE_DEFAULT = 50
const PAGE_MAX = 1000
/** How many rows are read between two checks of the time. */
export const SCAN_CHUNK = 1000

/** A page of a list of effects, newest first. */
export class EffectPage {
  /** The effects of the page, by number. */
  readonly found: number[] = []
  /** The page goes on below this number. */
  cursor: number
  readonly #filter: EffectFilter
  readonly #limit: number

  constructor(filter: EffectFilter, { limit, after }: { limit?: number; after?: string }) {
    this.#filter = filter
    this.#limit = Math.min(limit ?? PAGE_DEFAULT, PAGE_MAX)
    this.cursor = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after)
  }

  /** Adds rows, the newest first. Returns the rest of the page when it is complete. */
  look(
    rows: readonly SeenEffect[],
    isLast: boolean,
    isLate: boolean,
  ): Omit<Page<EffectInfo>, 'items'> | undefined {
    if (this.#limit === 0) return {}
    const { state, type } = this.#filter
    for (const row of rows) {
      this.cursor = row.eid
      const matches = (state ?? row.state) === row.state && (type ?? row.type) === row.type
      if (matches) this.found.push(row.eid)
      if (this.found.length >= this.#limit) return { next: String(this.cursor) }
    }
    if (isLast) return {}
    return isLate ? { next: String(this.cursor), partial: true } : undefined
  }

  /** Adds all effects of one job, which are few. */
  lookAtAll(rows: readonly SeenEffect[]): Omit<Page<EffectInfo>, 'items'> {
    const left = rows.filter(({ eid }) => eid < this.cursor).toSorted((a, b) => b.eid - a.eid)
    return this.look(left, true, false) ?? {}
  }
}
