/** Schedules: each tick has one job, or one record that says why not (P17). */
import assert from 'node:assert/strict'
import { CommandInvalid } from '../../../src/core/errors.ts'
import { leased } from '../../../src/core/lifecycles/leased.ts'
import { standard } from '../../../src/core/lifecycles/standard.ts'
import type { ScheduleRules } from '../../../src/core/schedule/definition.ts'
import { everyTicks, type TickSource } from '../../../src/core/schedule/ticks.ts'
import type {
  NewSchedule,
  ScheduleRecord,
  TicksOf,
} from '../../../src/stores/contract/schedules.ts'
import type { Held, Store } from '../../../src/stores/contract/store.ts'
import { ScheduleNotFound } from '../../../src/stores/errors.ts'
import { type Bench, type Cases, CLIENT, OPERATOR } from './bench.ts'

const MINUTE = 60_000

/** Intervals only: stores do not know cron. */
const ticksOf: TicksOf = (timing) => {
  if (timing.kind === 'every') return everyTicks(timing.everyMs)
  throw new CommandInvalid('timezone', 'is not known here')
}

const NEVER: TicksOf = (): TickSource => ({ next: () => undefined })

const RULES: ScheduleRules = {
  timing: { kind: 'every', everyMs: MINUTE },
  overlap: 'allowAll',
  catchUp: { mode: 'latest', withinMs: 86_400_000 },
  jitterMs: 0,
  pauseOnFailure: false,
  job: {
    type: 'report',
    queue: 'reports',
    lifecycle: standard.name,
    lifecycleVersion: standard.version,
  },
}

const schedule = (rules: Partial<ScheduleRules> = {}, name = 's'): NewSchedule => ({
  name,
  rules: { ...RULES, ...rules },
  input: '{"n":1}',
  origin: 'code',
})

/** Stores a schedule at the start of a minute; returns this time. */
async function begin(
  bench: Bench,
  rules: Partial<ScheduleRules> = {},
  name?: string,
): Promise<number> {
  await bench.advance(MINUTE - (bench.store.now() % MINUTE))
  const start = bench.store.now()
  assert.equal(start % MINUTE, 0)
  await bench.store.schedules.put(schedule(rules, name), ticksOf)
  return start
}

const fire = ({ store }: Bench, limit = 100) => store.schedules.fire(limit, ticksOf)

/** The records of ticks, oldest first, as words: tick in minutes after the start, and result. */
async function ticksSaid({ store }: Bench, start: number, name = 's'): Promise<string[]> {
  const { items } = await store.schedules.records({ schedule: name, kind: 'tick' }, { limit: 1000 })
  return [...items].reverse().map((record) => {
    const { tick = 0, lastTick, action, reason } = record
    const range = lastTick === undefined ? '' : `-${(lastTick - start) / MINUTE}`
    return `${(tick - start) / MINUTE}${range} ${action}${reason === undefined ? '' : ` ${reason}`}`
  })
}

async function lastRecord(store: Store): Promise<ScheduleRecord> {
  const [record] = (await store.schedules.records({}, { limit: 1 })).items
  assert.ok(record)
  return record
}

/** Runs the oldest ready job to its end. */
async function succeed(bench: Bench): Promise<Held> {
  const [held] = await bench.claim({ queues: ['reports'] })
  assert.ok(held)
  await bench.settle(held, { kind: 'commit' }, 'null')
  return held
}

const FAILURE = { class: 'terminal', kind: 'terminal', message: 'no' } as const

