/** Transactions of the user in a store: those of commits, and others. */
import type { PawlError } from '../../core/errors.ts'
import type { Usage } from '../../core/job/commands.ts'
import type { Job } from '../../core/job/job.ts'
import type { TraceContext } from '../../core/trace.ts'
import type { SqlStatement, SqlValue } from '../user-sql.ts'

/** A transaction on the database of the store, as functions of the user receive it. */
export interface StoreTx {
  /** Runs a statement of the user in the transaction; returns its rows. */
  query(sql: string | SqlStatement, values?: readonly SqlValue[]): Promise<unknown[]>
  /**
   * The driver's own handle, in the same transaction: on SQLite a database with `prepare` and
   * `exec`, on PostgreSQL a client of `pg`. It can neither end the transaction nor outlive it.
   */
  readonly raw: unknown
}

/** What the function of a commit may do. */
export interface CommitTx extends StoreTx {
  /** Declares an effect, as JSON text, to be delivered after the commit. */
  effect(name: string, payload: string): void
}

/** What is recorded with a commit. It is asked for after the function has run. */
export interface Closing {
  readonly usage?: Usage
  /** As in a `Settlement`. */
  readonly progress?: string
  readonly trace?: TraceContext
}

/** The function of a commit; returns the result as JSON text, if there is one. */
export type CommitWork = (tx: CommitTx) => string | undefined | Promise<string | undefined>

/** The answer to a commit, also if an earlier try had committed it. A result is optional. */
export type CommitAnswer =
  | { readonly kind: 'done' | 'same'; readonly job: Job; readonly result: string | undefined }
  | { readonly kind: 'rejected'; readonly error: PawlError }
