// Schedules through the library: definitions, ticks in handlers, operators, events.
import { CommandInvalid, createPawl, defineJob, defineSchedule, InputInvalid, typed } from 'pawl'
import { DefinitionInvalid } from 'pawl/errors'
import type { ScheduleOptions } from 'pawl/operators'
import { createTestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { PawlEvent } from '../../src/engine/watching/events.ts'

const START = Date.parse('2026-03-01T00:00:00Z')

interface Seen {
  readonly name: string | undefined
  readonly tick: string | undefined
  readonly previous: string | undefined
  readonly late: boolean | undefined
  readonly input: unknown
}

async function openTest(options: Partial<Parameters<typeof createTestPawl>[0]> = {}) {
  const seen: Seen[] = []
  const report = defineJob({
    name: 'report',
    input: typed<{ region: string }>(),
    run: ({ schedule, input }) => {
      const { name, tick, previous, late } = schedule ?? {}
      seen.push({
        ...{ name, late, input },
        tick: tick?.toISOString(),
        previous: previous?.toISOString(),
      })
    },
  })
  const events: PawlEvent[] = []
  const nightly = defineSchedule({
    ...{ name: 'nightly', job: report, input: { region: 'eu' } },
    ...{ cron: '30 2 * * *', timezone: 'Europe/Berlin' },
  })
  const test = await createTestPawl({
    jobs: [report],
    schedules: [nightly],
    start: START,
    onEvent: (event) => events.push(event),
    ...options,
  })
  onTestFinished(() => test.close())
  return { test, seen, events, report, nightly, pawl: test.pawl }
}

describe('a schedule', () => {
  it('makes a job at each tick, and the handler receives the tick', async () => {
    const { test, seen } = await openTest()
    for (let day = 0; day < 2; day++) {
      await test.advance('1d')
      await test.drain()
    }
    expect(seen).toEqual([
      {
        ...{ name: 'nightly', late: false, input: { region: 'eu' } },
        ...{ tick: '2026-03-01T01:30:00.000Z', previous: undefined },
      },
      {
        ...{ name: 'nightly', late: false, input: { region: 'eu' } },
        ...{ tick: '2026-03-02T01:30:00.000Z', previous: '2026-03-01T01:30:00.000Z' },
      },
    ])
  })

  it('a job without a schedule has none in its context', async () => {
    const { test, seen, report, pawl } = await openTest()
    await pawl.enqueue(report, { region: 'us' }, { key: 'own' })
    await test.drain()
    expect(seen).toEqual([{ input: { region: 'us' } }])
  })

  it('is fired by a worker at its time, without a look before', async () => {
    const { test, seen, pawl } = await openTest()
    const worker = await pawl.work()
    await test.until(() => seen.length === 1, 60_000)
    expect(Math.abs(pawl.store.now() - Date.parse('2026-03-01T01:30:00Z'))).toBeLessThan(120_000)
    await test.finish(worker.stop())
  })

  it('shows the next ticks in its own time zone, across the change of clocks', async () => {
    const { pawl, test } = await openTest()
    await test.advance('26d')
    const next = await pawl.schedules.next('nightly', 4)
    expect(next.map((tick) => tick.toISOString())).toEqual([
      '2026-03-27T01:30:00.000Z',
      '2026-03-28T01:30:00.000Z',
      // 02:30 does not exist on this day: the job runs when the clock has jumped to 03:00.
      '2026-03-29T01:00:00.000Z',
      '2026-03-30T00:30:00.000Z',
    ])
  })

  it('emits an event for each tick and each change', async () => {
    const { test, events, pawl } = await openTest()
    await test.advance('1d')
    const ann = pawl.operator({ name: 'ann', reason: 'holiday' })
    await ann.pauseSchedule('nightly')
    const said = events.flatMap((event) =>
      event.type === 'schedule' ? `${event.record.action} ${event.record.operator ?? ''}` : [],
    )
    expect(said).toEqual(['put ', 'fired ', 'pause ann'])
    expect(events.filter(({ type }) => type === 'enqueued')).toHaveLength(1)
  })

  it('is paused, resumed, run now, backfilled and removed by named operators', async () => {
    const { test, seen, pawl } = await openTest()
    const ann = pawl.operator({ name: 'ann', reason: 'holiday' })
    await ann.pauseSchedule('nightly')
    await test.advance('3d')
    await test.drain()
    expect(seen).toEqual([])
    expect((await pawl.schedules.get('nightly'))?.pausedBy).toBe('ann')
    await ann.resumeSchedule('nightly')
    const { job } = await ann.runScheduleNow('nightly')
    await test.drain()
    expect(seen).toMatchObject([{ name: 'nightly', late: false }])
    expect((await pawl.jobs.get(job ?? ''))?.outcome).toBe('succeeded')
    const asked = { from: new Date(START), to: new Date(START + 3 * 86_400_000) }
    const planned = await ann.backfillSchedule('nightly', { ...asked, dryRun: true })
    expect(planned).toMatchObject({ jobs: [], existing: [] })
    expect(planned.ticks).toHaveLength(3)
    await ann.backfillSchedule('nightly', { ...asked, overlap: 'allowAll' })
    await test.drain()
    expect(seen.slice(1).map(({ late }) => late)).toEqual([true, true, true])
    await ann.removeSchedule('nightly')
    expect(await pawl.schedules.get('nightly')).toBeUndefined()
    const { items } = await pawl.schedules.history('nightly')
    expect(items.map(({ action }) => action).toReversed()).toEqual([
      ...['put', 'pause', 'missed', 'resume', 'run'],
      ...['backfilled', 'backfilled', 'backfilled', 'backfill', 'remove'],
    ])
  })

  it('is stored by the program, and listed', async () => {
    const { pawl, report } = await openTest()
    const digest = defineSchedule({
      ...{ name: 'digest', job: report, input: { region: 'us' }, every: '1d' },
    })
    await pawl.schedules.put(digest)
    await pawl.schedules.put(digest)
    const { items } = await pawl.schedules.list()
    expect(items).toMatchObject([
      { name: 'digest', origin: 'program', version: 1, type: 'report', input: { region: 'us' } },
      { name: 'nightly', origin: 'code' },
    ])
    const records = await pawl.schedules.history('digest')
    expect(records.items).toHaveLength(1)
  })

  it('does not accept its keys from users', async () => {
    const { pawl, report } = await openTest()
    for (const key of ['schedule/nightly/1', 'schedule-run/nightly/x']) {
      const enqueued = pawl.enqueue(report, { region: 'us' }, { key })
      await expect(enqueued).rejects.toThrow(CommandInvalid)
    }
  })
})

describe('a definition that cannot work is refused', () => {
  const job = defineJob({ name: 'j', input: typed<{ n: number }>(), run: () => 1 })
  const base = { name: 's', job, input: { n: 1 } }
  const bad: Record<string, object> = {
    'no timing': {},
    'two timings': { cron: '* * * * *', every: '1m' },
    'a zone with an interval': { every: '1m', timezone: 'UTC' },
    'an interval of 0': { every: 0 },
    'an interval under a second': { every: '999ms' },
    'a negative interval': { every: -1 },
    'an unknown zone': { cron: '* * * * *', timezone: 'Mars/Base' },
    'an offset as zone': { cron: '* * * * *', timezone: '+02:00' },
    '30 February': { cron: '0 0 30 2 *' },
    'an impossible hour': { cron: '0 25 * * *' },
    'no expression': { cron: 'hello' },
    'a date': { cron: '2026-01-01T00:00:00' },
    'an empty expression': { cron: '' },
    'the time of the process': { cron: '? * * * *' },
    'a long expression': { cron: `${'0,'.repeat(200)}0 * * * *` },
    'an unknown overlap': { every: '1m', overlap: 'queue' },
    'an unknown catch-up': { every: '1m', catchUp: 'some' },
    'an unknown field of catch-up': { every: '1m', catchUp: { mode: 'all', wihtin: '1h' } },
    'an unknown option': { every: '1m', jiter: '1s' },
    'a negative jitter': { every: '1m', jitter: -5 },
    'an empty name': { every: '1m', name: '' },
    'a long name': { every: '1m', name: 'n'.repeat(201) },
    'a name of two lines': { every: '1m', name: 'a\nb' },
    'no job type': { every: '1m', job: undefined },
    'a name for a job type': { every: '1m', job: 'j' },
    'a number as cron': { cron: 5 },
  }
  it.each(Object.entries(bad))('%s', (_, fields) => {
    const options = { ...base, ...fields } as unknown as ScheduleOptions<{ n: number }>
    expect(() => defineSchedule(options)).toThrow(DefinitionInvalid)
  })

  it('an input that its schema refuses is not stored', async () => {
    const strict = defineJob({
      name: 'strict',
      input: {
        '~standard': {
          ...{ version: 1, vendor: 'test' },
          validate: (value: unknown) =>
            typeof value === 'number' ? { value } : { issues: [{ message: 'must be a number' }] },
          types: undefined as unknown as { input: number; output: number },
        },
      },
      run: () => 1,
    })
    const schedule = defineSchedule({ name: 's', job: strict, every: '1h' } as never)
    const opening = createPawl({ store: 'sqlite::memory:', jobs: [strict], schedules: [schedule] })
    await expect(opening).rejects.toThrow(InputInvalid)
  })
})
