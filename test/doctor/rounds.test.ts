// The doctor's rounds in workers: one at a time, page by page, round and round, in nobody's way.
import { LIFECYCLES } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { Doctor } from '../../src/doctor/doctor.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import type { Examination } from '../../src/stores/contract/examination.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { StoreUnavailable } from '../../src/stores/errors.ts'
import { wrapStore } from '../../src/stores/wrap-store.ts'
import { EngineBench } from '../engine/bench.ts'
import { KeptMetrics, keptLog } from '../engine/logbook.ts'
import { enqueue, STORES } from '../stores/examined-stores.ts'

const echo = defineJob({ name: 'echo', run: ({ input }) => input })
const EVERY_MS = 10_000

/** Whoever looks at a store for the doctor, and a way to hold or refuse it. */
class Watched {
  readonly calls: { verb: string; values: readonly unknown[]; answer?: unknown; at: number }[] = []
  /** Asked before each call; it may wait or throw. */
  before: (verb: string) => Promise<void> | void = () => {}

  readonly between = (store: Store): Store =>
    wrapStore(store, {
      examination: new Proxy(store.examination, {
        get: (target, name) => {
          const verb = Reflect.get(target, name, target) as (...values: unknown[]) => unknown
          return async (...values: unknown[]) => {
            const call = { verb: String(name), values, at: store.now() }
            this.calls.push(call)
            await this.before(String(name))
            return Object.assign(call, { answer: await verb.apply(target, values) }).answer
          }
        },
      }) as Examination,
    })

  of(wanted: keyof Examination) {
    return this.calls.filter(({ verb }) => verb === wanted)
  }

  /** Who was given the duty, in order. */
  get doctors(): unknown[] {
    return this.of('takeDuty').flatMap(({ values, answer }) => (answer ? [values[1]] : []))
  }

  /** How many jobs each round looked at. */
  get pages(): number[] {
    return this.of('storedJobs').map(({ answer }) => (answer as unknown[]).length)
  }
}

async function openWatched(options: Parameters<typeof EngineBench.open>[2] = {}) {
  const watched = new Watched()
  const bench = await EngineBench.open([echo], watched.between, options)
  return { watched, bench }
}

/** Jobs that nobody works on: they are due in a year. */
async function fill({ pawl }: EngineBench, count: number): Promise<string[]> {
  const items = Array.from({ length: count }, (_, input) => ({ input, delay: '365d' as const }))
  return (await pawl.enqueueMany(echo, items)).map(({ id }) => id)
}

const passRounds = (bench: EngineBench, count: number) => bench.pass(count * EVERY_MS, 500)

