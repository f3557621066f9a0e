/**
 * Bounds of queues: how many jobs may be ready in one, or blocked by a limit. Jobs are counted up
 * to the bound, by the indexes of both lanes.
 */
import { LANES } from '../../core/job/lanes.ts'
import type { Connection } from './connect.ts'

const SELECT_DEPTHS = 'SELECT name, max_depth FROM pawl_queues WHERE max_depth IS NOT NULL'

const COUNT_READY = `
  SELECT count(*) AS jobs FROM (
    SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.ready} AND queue = ?1
    UNION ALL SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.blocked} AND queue = ?1
    LIMIT ?2)`

/** How many jobs are ready in a queue or blocked by a limit, counted up to a bound. */
export function countReady(connection: Connection, queue: string, bound: number): number {
  return connection.get<{ jobs: number }>(COUNT_READY, queue, bound)?.jobs ?? 0
}

/** The room that is left in bounded queues, within one transaction. */
export class Room {
  readonly #connection: Connection
  readonly #depths: ReadonlyMap<string, number>
  readonly #left = new Map<string, number>()

  constructor(connection: Connection) {
    type Depth = { name: string; max_depth: number }
    const rows = connection.all<Depth>(SELECT_DEPTHS)
    this.#connection = connection
    this.#depths = new Map(rows.map((row) => [row.name, row.max_depth]))
  }

  /** How many jobs may be ready in a queue; `undefined` if there is no bound. */
  depthOf(queue: string): number | undefined {
    return this.#depths.get(queue)
  }

  /** Takes the room of one job; returns false if there is none left. */
  take(queue: string, maxDepth: number): boolean {
    const left = this.#left.get(queue) ?? maxDepth - countReady(this.#connection, queue, maxDepth)
    this.#left.set(queue, Math.max(0, left - 1))
    return left > 0
  }
}
