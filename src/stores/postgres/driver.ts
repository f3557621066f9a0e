/**
 * The interface to `pg`, an optional peer dependency: only what this store uses of it. A pool of
 * the user is used by its methods alone, so that any release of the driver fits.
 */
import { DriverMissing } from '../errors.ts'
import { noteAddress } from '../outage.ts'
import { type Hosts, hostsOf } from './hosts.ts'

/** A statement as the driver takes it. */
export interface PgQuery {
  readonly text: string
  readonly values?: unknown[]
  /** Prepared under this name, once for each connection. */
  readonly name?: string
  readonly types?: { getTypeParser(oid: number, format?: string): (text: string) => unknown }
}

/** What the driver answers. */
export interface PgResult {
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
  /** Releases it; with an argument it is closed instead. */
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

/** How to reach the database: any option of `pg`. */
export type PgConfig = Readonly<Record<string, unknown>>

/** What of a client of `pg` a pool of our own builds on. */
interface DriverClient {
  readonly host?: string
  readonly port?: number
  connect(callback?: (error?: Error) => void): unknown
}

interface Driver {
  readonly Pool: new (config: PgConfig) => unknown
  readonly Client: new (config: PgConfig) => DriverClient
}

/** A pool of our own, and the hosts that its connections go to. */
export interface OwnPool {
  readonly pool: PgPool
  readonly hosts: Hosts | undefined
}

/** To which of several hosts a connection goes. */
const hostOfClient = new WeakMap<object, number>()

/** The number of the host that a connection was made to. */
export function hostOf(client: object): number {
  return hostOfClient.get(client) ?? 0
}

/** Where a connection goes, as `host:port`; empty if the driver does not say. */
export function addressOf(client: object): string {
  const { host, port } = client as DriverClient
  if (host === undefined) return ''
  return host.startsWith('/') ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Makes a pool of our own. */
export async function openPool(config: PgConfig): Promise<OwnPool> {
  let driver: Driver
  try {
    driver = (await import('pg')).default as unknown as Driver
  } catch (cause) {
    const why = 'The PostgreSQL store needs a driver'
    throw new DriverMissing('pg', why, 'Install it (npm install pg).', cause)
  }
  const { connectionString } = config
  const hosts = typeof connectionString === 'string' ? hostsOf(connectionString) : undefined
  const Client = clientOf(driver.Client, hosts)
  // `pg` cannot read several hosts; each connection is given one of them.
  const first = hosts === undefined ? {} : { connectionString: hosts.urlOf(0) }
  return { pool: new driver.Pool({ Client, ...config, ...first }) as PgPool, hosts }
}

/** A client that connects to the host whose turn it is, and notes where it failed. */
function clientOf(Base: Driver['Client'], hosts: Hosts | undefined): Driver['Client'] {
  return class extends Base {
    constructor(config: PgConfig) {
      const host = hosts?.turn ?? 0
      super(hosts === undefined ? config : { ...config, connectionString: hosts.urlOf(host) })
      hostOfClient.set(this, host)
    }

    override connect(callback?: (error?: Error) => void): unknown {
      // Pools use callbacks; no other code has these clients.
      return super.connect((error) => {
        if (error) {
          noteAddress(error, addressOf(this))
          hosts?.passOver(hostOf(this))
        }
        callback?.(error)
      })
    }
  }
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
