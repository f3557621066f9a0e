// Schedules from the command line: lists, history, pauses, jobs now, backfills.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createPawl, defineJob, defineSchedule, typed } from 'pawl'
import type { ScheduleRecord } from 'pawl/operators'
import { describe, expect, it } from 'vitest'
import { Place } from './pawl.ts'

const WHY = ['--reason', 'INC-7']

async function placeWith(every: '1h' | '1s' = '1h'): Promise<Place> {
  const place = new Place()
  const job = defineJob({ name: 'report', input: typed<{ n: number }>() })
  const pawl = await createPawl({
    store: place.store,
    jobs: [job],
    schedules: [
      defineSchedule({ name: 'hourly', job, input: { n: 1 }, every }),
      defineSchedule({
        ...{ name: 'nightly', job, input: { n: 2 } },
        ...{ cron: '30 2 * * *', timezone: 'Europe/Berlin', catchUp: 'none' },
      }),
    ],
  })
  await pawl.close()
  return place
}

describe('pawl schedule', () => {
  it('lists schedules, shows one, and lists its next ticks', async () => {
    const place = await placeWith()
    const list = await place.ok('schedule', 'list')
    expect(list).toMatch(/hourly\s+report\s+every 1h/)
    expect(list).toMatch(/nightly\s+report\s+30 2 \* \* \* \(Europe\/Berlin\)/)
    const shown = await place.ok('schedule', 'show', 'nightly')
    expect(shown).toMatch(/overlap skip, catch-up none/)
    expect(shown).toMatch(/put, by client/)
    const ticks = await place.json<{ tick: string }>('schedule', 'next', 'hourly', '--count', '3')
    const times = ticks.map(({ tick }) => Date.parse(tick))
    expect(times.map((time) => time % 3_600_000)).toEqual([0, 0, 0])
    expect((times[2] ?? 0) - (times[0] ?? 0)).toBe(7_200_000)
    const [schedule] = await place.json<{ input: object }>('schedule', 'list')
    expect(schedule).toMatchObject({ name: 'hourly', input: { n: 1 } })
  })

  it('pauses, resumes, runs now, backfills and removes, with operator and reason', async () => {
    const place = await placeWith()
    expect(await place.ok('schedule', 'pause', 'hourly', ...WHY)).toBe('hourly paused\n')
    expect(await place.ok('schedule', 'pause', 'hourly', ...WHY)).toBe(
      'hourly was already paused\n',
    )
    expect(await place.ok('schedule', 'list')).toMatch(/paused by ada at \S+ \(INC-7\)/)
    expect(await place.ok('schedule', 'resume', 'hourly', ...WHY)).toBe('hourly resumed\n')
    const [ran] = await place.json<{ job: string }>('schedule', 'run-now', 'hourly', ...WHY)
    const explained = await place.ok('job', 'explain', ran?.job ?? '')
    expect(explained).toMatch(/An operator asked schedule hourly for it/)
    const planned = await place.run([
      ...['schedule', 'backfill', 'hourly', '--from', '3h', '--dry-run', ...WHY],
    ])
    expect(planned.stderr).toMatch(/3 ticks would get a job; 0 have one already/)
    const args = ['schedule', 'backfill', 'hourly', '--from', '3h', '--overlap', 'allowAll', ...WHY]
    const [filled] = await place.json<{ jobs: string[] }>(...args)
    expect(filled?.jobs).toHaveLength(3)
    const job = await place.ok('job', 'explain', filled?.jobs[0] ?? '')
    expect(job).toMatch(/made by schedule hourly for the tick/)
    expect(await place.ok('schedule', 'remove', 'hourly', ...WHY)).toBe('hourly removed\n')
    const records = await place.json<ScheduleRecord>('schedule', 'history', 'hourly')
    expect(records.map(({ action, operator }) => [action, operator])).toEqual([
      ...[['remove', 'ada'] as const, ['backfill', 'ada'] as const],
      ...Array.from({ length: 3 }, () => ['backfilled', 'ada'] as const),
      ...[['run', 'ada'] as const, ['resume', 'ada'] as const, ['pause', 'ada'] as const],
      ['put', undefined],
    ])
    const ticks = await place.ok('schedule', 'history', '--kind', 'tick')
    expect(ticks.trim().split('\n')).toHaveLength(3)
  })

  it.each([
    [['show', 'x'], 4, /There is no schedule "x"/],
    [['next', 'x'], 4, /There is no schedule/],
    [['pause', 'x', ...WHY], 4, /There is no schedule/],
    [['pause', 'hourly'], 2, /A reason is required/],
    [['backfill', 'hourly', ...WHY], 2, /--from is required/],
    [['backfill', 'hourly', '--from', 'soon', ...WHY], 2, /--from must be a date/],
    [['next', 'hourly', '--count', '0'], 2, /--count must be a whole number/],
  ])('%j ends with exit code %i', async (args, code, why) => {
    const place = await placeWith()
    const ended = await place.run(['schedule', ...args])
    expect(ended.stderr).toMatch(why)
    expect(ended.code).toBe(code)
  })

  it('pawl work stores the schedules of a job file and makes their jobs', async () => {
    const place = new Place()
    const file = join(place.folder, 'jobs.mjs')
    writeFileSync(
      file,
      `import { defineJob, defineSchedule } from 'pawl'
       export const tick = defineJob({ name: 'tick', run: () => {} })
       export const often = defineSchedule({ name: 'often', job: tick, every: '1s' })`,
    )
    const worker = place.start(['work', '--jobs', file])
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    const isFired = async () => {
      const { code, stdout } = await place.run(['schedule', 'history', 'often', '--json'])
      return code === 0 && /"action":"fired"/.test(stdout)
    }
    while (!(await isFired()));
    worker.kill('SIGTERM')
    expect(await ended).toBe(0)
  })
})
