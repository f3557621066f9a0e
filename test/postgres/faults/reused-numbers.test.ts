// A server that crashes forgets the numbers of transactions that had not reached its disk, and
// gives them out again. Whoever asks by such a number what became of a transaction of its own may
// hear of a stranger's.
import { expect, it } from 'vitest'
import { systemEnvironment } from '../../../src/environment/system.ts'
import { checkStore } from '../../contract/store/check.ts'
import { connected } from '../../support/postgres/clients.ts'
import { accepted, item, OPERATOR, open, ownServer, proxyTo, triggersOf } from './bed.ts'

it.each([
  { what: 'has not been given out again', others: 0 },
  { what: 'belongs to another transaction now', others: 100 },
])('a write that a crash undid is done again, where its number $what', async ({ others }) => {
  // What was not committed reaches the disk late.
  const server = await ownServer({ wal_writer_delay: '10s' })
  const proxy = await proxyTo(server.url)
  const crashPoint = (name: string) => {
    if (name === 'applyCommand.written' && !hasStalled) stalled()
  }
  let hasStalled = false
  let stalled = () => {}
  const isWritten = new Promise<void>((resolve) => {
    stalled = () => {
      hasStalled = true
      proxy.stall()
      resolve()
    }
  })
  const store = await open(proxy.through(server.url), {
    environment: { ...systemEnvironment(), crashPoint },
  })
  const [id] = (await accepted(store, [item()])) as [string]
  const telling = store.applyCommand([id], { kind: 'prioritise', priority: 3 }, OPERATOR)
  // Everything is written but the COMMIT, which does not get through.
  await isWritten
  await server.kill9()
  await server.restart()
  const client = await connected(server.url)
  for (let n = 0; n < others; n++) await client.query('SELECT pg_current_xact_id()')
  proxy.cut()
  proxy.resume()
  expect(await telling).toMatchObject([{ kind: 'done', job: { priority: 3 } }])
  expect(await triggersOf(store, id)).toEqual(['create', 'prioritise'])
  expect(await store.get(id)).toMatchObject({ priority: 3 })
  await checkStore(store)
})
