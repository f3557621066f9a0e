/**
 * Bounds of queues: how many jobs may be ready in one, or blocked by a limit. Jobs are counted up
 * to the bound, by the indexes of both lanes.
 *
 * A caller that enqueues into a bounded queue locks its row first, so that two callers cannot both
 * use the last room. Each process reads every few seconds which queues are bounded, so that other
 * queues cost nothing.
 */
import { LANES } from '../../core/job/lanes.ts'
import type { Clock } from '../../core/ports.ts'
import type { Accepted } from '../accept.ts'
import { QueueFull } from '../errors.ts'
import { needsRoom } from '../shedding.ts'
import { type Session, statement } from './connect.ts'
import { arrayOf } from './rows-at-once.ts'

const SELECT_BOUNDED = statement((s) => `SELECT name FROM ${s}.queues WHERE max_depth IS NOT NULL`)

const STALE_MS = 5000

/** The names of the queues that are bounded in depth, as they were a few seconds ago. */
export class BoundedQueues {
  readonly #clock: Clock
  #names: ReadonlySet<string> = new Set()
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isStale(): boolean {
    return this.#clock.now() - this.#askedAt > STALE_MS
  }

  /** The names are read again before the next job is accepted. */
  forget(): void {
    this.#askedAt = Number.NEGATIVE_INFINITY
  }

  async ask(session: Session): Promise<void> {
    const rows = await session.query<{ name: string }>(SELECT_BOUNDED)
    this.#names = new Set(rows.map(({ name }) => name))
    this.#askedAt = this.#clock.now()
  }

  /** Whether one of these jobs may have no room in its queue. */
  concern(jobs: readonly Accepted[]): boolean {
    return this.#names.size > 0 && jobs.some((one) => this.#names.has(one.job.queue))
  }
}

const LOCK_DEPTHS = statement(
  (s) => `
  SELECT name, max_depth FROM ${s}.queues
  WHERE name = ANY ($1::text[]) AND max_depth IS NOT NULL ORDER BY name FOR UPDATE`,
)

const COUNT_READY = statement(
  (s) => `
  SELECT count(*)::int AS jobs FROM (
    SELECT 1 FROM ${s}.jobs WHERE lane = ${LANES.ready} AND queue = $1
    UNION ALL SELECT 1 FROM ${s}.jobs WHERE lane = ${LANES.blocked} AND queue = $1
    LIMIT $2) AS ready`,
)

/** As subqueries and not as conditions: for those the planner would read the whole table. */
const SELECT_THERE = statement(
  (s) => `
  SELECT id FROM unnest($1::uuid[], $2::text[], $3::text[]) AS asked (id, type, key)
  WHERE (SELECT id FROM ${s}.jobs WHERE jobs.id = asked.id) IS NOT NULL
    OR (SELECT id FROM ${s}.jobs WHERE jobs.type = asked.type AND jobs.key = asked.key)
      IS NOT NULL`,
)

/** The refusals of new jobs for which there is no room; must be called inside a transaction. */
export async function refuseSurplus(
  session: Session,
  jobs: readonly Accepted[],
): Promise<ReadonlyMap<Accepted, QueueFull>> {
  const refused = new Map<Accepted, QueueFull>()
  const needy = jobs.filter(needsRoom)
  const names = [...new Set(needy.map(({ job }) => job.queue))]
  type Depth = { name: string; max_depth: number }
  for (const row of await session.query<Depth>(LOCK_DEPTHS, [arrayOf(names)])) {
    const { name, max_depth: maxDepth } = row
    const own = needy.filter(({ job }) => job.queue === name)
    let left = maxDepth - (await countReady(session, name, maxDepth))
    if (left >= own.length) continue
    // A job that exists already, by key or because the answer was lost, needs no room.
    const there = await findThere(session, own)
    for (const one of own) {
      if (there.has(one.job.id)) continue
      if (left <= 0) refused.set(one, new QueueFull(name, maxDepth))
      left--
    }
  }
  return refused
}

export async function countReady(session: Session, queue: string, bound: number): Promise<number> {
  const [row] = await session.query<{ jobs: number }>(COUNT_READY, [queue, bound])
  return row?.jobs ?? 0
}

async function findThere(
  session: Session,
  jobs: readonly Accepted[],
): Promise<ReadonlySet<string>> {
  const columns = [
    jobs.map(({ job }) => job.id),
    jobs.map(({ job }) => job.type),
    jobs.map(({ job }) => job.key),
  ]
  const rows = await session.query<{ id: string }>(SELECT_THERE, columns.map(arrayOf))
  return new Set(rows.map(({ id }) => id))
}
