// A worker that is cut off from the database and does not know it: its lease expires, another takes
// its job over, and what it writes when it is back is refused.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Held, Store } from 'pawl/postgres'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { Answer } from '../../../src/stores/contract/store.ts'
import { checkStore } from '../../contract/store/check.ts'
import { connected } from '../../support/postgres/clients.ts'
import { serverFolder } from '../../support/postgres/guarded.ts'
import {
  accepted,
  beatOf,
  hold,
  item,
  makeUserRows,
  open,
  ownDatabase,
  ownServer,
  PATIENT,
  proxyTo,
  request,
  success,
  userRows,
} from './bed.ts'
import { findObstacle, Host } from './hosts.ts'

const LEASE_MS = 1500
/** Much longer than a lease, much shorter than the patience of a server with a silent client. */
const BOUND = { timeout: 8000, interval: 50 }
const STALE = { kind: 'rejected', error: { code: 'E_STALE_FENCE' } }

/** What one does who takes over. */
interface Successor {
  recover(limit: number): Promise<readonly Answer[]>
  promote(limit: number): Promise<number>
  claim(asked: ReturnType<typeof request>): Promise<readonly Held[]>
}

/** Takes a job over as soon as its lease has expired. */
function takeOver(other: Successor, { job }: Held): Promise<Held> {
  return vi.waitFor(async () => {
    await other.recover(10)
    await other.promote(10)
    const [held] = await other.claim(request({ worker: 'successor', queues: [job.queue] }))
    if (held === undefined) throw new Error('nothing to take over yet')
    expect(held.job).toMatchObject({ id: job.id, attempt: job.attempt + 1 })
    return held
  }, BOUND)
}

function commitWithRow(store: Store, held: Held, meanwhile = () => {}) {
  return store.commit(held, async (tx) => {
    await tx.query('INSERT INTO user_rows VALUES ($1)', [held.job.id])
    meanwhile()
    return '"user"'
  })
}

it('a worker whose network stands still loses its job, and late writes are refused', async () => {
  const url = await ownDatabase()
  const client = await connected(url)
  await makeUserRows(client)
  const proxy = await proxyTo(url)
  const [cutOff, other] = [await open(proxy.through(url)), await open(url)]
  const held = await hold(cutOff, { leaseMs: LEASE_MS })
  proxy.stall()
  const late = [cutOff.settle([success(held)]), cutOff.heartbeat([beatOf(held)], LEASE_MS)] as const
  const commit = commitWithRow(cutOff, held)
  const taken = await takeOver(other, held)
  proxy.resume()
  const [settled, beat] = await Promise.all(late)
  expect(settled.answers).toMatchObject([STALE])
  expect(beat.lost).toEqual([held.ref])
  expect(await commit).toMatchObject(STALE)
  expect(await commitWithRow(other, taken)).toMatchObject({ kind: 'done' })
  expect(await commitWithRow(cutOff, held)).toMatchObject({ kind: 'rejected' })
  expect(await userRows(client)).toEqual([held.job.id])
  await checkStore(other)
})

it('a worker that is cut off in the middle of a commit does not keep its job', async () => {
  const url = await ownDatabase()
  const client = await connected(url)
  await makeUserRows(client)
  const proxy = await proxyTo(url)
  const [cutOff, other] = [await open(proxy.through(url)), await open(url)]
  const held = await hold(cutOff, { leaseMs: LEASE_MS })
  const commit = commitWithRow(cutOff, held, () => proxy.stall())
  const late = Promise.allSettled([commit])
  const taken = await takeOver(other, held)
  expect(await commitWithRow(other, taken)).toMatchObject({ kind: 'done' })
  proxy.resume()
  const [answer] = await late
  expect(answer).toSatisfy(
    ({ status, reason, value }) =>
      (status === 'rejected' && reason.code === 'E_STORE_UNAVAILABLE') ||
      (status === 'fulfilled' && value.kind === 'rejected'),
  )
  expect(await userRows(client)).toEqual([held.job.id])
  await checkStore(other)
})

it('a host that is cut off and healed loses its job, and its late writes are refused', {
  timeout: 60_000,
}, async ({ skip }) => {
  const obstacle = findObstacle()
  skip(obstacle !== undefined, `there are no network namespaces here: ${obstacle}`)
  const [cutOff, other] = [new Host(0), new Host(1)]
  const { url } = await ownServer({
    listen_addresses: `127.0.0.1,${cutOff.gateway},${other.gateway}`,
    hba_file: trustingFile(),
  })
  const client = await connected(url)
  await makeUserRows(client)
  const store = await open(url)
  await Promise.all([cutOff.start(url), other.start(url)])
  await accepted(store, [item({ queue: 'main', policy: PATIENT })])
  const asked = request({ queues: ['main'], leaseMs: LEASE_MS })
  const [held] = (await cutOff.ask('claim', asked)) as [Held]
  cutOff.cut()
  const settling = cutOff.ask('settle', [success(held)])
  const taken = await takeOver(successorOn(other), held)
  cutOff.heal()
  expect(await settling).toMatchObject({ answers: [STALE] })
  expect(await cutOff.ask('heartbeat', [beatOf(held)], LEASE_MS)).toMatchObject({
    lost: [held.ref],
  })
  expect(await cutOff.ask('commit', held)).toMatchObject(STALE)
  expect(await other.ask('commit', taken)).toMatchObject({ kind: 'done' })
  expect(await userRows(client)).toEqual([held.job.id])
  await Promise.all([cutOff.ask('close'), other.ask('close')])
  await checkStore(store)
})

function successorOn(host: Host): Successor {
  return {
    recover: (limit) => host.ask('recover', limit),
    promote: (limit) => host.ask('promote', limit),
    claim: (asked) => host.ask('claim', asked),
  }
}

/** A file by which the server lets everybody in. */
function trustingFile(): string {
  const folder = serverFolder('hba')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'pg_hba.conf')
  writeFileSync(file, 'host all all all trust\n')
  return file
}
