// What schedules cost: the CPU of an idle worker with 10,000 schedules that are not due, in percent
// of one core, against an idle worker without schedules; and the time to make the jobs of ticks.
import { join } from 'node:path'
import { createPawl, defineJob, defineSchedule, type Pawl, type ScheduleDefinition } from 'pawl'
import { inFolder, type Result } from './measure.ts'

const SCHEDULES = 10_000
const IDLE_MS = 20_000

const job = defineJob({ name: 'tick', run: () => {} })

/** Measures on a SQLite file; fewer schedules and a shorter time if it should be quick. */
export async function benchSchedules({ quick }: { quick: boolean }): Promise<Result[]> {
  const count = quick ? SCHEDULES / 10 : SCHEDULES
  const idleMs = quick ? IDLE_MS / 4 : IDLE_MS
  return inFolder(async (folder) => {
    const reference = await idlePercent(join(folder, 'none.db'), 0, idleMs)
    const pawl = await idlePercent(join(folder, 'many.db'), count, idleMs)
    const perSecond = await ticksPerSecond(join(folder, 'due.db'), count)
    const ratio = reference === 0 ? 1 : pawl / reference
    return [
      { name: `% CPU of an idle worker, ${count} schedules against none`, pawl, reference, ratio },
      { name: `ticks a second, ${count} at once`, pawl: perSecond, reference: 0, ratio: 1 },
    ]
  })
}

async function idlePercent(path: string, schedules: number, ms: number): Promise<number> {
  await using pawl = await createPawl({ store: `sqlite:${path}`, jobs: [job] })
  await putAll(pawl, schedules, (n) =>
    defineSchedule({ name: `s${n}`, job, timezone: 'Europe/Berlin', cron: `${n % 60} 3 1 1 *` }),
  )
  await using _worker = await pawl.work({ checkup: false })
  await new Promise((resolve) => setTimeout(resolve, 2000))
  const before = process.cpuUsage()
  const startedAt = performance.now()
  await new Promise((resolve) => setTimeout(resolve, ms))
  const { user, system } = process.cpuUsage(before)
  const elapsedMs = performance.now() - startedAt
  return Math.round(((user + system) / 1000 / elapsedMs) * 10_000) / 100
}

async function ticksPerSecond(path: string, schedules: number): Promise<number> {
  await using pawl = await createPawl({ store: `sqlite:${path}` })
  await putAll(pawl, schedules, (n) => defineSchedule({ name: `s${n}`, job, every: '1s' }))
  const { schedules: tables } = pawl.store
  const everySecond = { next: (after: number) => (Math.floor(after / 1000) + 1) * 1000 }
  await new Promise((resolve) => setTimeout(resolve, 1100))
  const startedAt = performance.now()
  let jobs = 0
  for (let i = 0; i * 100 < schedules; i++)
    jobs += (await tables.fire(100, () => everySecond)).jobs.length
  return Math.round((jobs / (performance.now() - startedAt)) * 1000)
}

/** Many at a time, so that they share commits. */
async function putAll(
  pawl: Pawl,
  schedules: number,
  definitionOf: (n: number) => ScheduleDefinition,
): Promise<void> {
  for (let from = 0; from < schedules; from += 500) {
    const length = Math.min(500, schedules - from)
    const batch = Array.from({ length }, (_, i) => pawl.schedules.put(definitionOf(from + i)))
    await Promise.all(batch)
  }
}
