// Groups are as the jobs of the store say, whatever somebody writes into their rows.
import { LIFECYCLES, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import type { LimitKey } from '../../src/core/limits/keys.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import { type Examined, STORES } from '../stores/examined-stores.ts'

const ANN = { operator: 'ann', reason: 'changed by hand' }
const REQUEST = { worker: 'w', limit: 10, leaseMs: 600_000, start: true }
const STRICT: LimitKey = { gate: 'strict/mail/acme' }
const OTHER: LimitKey = { gate: 'strict/mail/other' }
const TURN: LimitKey = { gate: 'group/turns/acme', weight: 2 }

async function enqueue({ store, environment }: Examined, queue: string, limitKeys: LimitKey[]) {
  const command = { jobId: environment.ids.next(), type: 'mail', queue, limitKeys }
  await store.enqueue([{ lifecycle: standard, command, input: '1' }])
  environment.advance(1)
}

/** A strict group with a job that runs, one with none; a queue of which one of four jobs runs. */
async function busy(examined: Examined): Promise<void> {
  const { store } = examined
  await store.limits.declare([
    { name: 'group/turns', max: null },
    { name: 'strict/mail', max: 1 },
  ])
  for (let n = 0; n < 3; n++) await enqueue(examined, 'main', [STRICT])
  for (let n = 0; n < 3; n++) await enqueue(examined, 'turns', [TURN])
  await enqueue(examined, 'turns', [])
  for (let n = 0; n < 2; n++) await enqueue(examined, 'later', [OTHER])
  await store.reportWorker({ id: 'w', state: 'Idle', info: '{"version":"1"}' })
  expect(await store.claim({ ...REQUEST, queues: ['main'] })).toHaveLength(1)
  expect(await store.claim({ ...REQUEST, limit: 1, queues: ['turns'] })).toHaveLength(1)
}

/** After a repair every job comes to its end, within a minute. */
async function finish({ store, environment }: Examined): Promise<void> {
  environment.advance(601_000)
  let done = 0
  for (let turn = 0; turn < 30 && done < 9; turn++) {
    await store.recover(100)
    await store.promote(100)
    for (const held of await store.claim({ ...REQUEST, worker: 'w2' })) {
      const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim as string }
      await store.settle([{ held, command: { kind: 'commit', fence }, payload: '1' }])
      done++
    }
    environment.advance(2000)
  }
  expect(done).toBe(9)
  expect(await store.limits.faults(10)).toEqual([])
}

const LIMIT = { check: 'limits-hold', remedy: 'recount the limit' }

const CASES: readonly [what: string, sql: readonly string[], finding: object][] = [
  [
    'a group has lost its place in the line',
    [`DELETE FROM @groups WHERE key = 'group/turns/acme'`],
    { ...LIMIT, promise: 'P15', subject: 'limit group/turns/acme' },
  ],
  [
    'a queue has forgotten that its groups take turns',
    ['UPDATE @queues SET rotates = 0'],
    { ...LIMIT, promise: 'P15', subject: 'limit group/turns' },
  ],
  [
    'the first job of a strict group is blocked although it may start',
    [
      `UPDATE @jobs SET lane = 7, blocked_on = 'strict/mail/other' WHERE queue = 'later'`,
      `INSERT INTO @gates (key, used, waiting, open_at)
       SELECT 'strict/mail/other', 0, 1, max(created_at) + 200000 FROM @jobs`,
    ],
    { ...LIMIT, promise: 'P15', subject: 'limit strict/mail/other' },
  ],
  [
    'a job is blocked by the group of another one',
    [`UPDATE @jobs SET blocked_on = 'group/turns/other' WHERE blocked_on = 'group/turns/acme'`],
    { check: 'row-is-fold' },
  ],
]

describe.each(STORES)('groups on $name', ({ open }) => {
  it.each(CASES)('are made right if %s', async (_, sql, finding) => {
    const examined = await open()
    const { store, environment } = examined
    const doctor = new Doctor({ store, environment, lifecycles: LIFECYCLES })
    await busy(examined)
    expect((await doctor.check({ full: true })).findings).toEqual([])
    for (const text of sql) await examined.sql(text)
    const { findings } = await doctor.check({ full: true })
    expect(findings).toContainEqual(expect.objectContaining(finding))
    await doctor.repair(ANN)
    expect(await doctor.check({ full: true })).toMatchObject({ findings: [], repairCount: 0 })
    await finish(examined)
  })
})
