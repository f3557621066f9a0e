/**
 * Retention, behind the contract of `../contract/retention.ts`. A step reads the next ended jobs,
 * archives those of its class, and removes them in a transaction that also keeps their keys. A
 * crash after the archive and before the removal archives them a second time.
 */
import type { Outcome } from '../../core/lifecycles/lifecycle.ts'
import { endedWordOf, lastLookOf } from '../../core/retention.ts'
import { type EndedRow, type PrunedJob, textOf } from '../archive.ts'
import { checkLimit, checkSweep } from '../contract/requests.ts'
import {
  type KeyRival,
  RETENTION_DUTY,
  type RemovedJob,
  type Retention,
  type SweepRequest,
  type Swept,
} from '../contract/retention.ts'
import type { Tx, Verb } from './operations.ts'
import { removePruned, withLines } from './prune.ts'
import type { TableAccess } from './run-tables.ts'

/** A key of a job type. */
export interface TypedKey {
  readonly type: string
  readonly key: string
}

/** The position of an ended job in the order of their ends; `ref` is a text as it was given. */
export interface EndedPosition {
  readonly endedAt: number
  readonly ref: string
}

/** The operations of these verbs. */
export interface RetentionOperations {
  /** Jobs that ended before a time, after a position, the oldest first. */
  endedAfter(
    after: EndedPosition | undefined,
    endedBefore: number,
    limit: number,
  ): readonly EndedRow[]
  countEnded(endedBefore: number, bound: number): number
  /** Keeps keys; an earlier job with the same key is replaced. */
  keepKeys(jobs: readonly RemovedJob[]): void
  /** Frees keys whose time is over. */
  freeRemovedKeys(limit: number): number
  /** The removed jobs that have these keys now. */
  removedJobs(keys: readonly TypedKey[]): readonly RemovedJob[]
  countKeys(bound: number): number
  /** Where the last holder of a duty stopped. */
  dutyCursor(name: string): string | undefined
  keyRivals(limit: number): readonly KeyRival[]
}

export class StoredRetention implements Retention {
  readonly #access: TableAccess

  constructor(access: TableAccess) {
    this.#access = access
  }

  async sweep(request: SweepRequest): Promise<Swept> {
    checkSweep(request)
    const { limit, after, archive, dryRun = false } = request
    const rows = await this.#access.look(function* (tx) {
      return yield* tx.endedAfter(positionIn(after), request.endedBefore, limit)
    })
    const own = rows.filter(isOf(request))
    const last = rows[rows.length - 1]
    const seen = {
      hasMore: rows.length === limit && limit > 0,
      ...(last !== undefined && { next: `${last.ended_at}:${last.ref}` }),
    }
    if (dryRun) {
      const keys = request.keysMs === undefined ? 0 : own.filter(({ key }) => key !== null).length
      return { removed: own.length, keys, characters: 0, ...seen }
    }
    const collected = await this.#access.look((tx) => withLines(tx, own))
    if (collected.length === 0) return { removed: 0, keys: 0, characters: 0, ...seen }
    if (archive !== undefined) await archive(textOf(collected))
    const removed = await this.#access.change('sweep', (tx) => remove(tx, collected, own, request))
    return { ...removed, characters: charactersOf(collected), ...seen }
  }

  async freeKeys(limit: number): Promise<number> {
    checkLimit(limit)
    return this.#access.change('freeKeys', function* (tx) {
      return yield* tx.freeRemovedKeys(limit)
    })
  }

  removedJob(type: string, key: string): Promise<RemovedJob | undefined> {
    return this.#access.look(function* (tx) {
      const [removed] = yield* tx.removedJobs([{ type, key }])
      return removed
    })
  }

  countEnded(endedBefore: number, bound: number): Promise<number> {
    return this.#access.look(function* (tx) {
      return yield* tx.countEnded(endedBefore, bound)
    })
  }

  countKeys(bound: number): Promise<number> {
    return this.#access.look(function* (tx) {
      return yield* tx.countKeys(bound)
    })
  }

  lastLook(): Promise<number | undefined> {
    return this.#access.look(function* (tx) {
      return lastLookOf(yield* tx.dutyCursor(RETENTION_DUTY))
    })
  }

  rivals(limit: number): Promise<KeyRival[]> {
    return this.#access.look(function* (tx) {
      return [...(yield* tx.keyRivals(limit))]
    })
  }
}

/** A text that is not a position counts as none: the pass then starts at the first job. */
function positionIn(after: string | undefined): EndedPosition | undefined {
  const match = /^(\d{1,15}):(.+)$/.exec(after ?? '')
  return match === null ? undefined : { endedAt: Number(match[1]), ref: match[2] as string }
}

/** Whether an ended job belongs to a class. */
function isOf({ outcome, types }: SweepRequest): (row: EndedRow) => boolean {
  const known = types && new Set(types)
  return (row) =>
    endedWordOf(row.outcome as Outcome, row.reason) === outcome && known?.has(row.type) !== false
}

function remove(
  tx: Tx,
  collected: readonly PrunedJob[],
  rows: readonly EndedRow[],
  { endedBefore, archive, keysMs, by }: SweepRequest,
): Verb<Pick<Swept, 'removed' | 'keys'>> {
  const removing = { endedBefore, archived: archive !== undefined, ...(by && { by }) }
  const byRef = new Map(rows.map((row) => [row.ref, row]))
  return removePruned(tx, collected, removing, (removed) =>
    removed.flatMap(({ ref }) => {
      const row = byRef.get(ref) as EndedRow
      const keepUntil = row.ended_at + (keysMs ?? 0)
      if (row.key === null || keepUntil <= tx.now) return []
      const { id, type, key, ended_at: endedAt } = row
      return [{ id, type, key, outcome: row.outcome as Outcome, endedAt, keepUntil }]
    }),
  )
}

function charactersOf(collected: readonly PrunedJob[]): number {
  let sum = 0
  for (const { lines } of collected) for (const line of lines) sum += line.length
  return sum
}
