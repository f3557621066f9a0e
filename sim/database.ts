/**
 * A SQLite whose disk fills up, whose reads fail, whose locks are taken and whose process dies. It
 * is the real one underneath; what fails is what a statement says, and whether the transaction is
 * gone with it, which SQLite leaves open for such errors.
 */
import { createRequire } from 'node:module'
import type { Database, SqliteDriver, Statement } from 'pawl/sqlite'
import type { Faults } from './faults.ts'

const real =
  (process.getBuiltinModule('node:sqlite') as SqliteDriver | undefined) ??
  (createRequire(import.meta.url)('@photostructure/sqlite') as SqliteDriver)

/** Result codes of SQLite, as its drivers give them. */
const IO_ERROR = 10
const FULL = 13

/** Opens a connection that nothing happens to. */
export function openDatabase(location: string): Database {
  return new real.DatabaseSync(location, { timeout: 0 })
}

/** The driver of one process. */
export class FaultyDriver implements SqliteDriver {
  readonly DatabaseSync: SqliteDriver['DatabaseSync']
  readonly #faults: Faults
  readonly #isAlive: () => boolean
  readonly #open = new Set<Database>()

  constructor(faults: Faults, isAlive: () => boolean) {
    this.#faults = faults
    this.#isAlive = isAlive
    const open = (location: string) => this.#connect(location)
    this.DatabaseSync = class {
      constructor(location: string) {
        // biome-ignore lint/correctness/noConstructorReturn: a constructor is what a driver has
        return open(location)
      }
    } as SqliteDriver['DatabaseSync']
  }

  /** What the operating system does with the files of a process that has died. */
  abandon(): void {
    for (const database of this.#open) {
      try {
        database.exec('ROLLBACK')
      } catch {
        // It had no transaction.
      }
      database.close()
    }
    this.#open.clear()
  }

  #connect(location: string): Database {
    if (this.#faults.strikes('no-file-handles')) throw new Error('unable to open database file')
    const database = openDatabase(location)
    this.#open.add(database)
    return {
      get isTransaction() {
        return database.isTransaction as boolean
      },
      prepare: (sql) => this.#statement(database, database.prepare(sql)),
      exec: (sql) => this.#exec(database, sql),
      close: () => {
        this.#open.delete(database)
        database.close()
      },
    }
  }

  #exec(database: Database, sql: string): void {
    if (sql === 'BEGIN IMMEDIATE' && this.#faults.strikes('busy')) {
      throw new Error('database is locked')
    }
    if (sql === 'COMMIT' && this.#faults.strikes('io-error-at-commit')) {
      this.#fail(database, 'disk I/O error', IO_ERROR)
    }
    // The dead write nothing: whatever unwinds in them ends with their transaction.
    if (sql === 'COMMIT' && !this.#isAlive()) this.#fail(database, 'the process has died')
    database.exec(sql)
  }

  #statement(database: Database, statement: Statement): Statement {
    return {
      run: (...values) => {
        if (this.#faults.strikes('disk-full'))
          this.#fail(database, 'database or disk is full', FULL)
        return statement.run(...values)
      },
      get: (...values) => {
        this.#read(database)
        return statement.get(...values)
      },
      all: (...values) => {
        this.#read(database)
        return statement.all(...values)
      },
      setReadBigInts: (enabled) => statement.setReadBigInts?.(enabled),
    }
  }

  #read(database: Database): void {
    if (this.#faults.strikes('io-error')) this.#fail(database, 'disk I/O error', IO_ERROR)
  }

  #fail(database: Database, message: string, errcode?: number): never {
    if (this.#faults.between(0, 2) === 0) {
      try {
        database.exec('ROLLBACK')
      } catch {
        // It was outside of a transaction.
      }
    }
    throw Object.assign(new Error(message), { errcode })
  }
}
