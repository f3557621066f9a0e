/** The SQLite store, as its users import it: `pawl/sqlite`. */
export { type Environment, systemEnvironment } from '../../environment/system.ts'
export * from '../errors.ts'
export type * from '../store.ts'
export type { Durability } from './connect.ts'
export type { Database, SqliteDriver, Statement } from './driver.ts'
export { printSql } from './migrate.ts'
export { openSqliteStore, type SqliteOptions } from './store.ts'
