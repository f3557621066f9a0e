// Many schedules and three workers, over weeks with a change of clocks in them: each tick once.
import { createPawl, defineJob, defineSchedule } from 'pawl'
import { openSqliteStore } from 'pawl/sqlite'
import { testEnvironment } from 'pawl/testing'
import { expect, it } from 'vitest'
import { ticksOf } from '../../src/engine/schedules/cron.ts'
import { thorough } from '../support/extent.ts'

/** PAWL_TEST_SCHEDULES=10000 takes some minutes. */
const SCHEDULES = Number(process.env.PAWL_TEST_SCHEDULES ?? thorough(60, 1000))
const DAYS = 40
const DAY_MS = 86_400_000
const START = Date.parse('2026-03-10T12:00:00Z')
const job = defineJob({ name: 'tick' })

it('each tick of many schedules is made once, by whichever worker looks first', async () => {
  const environment = testEnvironment({ start: START })
  const path = `file:/many-schedules-${SCHEDULES}?vfs=memdb`
  const stores = []
  for (let i = 0; i < 3; i++) stores.push(await openSqliteStore({ path, environment }))
  const [store] = stores
  if (store === undefined) throw new Error('there is no store')
  const pawl = await createPawl({ store, environment, jobs: [job] })
  // Most at the same minute, so that they are due together.
  for (let n = 0; n < SCHEDULES; n++) {
    const cron = n % 10 === 0 ? `${n % 60} ${n % 24} * * *` : '30 2 * * *'
    const common = { name: `s${n}`, job, cron, timezone: 'Europe/Berlin' } as const
    await pawl.schedules.put(defineSchedule({ ...common, overlap: 'allowAll' }))
  }
  for (;;) {
    const next = (await store.schedules.nextLook()) ?? Number.POSITIVE_INFINITY
    if (next > START + DAYS * DAY_MS) break
    environment.advance(Math.max(0, next - environment.clock.now()))
    // All three look at the same moment, in small batches.
    for (let more = true; more; ) {
      const fired = await Promise.all(stores.map((one) => one.schedules.fire(100, ticksOf)))
      more = fired.some((one) => one.more)
    }
  }
  const keys = new Set<string>()
  let jobs = 0
  for await (const { key } of pawl.jobs.list({}, { pageSize: 1000 })) {
    keys.add(key ?? '')
    jobs++
  }
  expect(keys.size).toBe(jobs)
  expect(jobs).toBe(SCHEDULES * DAYS)
  // The night on which 02:30 does not exist.
  expect(keys).toContain(`schedule/s1/${Date.parse('2026-03-29T01:00:00Z')}`)
  const { items } = await pawl.schedules.history('s1', { kind: 'tick', limit: 1000 })
  expect(items.map(({ action }) => action)).toEqual(Array.from({ length: DAYS }, () => 'fired'))
  const { findings } = await pawl.doctor().check()
  expect(findings.filter(({ promise }) => promise === 'P17')).toEqual([])
  for (const one of stores) await one.close()
}, 3_600_000)
