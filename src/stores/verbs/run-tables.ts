/**
 * The tables of runs, behind the contract of `../contract/runs.ts`.
 *
 * If the reply to a write is lost, PostgreSQL runs the verb again with `redo`. The verb recognizes
 * what the first try wrote by the fence, by the hash of the last event, or by the text of the last
 * line: each of them contains an id that is never used twice.
 */
import { isEndless } from '../../core/job/fence.ts'
import type {
  Addition,
  Content,
  Hold,
  HoldOptions,
  NewRun,
  RunLease,
  RunRow,
  RunTables,
} from '../contract/runs.ts'
import type { VerbName } from '../verb-table.ts'
import type { Step, Tx, Verb } from './operations.ts'

/** A row of `runs`, as both databases return it. */
export interface RunTableRow {
  readonly last_seq: number
  readonly last_hash: string
  readonly snapshot: string
  readonly fence: string | null
  readonly holder: string | null
  readonly lease_until: number | null
  readonly cancel: string | null
  readonly failure: string | null
}

/** The values of a new row: id, last_seq, last_hash, snapshot, fence, holder, lease_until. */
export type NewRunRow = readonly [
  id: string,
  lastSeq: number,
  lastHash: string,
  snapshot: string,
  fence: string | null,
  holder: string | null,
  leaseUntil: number | null,
]

/** A column that the lease holder may replace as a whole. */
export type HeldColumn = 'lease_until' | 'snapshot' | 'failure'

/** The operations of these verbs. Those with a lease write only if the lease has not ended. */
export interface RunOperations {
  /** Inserts a row; returns false if there is one with this id. */
  insertRun(row: NewRunRow): boolean
  insertRunLines(runId: string, lines: readonly string[]): void
  insertRunContent(runId: string, content: Content): void
  /** Returns whether an earlier try of this verb added the run. */
  wasRunAdded(runId: string, lastHash: string): boolean
  /** Returns whether an earlier try of this verb appended the line. */
  wasLineAppended(runId: string, seq: number, line: string): boolean
  /** Writes a lease if no other lease is valid. */
  leaseRun(lease: RunLease, holder: string, until: number): boolean
  setHeld(lease: RunLease, column: HeldColumn, value: string | number): boolean
  releaseRun(lease: RunLease): void
  /** Appends lines and moves the end of the log if the end is still at `addition.after`. */
  appendRunLines(lease: RunLease, addition: Addition): boolean
  /** Inserts or replaces a content. */
  putRunContent(lease: RunLease, content: Content): boolean
  setRunCancel(runId: string, request: string): boolean
  runRow(runId: string): RunTableRow | undefined
  runContent(runId: string, path: string): Uint8Array | undefined
  runLines(runId: string, after: number, limit: number): string[]
  runIds(after: string, limit: number): string[]
}

/** How the verbs on tables beside the jobs reach the database. */
export interface TableAccess {
  look<T>(verb: (tx: Tx) => Step<T>): Promise<T>
  /** Each operation of the verb may be a transaction of its own. */
  write<T>(name: VerbName, verb: (tx: Tx, redo: boolean) => Verb<T>): Promise<T>
  /** All operations of the verb are one transaction. */
  change<T>(name: VerbName, verb: (tx: Tx, redo: boolean) => Verb<T>): Promise<T>
  /** All operations of the verb belong to a transaction that the caller has opened. */
  join<T>(joined: unknown, verb: (tx: Tx) => Verb<T>): Promise<T>
}

export class StoredRuns implements RunTables {
  readonly #access: TableAccess

  constructor(access: TableAccess) {
    this.#access = access
  }

  add(run: NewRun): Promise<boolean> {
    return this.#access.change('runs.add', (tx, redo) => addRun(tx, run, redo))
  }

  hold(lease: RunLease, options: HoldOptions): Promise<Hold> {
    return this.#access.write('runs.hold', (tx) => holdRun(tx, lease, options))
  }

