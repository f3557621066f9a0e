// Jobs of transactions that end without them: rolled back, or ended before the enqueue was done.
import { defineJob, type Pawl, typed } from 'pawl'
import { describe, expect, it } from 'vitest'
import { openRaw } from '../processes/inspect.ts'
import { connected } from '../support/postgres/clients.ts'
import { PLACES, sqlitePlace } from './processes/places.ts'

const timeout = 30_000
const follow = defineJob({ name: 'follow', input: typed<string>() })
const notFound = { code: 'E_JOB_NOT_FOUND' }
const jobsOf = async (pawl: Pawl) => (await pawl.store.list({})).items.length

describe.each(PLACES)('on $name', ({ name, place }) => {
  it('the result of a job that was rolled back is E_JOB_NOT_FOUND', { timeout }, async () => {
    const { pawl } = await place()
    let result: Promise<unknown> | undefined
    const going = pawl.transaction(async (tx) => {
      const handle = await pawl.enqueue(follow, 'lost', { tx })
      result = handle.result()
      result.catch(() => {})
      throw new Error('no')
    })
    await expect(going).rejects.toThrow('no')
    await expect(result).rejects.toMatchObject(notFound)
  })

  it('a result is waited for while its transaction is open', { timeout }, async () => {
    const { pawl } = await place()
    let result: Promise<unknown> = Promise.reject()
    result.catch(() => {})
    await pawl.transaction(async (tx) => {
      const handle = await pawl.enqueue(follow, 'kept', { tx })
      result = handle.result()
      result.catch(() => {})
      const early = handle.result({ timeout: 100 })
      await expect(early).rejects.toMatchObject({ code: 'E_RESULT_TIMEOUT' })
    })
    const [job] = (await pawl.store.list({})).items
    await pawl.operator({ name: 'Ada', reason: 'test' }).cancel(job?.id ?? '')
    await expect(result).resolves.toMatchObject({ kind: 'cancelled' })
  })

  it('the result of a job that nobody has enqueued is E_JOB_NOT_FOUND', { timeout }, async () => {
    const { pawl } = await place()
    const absent = pawl.job('0198a1b2-0000-7000-8000-000000000001')
    await expect(absent.result()).rejects.toMatchObject(notFound)
    await expect(pawl.job('nonsense').result()).rejects.toMatchObject(notFound)
  })

  it('the result of a job in a transaction of your own that was rolled back', {
    timeout,
  }, async () => {
    const { pawl, store } = await place()
    const own = await ownHandle(name, store)
    await own.run('BEGIN')
    const lost = (await pawl.enqueue(follow, 'lost', { tx: own.tx })).result()
    lost.catch(() => {})
    await own.run('ROLLBACK')
    await expect(lost).rejects.toMatchObject(notFound)
    await own.run('BEGIN')
    const handle = await pawl.enqueue(follow, 'kept', { tx: own.tx })
    const kept = handle.result()
    kept.catch(() => {})
    await own.run('COMMIT')
    await handle.cancel()
    await expect(kept).resolves.toMatchObject({ kind: 'cancelled' })
  })

  it('an enqueue that nobody awaits is part of the transaction, or E_TX_ENDED', {
    timeout,
  }, async () => {
    const { pawl } = await place()
    for (const ending of ['commit', 'rollback']) {
      const before = await jobsOf(pawl)
      const enqueued: Promise<unknown>[] = []
      const going = pawl.transaction(async (tx) => {
        for (let i = 0; i < 20; i++) {
          enqueued.push(pawl.enqueue(follow, `${i}`, { tx }))
          enqueued.at(-1)?.catch(() => {})
          await new Promise<void>((turn) => setImmediate(turn))
        }
        if (ending === 'rollback') throw new Error('no')
      })
      await going.catch(() => {})
      const settled = await Promise.allSettled(enqueued)
      const kept = settled.filter(({ status }) => status === 'fulfilled').length
      for (const one of settled) {
        if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'E_TX_ENDED' })
      }
      const expected = ending === 'commit' ? kept : 0
      expect(await jobsOf(pawl)).toBe(before + expected)
    }
  })
})

it('an enqueue that outlives a transaction of your own is E_TX_ENDED, without a job', {
  timeout,
}, async () => {
  const { place } = PLACES[1]
  const { pawl, store } = await place()
  for (const end of ['COMMIT', 'ROLLBACK']) {
    for (let statements = 1; statements <= 4; statements++) {
      const client = await connected(store)
      await client.query('BEGIN')
      let left = statements
      let ended: Promise<unknown> | undefined
      // The transaction is ended after so many statements of Pawl.
      const query = async (text: string, values?: unknown[]) => {
        const rows = await client.query(text, values)
        if (--left === 0) ended = client.query(end)
        return rows
      }
      const going = pawl.enqueue(follow, `${end} ${statements}`, { tx: { query } })
      if (statements < 4) await expect(going).rejects.toMatchObject({ code: 'E_TX_ENDED' })
      else await going
      await ended
    }
  }
  // After the third statement the job is written already, and shares the end of the transaction.
  const { items } = await pawl.store.list({})
  const inputs = await Promise.all(items.map(({ id }) => pawl.store.payloads(id)))
  expect(inputs.map((one) => one?.input).sort()).toEqual(['"COMMIT 3"', '"COMMIT 4"'])
})

it('a handle that was closed after its ROLLBACK leaves no wait without an end', {
  timeout,
}, async () => {
  const { path, pawl } = await sqlitePlace()
  const raw = openRaw(path)
  raw.exec('BEGIN')
  const lost = (await pawl.enqueue(follow, 'lost', { tx: raw as never })).result()
  lost.catch(() => {})
  raw.exec('ROLLBACK; BEGIN')
  raw.exec('COMMIT')
  raw.close()
  await expect(lost).rejects.toMatchObject(notFound)
})

/** A connection of the user's own, and its handle as a tx. */
async function ownHandle(name: string, store: string) {
  if (name === 'PostgreSQL') {
    const client = await connected(store)
    return { tx: client, run: (sql: string) => client.query(sql) as Promise<unknown> }
  }
  const raw = openRaw(store.slice('sqlite:'.length))
  return { tx: raw as never, run: async (sql: string) => raw.exec(sql) }
}
