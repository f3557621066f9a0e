/**
 * Opens SQLite files: the driver, the pragmas, and the checks that refuse a file which could not
 * keep the promises. Statements are prepared once per connection.
 */

import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import type { PawlError } from '../../core/errors.ts'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import { StoreDenied, StoreUnusable } from '../errors.ts'
import type { Value } from '../rows.ts'
import { toPawlError, whileBusy } from './busy.ts'
import {
  type Bound,
  type Database,
  loadDriver,
  type SqliteDriver,
  type Statement,
} from './driver.ts'

/** How an acknowledged write is kept. 'relaxed' may lose the last ones when the power fails. */
export type Durability = 'full' | 'relaxed'

/**
 * SQLite 3.46 and later look at the value of a parameter that is the whole LIMIT, and therefore
 * plan the statement again after every bind, which takes longer than a claim of ten jobs. They do
 * not look into an expression.
 */
export function plannedOnce(text: string): string {
  return text.replace(/\bLIMIT (\?\d*)/g, 'LIMIT $1 + 0')
}

/** A connection with its prepared statements. */
export class Connection {
  readonly database: Database
  readonly #statements = new Map<string, Statement>()

  constructor(database: Database) {
    this.database = database
  }

  /** The prepared statement of a text; texts are constants, so their number is bounded. */
  sql(text: string): Statement {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = this.database.prepare(plannedOnce(text))
      this.#statements.set(text, statement)
    }
    return statement
  }

  get<Row>(text: string, ...values: Value[]): Row | undefined {
    const statement = this.sql(text)
    try {
      return statement.get(...values) as Row | undefined
    } catch (error) {
      return rereadLarge(text, statement, values, error)[0] as Row | undefined
    }
  }

  all<Row>(text: string, ...values: Value[]): Row[] {
    const statement = this.sql(text)
    try {
      return statement.all(...values) as Row[]
    } catch (error) {
      return rereadLarge(text, statement, values, error) as Row[]
    }
  }

  /** Runs a statement; returns how many rows it changed. */
  run(text: string, ...values: Bound[]): number {
    return Number(this.sql(text).run(...values).changes)
  }

  close(): void {
    this.#statements.clear()
    this.database.close()
  }
}

const TOO_LARGE = /too large to be represented as a JavaScript number/
const READS = /^\s*(SELECT|WITH)\b/

/**
 * Reads rows with a number that JavaScript cannot represent. The drivers refuse to read the whole
 * result, also the sound rows. So it is read again, and such a number becomes the nearest one that
 * can be represented: above every number that Pawl writes, so `damage.ts` recognises it.
 */
function rereadLarge(
  text: string,
  statement: Statement,
  values: Value[],
  error: unknown,
): Record<string, unknown>[] {
  const isLarge = TOO_LARGE.test(messageOf(error))
  // A statement that writes has written already: its caller rolls it back.
  if (!isLarge || !READS.test(text)) throw error
  statement.setReadBigInts?.(true)
  try {
    const rows = statement.all(...values) as Record<string, unknown>[]
    return rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          typeof value === 'bigint' ? Number(value) : value,
        ]),
      ),
    )
  } finally {
    statement.setReadBigInts?.(false)
  }
}

/** Opens a file, or a database in memory that has a name; waits for others who do the same. */
export async function connect(
  location: string,
  durability: Durability,
  environment: Environment,
  busyTimeoutMs: number,
  driver?: SqliteDriver,
): Promise<Connection> {
  let connection: Connection | undefined
  try {
    const { DatabaseSync } = driver ?? loadDriver()
    const opened = new Connection(new DatabaseSync(location, { timeout: 0 }))
    connection = opened
    await whileBusy(environment, busyTimeoutMs, () => configure(opened, durability))
    return opened
  } catch (error) {
    connection?.close()
    throw explain(location, error)
  }
}

function configure(connection: Connection, durability: Durability): void {
  connection.database.exec(`
    PRAGMA busy_timeout = 0;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'};
    -- Only these make a flushed write survive a power failure on macOS; elsewhere they do nothing.
    PRAGMA fullfsync = 1;
    PRAGMA checkpoint_fullfsync = 1;
    PRAGMA foreign_keys = ON;
    -- Without it, REPLACE deletes rows and no trigger is asked.
    PRAGMA recursive_triggers = ON;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = -65536;
  `)
}

/** The error to throw for one that came up while a file was opened. */
export function explain(location: string, error: unknown): PawlError {
  const why = messageOf(error)
  if (/not a database/.test(why)) {
    return new StoreUnusable(location, why, 'Name a file of Pawl, or one that does not exist yet.')
  }
  if (/unable to open|permission/i.test(why)) {
    if (isDenied(location)) return new StoreDenied(`${location}: permission denied`, error)
    return new StoreUnusable(location, why, 'Check that the folder exists and can be written to.')
  }
  return toPawlError(error)
}

/** Whether it is for lack of permission that a file cannot be opened. Opens nothing. */
function isDenied(location: string): boolean {
  return [location, dirname(location)].some((path) => {
    try {
      accessSync(path, constants.R_OK | constants.W_OK)
      return false
    } catch (error) {
      return /EACCES|EPERM|EROFS/.test((error as NodeJS.ErrnoException).code ?? '')
    }
  })
}

/** Releases before 3.51.3, and the withdrawn 3.52.0, can damage a file when its log is reset. */
export function warnOfOldSqlite(connection: Connection, logger: Logger | undefined): void {
  const row = connection.get<{ version: string }>('SELECT sqlite_version() AS version')
  const version = row?.version ?? '0.0.0'
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  const number = major * 1_000_000 + minor * 1000 + patch
  if (number >= 3_051_003 && number !== 3_052_000) return
  const fields = { event: 'store.sqlite_outdated', version }
  logger?.warn(fields, 'This SQLite can damage a file that several processes write to: update it')
}
