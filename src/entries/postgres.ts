/**
 * `pawl/postgres`: for programs that open a store on PostgreSQL themselves, for example with a
 * worker loop of their own. Programs that use `createPawl({ store: 'postgres://…' })` do not need
 * it.
 */
export { type Environment, systemEnvironment } from '../environment/system.ts'
export * from '../stores/errors.ts'
export type { Trouble } from '../stores/outage.ts'
export type { Durability } from '../stores/postgres/connect.ts'
export type { PgConfig, PgPool, PgPoolClient } from '../stores/postgres/driver.ts'
export type { PostgresTx } from '../stores/postgres/join.ts'
export { printSql as printPostgresSchema } from '../stores/postgres/migrate.ts'
export { openPostgresStore } from '../stores/postgres/open.ts'
export type { PostgresOptions } from '../stores/postgres/options.ts'
export * from './store-types.ts'
