/**
 * `pawl/sqlite`: for programs that open a store on a SQLite file themselves, for example with a
 * worker loop of their own. Programs that use `createPawl({ store: 'sqlite:jobs.db' })` do not need
 * it.
 */
export type { SqliteTx } from '../engine/effects/effects.ts'
export { type Environment, systemEnvironment } from '../environment/system.ts'
export * from '../stores/errors.ts'
export type { Durability } from '../stores/sqlite/connect.ts'
export type { Database, SqliteDriver, Statement } from '../stores/sqlite/driver.ts'
export { printSql as printSqliteSchema } from '../stores/sqlite/migrate.ts'
export type { SqliteOptions } from '../stores/sqlite/options.ts'
export { openSqliteStore } from '../stores/sqlite/store.ts'
export type { TimeChange } from '../stores/store-time.ts'
export * from './store-types.ts'
