// Two processes that are killed with kill -9 while ticks come: every tick has one job (P17).
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { defineJob, defineSchedule } from 'pawl'
import type { ScheduleRecord } from 'pawl/operators'
import { expect, it, onTestFinished } from 'vitest'
import { brokenPromises } from '../../processes/inspect.ts'
import { thorough } from '../../support/extent.ts'
import { PLACES } from './places.ts'

const PROGRAM = fileURLToPath(new URL('scheduler.mjs', import.meta.url))
const SCHEDULES = 40
const KILLS = thorough(6, 40)
const timeout = 60_000 + KILLS * 5000
const tick = defineJob({ name: 'tick' })

async function start(store: string, hasCode: boolean) {
  const child = fork(PROGRAM, [JSON.stringify({ store, hasCode })])
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

it.each(PLACES)(
  'on $name killed workers lose no tick and make none twice',
  { timeout },
  async ({ place }) => {
    const { store, pawl } = await place()
    for (let n = 0; n < SCHEDULES; n++) {
      const overlap = n % 2 === 0 ? 'allowAll' : 'skip'
      const common = { name: `s${n}`, job: tick, every: '1s', catchUp: 'all', overlap } as const
      await pawl.schedules.put(defineSchedule(common))
    }
    // One of them has no code of the jobs, and makes them all the same.
    const workers = [await start(store, true), await start(store, false)]
    const last = async () => (await pawl.schedules.get('s0'))?.lastTick ?? 0
    for (let kill = 0; kill < KILLS; kill++) {
      const before = await last()
      while ((await last()) <= before);
      workers[kill % 2]?.kill('SIGKILL')
      workers[kill % 2] = await start(store, kill % 2 === 0)
    }
    const until = pawl.store.now()
    const isReached = async () => {
      const { items } = await pawl.schedules.list({ limit: 1000 })
      return items.every(({ cursor }) => cursor >= until)
    }
    while (!(await isReached()));
    for (const worker of workers) {
      worker.kill('SIGKILL')
      await once(worker, 'exit')
    }
    const keys = new Map<string, number>()
    for await (const { key } of pawl.jobs.list({ type: 'tick' })) {
      keys.set(key ?? '', (keys.get(key ?? '') ?? 0) + 1)
    }
    let made = 0
    for (const schedule of (await pawl.schedules.list({ limit: 1000 })).items) {
      const records = await ticksOf(schedule.name)
      const ticks = records.map((record) => record.tick ?? 0)
      const first = (Math.floor(schedule.createdAt / 1000) + 1) * 1000
      const expected = Array.from({ length: ticks.length }, (_, i) => first + i * 1000)
      expect(ticks).toEqual(expected)
      expect(ticks.at(-1)).toBe(schedule.cursor)
      for (const { action, tick: at } of records) {
        const count = keys.get(`schedule/${schedule.name}/${at}`) ?? 0
        expect([schedule.name, at, action, count]).toEqual([
          ...[schedule.name, at, action, action === 'skipped' ? 0 : 1],
        ])
        made += count
      }
    }
    expect(made).toBe([...keys.values()].reduce((sum, count) => sum + count, 0))
    expect(made).toBeGreaterThan(SCHEDULES * 2)
    const { findings } = await pawl.doctor().check({ full: true })
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
    expect(await brokenPromises(pawl.store)).toEqual([])

    async function ticksOf(name: string): Promise<ScheduleRecord[]> {
      const { items } = await pawl.schedules.history(name, { kind: 'tick', limit: 1000 })
      return items.toReversed()
    }
  },
)
