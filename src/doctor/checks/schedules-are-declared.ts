import { isLive, type WorkerInfo, workerOf } from '../../stores/worker-info.ts'
import type { Finding } from '../finding.ts'
import { shellWord } from '../shell-word.ts'
import type { StoreCheck } from './check.ts'
import { schedulesOf } from './schedules-keep-time.ts'

/** How many schedules are looked at. */
const SCHEDULES_MAX = 1000

type Found = Omit<Finding, 'check'>

/**
 * A schedule stays if the code that declared it is gone, because another release may still need it.
 * A person has to decide. Workers with different zone data disagree about later ticks.
 */
export const schedulesAreDeclared: StoreCheck = {
  name: 'schedules-are-declared',
  promise: 'P17',
  says: 'Every schedule of code is declared by a live worker, and its ticks are not overdue.',
  look: async ({ store, now, thresholds }) => {
    const rows = await store.listWorkers()
    const live = rows.filter((row) => isLive(row, now, thresholds.workerMs))
    const workers = live.map((row) => workerOf(row, now))
    const found = [...zonesOf(workers)]
    for await (const schedule of schedulesOf(store, SCHEDULES_MAX)) {
      const { name, origin, nextAt, pausedAt } = schedule
      if (origin === 'code' && isUndeclared(workers, name)) {
        const advice = `If it is not needed: pawl schedule remove ${shellWord(name)} --reason …`
        found.push(warning(name, 'no live worker declares it', advice))
      }
      const isLate = pausedAt === undefined && (nextAt ?? now) + thresholds.dueMs < now
      if (isLate) found.push(warning(name, 'its tick is overdue', adviceFor(live)))
    }
    return found
  },
}

/** Whether all live workers say which schedules they declare, and none declares this one. */
function isUndeclared(workers: readonly WorkerInfo[], name: string): boolean {
  const isKnown = workers.every(({ schedules }) => schedules !== undefined)
  return workers.length > 0 && isKnown && workers.every((one) => !one.schedules?.includes(name))
}

function adviceFor(live: readonly object[]): string {
  return live.length === 0 ? 'Start a worker: pawl work --jobs FILE' : 'Look at the log of workers.'
}

function zonesOf(workers: readonly WorkerInfo[]): Found[] {
  const versions = [...new Set(workers.flatMap(({ zoneData }) => zoneData ?? []))]
  if (versions.length < 2) return []
  const what = `live workers have different zone data: ${versions.join(', ')}`
  return [
    {
      ...{ promise: 'P17', severity: 'warning', subject: 'workers', what, evidence: { versions } },
      advice: 'Run the same release of Node everywhere: ticks may differ when clocks change.',
    },
  ]
}

function warning(name: string, what: string, advice: string): Found {
  return {
    ...{ promise: 'P17', severity: 'warning', subject: `schedule ${name}`, what, advice },
    evidence: { schedule: name },
  }
}
