/** Gauges of limits, schedules and retention in `/metrics`, on both databases. */
import { describe, expect, it } from 'vitest'
import { defineJob, defineSchedule, typed } from '../../src/index.ts'
import { HttpBench } from './bench.ts'
import { STORES } from './places.ts'

const SYNC = defineJob({
  name: 'sync',
  input: typed<{ tenant: string }>(),
  concurrency: [20, { name: 'tenant', key: (i) => i.tenant, limit: 1 }],
  throttle: { name: 'calls', limit: 100, period: '1m' },
})

describe.each(STORES)('the text of /metrics on $name', ({ place }) => {
  it('has what runs, what is blocked and since when, by limit and not by key', async () => {
    const bench = await HttpBench.open(await place(), {}, [SYNC])
    const { pawl } = bench
    const hourly = defineSchedule({
      name: 'hourly',
      job: SYNC,
      input: { tenant: 'c' },
      every: '1h',
    })
    await pawl.schedules.put(hourly)
    for (const tenant of ['a', 'a', 'b']) await pawl.enqueue(SYNC, { tenant })
    const request = { worker: 'w', limit: 10, leaseMs: 30_000, start: true }
    expect(await pawl.store.claim(request)).toHaveLength(2)
    const operator = pawl.operator({ name: 'ann', reason: 'INC-7' })
    await operator.pauseSchedule('hourly')
    const { text } = await bench.call('GET', '/metrics')
    for (const line of [
      'pawl_limit_value{limit="type/sync"} 20',
      'pawl_limit_in_use{limit="type/sync"} 2',
      'pawl_limit_value{limit="job/sync/tenant"} 1',
      'pawl_limit_in_use{limit="job/sync/tenant"} 2',
      'pawl_limit_blocked{limit="job/sync/tenant"} 1',
      'pawl_limit_blocked{limit="type/sync"} 0',
      'pawl_limit_value{limit="rate/sync/calls"} 100',
      'pawl_schedule_lateness_seconds{schedule="hourly"} 0',
      'pawl_schedule_paused{schedule="hourly"} 1',
      'pawl_schedule_missed_ticks{schedule="hourly"} 0',
      'pawl_retention_old_jobs 0',
      'pawl_retention_keys 0',
    ]) {
      expect(text).toContain(`${line}\n`)
    }
    expect(text).toMatch(
      /pawl_limit_oldest_blocked_age_seconds\{limit="job\/sync\/tenant"\} [\d.]+\n/,
    )
    expect(text).not.toContain('tenant/a')
  })
})
