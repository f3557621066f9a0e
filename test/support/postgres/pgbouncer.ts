// pgbouncer in transaction mode in front of a server, where pgbouncer is installed.
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { freePort, GuardedServer, serverFolder, serverUser } from './guarded.ts'

/** How the pooler is set up. */
export interface PgbouncerOptions {
  /** The connection string of the server behind it. */
  readonly url: string
  /** How many connections to the server it keeps for one database. */
  readonly poolSize: number
}

/** A running pooler. */
export interface Pgbouncer {
  /** The connection string that leads through the pooler. */
  readonly url: string
  stop(): Promise<void>
}

/** The path of the program; undefined where it is not installed. */
export function findPgbouncer(): string | undefined {
  // Debian puts it where ordinary users do not look.
  return [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
    .map((folder) => join(folder, 'pgbouncer'))
    .find((path) => existsSync(path))
}

/** Starts a pooler; undefined where pgbouncer is not installed. */
export async function startPgbouncer(options: PgbouncerOptions): Promise<Pgbouncer | undefined> {
  const command = findPgbouncer()
  if (command === undefined) return undefined
  const port = await freePort()
  const folder = serverFolder('pgbouncer')
  const configuration = join(folder, 'pgbouncer.ini')
  const server = new GuardedServer({
    folder,
    command,
    args: [configuration],
    user: serverUser,
    readyText: 'process up',
    quitSignal: 'SIGKILL',
  })
  try {
    writeFileSync(configuration, describe(options, port))
    // The pooler runs as another user where we are root.
    chmodSync(configuration, 0o644)
    await server.start()
  } catch (error) {
    await server.stop()
    throw error
  }
  const url = Object.assign(new URL(options.url), { host: `127.0.0.1:${port}` }).href
  return { url, stop: () => server.stop() }
}

function describe({ url, poolSize }: PgbouncerOptions, port: number): string {
  const { hostname, port: serverPort, username, password } = new URL(url)
  const secret = password && ` password=${decodeURIComponent(password)}`
  return `[databases]
* = host=${hostname} port=${serverPort || 5432} user=${username}${secret}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 1000
`
}
