// The server wrote what a journal or a seal asked for, and the reply was lost with the connection.
// The store repeats the call, recognizes what it wrote, and answers as if nothing had happened.

import type { Store } from 'pawl/postgres'
import { beforeEach, expect, it } from 'vitest'
import { checkStore } from '../../contract/store/check.ts'
import { freshSchema, sharedPostgres } from '../../support/postgres/databases.ts'
import type { TcpProxy } from '../../support/tcp-proxy.ts'
import { accepted, item, open, proxyTo } from './bed.ts'

const READY = /Z\0{3}.I/s
const COMMIT = /COMMIT\0/
const LEASE = { runId: 'r1', fence: '01890000-0000-7000-8000-000000000001' }
const HOLDER = { holder: '{}', leaseMs: 60_000 }

let store: Store
let proxy: TcpProxy

beforeEach(async () => {
  const url = sharedPostgres()
  proxy = await proxyTo(url)
  store = await open(proxy.through(url), { schema: freshSchema(url) })
})

async function losing<T>(to: RegExp, act: () => Promise<T>): Promise<T> {
  const lost = proxy.loseReply({ to, reply: READY })
  const result = await act()
  await lost
  return result
}

function runOf(hash: string) {
  const end = { seq: 1, hash }
  const contents = [{ path: 'artifacts/a', bytes: Buffer.from('x') }]
  return { runId: 'r1', lines: ['one'], end, snapshot: '{}', contents }
}

it('a run is added once, and the caller learns that it added it', async () => {
  expect(await losing(COMMIT, () => store.runs.add(runOf('hash-1')))).toBe(true)
  expect(await store.runs.lines('r1', 0, 10)).toEqual(['one'])
  expect(await store.runs.add(runOf('hash-1'))).toBe(false)
})

it('a run that another process added first is not taken for an own one', async () => {
  await store.runs.add(runOf('hash-1'))
  expect(await losing(COMMIT, () => store.runs.add(runOf('hash-2')))).toBe(false)
})

it('a lease, an append and a content are written once, under the same lease', async () => {
  await store.runs.add(runOf('hash-1'))
  const held = await losing(/lease_until = \$5/, () => store.runs.hold(LEASE, HOLDER))
  expect(held).toEqual({ kind: 'held' })
  const addition = { after: 1, lines: ['two', 'three'], end: { seq: 3, hash: 'hash-3' } }
  expect(await losing(/WITH held AS/, () => store.runs.append(LEASE, addition))).toBe(true)
  expect(await store.runs.lines('r1', 0, 10)).toEqual(['one', 'two', 'three'])
  const content = { path: 'artifacts/b', bytes: Buffer.from('y') }
  expect(await losing(/run_contents/, () => store.runs.putContent(LEASE, content))).toBe(true)
  expect(await store.runs.content('r1', 'artifacts/b')).toEqual(content.bytes)
})

it('a seal is added once', async () => {
  await accepted(store, [item()])
  expect(await losing(COMMIT, () => store.seals.make())).toMatchObject({ number: 1, facts: 1 })
  expect(await store.seals.list(0, 10)).toHaveLength(1)
  await checkStore(store)
})