/** What is stored of a schedule. */
export const schedulePutCases: Cases = {
  'a schedule is stored, and the same definition again writes nothing': async (bench) => {
    const start = await begin(bench)
    const { schedules } = bench.store
    const stored = await schedules.get('s')
    assert.equal(stored?.nextAt, start + MINUTE)
    assert.deepEqual(stored?.rules, RULES)
    assert.equal(stored?.input, '{"n":1}')
    const again = await schedules.put(schedule(), ticksOf, OPERATOR)
    assert.equal(again.result.kind, 'same')
    assert.deepEqual(again.records, [])
    assert.equal((await schedules.records({})).items.length, 1)
    assert.deepEqual(await schedules.get('s'), stored)
  },

  'a changed definition counts from now, after the ticks of the old one': async (bench) => {
    const start = await begin(bench)
    await bench.advance(2 * MINUTE)
    const slow = { timing: { kind: 'every', everyMs: 10 * MINUTE } } as const
    const { result, jobs } = await bench.store.schedules.put(schedule(slow), ticksOf)
    assert.equal(result.kind, 'changed')
    assert.equal(result.schedule.version, 2)
    assert.equal(jobs.length, 2)
    await fire(bench)
    assert.deepEqual(await ticksSaid(bench, start), ['1 fired', '2 fired'])
    const { nextAt = 0 } = result.schedule
    assert.ok(nextAt > start + 2 * MINUTE && nextAt % (10 * MINUTE) === 0)
  },

  'schedules are listed by name, page by page': async (bench) => {
    for (const name of ['b', 'a', 'c']) await begin(bench, {}, name)
    const first = await bench.store.schedules.list({ limit: 2 })
    assert.deepEqual(
      first.items.map(({ name }) => name),
      ['a', 'b'],
    )
    const rest = await bench.store.schedules.list({ after: first.next as string })
    assert.deepEqual(
      rest.items.map(({ name }) => name),
      ['c'],
    )
    assert.equal(rest.next, undefined)
  },

  'what cannot be stored is refused, and nothing is written': async ({ store }) => {
    const { schedules } = store
    const bad: NewSchedule[] = [
      schedule({}, ''),
      schedule({}, 'n'.repeat(201)),
      schedule({}, 'a\nb'),
      schedule({ timing: { kind: 'every', everyMs: 0 } }),
      schedule({ overlap: 'never' as 'skip' }),
      schedule({ jitterMs: -1 }),
      schedule({ catchUp: { mode: 'all', withinMs: Number.NaN } }),
      schedule({ timing: { kind: 'cron', cron: '0 0 30 2 *', timezone: 'UTC' } }),
    ]
    for (const one of bad) await assert.rejects(schedules.put(one, ticksOf), CommandInvalid)
    await assert.rejects(schedules.put(schedule(), NEVER), CommandInvalid)
    const nameless = { actor: 'operator', note: 'x' } as const
    await assert.rejects(schedules.put(schedule(), ticksOf, nameless), CommandInvalid)
    assert.deepEqual((await schedules.list()).items, [])
    assert.deepEqual((await schedules.records({})).items, [])
  },

  'names of hostile people are stored as they are': async (bench) => {
    const names = ["'; DROP TABLE jobs; --", 'a/b/run', 'schedule/x/1', '☃ $1', '%_', '{"a":1}']
    for (const name of names) await begin(bench, {}, name)
    await bench.advance(MINUTE)
    await fire(bench)
    for (const name of names) {
      const { lastJob = '' } = (await bench.store.schedules.get(name)) ?? {}
      const job = await bench.job(lastJob)
      assert.ok(job.key?.startsWith(`schedule/${name}/`))
    }
  },
}

