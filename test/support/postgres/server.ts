// Real PostgreSQL servers for tests, each with a folder and a port of its own.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { copyCluster, embeddedPostgres } from './binaries.ts'
import { freePort, GuardedServer, serverFolder, serverUser } from './guarded.ts'

/** What a test may choose of its server. */
export interface PostgresOptions {
  /** The folder with `initdb` and `postgres`; that of the development dependencies unless given. */
  readonly binaries?: string
  /** Settings by their names in postgresql.conf, for example `{ max_connections: 20 }`. */
  readonly settings?: Readonly<Record<string, string | number>>
  /** The server is a standby of the one at this port, until it is promoted. */
  readonly standbyOf?: number
}

/** Starts a server; nothing of it outlives this process. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const port = await freePort()
  const folder = serverFolder('postgres')
  const data = join(folder, 'data')
  const binaries = options.binaries ?? (await embeddedPostgres())
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    fsync: 'on',
    // Shared memory with a name outside the folder would stay there after a kill.
    dynamic_shared_memory_type: 'mmap',
    ...(options.standbyOf !== undefined && {
      primary_conninfo: `host=127.0.0.1 port=${options.standbyOf} user=postgres`,
      wal_retrieve_retry_interval: '100ms',
    }),
    ...options.settings,
  }
  const isStandby = options.standbyOf !== undefined
  const server = new GuardedServer({
    folder,
    command: join(binaries, 'postgres'),
    args: ['-D', data, ...Object.entries(settings).flatMap(([key, to]) => ['-c', `${key}=${to}`])],
    user: serverUser,
    readyText: `database system is ready to accept ${isStandby ? 'read-only ' : ''}connections`,
    quitSignal: 'SIGQUIT',
  })
  try {
    await copyCluster(binaries, data)
    // All clusters are copies of one, so that a new one can follow any other from its beginning.
    if (isStandby) writeFileSync(join(data, 'standby.signal'), '')
    await server.start()
    return new PostgresServer(port, server)
  } catch (error) {
    await server.stop()
    throw error
  }
}

/** A primary, and a standby without which nothing is acknowledged. */
export interface Replicated {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
}

/** Starts a primary and a synchronous standby; nothing of them outlives this process. */
export async function startReplicated(): Promise<Replicated> {
  const primary = await startPostgres({ settings: { synchronous_standby_names: '*' } })
  try {
    const standby = await startPostgres({ standbyOf: primary.port })
    return { primary, standby }
  } catch (error) {
    await primary.stop()
    throw error
  }
}

/** A server of one's own, to be treated badly. */
export class PostgresServer {
  readonly port: number
  /** The connection string, as the superuser, of the database `postgres`. */
  readonly url: string
  readonly #server: GuardedServer

  constructor(port: number, server: GuardedServer) {
    this.port = port
    this.url = `postgres://postgres@127.0.0.1:${port}/postgres`
    this.#server = server
  }

  /** The postmaster's process; undefined while the server is down by our order. */
  get pid(): number | undefined {
    return this.#server.pid
  }

  /** Everything that the server has logged. */
  get log(): string {
    return this.#server.log
  }

  /** Kills postmaster and backends with SIGKILL; when this returns, all have gone. */
  async kill9(): Promise<void> {
    await this.#server.kill9()
  }

  /** Starts the server again on the same folder and port, ending it first if it is up. */
  async restart(): Promise<void> {
    await this.#server.end()
    await this.#server.start()
  }

  /** Makes a standby the primary; when this returns, it takes writes. */
  async promote(): Promise<void> {
    const client = new Client({ connectionString: this.url })
    await client.connect()
    try {
      await client.query('SELECT pg_promote()')
    } finally {
      await client.end()
    }
  }

  /** Ends the server and removes its folder. */
  async stop(): Promise<void> {
    await this.#server.stop()
  }
}
