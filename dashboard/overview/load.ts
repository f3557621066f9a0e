/**
 * What the overview shows. Counts come from the counters of the store. Movements, rates and times
 * come from the newest facts, so that the page is as quick with a million jobs as with ten.
 */
import type { Fact } from '../../src/core/job/facts.ts'
import { type Answer, call } from '../api/client.ts'
import { noteStoreTime } from '../api/session.ts'
import { stats } from '../numbers.ts'

export interface Overview {
  readonly numbers: Answer<'readOverview'>
  /** The newest facts of the last hour, newest first; at most `FACTS_MAX`. */
  readonly facts: readonly Fact[]
}

const HOUR_MS = 3_600_000
const FACTS_MAX = 1000

/** One request for all numbers, then one for the facts: a view has one in flight. */
export async function loadOverview(signal: AbortSignal): Promise<Overview> {
  const numbers = await call('readOverview', {}, signal)
  const { now, lanes, ended, queueCount, workers, attention } = numbers
  noteStoreTime(now)
  stats.value = {
    ...{ now, lanes, ended, queues: queueCount },
    ...{ workers: workers.live, paused: attention.pausedQueues },
  }
  const query = { from: now - HOUR_MS, order: 'newest', limit: FACTS_MAX } as const
  const facts = await call('listFacts', { query }, signal)
  return { numbers, facts: facts.items.map(({ fact }) => fact as unknown as Fact) }
}

export interface Movement {
  /** How long the facts reach back. */
  readonly spanMs: number
  /** How often each edge between lanes was taken, by `from\nto`. */
  readonly edges: ReadonlyMap<string, number>
  /** Starts in each of `SLICES` equal parts of the time, oldest first. */
  readonly starts: readonly number[]
  /** From ready to started, sorted. */
  readonly waits: readonly number[]
}

const SLICES = 40

/** What the facts say about movement. `laneOf` is the lane of a state. */
export function movementOf(
  facts: readonly Fact[],
  now: number,
  laneOf: (state: string) => string,
): Movement {
  const isWhole = facts.length < FACTS_MAX
  const oldest = facts.at(-1)?.at ?? now
  const spanMs = isWhole ? HOUR_MS : Math.max(1000, now - oldest)
  const edges = new Map<string, number>()
  const starts = new Array<number>(SLICES).fill(0)
  const waits: number[] = []
  for (const { from, via = [], to, at, trigger, timing, outcome } of facts) {
    const path = [from, ...via, to]
    for (const [i, next] of path.slice(1).entries()) {
      const before = path[i]
      if (before === null || before === undefined || next === null) continue
      const isEnd = i === path.length - 2 && outcome !== undefined
      const [a, b] = [laneOf(before), isEnd ? outcome : laneOf(next)]
      if (a !== b) edges.set(`${a}\n${b}`, (edges.get(`${a}\n${b}`) ?? 0) + 1)
    }
    if (trigger === 'claim') {
      const slice = Math.floor(((at - (now - spanMs)) / spanMs) * SLICES)
      const index = Math.max(0, Math.min(SLICES - 1, slice))
      starts[index] = (starts[index] ?? 0) + 1
    }
    if (timing !== undefined) waits.push(timing.queueMs)
  }
  return { spanMs, edges, starts, waits: waits.sort((a, b) => a - b) }
}

/** A quantile of sorted numbers; undefined if there are none. */
export function quantile(sorted: readonly number[], part: number): number | undefined {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
}