describe('a round', () => {
  it('continues where the last one ended, also in another worker, then starts again', async () => {
    const { watched, bench } = await openWatched()
    await fill(bench, 250)
    const first = await bench.work({ id: 'a' })
    await bench.until(() => watched.of('leaveDuty').length === 2, 500)
    await bench.finish(first.stop())
    await bench.work({ id: 'b' })
    await bench.until(() => watched.of('leaveDuty').length === 6, 500)
    expect(watched.doctors).toEqual(['a', 'a', 'b', 'b', 'b', 'b'])
    expect(watched.pages).toEqual([100, 100, 50, 0, 100, 100])
    const refs = watched.of('storedJobs').flatMap(({ answer }) => answer as { ref: unknown }[])
    // Every job once, and those of the second turn again.
    expect(new Set(refs.slice(0, 250).map(({ ref }) => ref)).size).toBe(250)
    expect(refs.slice(250).map(({ ref }) => ref)).toEqual(refs.slice(0, 200).map(({ ref }) => ref))
  })

  it('is made every ten seconds, or as often as is said', async () => {
    const { watched, bench } = await openWatched()
    await bench.work()
    await bench.pass(60_500, 100)
    expect(watched.of('takeDuty').length).toBe(6)
    const other = await openWatched()
    await other.bench.work({ checkup: '1m' })
    await other.bench.pass(301_000, 500)
    expect(other.watched.of('takeDuty').length).toBe(5)
  })

  it('is made by one worker at a time, and by another when its holder went silent', async () => {
    const { watched, bench } = await openWatched()
    await fill(bench, 250)
    let goOn: () => void = () => {}
    const held = new Promise<void>((resolve) => {
      goOn = resolve
    })
    watched.before = (verb) => {
      return verb === 'storedJobs' && watched.of('storedJobs').length === 1 ? held : undefined
    }
    await bench.work({ id: 'a' })
    await bench.until(() => watched.of('storedJobs').length === 1, 500)
    await bench.work({ id: 'b' })
    await bench.pass(EVERY_MS / 2, 500)
    expect(watched.doctors).toEqual(['a'])
    await bench.until(() => watched.of('leaveDuty').length === 2, 500)
    expect(watched.doctors).toEqual(['a', 'b', 'b'])
    // Whoever lost the duty does not say where the next one goes on.
    goOn()
    await bench.until(() => watched.of('leaveDuty').length >= 3, 10)
    const late = watched.of('leaveDuty').find(({ values }) => values[1] === 'a')
    expect(late?.answer).toBe(false)
    await bench.until(() => watched.doctors.length === 4, 500)
    expect(watched.of('takeDuty').findLast(({ answer }) => answer)?.answer).toEqual({
      cursor: String(watched.of('leaveDuty')[1]?.values[2]),
    })
  })

  it('is not begun twice by one worker, whatever happens meanwhile', async () => {
    const { watched, bench } = await openWatched()
    const never = new Promise<never>(() => {})
    watched.before = (verb) => (verb === 'storedJobs' ? never : undefined)
    let isAway = false
    const store = wrapStore(bench.store, {
      claim: (request) =>
        isAway ? Promise.reject(new StoreUnavailable(0, 'away')) : bench.store.claim(request),
      examination: watched.between(bench.store).examination,
    })
    const pawl = await createPawl({ store, jobs: [echo], environment: bench.environment })
    const worker = await pawl.work()
    await bench.until(() => watched.of('storedJobs').length === 1, 500)
    isAway = true
    await bench.pass(20_000, 100)
    isAway = false
    await bench.pass(60_000, 100)
    expect(watched.of('storedJobs')).toHaveLength(1)
    await bench.finish(worker.stop())
  })

  it('reports what it finds by an event, a log line and a measurement, every time', async () => {
    const metrics = new KeptMetrics()
    const { lines, logger } = keptLog()
    const { watched, bench } = await openWatched({ metrics, logger })
    const [, id] = await fill(bench, 3)
    await bench.test.query('UPDATE pawl_jobs SET priority = 77 WHERE id = ?', [id ?? ''])
    await bench.work({ id: 'w' })
    await bench.until(() => watched.of('leaveDuty').length === 3, 500)
    // A turn through three jobs is two rounds: the second finds that there are no more.
    const finding = { check: 'row-is-fold', promise: 'P9', severity: 'error', subject: `job ${id}` }
    const events = bench.events.filter(({ type }) => type === 'finding')
    expect(events).toMatchObject([
      { worker: 'w', finding },
      { worker: 'w', finding },
    ])
    const line = {
      level: 'error',
      fields: { event: 'doctor.finding', worker_id: 'w', check: 'row-is-fold', promise: 'P9' },
      msg: expect.stringContaining(`job ${id}: row and facts differ in priority`),
    }
    const told = lines.filter(({ fields }) => fields.event === 'doctor.finding')
    expect(told).toMatchObject([line, line])
    const labels = { invariant: 'P9', check: 'row-is-fold', severity: 'error' }
    const counted = { how: 'count', labels, value: 1 }
    expect(metrics.of('pawl_invariant_violations_total')).toEqual([counted, counted])
    // It looks, and mends nothing.
    expect(await bench.store.get(id ?? '')).toMatchObject({ priority: 77 })
  })

  it('that the store refuses is told, survived, and made again', async () => {
    const { watched, bench } = await openWatched()
    await fill(bench, 3)
    watched.before = () => {
      if (watched.calls.length === 1) throw new StoreUnavailable(0, 'away')
    }
    await bench.work({ id: 'w' })
    await bench.until(() => watched.of('leaveDuty').length === 1, 500)
    const errors = bench.events.filter(({ type }) => type === 'error')
    expect(errors).toMatchObject([{ worker: 'w', error: { code: 'E_STORE_UNAVAILABLE' } }])
    expect(watched.pages).toEqual([3])
  })

  it.each([
    ['its worker has errors all the time', ['reportWorker', 'claim', 'recover', 'promote']],
    ['it fails itself', ['reportWorker', 'storedJobs', 'listWorkers', 'takeDuty']],
  ])('is begun within twice its interval although %s', async (_, refused) => {
    const { watched, bench } = await openWatched()
    const refuse = (verb: string) => {
      if (refused.includes(verb)) throw new StoreUnavailable(0, 'away')
    }
    watched.before = refuse
    const failing = Object.fromEntries(
      refused.map((verb) => [verb, () => Promise.reject(new StoreUnavailable(0, 'away'))]),
    )
    const store = wrapStore(watched.between(bench.store), failing)
    const pawl = await createPawl({ store, jobs: [echo], environment: bench.environment })
    const begunAt = bench.store.now()
    const worker = await pawl.work({ checkup: '2s' })
    await bench.pass(120_000, 100)
    const rounds = [begunAt, ...watched.of('takeDuty').map(({ at }) => at), bench.store.now()]
    const gaps = rounds.slice(1).map((at, i) => at - (rounds[i] as number))
    expect(Math.max(...gaps)).toBeLessThanOrEqual(4000)
    await bench.finish(worker.stop())
  })

  it('of a worker that died during it is made by another within two intervals', async () => {
    const { watched, bench } = await openWatched()
    const never = new Promise<never>(() => {})
    watched.before = (verb) => {
      return verb === 'storedJobs' && watched.of('storedJobs').length === 1 ? never : undefined
    }
    await bench.work({ id: 'a' })
    await bench.work({ id: 'b' })
    await bench.until(() => watched.of('storedJobs').length === 1, 100)
    const [dead] = watched.doctors
    const diedAt = bench.store.now()
    await bench.until(() => watched.doctors.length === 2, 100)
    expect(watched.doctors[1]).not.toBe(dead)
    expect(bench.store.now() - diedAt).toBeLessThanOrEqual(2 * EVERY_MS)
  })

  it('is made by nobody where that was said, and by no worker that has stopped', async () => {
    const { watched, bench } = await openWatched()
    await bench.work({ id: 'a', checkup: false })
    await passRounds(bench, 10)
    expect(watched.calls).toEqual([])
    const worker = await bench.work({ id: 'b' })
    await bench.until(() => watched.of('leaveDuty').length === 1, 500)
    await bench.finish(worker.stop())
    const before = watched.calls.length
    await passRounds(bench, 10)
    expect(watched.calls.length).toBe(before)
  })

  it('that fails after its worker has stopped is no error of that worker', async () => {
    const { watched, bench } = await openWatched()
    let fail: (error: Error) => void = () => {}
    const failing = new Promise<void>((_, reject) => {
      fail = reject
    })
    watched.before = (verb) => (verb === 'storedJobs' ? failing : undefined)
    const worker = await bench.work()
    await bench.until(() => watched.of('storedJobs').length === 1, 500)
    await bench.finish(worker.stop())
    fail(new StoreUnavailable(0, 'closed'))
    await passRounds(bench, 3)
    expect(bench.events.filter(({ type }) => type === 'error')).toEqual([])
    expect(watched.of('takeDuty')).toHaveLength(1)
  })
})

describe.each(STORES)('rounds on $name', ({ open }) => {
  it('look at every job once in a turn, and report those that are damaged', async () => {
    const examined = await open()
    const { store, environment, sql } = examined
    const ids: string[] = []
    while (ids.length < 210) ids.push(await enqueue(examined, 'a'))
    const damaged = [ids[5], ids[105], ids[205]]
    for (const id of damaged) await sql(`UPDATE @jobs SET priority = 7 WHERE id = '${id}'`)
    const doctor = new Doctor({ store, lifecycles: LIFECYCLES, environment })
    const subjects: string[] = []
    const places: (string | undefined)[] = []
    let place: string | undefined
    do {
      const { findings, next } = await doctor.round(place)
      subjects.push(...findings.map(({ subject }) => subject))
      places.push(next)
      place = next
    } while (place !== undefined)
    expect(subjects.toSorted()).toEqual(damaged.map((id) => `job ${id}`).toSorted())
    expect(places).toHaveLength(4)
  })
})