  renew(lease: RunLease, leaseMs: number): Promise<boolean> {
    return this.#access.write('runs.renew', (tx) =>
      setHeld(tx, lease, 'lease_until', tx.now + leaseMs),
    )
  }

  release(lease: RunLease): Promise<void> {
    return this.#access.write('runs.release', function* (tx) {
      yield* tx.releaseRun(lease)
    })
  }

  append(lease: RunLease, addition: Addition): Promise<boolean> {
    return this.#access.write('runs.append', (tx, redo) => append(tx, lease, addition, redo))
  }

  putSnapshot(lease: RunLease, snapshot: string): Promise<boolean> {
    return this.#access.write('runs.snapshot', (tx) => setHeld(tx, lease, 'snapshot', snapshot))
  }

  putFailure(lease: RunLease, failure: string): Promise<boolean> {
    return this.#access.write('runs.failure', (tx) => setHeld(tx, lease, 'failure', failure))
  }

  putContent(lease: RunLease, content: Content): Promise<boolean> {
    return this.#access.write('runs.content', function* (tx) {
      return yield* tx.putRunContent(lease, content)
    })
  }

  askCancel(runId: string, request: string): Promise<boolean> {
    return this.#access.write('runs.cancel', function* (tx) {
      return yield* tx.setRunCancel(runId, request)
    })
  }

  content(runId: string, path: string): Promise<Uint8Array | undefined> {
    return this.#access.look(function* (tx) {
      return yield* tx.runContent(runId, path)
    })
  }

  get(runId: string): Promise<RunRow | undefined> {
    return this.#access.look(function* (tx) {
      const row = yield* tx.runRow(runId)
      return row && toRunRow(row, tx.now)
    })
  }

  lines(runId: string, after: number, limit: number): Promise<string[]> {
    return this.#access.look(function* (tx) {
      return yield* tx.runLines(runId, after, limit)
    })
  }

  ids(after: string, limit: number): Promise<string[]> {
    return this.#access.look(function* (tx) {
      return yield* tx.runIds(after, limit)
    })
  }
}

function* addRun(tx: Tx, run: NewRun, redo: boolean): Verb<boolean> {
  const { runId, lines, end, snapshot, lease, contents } = run
  const { fence = null, holder = null } = lease ?? {}
  const until = lease === undefined ? null : tx.now + lease.leaseMs
  const isNew = yield* tx.insertRun([runId, end.seq, end.hash, snapshot, fence, holder, until])
  if (!isNew) return redo && (yield* tx.wasRunAdded(runId, end.hash))
  yield* tx.insertRunLines(runId, lines)
  for (const content of contents) yield* tx.insertRunContent(runId, content)
  return true
}

function* holdRun(tx: Tx, lease: RunLease, { holder, leaseMs }: HoldOptions): Verb<Hold> {
  if (yield* tx.leaseRun(lease, holder, tx.now + leaseMs)) return { kind: 'held' }
  const row = yield* tx.runRow(lease.runId)
  return row === undefined ? { kind: 'missing' } : { kind: 'taken', holder: row.holder ?? '' }
}

function* append(tx: Tx, lease: RunLease, addition: Addition, redo: boolean): Verb<boolean> {
  const { lines, end } = addition
  const last = lines[lines.length - 1] ?? ''
  if (redo && (yield* tx.wasLineAppended(lease.runId, end.seq, last))) return true
  return yield* tx.appendRunLines(lease, addition)
}

function* setHeld(
  tx: Tx,
  lease: RunLease,
  column: HeldColumn,
  value: string | number,
): Verb<boolean> {
  return yield* tx.setHeld(lease, column, value)
}

/** The state of a row at a time. A lease that ends later than any lease can counts as ended. */
function toRunRow(row: RunTableRow, now: number): RunRow {
  const { last_seq: seq, last_hash: hash, snapshot, holder, cancel, failure } = row
  const leaseUntil = row.lease_until ?? 0
  const endless = isEndless(leaseUntil, now)
  return {
    end: { seq, hash },
    snapshot,
    ...(holder !== null && leaseUntil > now && !endless && { holder }),
    ...(endless && { endless }),
    ...(cancel !== null && { cancel }),
    ...(failure !== null && { failure }),
  }
}
