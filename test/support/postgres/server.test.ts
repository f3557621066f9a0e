// The servers of the tests keep what they promise, whoever the programs come from.
import { type ChildProcess, fork } from 'node:child_process'
import { on } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { findDebianPostgres } from './binaries.ts'
import { connected, single } from './clients.ts'
import { freshDatabase, freshSchema, sharedPostgres } from './databases.ts'
import { type Guarded, serverFolder, serverUser } from './guarded.ts'
import { type PostgresOptions, type PostgresServer, startPostgres } from './server.ts'

async function ownServer(options?: PostgresOptions): Promise<PostgresServer> {
  const server = await startPostgres(options)
  onTestFinished(() => server.stop())
  return server
}

/** Waits until a process says that it has come to a moment; the server's process is told then. */
async function reached(child: ChildProcess, moment: string): Promise<number | undefined> {
  for await (const [said] of on(child, 'message')) if (said.moment === moment) return said.pid
  throw new Error('unreachable')
}

const debian = findDebianPostgres()
const origins: [string, PostgresOptions][] = [
  ['the development dependencies', {}],
  ...(debian === undefined ? [] : [['Debian', { binaries: debian }] as [string, PostgresOptions]]),
]

describe.each(origins)('a server from %s', (_origin, options) => {
  it('keeps what was committed when it is killed, and comes back at the same address', async () => {
    const server = await ownServer(options)
    const killed = server.pid
    const client = await connected(server.url)
    await client.query('create table kept (n int)')
    for (let n = 1; n <= 3; n += 1) {
      const before = await connected(server.url)
      await before.query('insert into kept values ($1)', [n])
      const busy = before.query('select pg_sleep(60)').catch((error) => error)
      await server.kill9()
      expect(await busy).toBeInstanceOf(Error)
      await expect(connected(server.url)).rejects.toThrow('ECONNREFUSED')
      await server.restart()
      expect(await single(await connected(server.url), 'select count(*)::int from kept')).toBe(n)
    }
    expect(server.pid).not.toBe(killed)
    expect(server.log).toContain('automatic recovery in progress')
  })

  it('takes settings, and makes its writes durable', async () => {
    const server = await ownServer({ ...options, settings: { max_connections: 7 } })
    const client = await connected(server.url)
    expect(await single(client, 'show max_connections')).toBe('7')
    expect(await single(client, 'show fsync')).toBe('on')
    await server.restart()
    expect(await single(await connected(server.url), 'show max_connections')).toBe('7')
  })
})

it.each(['forked', 'started'])(
  'nothing is left of a server whose test process is killed when it has %s',
  async (moment) => {
    const folder = serverFolder('abandoned')
    const guarded: Guarded = {
      folder,
      command: 'sh',
      args: ['-c', 'echo up; exec sleep 600'],
      user: serverUser,
      readyText: 'up',
      quitSignal: 'SIGQUIT',
    }
    const program = fileURLToPath(new URL('abandon.mjs', import.meta.url))
    const abandoner = fork(program, [JSON.stringify(guarded)], { execArgv: [] })
    const pid = await reached(abandoner, moment)
    abandoner.kill('SIGKILL')
    await vi.waitFor(() => expect(existsSync(folder)).toBe(false), { timeout: 15_000 })
    if (pid !== undefined) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  },
)

describe('the shared server', () => {
  it.skipIf(process.env.PAWL_TEST_POSTGRES_URL)('sorts text by language', async () => {
    const client = await connected(sharedPostgres())
    expect(await single(client, `select 'a' < 'B'`)).toBe(true)
  })

  it('gives each test names of schemas and databases of its own', async () => {
    const url = sharedPostgres()
    const [one, two] = [freshSchema(url), freshSchema(url)]
    expect(one).not.toBe(two)
    const database = await freshDatabase(url)
    const client = await connected(database)
    await client.query(`create schema ${one}`)
    expect(await single(client, 'select current_database()')).toBe(
      new URL(database).pathname.slice(1),
    )
  })
})
