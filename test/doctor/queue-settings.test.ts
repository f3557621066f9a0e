// The settings of a queue are what its last record says, whatever somebody writes into its row.
import { LIFECYCLES } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import { STORES } from '../stores/examined-stores.ts'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'because' } as const
const ANN = { operator: 'ann', reason: 'changed by hand' }

describe.each(STORES)('the settings of a queue on $name', ({ open }) => {
  it.each([
    ['is not paused any more', 'UPDATE @queues SET paused_at = NULL'],
    ['has another bound', 'UPDATE @queues SET max_depth = 0'],
    ['waits for another time', 'UPDATE @queues SET max_wait_ms = NULL'],
    ['has no row', 'DELETE FROM @queues'],
  ])('are restored if it %s', async (_, sql) => {
    const examined = await open()
    const { store, environment } = examined
    const doctor = new Doctor({ store, environment, lifecycles: LIFECYCLES })
    await store.pauseQueue('a', OPERATOR)
    await store.limitQueue('a', { maxDepth: 5, maxWaitMs: 60_000 }, OPERATOR)
    expect((await doctor.check({ full: true })).findings).toEqual([])
    const [before] = await store.listQueues()
    await examined.sql(`${sql} WHERE name = 'a'`)
    const { findings } = await doctor.check({ full: true })
    expect(findings).toMatchObject([
      { check: 'queues-are-as-recorded', subject: 'queue a', remedy: 'restore the queue' },
    ])
    await doctor.repair(ANN)
    const [after] = await store.listQueues()
    expect({ ...after, pausedBy: undefined }).toEqual({ ...before, pausedBy: undefined })
    expect(await doctor.check({ full: true })).toMatchObject({ findings: [], repairCount: 0 })
  })
})