/** How ticks become jobs. */
export const scheduleFireCases: Cases = {
  'a tick makes one job, with a record that names it': async (bench) => {
    const start = await begin(bench)
    assert.deepEqual((await fire(bench)).jobs, [])
    assert.equal(await bench.store.schedules.nextLook(), start + MINUTE)
    await bench.advance(MINUTE)
    const { jobs, records } = await fire(bench)
    assert.equal(jobs.length, 1)
    const [job] = jobs
    assert.equal(job?.key, `schedule/s/${start + MINUTE}`)
    assert.equal(job?.queue, 'reports')
    assert.equal((await bench.store.payloads(job?.id ?? ''))?.input, '{"n":1}')
    const [fired] = records
    assert.equal(fired?.action, 'fired')
    assert.equal(fired?.job, job?.id)
    assert.deepEqual(await bench.store.schedules.recordOf('s', start + MINUTE), fired)
    assert.deepEqual((await fire(bench)).jobs, [])
    assert.equal((await bench.store.facts(job?.id ?? ''))[0]?.actor, 'engine')
  },

  'callers of the same moment make each job once': async (bench) => {
    for (let i = 0; i < 20; i++) await begin(bench, {}, `s${i}`)
    await bench.advance(MINUTE)
    const before = (await bench.ids()).length
    const firings = await Promise.all(Array.from({ length: 8 }, () => fire(bench, 7)))
    while ((await fire(bench)).more);
    const keys = (await bench.store.list({ type: 'report' }, { limit: 1000 })).items
    const distinct = new Set(keys.map(({ key }) => key))
    assert.equal(distinct.size, keys.length)
    const made = firings.reduce((sum, { jobs }) => sum + jobs.length, 0)
    assert.ok(made + before <= keys.length)
    for (let i = 0; i < 20; i++) {
      const { items } = await bench.store.schedules.records({ schedule: `s${i}`, kind: 'tick' })
      const ticks = items.flatMap(({ tick, ticks = 1 }) => (ticks === 1 ? (tick ?? 0) : []))
      assert.equal(new Set(ticks).size, ticks.length)
    }
  },

  'a job of a lifecycle that the process does not have is made all the same': async (bench) => {
    const job = { ...RULES.job, lifecycle: leased.name, lifecycleVersion: leased.version }
    const other = await bench.reopen?.([standard])
    await begin(bench, { job })
    await bench.advance(MINUTE)
    const { jobs, failed } = await (other ?? bench.store).schedules.fire(10, ticksOf)
    assert.deepEqual(failed, [])
    assert.equal(jobs[0]?.lifecycle, leased.name)
    await other?.close()
  },

  'a schedule whose time zone a process does not know does not stop the others': async (bench) => {
    const cron = { kind: 'cron', cron: '* * * * *', timezone: 'Mars/Base' } as const
    const known: TicksOf = () => everyTicks(MINUTE)
    await begin(bench)
    await bench.store.schedules.put(schedule({ timing: cron }, 'a-mars'), known)
    await bench.advance(MINUTE)
    const { jobs, failed } = await fire(bench)
    assert.equal(jobs.length, 1)
    assert.deepEqual(
      failed.map(({ schedule }) => schedule),
      ['a-mars'],
    )
    await bench.advance(MINUTE)
    const later = await bench.store.schedules.fire(10, known)
    assert.deepEqual(
      later.records.filter(({ schedule }) => schedule === 'a-mars').map(({ action }) => action),
      ['fired', 'fired'],
    )
  },

  'a job that its queue refuses is a missed tick, and the next tick comes': async (bench) => {
    const start = await begin(bench)
    await bench.store.limitQueue('reports', { maxDepth: 1 })
    await bench.advance(MINUTE)
    await fire(bench)
    await bench.advance(MINUTE)
    await fire(bench)
    await succeed(bench)
    await bench.advance(MINUTE)
    await fire(bench)
    assert.deepEqual(await ticksSaid(bench, start), ['1 fired', '2 missed E_QUEUE_FULL', '3 fired'])
  },

  'a key that a job has already is not used twice': async (bench) => {
    const start = await begin(bench)
    const key = `schedule/s/${start + MINUTE}`
    const { id } = await bench.enqueue({ type: 'report', key })
    await bench.advance(MINUTE)
    const { jobs, records } = await fire(bench)
    assert.deepEqual(jobs, [])
    assert.equal(records[0]?.job, id)
    assert.deepEqual(await ticksSaid(bench, start), ['1 fired existing'])
  },

  'jitter delays the job by the same time everywhere, and keeps its tick': async (bench) => {
    const start = await begin(bench, { jitterMs: 30_000 })
    await bench.advance(MINUTE)
    const { jobs } = await fire(bench)
    const [job] = jobs
    assert.equal(job?.key, `schedule/s/${start + MINUTE}`)
    const delay = (job?.runAt ?? 0) - (start + MINUTE)
    assert.ok(delay >= 0 && delay <= 30_000, String(delay))
  },
}

