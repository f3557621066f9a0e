/**
 * The interface to SQLite: the API of `node:sqlite`, from Node itself if it has it, else from
 * `@photostructure/sqlite`, which has the same API as a prebuilt package for Node 20.
 */
import { createRequire } from 'node:module'
import { ownUrl } from '../../environment/own-url.ts'
import { DriverMissing } from '../errors.ts'
import type { Value } from '../rows.ts'

/** What a parameter of a statement can be. */
export type Bound = Value | Uint8Array

/** A prepared statement. */
export interface Statement {
  run(...values: Bound[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  get(...values: Value[]): unknown
  all(...values: Value[]): unknown[]
  /** Absent from drivers that cannot. */
  setReadBigInts?(enabled: boolean): void
}

/** An open database. */
export interface Database {
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
  /** Whether a transaction is open; absent before Node 22.16. */
  readonly isTransaction?: boolean
}

/** What opens databases: `node:sqlite`, or a module that looks like it. */
export interface SqliteDriver {
  readonly DatabaseSync: new (
    path: string,
    options?: { timeout?: number; readOnly?: boolean },
  ) => Database
}

let loaded: SqliteDriver | undefined

/** The driver of this Node; loaded once. */
export function loadDriver(): SqliteDriver {
  loaded ??= builtInDriver() ?? packagedDriver()
  return loaded
}

function builtInDriver(): SqliteDriver | undefined {
  return process.getBuiltinModule('node:sqlite') as SqliteDriver | undefined
}

function packagedDriver(): SqliteDriver {
  try {
    return createRequire(ownUrl(import.meta.url))('@photostructure/sqlite') as SqliteDriver
  } catch (cause) {
    throw new DriverMissing(
      '@photostructure/sqlite',
      `Node ${process.version} has no built-in SQLite`,
      'Install it (npm install @photostructure/sqlite), or use Node 22.13 or newer.',
      cause,
    )
  }
}
