// Counts what a SQLite store does, at its driver and in its log.
import { statSync } from 'node:fs'
import {
  type Database,
  loadDriver,
  type SqliteDriver,
  type Statement,
} from '../../src/stores/sqlite/driver.ts'

const WAL_HEADER = 32
const FRAME = 4096 + 24

/** What has been done so far. */
export interface SqliteCost {
  /** Statements that were executed, without BEGIN and COMMIT. */
  readonly statements: number
  readonly transactions: number
  /** Rows that were inserted, changed or deleted, also by triggers. */
  readonly rows: number
  /** Pages that were written to the log. */
  readonly pages: number
}

/** A driver whose databases count what they execute. */
export class SqliteMeter {
  #statements = 0
  #transactions = 0
  readonly #open = new Set<Database>()
  readonly driver: SqliteDriver

  constructor() {
    const { DatabaseSync } = loadDriver()
    const count = (sql: string) => this.#count(sql)
    const open = this.#open
    this.driver = {
      DatabaseSync: class implements Database {
        readonly #own: Database
        constructor(...given: ConstructorParameters<typeof DatabaseSync>) {
          this.#own = new DatabaseSync(...given)
          open.add(this.#own)
        }
        get isTransaction(): boolean {
          return this.#own.isTransaction ?? false
        }
        prepare(sql: string): Statement {
          return watched(this.#own.prepare(sql), () => count(sql))
        }
        exec(sql: string): void {
          count(sql)
          this.#own.exec(sql)
        }
        close(): void {
          open.delete(this.#own)
          this.#own.close()
        }
      },
    }
  }

  /** Everything so far; a checkpoint in between would begin the log again. */
  cost(path: string): SqliteCost {
    const rows = [...this.#open].map((database) => {
      const answer = database.prepare('SELECT total_changes() AS rows').get()
      return Number((answer as { rows: number }).rows)
    })
    const log = statSync(`${path}-wal`).size
    return {
      statements: this.#statements,
      transactions: this.#transactions,
      rows: rows.reduce((sum, one) => sum + one, 0),
      pages: (log - WAL_HEADER) / FRAME,
    }
  }

  #count(sql: string): void {
    if (/^\s*COMMIT/i.test(sql)) this.#transactions++
    else if (!/^\s*BEGIN/i.test(sql)) this.#statements++
  }
}

function watched(statement: Statement, count: () => void): Statement {
  return {
    run(...values) {
      count()
      return statement.run(...values)
    },
    get(...values) {
      count()
      return statement.get(...values)
    },
    all(...values) {
      count()
      return statement.all(...values)
    },
    setReadBigInts: (enabled) => statement.setReadBigInts?.(enabled),
  }
}