/** Ticks that came while no worker looked. */
export const scheduleCatchUpCases: Cases = {
  'latest makes a job of the last late tick, and records the others as missed': async (bench) => {
    const start = await begin(bench)
    await bench.advance(10 * MINUTE + 90_000)
    const { jobs } = await fire(bench)
    assert.equal(jobs.length, 1)
    assert.deepEqual(await ticksSaid(bench, start), ['1-10 missed late', '11 fired'])
    const [missed] = (
      await bench.store.schedules.records({ schedule: 's', kind: 'tick' })
    ).items.filter(({ action }) => action === 'missed')
    assert.equal(missed?.ticks, 10)
  },

  'a tick older than the time to catch up is missed': async (bench) => {
    const catchUp = { mode: 'latest', withinMs: 5 * MINUTE } as const
    const timing = { kind: 'every', everyMs: 10 * MINUTE } as const
    await begin(bench, { catchUp, timing })
    const start = (await bench.store.schedules.get('s'))?.nextAt ?? 0
    await bench.advance(start + 9 * MINUTE - bench.store.now())
    await fire(bench)
    assert.deepEqual(await ticksSaid(bench, start), ['0 missed late'])
  },

  'none misses every late tick': async (bench) => {
    const start = await begin(bench, { catchUp: { mode: 'none', withinMs: 0 } })
    await bench.advance(5 * MINUTE + 30_000)
    await fire(bench)
    assert.deepEqual(await ticksSaid(bench, start), ['1-4 missed late', '5 fired'])
  },

  'all makes a job of each tick, a hundred in one transaction': async (bench) => {
    const start = await begin(bench, { catchUp: { mode: 'all', withinMs: 86_400_000 } })
    await bench.advance(150 * MINUTE)
    const first = await fire(bench)
    assert.equal(first.jobs.length, 100)
    assert.equal(first.more, true)
    const rest = await fire(bench)
    assert.equal(rest.jobs.length, 50)
    assert.equal(rest.more, false)
    const said = await ticksSaid(bench, start)
    assert.equal(said.length, 150)
    assert.deepEqual(said.slice(-3), ['148 late', '149 fired', '150 fired'])
  },
}

