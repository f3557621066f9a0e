/**
 * What is said of queues: nothing of a paused queue is claimed, while what runs, runs on; and a
 * queue may be bounded in how many jobs are ready in it, and for how long. Jobs are counted as far
 * as the bound, by the index of those that are ready.
 */
import { LANES } from '../../core/job/lanes.ts'
import { isFailedWhenFull, shedCommand, shedder } from '../shedding.ts'
import type { Answer, Asker } from '../store.ts'
import { answer } from './answer.ts'
import type { Connection } from './connect.ts'
import { type NumberedRow, type Read, type Shared, toSound } from './context.ts'

const SELECT_DEPTHS = 'SELECT name, max_depth FROM pawl_queues WHERE max_depth IS NOT NULL'

const COUNT_READY = `
  SELECT count(*) AS jobs FROM (
    SELECT 1 FROM pawl_jobs WHERE lane = ${LANES.ready} AND queue = ? LIMIT ?)`

/** How many jobs are ready in a queue, counted up to a bound. */
function countReady(connection: Connection, queue: string, bound: number): number {
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

  /** How many jobs may be ready in a queue; nothing where there is no bound. */
  depthOf(queue: string): number | undefined {
    return this.#depths.get(queue)
  }

  /** Takes the place of one job; false where there is none left. */
  take(queue: string, maxDepth: number): boolean {
    const left = this.#left.get(queue) ?? maxDepth - countReady(this.#connection, queue, maxDepth)
    this.#left.set(queue, Math.max(0, left - 1))
    return left > 0
  }
}

const SELECT_LIMITED = `
  SELECT name, max_depth, max_wait_ms FROM pawl_queues
  WHERE max_depth IS NOT NULL OR max_wait_ms IS NOT NULL ORDER BY name`

/** By each priority in turn, so that the oldest of each is found by the index. */
const SELECT_LATE = `
  WITH RECURSIVE priorities (priority) AS (
    SELECT (SELECT priority FROM pawl_jobs WHERE lane = ${LANES.ready} AND queue = ?1
      ORDER BY priority LIMIT 1)
    UNION ALL
    SELECT (SELECT priority FROM pawl_jobs
      WHERE lane = ${LANES.ready} AND queue = ?1 AND priority > priorities.priority
      ORDER BY priority LIMIT 1)
    FROM priorities WHERE priorities.priority IS NOT NULL
  )
  SELECT job.* FROM priorities CROSS JOIN pawl_jobs AS job
  WHERE job.lane = ${LANES.ready} AND job.queue = ?1 AND job.priority = priorities.priority
    AND job.run_at < ?2 AND job.machine IN (SELECT value FROM json_each(?3))
  LIMIT ?4`

/** The last ones that would be claimed. */
const SELECT_SURPLUS = `
  SELECT * FROM pawl_jobs
  WHERE lane = ${LANES.ready} AND queue = ?1 AND machine IN (SELECT value FROM json_each(?2))
  ORDER BY priority DESC, run_at DESC, rid DESC LIMIT ?3`

/** The numbers of lifecycles whose jobs are accepted where there is no room for them. */
function failedWhenFull({ machines }: Shared): string {
  const ids = [...machines.byId].filter(([, lifecycle]) => isFailedWhenFull(lifecycle))
  return JSON.stringify(ids.map(([id]) => id))
}

/** Ends up to `limit` jobs that their queues have no time or no room for. */
export function shed(shared: Shared, connection: Connection, now: number, limit: number): Answer[] {
  type Limited = { name: string; max_depth: number | null; max_wait_ms: number | null }
  const answers: Answer[] = []
  const end = (row: NumberedRow, asker: Asker) => {
    const read = toSound(shared, row) as Read
    answers.push(answer(shared, connection, now, read, shedCommand(read.lifecycle), asker))
  }
  for (const { name, max_depth, max_wait_ms } of connection.all<Limited>(SELECT_LIMITED)) {
    const { known } = shared.machines
    if (max_wait_ms !== null && answers.length < limit) {
      const left = limit - answers.length
      const late = connection.all<NumberedRow>(SELECT_LATE, name, now - max_wait_ms, known, left)
      for (const row of late) end(row, shedder(name, 'maxWait'))
    }
    if (max_depth !== null && answers.length < limit) {
      const left = limit - answers.length
      const surplus = countReady(connection, name, max_depth + left) - max_depth
      if (surplus <= 0) continue
      const last = connection.all<NumberedRow>(
        SELECT_SURPLUS,
        name,
        failedWhenFull(shared),
        surplus,
      )
      for (const row of last) end(row, shedder(name, 'maxDepth'))
    }
  }
  return answers
}
