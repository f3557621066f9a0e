// The pooler of the tests is one in transaction mode.
import { describe, expect, it, onTestFinished } from 'vitest'
import { connected, single } from './clients.ts'
import { sharedPostgres } from './databases.ts'
import { findPgbouncer, type Pgbouncer, startPgbouncer } from './pgbouncer.ts'

async function pooler(poolSize: number): Promise<Pgbouncer> {
  const started = await startPgbouncer({ url: sharedPostgres(), poolSize })
  if (started === undefined) throw new Error('pgbouncer has gone')
  onTestFinished(() => started.stop())
  return started
}

describe.runIf(findPgbouncer())('pgbouncer', () => {
  it('serves several clients by turns over one connection, a transaction each', async () => {
    const { url } = await pooler(1)
    const [one, two] = [await connected(url), await connected(url)]
    await one.query('begin')
    const own = await single(one, 'select pg_backend_pid()')
    const waiting = single(two, 'select pg_backend_pid()')
    await one.query('commit')
    expect(await waiting).toBe(own)
  })
})
