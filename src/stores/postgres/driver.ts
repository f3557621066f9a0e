/**
 * The seam to `pg`, an optional peer dependency: only what this store uses of it. The user's own
 * pool is taken for what it can do, so that any release of the driver fits.
 */
import { DriverMissing } from '../errors.ts'

/** A statement as the driver takes it. */
export interface PgQuery {
  readonly text: string
  readonly values?: unknown[]
  /** Prepared under this name, once for each connection. */
  readonly name?: string
  readonly types?: { getTypeParser(oid: number, format?: string): (text: string) => unknown }
  /** After so many milliseconds without an answer the caller gives up. */
  readonly query_timeout?: number
}

/** What the driver answers. */
interface PgResult {
  readonly rows: unknown[]
}

/** One connection. */
export interface PgClient {
  query(query: PgQuery): Promise<PgResult>
  on(event: 'error' | 'end' | 'notification', listener: () => void): unknown
  removeListener(event: 'error', listener: () => void): unknown
}

/** A connection on loan from a pool. */
export interface PgPoolClient extends PgClient {
  /** Gives it back; with an argument it is closed instead. */
  release(destroy?: boolean | Error): void
}

/** A pool of connections. */
export interface PgPool {
  connect(callback: (error: Error | undefined, client?: PgPoolClient) => void): void
  end(): Promise<void>
  on(event: 'error', listener: () => void): unknown
  removeListener(event: 'error', listener: () => void): unknown
  readonly options?: { readonly max?: number }
}

/** How to reach the database: whatever `pg` takes. */
export type PgConfig = Readonly<Record<string, unknown>>

/** Makes a pool of our own. */
export async function openPool(config: PgConfig): Promise<PgPool> {
  let driver: { default: { Pool: new (config: PgConfig) => unknown } }
  try {
    driver = await import('pg')
  } catch (cause) {
    const why = 'The PostgreSQL store needs a driver'
    throw new DriverMissing('pg', why, 'Install it (npm install pg).', cause)
  }
  return new driver.default.Pool(config) as PgPool
}

const INT8 = 20
const INT4 = 23
const INT2 = 21

/** Whole numbers as numbers: ours are times, counters and handles, all of them safe integers. */
export const numbers: NonNullable<PgQuery['types']> = {
  getTypeParser: (oid) => (oid === INT8 || oid === INT4 || oid === INT2 ? Number : asItIs),
}

function asItIs(text: string): string {
  return text
}
