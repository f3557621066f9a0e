/**
 * Runs the verbs of one store: each within its time, again after a conflict or an outage, and, if
 * an answer was lost, only after finding out what the try before has done.
 */

import type { Environment } from '../../environment/system.ts'
import type { VerbName } from '../verb-table.ts'
import { hasCommitted } from './apply.ts'
import { Patience, untilDone } from './busy.ts'
import type { Database, OwnSession, Session, Statement, Trail } from './connect.ts'

/** How a verb of several parts is carried out. */
export interface Carried {
  /** The time of the whole verb; a new one if absent. */
  readonly patience?: Patience
  /** Whether an earlier part of the verb may be done although no answer came. */
  readonly isUnsure?: () => boolean
  /** Is sent with the BEGIN of a transaction. */
  readonly begin?: Statement
}

/** Runs the statements of one store. */
export class Runner {
  readonly #database: Database
  readonly #environment: Environment
  readonly #timeoutMs: number

  constructor(database: Database, environment: Environment, timeoutMs: number) {
    this.#database = database
    this.#environment = environment
    this.#timeoutMs = timeoutMs
  }

  /** The time of a verb that begins now. */
  patience(): Patience {
    return new Patience(this.#environment, this.#timeoutMs)
  }

  /** Reads by one statement. */
  read<T>(work: (session: Session) => T | Promise<T>): Promise<T> {
    const patience = this.patience()
    return untilDone(
      patience,
      () => this.#database.atOnce(async (session) => work(session), patience),
      { isRead: true },
    )
  }

  /** Reads by several statements in one transaction, with settings of its own. */
  look<T>(settings: string, work: (session: OwnSession) => Promise<T>): Promise<T> {
    const patience = this.patience()
    return untilDone(patience, () => this.#database.transaction(work, patience, settings), {
      isRead: true,
    })
  }

  /** One statement, which may be repeated if its answer was lost. */
  atOnce<T>(
    work: (session: OwnSession, redo: boolean) => Promise<T>,
    { patience = this.patience(), isUnsure }: Carried = {},
  ): Promise<T> {
    return untilDone(
      patience,
      (redo) => this.#database.atOnce((session) => work(session, redo), patience),
      { isUnsure: (redo) => redo || (isUnsure?.() ?? false) },
    )
  }

  /** Several statements in one transaction, which may be repeated if its answer was lost. */
  repeat<T>(
    work: (session: OwnSession, redo: boolean) => Promise<T>,
    { patience = this.patience(), isUnsure }: Carried = {},
  ): Promise<T> {
    return untilDone(
      patience,
      (redo) => this.#database.transaction((session) => work(session, redo), patience),
      { isUnsure: (redo) => redo || (isUnsure?.() ?? false) },
    )
  }

  /**
   * Several statements in one transaction. If the answer to its COMMIT was lost, the database is
   * asked whether it committed, and nothing is done twice.
   */
  transact<T>(
    verb: VerbName,
    work: (session: OwnSession, redo: boolean) => Promise<T>,
    { patience = this.patience(), isUnsure, begin }: Carried = {},
  ): Promise<T> {
    /** The last try that reached its COMMIT. */
    let last: { readonly wrote: Trail | undefined; readonly result: T } | undefined
    const action = async () => {
      if (last?.wrote !== undefined) {
        if (await hasCommitted(this.#database, last.wrote, patience)) return last.result
        last = undefined
      }
      const redo = last !== undefined
      return this.#database.transaction(
        async (session) => {
          const result = await work(session, redo)
          this.#environment.crashPoint?.(`${verb}.written`)
          last = { wrote: session.wrote, result }
          return result
        },
        patience,
        begin?.(this.#database.schema).text,
      )
    }
    return untilDone(patience, action, {
      isUnsure: () => last !== undefined || (isUnsure?.() ?? false),
    })
  }
}