/** Ticks that meet an open job. */
export const scheduleOverlapCases: Cases = {
  'skip makes no job while one is open, and says which': async (bench) => {
    const start = await begin(bench, { overlap: 'skip' })
    for (let i = 0; i < 2; i++) {
      await bench.advance(MINUTE)
      await fire(bench)
    }
    const { lastJob } = (await bench.store.schedules.get('s')) ?? {}
    assert.equal((await lastRecord(bench.store)).job, lastJob)
    await succeed(bench)
    await bench.advance(MINUTE)
    await fire(bench)
    assert.deepEqual(await ticksSaid(bench, start), ['1 fired', '2 skipped overlap', '3 fired'])
  },

  'a parked job is not open': async (bench) => {
    const start = await begin(bench, { overlap: 'skip' })
    await bench.advance(MINUTE)
    const { jobs } = await fire(bench)
    await bench.store.applyCommand([jobs[0]?.id ?? ''], { kind: 'park' }, OPERATOR)
    await bench.advance(MINUTE)
    await fire(bench)
    assert.deepEqual(await ticksSaid(bench, start), ['1 fired', '2 fired'])
  },

  'bufferOne lets one tick wait, and skips the next': async (bench) => {
    const start = await begin(bench, { overlap: 'bufferOne' })
    for (let i = 0; i < 3; i++) {
      await bench.advance(MINUTE)
      await fire(bench)
    }
    assert.deepEqual(await ticksSaid(bench, start), ['1 fired', '3 skipped overlap'])
    assert.deepEqual((await bench.store.schedules.get('s'))?.buffered, [start + 2 * MINUTE])
    await succeed(bench)
    await bench.advance(15_000)
    assert.equal((await fire(bench)).jobs.length, 1)
    assert.deepEqual((await ticksSaid(bench, start)).at(-1), '2 late')
  },

  'bufferAll runs the jobs of all ticks, one after the other': async (bench) => {
    const start = await begin(bench, { overlap: 'bufferAll' })
    for (let i = 0; i < 3; i++) {
      await bench.advance(MINUTE)
      await fire(bench)
    }
    for (let i = 0; i < 3; i++) {
      assert.equal((await bench.store.counts()).lanes.ready, 1)
      await succeed(bench)
      await bench.advance(15_000)
      await fire(bench)
    }
    assert.deepEqual(await ticksSaid(bench, start), ['1 fired', '2 late', '3 fired'])
  },

  'cancelOther cancels a job that waits, and asks the holder of one that runs': async (bench) => {
    const start = await begin(bench, { overlap: 'cancelOther' })
    await bench.advance(MINUTE)
    const [first] = (await fire(bench)).jobs
    await bench.advance(MINUTE)
    const second = await fire(bench)
    assert.equal((await bench.job(first?.id ?? '')).outcome, 'cancelled')
    assert.equal(second.jobs.length, 1)
    const [held] = await bench.claim({ queues: ['reports'], leaseMs: 600_000 })
    assert.ok(held)
    await bench.advance(MINUTE)
    assert.equal((await fire(bench)).jobs.length, 0)
    await bench.advance(MINUTE)
    assert.equal((await fire(bench)).jobs.length, 0)
    await bench.settle(held, { kind: 'cancel' })
    await bench.advance(15_000)
    assert.equal((await fire(bench)).jobs.length, 1)
    assert.deepEqual(await ticksSaid(bench, start), [
      ...['1 fired', '2 fired', '3 skipped replaced', '4 fired'],
    ])
  },

  'pauseOnFailure pauses the schedule when a job has failed': async (bench) => {
    const start = await begin(bench, { pauseOnFailure: true })
    await bench.advance(MINUTE)
    await fire(bench)
    const [held] = await bench.claim({ queues: ['reports'] })
    assert.ok(held)
    await bench.settle(held, { kind: 'fail', failure: FAILURE })
    await bench.advance(MINUTE)
    const { jobs } = await fire(bench)
    assert.deepEqual(jobs, [])
    const paused = await bench.store.schedules.get('s')
    assert.equal(paused?.pausedBy, 'engine')
    assert.match(paused?.pauseNote ?? '', new RegExp(held.job.id))
    assert.equal((await lastRecord(bench.store)).action, 'pause')
    await bench.advance(MINUTE)
    await bench.store.schedules.resume('s', ticksOf, OPERATOR)
    await bench.advance(MINUTE)
    await fire(bench)
    assert.deepEqual(await ticksSaid(bench, start), ['1 fired', '2-3 missed paused', '4 fired'])
  },

  'a change that meets a failed job pauses the schedule, and nothing looks at it': async (
    bench,
  ) => {
    await begin(bench, { pauseOnFailure: true })
    await bench.advance(MINUTE)
    await fire(bench)
    const [held] = await bench.claim({ queues: ['reports'] })
    assert.ok(held)
    await bench.settle(held, { kind: 'fail', failure: FAILURE })
    await bench.advance(MINUTE)
    const { schedules } = bench.store
    await schedules.put(schedule({ pauseOnFailure: true, jitterMs: 10 }), ticksOf)
    assert.equal((await schedules.get('s'))?.pausedBy, 'engine')
    assert.equal(await schedules.nextLook(), undefined)
    assert.deepEqual(await schedules.faults('s', ticksOf), [])
  },
}

