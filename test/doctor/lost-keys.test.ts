// The row of a job is lost, and with it its key: whoever enqueues the same key again gets a second
// job. The repair gives the key back, and keeps the second job from doing the work again.
import { LIFECYCLES, standard } from 'pawl/rules'
import { beforeEach, describe, expect, it } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import type { Enqueued, Held, Store } from '../../src/stores/contract/store.ts'
import { StoreBusy } from '../../src/stores/errors.ts'
import { wrapStore } from '../../src/stores/wrap-store.ts'
import { type Examined, STORES } from '../stores/examined-stores.ts'

const REQUEST = { worker: 'w1', queues: ['a'], limit: 1, leaseMs: 60_000, start: true }
const ANN = { operator: 'ann', reason: 'a row was deleted' }

describe.each(STORES)('a lost row of a job with a key on $name', ({ open }) => {
  let examined: Examined
  let store: Store
  let doctor: Doctor
  let first: string

  const enqueue = async (): Promise<Enqueued> => {
    const command = { jobId: examined.environment.ids.next(), type: 'mail', queue: 'a', key: 'k' }
    const [answer] = await store.enqueue([{ lifecycle: standard, command, input: '1' }])
    return answer as Enqueued
  }
  const enqueued = async (): Promise<string> => {
    const answer = await enqueue()
    if (answer.kind !== 'created') throw new Error(`not created: ${answer.kind}`)
    return answer.job.id
  }
  const claim = async (): Promise<Held> => (await store.claim(REQUEST))[0] as Held
  const lose = (id: string) => examined.sql(`DELETE FROM @jobs WHERE id = '${id}'`)
  const doctorFor = (other: Store) =>
    new Doctor({ store: other, environment: examined.environment, lifecycles: LIFECYCLES })

  beforeEach(async () => {
    examined = await open()
    store = examined.store
    doctor = doctorFor(store)
    first = await enqueued()
    await store.commit(await claim(), () => '"done"')
    await lose(first)
  })

  it('gets its key back with its row', async () => {
    const { findings } = await doctor.check({ full: true })
    const found = findings.find(({ check }) => check === 'jobs-have-rows')
    expect(found).toMatchObject({ subject: `job ${first}`, what: 'its row is missing' })
    await doctor.repair(ANN)
    expect(await enqueue()).toMatchObject({ kind: 'existing', job: { id: first } })
    expect(await doctor.check({ full: true })).toMatchObject({ errors: 0 })
  })

  it('gets its key back from a second job, which is parked if it has not started', async () => {
    const second = await enqueued()
    const { findings, repairs } = await doctor.check({ full: true })
    const found = findings.find(({ check }) => check === 'jobs-have-rows')
    const what = `its row is missing, and job ${second} was enqueued with its key "k"`
    expect(found).toMatchObject({ what, evidence: { rival: second } })
    expect(repairs.map(({ subject, remedy }) => [subject, remedy])).toContainEqual([
      `job ${second}`,
      'give the key up',
    ])
    await doctor.repair(ANN)
    expect(await store.get(first)).toMatchObject({ key: 'k', state: 'succeeded' })
    expect(await store.get(second)).toMatchObject({ key: null, state: 'quarantined' })
    expect(await store.claim(REQUEST)).toEqual([])
    expect(await enqueue()).toMatchObject({ kind: 'existing', job: { id: first } })
    expect(await doctor.check({ full: true })).toMatchObject({ errors: 0, repairCount: 0 })
  })

  it('gets its key back from a job that runs, which goes on', async () => {
    const second = await enqueued()
    const held = await claim()
    await doctor.repair(ANN)
    expect(await store.get(first)).toMatchObject({ key: 'k', state: 'succeeded' })
    expect(await store.get(second)).toMatchObject({ key: null, state: 'running' })
    expect(await store.commit(held, () => '"again"')).toMatchObject({ kind: 'done' })
    expect(await doctor.check({ full: true })).toMatchObject({ errors: 0, repairCount: 0 })
  })

  it('does not lose its key because the store was busy', async () => {
    let refusals = 1
    const busy = wrapStore(store, {
      examination: new Proxy(store.examination, {
        get(examination, name) {
          if (name === 'mend' && refusals-- > 0) return () => Promise.reject(new StoreBusy(1))
          const value = Reflect.get(examination, name, examination)
          return typeof value === 'function' ? value.bind(examination) : value
        },
      }),
    })
    const { findings } = await doctorFor(busy).repair(ANN)
    const checks = findings.map(({ check }) => check)
    expect(checks).toContain('repairs-are-carried-out')
    expect(await store.get(first)).toBeUndefined()
    await doctor.repair(ANN)
    expect(await store.get(first)).toMatchObject({ key: 'k' })
  })
})
