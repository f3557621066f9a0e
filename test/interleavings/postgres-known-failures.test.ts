// Failures that other engines have had, on the real server: each is one meeting of two verbs at a
// certain statement, played out by hand.
import { standard } from 'pawl/rules'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Answer, Held, Store } from '../../src/stores/contract/store.ts'
import { fenceOf, settlement } from '../contract/store/bench.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { PostgresStage } from './postgres-stage.ts'
import { LEASE_MS } from './scenes.ts'

let stage: PostgresStage
beforeAll(async () => {
  stage = await PostgresStage.open(sharedPostgres())
})
afterAll(() => stage.close())

const succeed = async (store: Store, held: Held): Promise<Answer> => {
  const { answers } = await store.settle([settlement(held, { kind: 'commit' }, '"done"')])
  return answers[0] as Answer
}
const start = async (store: Store, held: Held): Promise<Answer> => {
  const { answers } = await store.settle([settlement(held, { kind: 'start' })])
  return answers[0] as Answer
}

/** One job that the first side holds, whose lease is over in a millisecond. */
async function almostExpired(started = true): Promise<Held> {
  await stage.clear()
  const [{ store }] = stage.sides
  const jobId = stage.newId()
  const command = { jobId, type: 'example', queue: 'main' }
  await store.enqueue([{ lifecycle: standard, input: '{}', command }])
  const request = { worker: 'first', limit: 1, leaseMs: LEASE_MS, start: started }
  const [held] = await store.claim(request)
  stage.pass(LEASE_MS - 1)
  return held as Held
}

const triggersOf = async ({ job }: Held) =>
  (await stage.reader.facts(job.id)).map(({ trigger }) => trigger)

describe('a rescuer and the job that ends before its eyes (river#1302)', () => {
  it('a success that was decided in time is refused once the job was taken back', async () => {
    const held = await almostExpired()
    const [holder, rescuer] = stage.sides
    const stopped = holder.gate.stopAt(1)
    const success = succeed(holder.store, held)
    await stopped
    stage.pass(1)
    expect(await rescuer.store.recover(9)).toMatchObject([{ kind: 'done' }])
    holder.gate.open()
    expect(await success).toMatchObject({ kind: 'rejected', error: { code: 'E_STALE_FENCE' } })
    expect(await triggersOf(held)).toEqual(['create', 'claim', 'expire'])
  })

  it('a rescuer that comes to a job which has just succeeded leaves it alone', async () => {
    const held = await almostExpired()
    const [holder, rescuer] = stage.sides
    const successStopped = holder.gate.stopAt(1)
    const success = succeed(holder.store, held)
    await successStopped
    stage.pass(1)
    const rescueStopped = rescuer.gate.stopAt(1)
    const rescue = rescuer.store.recover(9)
    await rescueStopped
    holder.gate.open()
    expect(await success).toMatchObject({ kind: 'done' })
    rescuer.gate.open()
    expect(await rescue).toEqual([])
    expect(await triggersOf(held)).toEqual(['create', 'claim', 'commit'])
  })

  it('a success waits for a rescuer that has read the job, and is then refused', async () => {
    const held = await almostExpired()
    const [rescuer, holder] = stage.sides
    stage.pass(1)
    // After its look for lifecycles and its lock: the job is read, and nothing is written.
    const rescueStopped = rescuer.gate.stopAt(3)
    const rescue = rescuer.store.recover(9)
    await rescueStopped
    // The clock of the holder's process is a millisecond behind: its success seems to be in time.
    stage.pass(-1)
    const success = succeed(holder.store, held)
    await stage.untilEndedOrBlocked(success)
    rescuer.gate.open()
    expect(await rescue).toMatchObject([{ kind: 'done', fact: { trigger: 'expire' } }])
    expect(await success).toMatchObject({ kind: 'rejected', error: { code: 'E_STALE_FENCE' } })
    expect(await triggersOf(held)).toEqual(['create', 'claim', 'expire'])
  })
})

describe('a start and a recovery in the same millisecond (dbos#491)', () => {
  for (const n of [1, 2, 3]) {
    it(`in the last millisecond of the lease the start wins, held before ${n}`, async () => {
      const held = await almostExpired(false)
      const [holder, rescuer] = stage.sides
      const stopped = holder.gate.stopAt(n)
      const starting = start(holder.store, held)
      await Promise.race([stopped, starting])
      expect(await rescuer.store.recover(9)).toEqual([])
      holder.gate.open()
      expect(await starting).toMatchObject({ kind: 'done' })
      expect(await triggersOf(held)).toEqual(['create', 'claim', 'start'])
    })

    it(`in the millisecond of its end the recovery wins, held before ${n}`, async () => {
      const held = await almostExpired(false)
      const [rescuer, holder] = stage.sides
      stage.pass(1)
      const stopped = rescuer.gate.stopAt(n)
      const rescue = rescuer.store.recover(9)
      await Promise.race([stopped, rescue])
      const starting = start(holder.store, held)
      await stage.untilEndedOrBlocked(starting)
      rescuer.gate.open()
      expect(await rescue).toMatchObject([{ kind: 'done', job: { attempt: 1, crashes: 0 } }])
      expect(await starting).toMatchObject({ kind: 'rejected', error: { code: 'E_STALE_FENCE' } })
      expect(await triggersOf(held)).toEqual(['create', 'claim', 'release'])
      expect(fenceOf(held).attempt).toBe(1)
    })
  }
})

it('an archive is never handed a job that another process has removed meanwhile', async () => {
  const held = await almostExpired()
  const [one, other] = stage.sides
  await succeed(one.store, held)
  const endedBefore = one.store.now() + 1
  const archives: string[] = []
  const archive = async (lines: string) => void archives.push(lines)
  // Before its second statement: the job was seen, and its facts were not.
  const stopped = one.gate.stopAt(2)
  const pruning = one.store.prune({ endedBefore, limit: 9, archive })
  await stopped
  expect(await other.store.prune({ endedBefore, limit: 9 })).toBe(1)
  one.gate.open()
  expect(await pruning).toBe(0)
  expect(archives).toEqual([])
})
