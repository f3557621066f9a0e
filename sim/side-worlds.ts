/**
 * What some seeds play beside their jobs on data of its own: a run, schedules, groups,
 * waits, flows.
 */
import type { Random } from 'pawl/testing'
import type { Judged } from './checker.ts'
import type { Faults } from './faults.ts'
import { simulateFlows } from './flow-world.ts'
import { simulateGroups } from './group-world.ts'
import { simulateRun } from './run-world.ts'
import { simulateSchedules } from './schedule-world.ts'
import { FLOWS_EVERY, GROUPS_EVERY, RUN_SHARE, SCHEDULES_EVERY, WAITS_EVERY } from './sizes.ts'
import { simulateWaits } from './wait-world.ts'

interface SideWorlds {
  readonly judged: readonly Judged[]
  readonly runEvents: number
  readonly ticks: number
  /** How many jobs of groups have started. */
  readonly groupStarts: number
  /** How many signals were received. */
  readonly signals: number
  /** How many jobs were released after those that they waited for. */
  readonly released: number
  /** How often a job was claimed before another one because it is ahead. */
  readonly overtakings: number
}

const NO_GROUPS = { judged: [], starts: 0, overtakings: 0 }

/** Plays what this seed has of them. */
export async function simulateBeside(
  seed: number,
  random: Random,
  faults: Faults,
): Promise<SideWorlds> {
  const isWithRun = random.next() < RUN_SHARE
  const run = isWithRun ? await simulateRun(seed, random, faults) : { judged: [], events: 0 }
  const isWithSchedules = seed % SCHEDULES_EVERY === 0
  const schedules = isWithSchedules ? await simulateSchedules(seed) : { judged: [], ticks: 0 }
  const isWithGroups = seed % GROUPS_EVERY === 4
  const groups = isWithGroups ? await simulateGroups(seed) : NO_GROUPS
  const isWithWaits = seed % WAITS_EVERY === 2
  const waits = isWithWaits ? await simulateWaits(seed) : { judged: [], received: 0 }
  const isWithFlows = seed % FLOWS_EVERY === 6
  const flows = isWithFlows ? await simulateFlows(seed) : { judged: [], released: 0 }
  return {
    judged: [run, schedules, groups, waits, flows].flatMap(({ judged }) => judged),
    runEvents: run.events,
    ticks: schedules.ticks,
    groupStarts: groups.starts,
    signals: waits.received,
    released: flows.released,
    overtakings: groups.overtakings,
  }
}
