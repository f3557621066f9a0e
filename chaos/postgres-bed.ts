/** A PostgreSQL of the run's own behind a network that breaks: both can be treated badly. */

import { openPostgresStore } from 'pawl/postgres'
import { Client } from 'pg'
import type { UserRow } from '../sim/checker.ts'
import { type PostgresServer, startPostgres } from '../test/support/postgres/server.ts'
import { startTcpProxy, type TcpProxy } from '../test/support/tcp-proxy.ts'
import type { Bed, Chance, Fault } from './bed.ts'
import { LEASE_MS, sleep, TABLE } from './settings.ts'

const DOWN_MAX_MS = 2000
const SLOW_MS = 1500
const SLOW_BY_MS = 40
const LOST_MAX_MS = 4000
/** The end of a transaction, and statements that are a transaction of their own. */
const LOSABLE = [/COMMIT\0/, /COMMIT\0/, /INSERT INTO "?pawl/, /UPDATE "?pawl/]
/** The end of an answer: the server waits for the next message, outside of any transaction. */
const READY = /Z\0{3}.I/s

/** Starts the server and the proxy, and makes a table of the user's own. */
export async function postgresBed(): Promise<Bed> {
  const server = await startPostgres({ settings: { max_connections: 200 } })
  const proxy = await startTcpProxy({ host: '127.0.0.1', port: server.port })
  const { url } = server
  await query(url, `CREATE TABLE ${TABLE} (job uuid NOT NULL, attempt int NOT NULL)`)
  return {
    name: proxy.through(url),
    open: () => openPostgresStore({ connectionString: url }),
    faults: (_company, chance) => ({
      ...serverFaults(server, chance),
      ...networkFaults(proxy, chance),
    }),
    async heal() {
      proxy.resume()
      // Connections that are half open would never be closed.
      proxy.cut()
      if (server.pid === undefined) await server.restart()
    },
    rows: () => query<UserRow>(url, `SELECT job, attempt FROM ${TABLE}`),
    damage: async () => [],
    async close() {
      await proxy.close()
      await server.stop()
    },
  }
}

function serverFaults(server: PostgresServer, chance: Chance): Record<string, Fault> {
  return {
    async postmaster() {
      await server.kill9()
      await sleep(chance() * DOWN_MAX_MS)
      await server.restart()
    },
    async backends() {
      const share = chance()
      const sql = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND random() <= ${share}`
      // Another fault may have the server just now; then there are no backends either.
      await query(server.url, sql).catch(() => [])
    },
  }
}

function networkFaults(proxy: TcpProxy, chance: Chance): Record<string, Fault> {
  return {
    async resets() {
      proxy.cut()
    },
    async halfOpen() {
      proxy.silence()
      await sleep(chance() * LEASE_MS)
    },
    async partition() {
      proxy.stall()
      await sleep(LEASE_MS * (0.5 + chance() * 1.5))
      proxy.resume()
    },
    async latency() {
      for (let end = performance.now() + SLOW_MS; performance.now() < end; ) {
        proxy.stall()
        await sleep(SLOW_BY_MS)
        proxy.resume()
        await sleep(1)
      }
    },
    async lostReplies() {
      const to = LOSABLE[Math.floor(chance() * LOSABLE.length)] as RegExp
      const after = chance() < 0.5 ? 'cut' : 'silence'
      const lost = proxy.loseReply({ to, reply: READY, after }).then(() => true)
      return Promise.race([lost, sleep(LOST_MAX_MS).then(() => false)])
    },
  }
}

async function query<Row>(url: string, sql: string): Promise<Row[]> {
  const client = new Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows as Row[]
  } finally {
    await client.end()
  }
}
