/** Queues as operators see them, made from counts; the same in every store. */
import { LANES, type Lane } from '../core/job/lanes.ts'
import type { QueueInfo } from './contract/store.ts'

/** How many jobs of a queue are in a lane, and when the first of them became due. */
export interface QueueCount {
  readonly queue: string
  readonly lane: number
  readonly jobs: number
  readonly first: number | null
}

/** The row of a queue that was paused or bounded at some time. */
export interface QueueRow {
  readonly name: string
  readonly paused_at: number | null
  readonly paused_by: string | null
  readonly max_depth: number | null
  readonly max_wait_ms: number | null
  /** Why it is paused; absent if it was not read. */
  readonly pause_note?: string | null
}

const NAMES = new Map(Object.entries(LANES).map(([lane, code]) => [code as number, lane as Lane]))
const EMPTY = Object.fromEntries(Object.keys(LANES).map((lane) => [lane, 0]))

/** Every queue that either of them names, by name. */
export function queuesOf(counts: readonly QueueCount[], rows: readonly QueueRow[]): QueueInfo[] {
  type Draft = { -readonly [Field in keyof QueueInfo]: QueueInfo[Field] }
  const queues = new Map<string, Draft & { lanes: Record<Lane, number> }>()
  const queueOf = (name: string) => {
    const known = queues.get(name) ?? { name, lanes: { ...EMPTY } as Record<Lane, number> }
    queues.set(name, known)
    return known
  }
  for (const { queue, lane, jobs, first } of counts) {
    const info = queueOf(queue)
    info.lanes[NAMES.get(lane) as Lane] += jobs
    if (lane === LANES.ready && first !== null) info.readySince = first
  }
  for (const row of rows) {
    const { name, paused_at, paused_by, max_depth, max_wait_ms, pause_note = null } = row
    const info = queueOf(name)
    if (max_depth !== null) info.maxDepth = max_depth
    if (max_wait_ms !== null) info.maxWaitMs = max_wait_ms
    if (paused_at === null) continue
    info.pausedAt = paused_at
    if (paused_by !== null) info.pausedBy = paused_by
    if (pause_note !== null) info.pauseReason = pause_note
  }
  return [...queues.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}
