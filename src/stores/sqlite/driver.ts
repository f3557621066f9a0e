/**
 * The seam to SQLite: the API of `node:sqlite`, from Node itself where it has it, else from
 * `@photostructure/sqlite`, which is the same API as a prebuilt package for Node 20.
 */
import { createRequire } from 'node:module'
import { DriverMissing } from '../errors.ts'
import type { Value } from '../rows.ts'

/** A prepared statement. */
export interface Statement {
  run(...values: Value[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  get(...values: Value[]): unknown
  all(...values: Value[]): unknown[]
}

/** An open database. */
export interface Database {
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
}

interface Driver {
  readonly DatabaseSync: new (
    path: string,
    options?: { timeout?: number; readOnly?: boolean },
  ) => Database
}

let loaded: Driver | undefined

/** The driver of this Node; loaded once. */
export function loadDriver(): Driver {
  loaded ??= builtInDriver() ?? packagedDriver()
  return loaded
}

function builtInDriver(): Driver | undefined {
  return process.getBuiltinModule('node:sqlite') as Driver | undefined
}

function packagedDriver(): Driver {
  try {
    return createRequire(import.meta.url)('@photostructure/sqlite') as Driver
  } catch (cause) {
    throw new DriverMissing(
      '@photostructure/sqlite',
      `Node ${process.version} has no built-in SQLite`,
      'Install it (npm install @photostructure/sqlite), or use Node 22.13 or newer.',
      cause,
    )
  }
}
