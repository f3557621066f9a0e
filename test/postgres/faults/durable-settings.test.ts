// The doctor reads from the settings of a server whether acknowledged writes survive a failover.
import { createPawl } from 'pawl'
import type { Client } from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { connected, single } from '../../support/postgres/clients.ts'
import { startPostgres } from '../../support/postgres/server.ts'
import { ownServer } from './bed.ts'

/** What the check says: severities and texts. */
async function findingsAt(url: string) {
  const pawl = await createPawl({ store: url })
  try {
    const { findings } = await pawl.doctor().check()
    return findings
      .filter(({ check }) => check === 'writes-survive')
      .map(({ severity, what }) => `${severity}: ${what}`)
  } finally {
    await pawl.close()
  }
}

/** Sets it for the server, and waits until new sessions have it. */
async function setForAll(client: Client, name: string, value: string): Promise<void> {
  await client.query(`ALTER SYSTEM SET ${name} = '${value}'`)
  await client.query('SELECT pg_reload_conf()')
  await vi.waitFor(async () => expect(await single(client, `SHOW ${name}`)).toBe(value))
}

describe('a single server', () => {
  it('has no findings while its commits wait for its own disk', async () => {
    const { url } = await ownServer()
    expect(await findingsAt(url)).toEqual([])
    const client = await connected(url)
    await setForAll(client, 'synchronous_commit', 'local')
    expect(await findingsAt(url)).toEqual([])
  })

  it('that does not write its log to the disk is warned of', async () => {
    const { url } = await ownServer({ fsync: 'off' })
    expect(await findingsAt(url)).toEqual([expect.stringMatching(/^warning: fsync is off/)])
  })
})

it('a primary with a standby is judged by what its commits wait for', {
  timeout: 60_000,
}, async () => {
  const primary = await ownServer()
  const standby = await startPostgres({ standbyOf: primary.port })
  onTestFinished(() => standby.stop())
  const { url } = primary
  const client = await connected(url)
  const streaming = `SELECT count(*)::int FROM pg_stat_replication WHERE state = 'streaming'`
  await vi.waitFor(async () => expect(await single(client, streaming)).toBe(1), { timeout: 20_000 })
  expect(await findingsAt(url)).toEqual([expect.stringMatching(/^notice: .* asynchronously/)])

  await setForAll(client, 'synchronous_standby_names', '*')
  const synchronous = `SELECT count(*)::int FROM pg_stat_replication WHERE sync_state = 'sync'`
  await vi.waitFor(async () => expect(await single(client, synchronous)).toBe(1))
  expect(await findingsAt(url)).toEqual([])

  for (const [level, expected] of [
    ['remote_write', /^notice: .* fail together/],
    ['local', /^warning: .* does not wait for it/],
    ['remote_apply', undefined],
  ] as const) {
    await client.query(`ALTER DATABASE postgres SET synchronous_commit = ${level}`)
    const wanted = expected === undefined ? [] : [expect.stringMatching(expected)]
    expect(await findingsAt(url)).toEqual(wanted)
  }

  await standby.kill9()
  await vi.waitFor(async () => expect(await single(client, streaming)).toBe(0))
  expect(await findingsAt(url)).toEqual([expect.stringMatching(/^warning: no synchronous standby/)])
})
