/** The servers of the comparison, started for it alone and ended with it. */
import { execFileSync } from 'node:child_process'
import {
  freePort,
  GuardedServer,
  serverFolder,
  serverUser,
} from '../../test/support/postgres/guarded.ts'
import { startPostgres } from '../../test/support/postgres/server.ts'
import { execute } from '../postgres-server.ts'

export interface Servers {
  readonly postgres: { readonly url: string; readonly pid: number | undefined }
  /** Runs work with the port of a new Redis. */
  withRedis<T>(work: (port: string) => Promise<T>): Promise<T>
  readonly hasRedis: boolean
  /** The versions of the servers, by name. */
  readonly versions: Readonly<Record<string, string>>
}

/** Starts PostgreSQL with default settings but for connections, on the disk. */
export async function withServers<T>(work: (servers: Servers) => Promise<T>): Promise<T> {
  const postgres = await startPostgres({ settings: { max_connections: 300 } })
  try {
    const redis = redisVersion()
    const [row] = (await execute(postgres.url, 'SHOW server_version')) as {
      server_version: string
    }[]
    return await work({
      postgres: { url: postgres.url, pid: postgres.pid },
      withRedis,
      hasRedis: redis !== undefined,
      versions: {
        PostgreSQL: `${row?.server_version}`,
        ...(redis !== undefined && { Redis: redis }),
      },
    })
  } finally {
    await postgres.stop()
  }
}

/** The version of the Redis in PATH; undefined if there is none. */
function redisVersion(): string | undefined {
  try {
    return / v=(\S+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))?.[1]
  } catch {
    return undefined
  }
}

async function withRedis<T>(work: (port: string) => Promise<T>): Promise<T> {
  const port = await freePort()
  const folder = serverFolder('redis')
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder]
  const durable = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '']
  const server = new GuardedServer({
    folder,
    command: 'redis-server',
    args: [...settings, ...durable],
    user: serverUser,
    readyText: 'Ready to accept connections',
    quitSignal: 'SIGTERM',
  })
  try {
    await server.start()
    return await work(String(port))
  } finally {
    await server.stop()
  }
}
