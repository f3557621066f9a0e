/** What runs and waits under each limit, over all of its keys: for measurements. */
import { limitOf } from '../../core/limits/keys.ts'
import type { LimitTotal } from '../contract/limits.ts'
import type { LimitRow } from '../limit-records.ts'
import type { Tx, Verb } from './operations.ts'

/** The operations of this verb. */
export interface TotalOperations {
  /** Gates in use, up to a bound. */
  usedGates(bound: number): readonly { readonly gate: string; readonly used: number }[]
  /** How many jobs each gate blocks, and when the first became due; up to a bound of jobs. */
  blockedGates(bound: number): readonly BlockedGate[]
}

export interface BlockedGate {
  readonly gate: string
  readonly jobs: number
  readonly since: number
}

/** So many gates and blocked jobs are read, so that a look takes less than a second. */
const GATES_MAX = 100_000
const JOBS_MAX = 100_000

/** The first limits by name, with the sums over their keys. */
export function* limitTotals(tx: Tx, limit: number): Verb<LimitTotal[]> {
  const rows = yield* tx.limitRows('', limit)
  const used = new Map<string, number>()
  for (const one of yield* tx.usedGates(GATES_MAX)) {
    const name = limitOf(one.gate)
    used.set(name, (used.get(name) ?? 0) + one.used)
  }
  const blocked = new Map<string, { jobs: number; since: number }>()
  for (const { gate, jobs, since } of yield* tx.blockedGates(JOBS_MAX)) {
    const before = blocked.get(limitOf(gate))
    blocked.set(limitOf(gate), {
      jobs: jobs + (before?.jobs ?? 0),
      since: Math.min(since, before?.since ?? since),
    })
  }
  // Numbers of operators for single keys have rows, too.
  const limits = rows.filter(({ name }) => limitOf(name) === name)
  return limits.map((row) => totalOf(row, used, blocked))
}

function totalOf(
  { name, max, override, period_ms }: LimitRow,
  used: ReadonlyMap<string, number>,
  blocked: ReadonlyMap<string, { readonly jobs: number; readonly since: number }>,
): LimitTotal {
  const waiting = blocked.get(name)
  return {
    limit: name,
    isThrottle: period_ms !== null,
    max: override ?? max,
    used: used.get(name) ?? 0,
    blocked: waiting?.jobs ?? 0,
    ...(waiting !== undefined && { blockedSince: waiting.since }),
  }
}
