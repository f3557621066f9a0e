// The proxy breaks connections in exactly the way that a test asks for.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connected, single } from './postgres/clients.ts'
import { freshSchema, sharedPostgres } from './postgres/databases.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'

async function proxyTo(target: { host: string; port: number }): Promise<TcpProxy> {
  const proxy = await startTcpProxy(target)
  onTestFinished(() => proxy.close())
  return proxy
}

/** A proxy before a server that says everything back, and remembers it. */
async function echo(): Promise<{ proxy: TcpProxy; heard: () => string }> {
  let heard = ''
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        heard += bytes
        socket.write(bytes)
      })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { proxy: await proxyTo({ host: '127.0.0.1', port }), heard: () => heard }
}

interface Caller {
  readonly socket: Socket
  readonly received: () => string
  readonly closed: Promise<unknown>
}

async function call(proxy: TcpProxy): Promise<Caller> {
  const socket = connect(proxy.port, '127.0.0.1')
  let received = ''
  socket.on('data', (bytes) => {
    received += bytes
  })
  socket.on('error', () => {})
  const closed = new Promise((resolve) => socket.once('close', resolve))
  onTestFinished(() => void socket.destroy())
  // A connection that is refused is closed without ever having been open.
  await Promise.race([once(socket, 'connect'), closed]).catch(() => {})
  return { socket, received: () => received, closed }
}

const comes = (caller: Caller, text: string) =>
  vi.waitFor(() => expect(caller.received()).toBe(text), { timeout: 5_000 })

it('passes on what is said, also when it is much', async () => {
  const { proxy } = await echo()
  const caller = await call(proxy)
  const much = 'abc'.repeat(1_000_000)
  caller.socket.write(much)
  await vi.waitFor(() => expect(caller.received().length).toBe(much.length), { timeout: 5_000 })
  expect(caller.received()).toBe(much)
  expect(proxy.connections).toBe(1)
})

it('passes on that one side has nothing more to say', async () => {
  const { proxy } = await echo()
  const caller = await call(proxy)
  caller.socket.end('bye')
  await caller.closed
  expect(caller.received()).toBe('bye')
  await vi.waitFor(() => expect(proxy.connections).toBe(0))
})

it('cuts every connection, and lets new ones in', async () => {
  const { proxy } = await echo()
  const callers = [await call(proxy), await call(proxy)]
  proxy.cut()
  await Promise.all(callers.map(({ closed }) => closed))
  const next = await call(proxy)
  next.socket.write('hello')
  await comes(next, 'hello')
})

it('refuses everybody until it resumes', async () => {
  const { proxy, heard } = await echo()
  const before = await call(proxy)
  proxy.refuse()
  await before.closed
  const refused = await call(proxy)
  refused.socket.write('hello')
  await refused.closed
  proxy.resume()
  const next = await call(proxy)
  next.socket.write('again')
  await comes(next, 'again')
  expect(heard()).toBe('again')
})

it('holds everything back while it is stalled, and delivers it afterwards', async () => {
  const { proxy, heard } = await echo()
  const [stalled, free] = [await call(proxy), await call((await echo()).proxy)]
  proxy.stall()
  stalled.socket.write('hello')
  // By the time that another connection has gone to and fro, this one would have as well.
  for (const said of ['1', '12', '123']) {
    free.socket.write(said.at(-1) ?? '')
    await comes(free, said)
  }
  expect(heard()).toBe('')
  expect(stalled.received()).toBe('')
  proxy.resume()
  await comes(stalled, 'hello')
})

it('cuts connections that are stalled', async () => {
  const { proxy } = await echo()
  const caller = await call(proxy)
  proxy.stall()
  caller.socket.write('hello')
  proxy.cut()
  await caller.closed
  expect(proxy.connections).toBe(0)
})

it('loses the reply to one message alone, although the message comes in pieces', async () => {
  const { proxy, heard } = await echo()
  const [loser, other] = [await call(proxy), await call(proxy)]
  loser.socket.write('COMMIT;')
  await comes(loser, 'COMMIT;')
  const lost = proxy.loseReply({ to: /commit/i, reply: /MIT/ })
  loser.socket.write('BEGIN;')
  await comes(loser, 'COMMIT;BEGIN;')
  loser.socket.write('COM')
  await comes(loser, 'COMMIT;BEGIN;COM')
  loser.socket.write('MIT')
  await lost
  await loser.closed
  expect(loser.received()).toBe('COMMIT;BEGIN;COM')
  expect(heard()).toBe('COMMIT;BEGIN;COMMIT')
  other.socket.write('COMMIT')
  await comes(other, 'COMMIT')
})

it('leaves a client without a word, if that is asked', async () => {
  const { proxy } = await echo()
  const caller = await call(proxy)
  const lost = proxy.loseReply({ to: /COMMIT/, after: 'silence' })
  caller.socket.write('COMMIT')
  await lost
  expect(caller.received()).toBe('')
  expect(proxy.connections).toBe(1)
})

it('lets the connections that there are fall silent, and only those', async () => {
  const { proxy, heard } = await echo()
  const caller = await call(proxy)
  caller.socket.write('heard;')
  await comes(caller, 'heard;')
  proxy.silence()
  caller.socket.write('unheard;')
  const other = await call(proxy)
  other.socket.write('new')
  await comes(other, 'new')
  expect(heard()).toBe('heard;new')
  expect(caller.received()).toBe('heard;')
  expect(proxy.connections).toBe(2)
})

it('makes a COMMIT succeed whose reply its client never receives', async () => {
  const url = sharedPostgres()
  const schema = freshSchema(url)
  const witness = await connected(url)
  await witness.query(`create schema ${schema}; create table ${schema}.kept (n int)`)
  const { hostname, port } = new URL(url)
  const proxy = await proxyTo({ host: hostname, port: Number(port) })
  const client = await connected(proxy.through(url))
  await client.query('begin')
  await client.query(`insert into ${schema}.kept values (1)`)
  const lost = proxy.loseReply({ to: /commit/i })
  await expect(client.query('commit')).rejects.toThrow()
  await lost
  expect(await single(witness, `select count(*)::int from ${schema}.kept`)).toBe(1)
})
