// A schedule is what its records say, and each of its ticks is accounted for (P17).
import { LIFECYCLES } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import type { ScheduleRules } from '../../src/core/schedule/definition.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import { ticksOf } from '../../src/engine/schedules/cron.ts'
import { STORES } from '../stores/examined-stores.ts'

const OPERATOR = { actor: 'operator', operator: 'ann', note: 'because' } as const
const ANN = { operator: 'ann', reason: 'changed by hand' }
const MINUTE = 60_000

const RULES: ScheduleRules = {
  timing: { kind: 'cron', cron: '* * * * *', timezone: 'Europe/Berlin' },
  overlap: 'allowAll',
  catchUp: { mode: 'all', withinMs: 86_400_000 },
  jitterMs: 0,
  pauseOnFailure: false,
  job: { type: 't', queue: 'q', lifecycle: 'standard', lifecycleVersion: 2 },
}

describe.each(STORES)('a schedule on $name', ({ open }) => {
  async function begin() {
    const examined = await open()
    const { store, environment } = examined
    const doctor = new Doctor({ store, environment, lifecycles: LIFECYCLES, ticksOf })
    const put = (rules: Partial<ScheduleRules> = {}) =>
      store.schedules.put(
        { name: 's', rules: { ...RULES, ...rules }, input: '{}', origin: 'code' },
        ticksOf,
      )
    await put()
    const tick = async (minutes: number) => {
      for (let i = 0; i < minutes; i++) {
        environment.advance(MINUTE)
        await store.schedules.fire(100, ticksOf)
      }
    }
    const schedules = async () =>
      (await doctor.check({ full: true })).findings.filter(
        ({ promise, severity }) => promise === 'P17' && severity === 'error',
      )
    /** Records are guarded by triggers, which damage of this kind must get past. */
    const unguard = async () => {
      for (const { name, drop } of await examined.names.trigger()) {
        if (name.includes('schedule_records')) await examined.sql(drop)
      }
    }
    const advance = (ms: number) => environment.advance(ms)
    return { ...examined, doctor, put, tick, findings: schedules, unguard, advance }
  }

  it('is sound after ticks, pauses, changes, backfills and its removal', async () => {
    const { store, tick, put, findings, advance } = await begin()
    await tick(3)
    await store.schedules.pause('s', OPERATOR)
    advance(5 * MINUTE)
    expect(await findings()).toEqual([])
    await store.schedules.resume('s', ticksOf, OPERATOR)
    await tick(1)
    await put({ overlap: 'bufferAll' })
    await tick(3)
    const from = store.now() - 20 * MINUTE
    const request = { from, to: store.now(), overlap: 'bufferAll', dryRun: false } as const
    await store.schedules.backfill('s', request, ticksOf, OPERATOR)
    expect(await findings()).toEqual([])
    await store.schedules.remove('s', ticksOf, OPERATOR)
    expect(await findings()).toEqual([])
  })

  it.each([
    ['its definition is damaged', `definition = '{}'`],
    ['its definition is damaged', `input = '{"other":1}'`],
    ['its definition is damaged', `mark = 'x'`],
    ['the ticks that wait cannot be read', `buffer = 'x'`],
    ['its open jobs cannot be read', `open_jobs = '{}'`],
    ['its cursor is ahead of time', 'cursor_at = cursor_at + 86400000000'],
    ['its cursor is behind its last tick', 'cursor_at = cursor_at - 60000'],
    [
      'ticks before its cursor have neither a job nor a record',
      'cursor_at = cursor_at + 180000, next_at = next_at + 180000, look_at = look_at + 180000',
    ],
    ['its next time is not its next tick', 'next_at = next_at + 1'],
    ['it is not looked at', 'look_at = NULL'],
    ['its pause is not that of its last record', 'paused_at = 1, look_at = NULL'],
  ])('is restored from its records if %s', async (what, set) => {
    const { sql, tick, store, doctor, findings, advance } = await begin()
    await tick(3)
    advance(4 * MINUTE)
    const before = (await store.schedules.get('s'))?.cursor ?? 0
    await sql(`UPDATE @schedules SET ${set} WHERE name = 's'`)
    const found = await findings()
    expect(found.map((one) => one.what)).toContain(what)
    expect(found[0]).toMatchObject({ subject: 'schedule s', remedy: 'restore the schedule' })
    await doctor.repair(ANN)
    expect(await findings()).toEqual([])
    expect((await store.schedules.get('s'))?.cursor).toBe(before)
    await tick(1)
    const { items } = await store.schedules.records({ schedule: 's', kind: 'tick' })
    const ticks = items.map((record) => record.tick).toReversed()
    expect(ticks).toEqual(ticks.map((_, i) => (ticks[0] ?? 0) + i * MINUTE))
    expect(ticks).toHaveLength(8)
    expect(await findings()).toEqual([])
  })

  it('is restored if its row is gone', async () => {
    const { sql, tick, store, doctor, findings } = await begin()
    await tick(2)
    await store.schedules.pause('s', OPERATOR)
    await sql(`DELETE FROM @schedules WHERE name = 's'`)
    expect(await findings()).toMatchObject([{ what: 'its row is gone' }])
    await doctor.repair(ANN)
    expect(await store.schedules.get('s')).toMatchObject({ pausedBy: 'ann', input: '{}' })
    expect(await findings()).toEqual([])
  })

  it.each([
    ['made two jobs', `action = 'late', tick = tick - 60000`],
    ['has neither a job nor a record', `tick = tick - 6000000`],
    ['is not the job of its tick', `tick = tick - 60000, action = 'late'`],
  ])('a tick that %s is found', async (what, set) => {
    const { sql, unguard, tick, findings, store } = await begin()
    await tick(4)
    const { items } = await store.schedules.records({ schedule: 's', kind: 'tick' })
    await unguard()
    await sql(`UPDATE @schedule_records SET ${set} WHERE number = ${items[1]?.number}`)
    expect((await findings()).map((one) => one.what).join('\n')).toContain(what)
  })

  it('that no live worker declares is reported, and not removed', async () => {
    const { store, doctor } = await begin()
    const info = (fields: object) => JSON.stringify({ concurrency: 1, ...fields })
    const report = (id: string, fields: object) =>
      store.reportWorker({ id, state: 'Idle', info: info(fields) })
    await report('a', { schedules: ['other'], zoneData: '2025a' })
    const first = (await doctor.check()).findings
    expect(first).toMatchObject([{ severity: 'warning', what: 'no live worker declares it' }])
    await report('b', { schedules: ['s'], zoneData: '2026a' })
    const second = (await doctor.check()).findings
    expect(second.map(({ what }) => what)).toEqual([
      'live workers have different zone data: 2025a, 2026a',
    ])
    await doctor.repair(ANN)
    expect(await store.schedules.get('s')).toBeDefined()
  })

  it('whose tick is overdue is reported', async () => {
    const { doctor, advance } = await begin()
    advance(10 * MINUTE)
    const { findings } = await doctor.check()
    expect(findings.map(({ what }) => what)).toEqual(['its tick is overdue'])
  })
})
