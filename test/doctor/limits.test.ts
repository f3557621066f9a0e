// What limits say is what the jobs and the records say, whatever somebody writes into their rows.
import { LIFECYCLES, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import type { Held } from '../../src/stores/contract/store.ts'
import { type Examined, STORES } from '../stores/examined-stores.ts'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'because' } as const
const ANN = { operator: 'ann', reason: 'changed by hand' }
const KEYS = [
  { gate: 'job/mail/tenant/acme', max: 1 },
  { gate: 'shared/openai' },
  { gate: 'rate/mail/calls' },
]

/** One job runs, two are blocked by the same key; one runs in a queue with a limit. */
async function busy({ store, environment }: Examined): Promise<Held> {
  await store.limits.declare([
    { name: 'shared/openai', max: 5 },
    { name: 'job/mail/tenant', max: null },
    { name: 'rate/mail/calls', max: 100, periodMs: 1000 },
    { name: 'queue/slow', max: 2 },
  ])
  await store.limits.set('shared/openai', 4, OPERATOR)
  for (const queue of ['a', 'a', 'a', 'slow']) {
    const limitKeys = queue === 'a' ? KEYS : []
    const command = { jobId: environment.ids.next(), type: 'mail', queue, limitKeys }
    await store.enqueue([{ lifecycle: standard, command, input: '1' }])
    environment.advance(1)
  }
  await store.reportWorker({ id: 'w', state: 'Idle', info: '{"version":"1"}' })
  const request = { worker: 'w', limit: 10, leaseMs: 600_000, start: true }
  const [held] = await store.claim(request)
  return held as Held
}

type Case = [what: string, sql: string, check: string, remedy: string, subject?: string]

const HELD = `slots IS NOT NULL AND queue = 'a'`
const ROW = 'rebuild the row from its facts'
const RECOUNT = 'recount the limit'
const ACME = 'limit job/mail/tenant/acme'

const CASES: readonly Case[] = [
  ['counts too many', 'UPDATE @gates SET used = 7', 'limits-hold', RECOUNT],
  ['counts too few', 'UPDATE @gates SET used = 0', 'limits-hold', RECOUNT],
  ['has lost its gate', 'DELETE FROM @gates', 'limits-hold', RECOUNT],
  [
    'blocks jobs that nobody looks at',
    'UPDATE @gates SET waiting = 0',
    'limits-hold',
    RECOUNT,
    ACME,
  ],
  [
    'has room and blocks jobs',
    `UPDATE @gates SET asked = 9 WHERE key = 'job/mail/tenant/acme'`,
    'limits-hold',
    RECOUNT,
    ACME,
  ],
  [
    'opens in a far future',
    `UPDATE @gates SET open_at = 9000000000000000 WHERE waiting = 1`,
    'limits-hold',
    RECOUNT,
    ACME,
  ],
  [
    'is closed for ever',
    `UPDATE @gates SET closed_until = 9000000000000000, tat = 9000000000000000
     WHERE key = 'rate/mail/calls'`,
    'limits-hold',
    RECOUNT,
    'limit rate/mail/calls',
  ],
  [
    'has a number from the future',
    'UPDATE @gates SET asked_at = 9000000000000000 WHERE asked IS NOT NULL',
    'limits-hold',
    RECOUNT,
    ACME,
  ],
  ['is not looked at', 'UPDATE @queues SET gated = 0', 'limits-hold', RECOUNT, 'limit queue/slow'],
  [
    'has lost the number of an operator',
    `UPDATE @limits SET override = NULL WHERE name = 'shared/openai'`,
    'limits-are-as-recorded',
    'restore the limit',
    'limit shared/openai',
  ],
  [
    'has another number than its code',
    `UPDATE @limits SET max = 500 WHERE name = 'shared/openai'`,
    'limits-are-as-recorded',
    'restore the limit',
    'limit shared/openai',
  ],
  [
    'has lost its row',
    `DELETE FROM @limits WHERE name = 'shared/openai'`,
    'limits-are-as-recorded',
    'restore the limit',
    'limit shared/openai',
  ],
  ['is not counted by a job', `UPDATE @jobs SET slots = NULL WHERE ${HELD}`, 'row-is-fold', ROW],
  [
    'is counted by a job of another one',
    `UPDATE @jobs SET slots = 'shared/x' WHERE ${HELD}`,
    'row-is-fold',
    ROW,
  ],
  [
    'is not named by a job that it blocks',
    'UPDATE @jobs SET blocked_on = NULL WHERE lane = 7',
    'row-is-fold',
    ROW,
  ],
  [
    'blocks a job of another one',
    `UPDATE @jobs SET blocked_on = 'shared/other' WHERE lane = 7`,
    'row-is-fold',
    ROW,
  ],
]

describe.each(STORES)('limits on $name', ({ open }) => {
  it.each(CASES)('are made right if one %s', async (_, sql, check, remedy, subject) => {
    const examined = await open()
    const { store, environment } = examined
    const doctor = new Doctor({ store, environment, lifecycles: LIFECYCLES })
    await busy(examined)
    expect((await doctor.check({ full: true })).findings).toEqual([])
    await examined.sql(sql)
    const { findings } = await doctor.check({ full: true })
    expect(findings).toContainEqual(
      expect.objectContaining({ check, remedy, ...(subject && { subject }) }),
    )
    await doctor.repair(ANN)
    expect(await doctor.check({ full: true })).toMatchObject({ findings: [], repairCount: 0 })
    expect(await store.limits.get('shared/openai')).toMatchObject({
      ...{ max: 5, override: 4, overrideBy: 'ann', overrideNote: 'because' },
    })
    expect(await store.limits.faults(10)).toEqual([])
    await finish(examined)
  })

  it('are reported if more jobs run than may', async () => {
    const examined = await open()
    const { store, environment } = examined
    const doctor = new Doctor({ store, environment, lifecycles: LIFECYCLES })
    const held = await busy(examined)
    environment.advance(10)
    await store.limits.set('job/mail/tenant/acme', 0, OPERATOR)
    // The number was lowered while the job ran, which is as it should be.
    expect((await doctor.check({ full: true })).findings).toEqual([])
    const later = store.now() + 5
    await examined.sql(`UPDATE @jobs SET started_at = ${later} WHERE id = '${held.job.id}'`)
    environment.advance(10)
    const { findings } = await doctor.check({ full: true })
    expect(findings).toContainEqual(
      expect.objectContaining({
        check: 'limits-hold',
        promise: 'P13',
        subject: ACME,
        what: '1 jobs run, and at most 0 may',
      }),
    )
  })
})

/** After a repair every job comes to its end. */
async function finish({ store, environment }: Examined): Promise<void> {
  environment.advance(700_000)
  let done = 0
  for (let turn = 0; turn < 20 && done < 4; turn++) {
    await store.recover(100)
    await store.promote(100)
    const request = { worker: 'w2', limit: 10, leaseMs: 600_000, start: true }
    for (const held of await store.claim(request)) {
      const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim as string }
      await store.settle([{ held, command: { kind: 'commit', fence }, payload: '1' }])
      done++
    }
    environment.advance(2000)
  }
  expect(done).toBe(4)
  expect(await store.limits.faults(10)).toEqual([])
}
