/** The store on PostgreSQL: `import { openPostgresStore } from 'pawl/postgres'`. */
export * from '../errors.ts'
export type { Trouble } from '../outage.ts'
export type * from '../store.ts'
export type { Durability } from './connect.ts'
export type { PgConfig, PgPool, PgPoolClient } from './driver.ts'
export type { PostgresTx } from './join.ts'
export { printSql } from './migrate.ts'
export { openPostgresStore, type PostgresOptions } from './open.ts'
