// Leases and due times that somebody has set far ahead: no lease would end, no effect become due.
// Workers replace them and go on; the doctor reports and mends what it meets first.
import { LIFECYCLES } from 'pawl/rules'
import { beforeEach, describe, expect, it } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import { settingsOf } from '../../src/engine/work-options.ts'
import { openStoreJournal } from '../../src/runs/journal/store/journal.ts'
import { recordsOf } from '../../src/runs/journal/verify.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { workerOf } from '../../src/stores/worker-info.ts'
import { AUTHOR, JournalBench } from '../contract/journal/bench.ts'
import { claim, type Examined, STORES } from './examined-stores.ts'

const YEAR_2200 = 7_258_118_400_000
const DAY = 86_400_000
const LEASE_MS = 600_000
const EFFECTS = { limit: 10, leaseMs: 60_000 }
const ANN = { operator: 'ann', reason: 'set by hand' }

describe.each(STORES)('a time that is too far ahead on $name', ({ open }) => {
  let examined: Examined
  let store: Store
  let doctor: Doctor

  const advance = (ms: number) => examined.environment.clock.advance(ms)
  const errors = async () => {
    const { findings } = await doctor.check({ full: true })
    return findings.filter(({ severity }) => severity === 'error')
  }
  const commit = async (held: Held) =>
    store.commit(held, (tx) => {
      tx.effect('mail', '{}')
      return '"sent"'
    })

  beforeEach(async () => {
    examined = await open()
    store = examined.store
    doctor = new Doctor({ store, environment: examined.environment, lifecycles: LIFECYCLES })
  })

  const endless = async (until: number): Promise<Held> => {
    const held = await claim(examined, 'a')
    await examined.sql(`UPDATE @jobs SET lease_until = ${until} WHERE id = '${held.job.id}'`)
    return held
  }

  it.each([
    ['in the year 2200', () => YEAR_2200],
    ['in ninety days', () => store.now() + 90 * DAY],
  ])('as the end of a lease %s is cut, so that the job is recovered', async (_, until) => {
    const { job } = await endless(until())
    expect(await store.isolate()).toEqual([])
    expect(await store.recover(10)).toEqual([])
    advance(LEASE_MS + 1)
    expect(await store.recover(10)).toMatchObject([{ kind: 'done', job: { id: job.id } }])
    expect(await errors()).toEqual([])
  })

  it('as the end of a lease does not cost a live holder its job', async () => {
    const held = await endless(YEAR_2200)
    await store.isolate()
    const { attempt, execution } = held.job
    const beat = { ref: held.ref, fence: { attempt, claim: execution?.claim as string } }
    expect(await store.heartbeat([beat], LEASE_MS)).toMatchObject({ lost: [] })
    expect(await store.commit(held, () => '"done"')).toMatchObject({ kind: 'done' })
    expect(await errors()).toEqual([])
  })

  it('as the end of a lease is found and mended by the doctor', async () => {
    const { job } = await endless(YEAR_2200)
    expect(await errors()).toMatchObject([
      { check: 'row-is-fold', subject: `job ${job.id}`, what: expect.stringMatching(/lease/) },
    ])
    await doctor.repair(ANN)
    expect(await errors()).toEqual([])
    advance(LEASE_MS + 1)
    expect(await store.recover(10)).toMatchObject([{ kind: 'done', job: { id: job.id } }])
  })

  it.each([
    ['waits', false],
    ['is being delivered', true],
  ])('as that of an effect that %s is replaced, and it is delivered', async (_, isClaimed) => {
    await commit(await claim(examined, 'a'))
    if (isClaimed) expect(await store.claimEffects(EFFECTS)).toHaveLength(1)
    await examined.sql(`UPDATE @outbox SET run_at = ${YEAR_2200}`)
    expect(await errors()).toMatchObject([
      {
        check: 'effects-move',
        what: expect.stringContaining('too far ahead'),
        remedy: 'make the effects due',
      },
    ])
    await store.isolate()
    expect(await errors()).toEqual([])
    advance(EFFECTS.leaseMs + 1)
    expect(await store.claimEffects(EFFECTS)).toHaveLength(1)
  })

  it('as that of an effect is mended by the doctor', async () => {
    await commit(await claim(examined, 'a'))
    await examined.sql(`UPDATE @outbox SET run_at = ${YEAR_2200}`)
    await doctor.repair(ANN)
    expect(await errors()).toEqual([])
    expect(await store.claimEffects(EFFECTS)).toHaveLength(1)
  })

  it('as that of a waiting job is found by its facts', async () => {
    const { job } = await claim(examined, 'a')
    advance(LEASE_MS + 1)
    await store.recover(10)
    await examined.sql(`UPDATE @jobs SET run_at = ${YEAR_2200}, lane = 1 WHERE id = '${job.id}'`)
    expect(await errors()).toMatchObject([{ what: expect.stringMatching(/run_at/) }])
    await doctor.repair(ANN)
    expect(await errors()).toEqual([])
  })

  it('as the hold of a run does not keep others from taking it', async () => {
    const { environment } = examined
    const journal = openStoreJournal({ store, environment })
    const bench = new JournalBench(environment, { journal, again: async () => journal, advance })
    await bench.example('run-a')
    await journal.close()
    await examined.sql(
      `UPDATE @runs SET fence = '00000000-0000-7000-8000-00000000dead', holder = '{}',
        lease_until = ${YEAR_2200} WHERE id = 'run-a'`,
    )
    const other = openStoreJournal({ store, environment })
    const runs = [recordsOf(other, 'the store', AUTHOR)]
    const both = new Doctor({ store, environment, lifecycles: LIFECYCLES, runs })
    const { findings } = await both.check({ full: true })
    expect(findings).toMatchObject([{ check: 'runs-are-whole', remedy: 'end the lease' }])
    await (await other.open('run-a', AUTHOR)).close()
    expect((await both.check({ full: true })).findings).toEqual([])
  })

  it('as that of a report does not make a worker live, and the doctor forgets it', async () => {
    await store.reportWorker({ id: 'w9', state: 'Idle', info: '{}' })
    await examined.sql(`UPDATE @workers SET seen_at = ${YEAR_2200} WHERE id = 'w9'`)
    const [row] = await store.listWorkers()
    expect(row && workerOf(row, store.now()).live).toBe(false)
    expect(await errors()).toMatchObject([
      { check: 'workers-have-reported', subject: 'worker w9', remedy: 'forget the worker' },
    ])
    await doctor.repair(ANN)
    expect(await store.listWorkers()).toEqual([])
  })

  it('cannot be asked for: a lease lasts a day at most', async () => {
    const request = { worker: 'w1', limit: 1, leaseMs: DAY + 1, start: true }
    await expect(store.claim(request)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    expect(() => settingsOf({ lease: '25h' }, examined.environment)).toThrow(/a day or shorter/)
    expect(() => openStoreJournal({ store, leaseMs: DAY + 1 })).toThrow(/leaseMs/)
  })
})