/** What operators do. */
export const scheduleOperatorCases: Cases = {
  'a paused schedule makes no jobs, and its ticks are missed': async (bench) => {
    const start = await begin(bench)
    const { schedules } = bench.store
    const { result } = await schedules.pause('s', OPERATOR)
    assert.equal(result?.operator, 'ann')
    assert.equal(result?.note, OPERATOR.note)
    assert.equal((await schedules.pause('s', OPERATOR)).result, undefined)
    assert.equal(await schedules.nextLook(), undefined)
    await bench.advance(3 * MINUTE)
    assert.deepEqual((await fire(bench)).jobs, [])
    assert.equal((await schedules.put(schedule(), ticksOf)).result.kind, 'same')
    assert.equal((await schedules.get('s'))?.pausedBy, 'ann')
    await schedules.resume('s', ticksOf, OPERATOR)
    assert.equal((await schedules.resume('s', ticksOf, OPERATOR)).result, undefined)
    await bench.advance(MINUTE)
    await fire(bench)
    assert.deepEqual(await ticksSaid(bench, start), ['1-3 missed paused', '4 fired'])
  },

  'a schedule that is paused and changed stays paused': async (bench) => {
    const start = await begin(bench)
    const { schedules } = bench.store
    await schedules.pause('s', OPERATOR)
    await bench.advance(2 * MINUTE)
    await schedules.put(schedule({ overlap: 'skip' }), ticksOf)
    assert.equal((await schedules.get('s'))?.pausedBy, 'ann')
    assert.equal(await schedules.nextLook(), undefined)
    assert.deepEqual(await ticksSaid(bench, start), ['1-2 missed paused'])
  },

  'a job that an operator asks for belongs to no tick': async (bench) => {
    const start = await begin(bench, { overlap: 'skip' })
    const { jobs, records } = await bench.store.schedules.run('s', OPERATOR)
    assert.equal(records[0]?.action, 'run')
    assert.equal(records[0]?.job, jobs[0]?.id)
    assert.equal((await bench.store.facts(jobs[0]?.id ?? ''))[0]?.operator, 'ann')
    const second = await bench.store.schedules.run('s', OPERATOR)
    assert.notEqual(second.jobs[0]?.id, jobs[0]?.id)
    await bench.advance(MINUTE)
    await fire(bench)
    assert.deepEqual(await ticksSaid(bench, start), ['1 skipped overlap'])
  },

  'a backfill makes jobs of ticks that have none': async (bench) => {
    const start = await begin(bench)
    await bench.advance(MINUTE)
    await fire(bench)
    await bench.advance(9 * MINUTE + 30_000)
    await fire(bench)
    const { schedules } = bench.store
    const request = { from: start + MINUTE, to: start + 20 * MINUTE, dryRun: true } as const
    const all = { ...request, overlap: 'allowAll' } as const
    const planned = await schedules.backfill('s', all, ticksOf, OPERATOR)
    assert.equal(planned.ticks.length, 8)
    assert.deepEqual(planned.jobs, [])
    const done = await schedules.backfill('s', { ...all, dryRun: false }, ticksOf, OPERATOR)
    assert.deepEqual(done.ticks, planned.ticks)
    assert.deepEqual(done.existing, [start + MINUTE, start + 10 * MINUTE])
    assert.equal(done.jobs.length, 8)
    const again = await schedules.backfill('s', { ...all, dryRun: false }, ticksOf, OPERATOR)
    assert.deepEqual(again.ticks, [])
    assert.equal((await ticksSaid(bench, start)).filter((s) => s.endsWith('backfilled')).length, 8)
  },

  'a backfill can run its jobs one after the other': async (bench) => {
    const start = await begin(bench, { overlap: 'skip' })
    await bench.store.schedules.pause('s', OPERATOR)
    await bench.advance(3 * MINUTE)
    await bench.store.schedules.resume('s', ticksOf, OPERATOR)
    const request = { from: start, to: start + 3 * MINUTE, overlap: 'bufferAll' } as const
    await bench.store.schedules.backfill('s', { ...request, dryRun: false }, ticksOf, OPERATOR)
    for (let i = 0; i < 4; i++) {
      await bench.advance(5000)
      await fire(bench)
      assert.equal((await bench.store.counts()).lanes.ready, 1)
      await succeed(bench)
    }
    const said = await ticksSaid(bench, start)
    assert.deepEqual(
      said.slice(1, 5),
      [0, 1, 2, 3].map((tick) => `${tick} backfilled`),
    )
  },

  'a backfill of too many ticks is refused, and nothing is written': async (bench) => {
    const start = await begin(bench, { timing: { kind: 'every', everyMs: 1000 } })
    await bench.advance(2000 * 1000)
    const request = { from: start, to: bench.store.now(), overlap: 'allowAll' } as const
    const { schedules } = bench.store
    await assert.rejects(
      schedules.backfill('s', { ...request, dryRun: false }, ticksOf, OPERATOR),
      CommandInvalid,
    )
    assert.deepEqual(await bench.ids(), [])
  },

  'a removed schedule leaves its jobs and its records': async (bench) => {
    const start = await begin(bench)
    await bench.advance(MINUTE)
    const { jobs } = await fire(bench)
    await bench.advance(MINUTE)
    const { schedules } = bench.store
    const { result } = await schedules.remove('s', ticksOf, OPERATOR)
    assert.equal(result.action, 'remove')
    assert.equal(await schedules.get('s'), undefined)
    assert.equal(await schedules.nextLook(), undefined)
    assert.ok(await bench.job(jobs[0]?.id ?? ''))
    assert.deepEqual(await ticksSaid(bench, start), ['1 fired', '2 missed removed'])
    await schedules.put(schedule(), ticksOf)
    await bench.advance(MINUTE)
    await fire(bench)
    assert.equal((await ticksSaid(bench, start)).at(-1), '3 fired')
  },

  'a schedule that does not exist is a typed error': async ({ store: { schedules } }) => {
    await assert.rejects(schedules.pause('x', OPERATOR), ScheduleNotFound)
    await assert.rejects(schedules.resume('x', ticksOf, OPERATOR), ScheduleNotFound)
    await assert.rejects(schedules.run('x', OPERATOR), ScheduleNotFound)
    await assert.rejects(schedules.remove('x', ticksOf, OPERATOR), ScheduleNotFound)
    assert.equal(await schedules.get('x'), undefined)
  },

  'records are listed newest first, page by page, by kind': async (bench) => {
    await begin(bench)
    for (let i = 0; i < 4; i++) {
      await bench.advance(MINUTE)
      await fire(bench)
    }
    await bench.store.schedules.pause('s', OPERATOR)
    const { schedules } = bench.store
    const changes = (await schedules.records({ kind: 'change' })).items
    assert.deepEqual(
      changes.map(({ action }) => action),
      ['pause', 'put'],
    )
    const walked: ScheduleRecord[] = []
    let after: string | undefined
    do {
      const page = await schedules.records(
        { schedule: 's', kind: 'tick' },
        { limit: 3, ...(after && { after }) },
      )
      walked.push(...page.items)
      after = page.next
    } while (after !== undefined)
    assert.equal(walked.length, 4)
    assert.deepEqual(
      walked.map(({ number }) => number),
      walked.map(({ number }) => number).toSorted((a, b) => b - a),
    )
    const wrong = schedules.records({ scheduel: 's' } as unknown as { schedule: string })
    await assert.rejects(wrong, CommandInvalid)
  },
}

/** A call of each verb, for the test that a closed store refuses all of them. */
export const SCHEDULE_VERBS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  'schedules.put': ({ schedules }) => schedules.put(schedule(), ticksOf, CLIENT),
  'schedules.get': ({ schedules }) => schedules.get('s'),
  'schedules.list': ({ schedules }) => schedules.list(),
  'schedules.records': ({ schedules }) => schedules.records({}),
  'schedules.recordOf': ({ schedules }) => schedules.recordOf('s', 1),
  'schedules.nextLook': ({ schedules }) => schedules.nextLook(),
  'schedules.fire': ({ schedules }) => schedules.fire(1, ticksOf),
  'schedules.pause': ({ schedules }) => schedules.pause('s', OPERATOR),
  'schedules.resume': ({ schedules }) => schedules.resume('s', ticksOf, OPERATOR),
  'schedules.run': ({ schedules }) => schedules.run('s', OPERATOR),
  'schedules.remove': ({ schedules }) => schedules.remove('s', ticksOf, OPERATOR),
}
