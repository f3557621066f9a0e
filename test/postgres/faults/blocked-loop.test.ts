// A handler that blocks the event loop is no outage: what the database has answered meanwhile is
// read, also if the time for the answer is over by then.
import { describe, expect, it } from 'vitest'
import { ask } from '../../../src/stores/postgres/answer.ts'
import { connected } from '../../support/postgres/clients.ts'
import { accepted, item, open, ownDatabase, request, success } from './bed.ts'

const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
/** The statement is on its way when this resolves. */
const sent = () => new Promise<void>((turn) => setImmediate(() => setImmediate(turn)))

describe('an event loop that is blocked for longer than an answer may take', () => {
  it('reads the answer of a statement that was sent before', async () => {
    const client = await connected(await ownDatabase())
    const asked = ask(client, { text: 'SELECT 42 AS n FROM pg_sleep(0.1)' }, 300)
    await sent()
    block(600)
    expect((await asked).rows).toEqual([{ n: 42 }])
  })

  it('does not make a verb fail or try again, and reports no outage', async () => {
    const troubles: string[] = []
    const onTrouble = ({ kind }: { kind: string }) => troubles.push(kind)
    const url = await ownDatabase()
    // A statement of this store may take 1250 ms.
    const store = await open(url, { timeoutMs: 2000, onTrouble })
    await accepted(store, [item()])
    const held = await store.claim(request())
    const other = await connected(url)
    await other.query('BEGIN; SELECT * FROM pawl.jobs FOR UPDATE')
    // The server releases the lock while this process is blocked.
    const releasing = other.query('SELECT pg_sleep(0.2); COMMIT')
    const settling = store.settle(held.map((one) => success(one)))
    await sent()
    block(1400)
    expect((await settling).answers).toMatchObject([{ kind: 'done' }])
    await releasing
    expect(troubles).toEqual([])
  })

  it('still notices a server that does not answer', async () => {
    const client = await connected(await ownDatabase())
    const asked = ask(client, { text: 'SELECT pg_sleep(60)' }, 200)
    await expect(asked).rejects.toThrow('Query read timeout')
  })
})
