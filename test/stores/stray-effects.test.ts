// An effect is delivered under the key of its row, and its receiver tells a repetition by that key.
// A row that was changed is not delivered: it is parked, and the doctor gives it its key again.
import { beforeEach, describe, expect, it } from 'vitest'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import type { HeldEffect, Store } from '../../src/stores/contract/store.ts'
import { claim, type Examined, STORES } from './examined-stores.ts'

const EFFECTS = { limit: 10, leaseMs: 60_000 }
const ANN = { operator: 'ann', reason: 'moved by hand' }
const MISSING = '00000000-0000-7000-8000-00000000dead'

describe.each(STORES)('an effect whose row was changed on $name', ({ open }) => {
  let examined: Examined
  let store: Store
  let doctor: Doctor
  let jobs: [string, string]

  const ref = (id: string) =>
    examined.refColumn === 'rid' ? `(SELECT rid FROM @jobs WHERE id = '${id}')` : `'${id}'`
  const keys = (effects: readonly HeldEffect[]) => effects.map(({ key }) => key)
  const change = (id: string, set: string) =>
    examined.sql(`UPDATE @outbox SET ${set} WHERE job = ${ref(id)}`)
  const commit = async () => {
    const held = await claim(examined, 'a')
    await store.commit(held, (tx) => {
      tx.effect('mail', `{"to":"${held.job.id}"}`)
      return '"sent"'
    })
    return held.job.id
  }
  const deliver = async () => {
    const effects = await store.claimEffects(EFFECTS)
    await store.settleEffects(effects.map((effect) => ({ kind: 'delivered', effect })))
    return keys(effects).toSorted()
  }
  const expectClean = async () => {
    const { findings } = await doctor.check({ full: true })
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  }

  beforeEach(async () => {
    examined = await open()
    store = examined.store
    doctor = new Doctor({ store, environment: examined.environment, lifecycles: LIFECYCLES })
    jobs = [await commit(), await commit()]
  })

  it.each([
    ['job and number', ([, other]: string[]) => `job = ${ref(other as string)}, n = 2`],
    ['number', () => 'n = 7'],
    ['name', () => "name = 'call'"],
    ['type', () => "type = 'other'"],
    [
      'job, which is missing',
      () => (examined.refColumn === 'rid' ? 'job = 999' : `job = '${MISSING}'`),
    ],
  ])('by its %s is refused, found, and delivered under its key in the end', async (_, set) => {
    await change(jobs[0], set(jobs))
    expect(await deliver()).toEqual([`${jobs[1]}/mail/1`])
    const { findings } = await doctor.check({ full: true })
    expect(findings.filter(({ severity }) => severity === 'error')).toMatchObject([
      { check: 'effects-are-their-jobs', remedy: 'return the effect to its job' },
    ])
    await doctor.repair(ANN)
    await expectClean()
    expect(await deliver()).toEqual([`${jobs[0]}/mail/1`])
    // The other job had nothing left to deliver when the effect went.
    examined.environment.clock.advance(60_000)
    await doctor.repair(ANN)
    for (const id of jobs) expect(await store.get(id)).toMatchObject({ state: 'succeeded' })
    await expectClean()
  })

  it('by changing places with another is delivered under its own key', async () => {
    const [one, two] = jobs
    await change(one, `n = 5`)
    await change(two, `job = ${ref(one)}`)
    await examined.sql(`UPDATE @outbox SET job = ${ref(two)}, n = 1 WHERE n = 5`)
    expect(await deliver()).toEqual([])
    await doctor.repair(ANN)
    await expectClean()
    expect(await deliver()).toEqual(jobs.map((id) => `${id}/mail/1`).toSorted())
    for (const id of jobs) expect(await store.get(id)).toMatchObject({ state: 'succeeded' })
  })

  it.each([
    ['payload', () => `payload = '{"to":"eve"}'`],
    ['mark', () => `mark = 'x'`],
    ['mark, which then names another effect,', () => `mark = replace(mark, 'mail', 'call')`],
    [
      'mark, which then names another job,',
      ([one, other]: string[]) => `mark = replace(mark, '${one}', '${other}')`,
    ],
  ])('in its %s is not delivered, and a person decides', async (_, set) => {
    await change(jobs[0], set(jobs))
    expect(await deliver()).toEqual([`${jobs[1]}/mail/1`])
    const { items } = await store.listEffects({ state: 'parked' })
    expect(items).toMatchObject([
      { jobId: jobs[0], error: 'its row is not what was declared under its key' },
    ])
    const { findings } = await doctor.check({ full: true })
    expect(findings).toMatchObject([
      { check: 'effects-move', advice: expect.stringMatching(/mark/) },
    ])
    await doctor.repair(ANN)
    await change(jobs[0], 'mark = NULL')
    await store.retryEffects([`${jobs[0]}/mail/1`], { actor: 'operator', operator: 'a', note: 'b' })
    expect(await deliver()).toEqual([`${jobs[0]}/mail/1`])
  })

  it('before it had a mark is delivered as before', async () => {
    await change(jobs[0], 'mark = NULL')
    expect(await deliver()).toEqual(jobs.map((id) => `${id}/mail/1`).toSorted())
  })
})
