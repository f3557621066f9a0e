/** Strict groups: jobs that run one at a time, in order of enqueue. */
import { LANES } from '../../../core/job/lanes.ts'
import { strictGroupOf } from '../../../core/limits/keys.ts'
import type { GroupPlace } from '../../contract/limits.ts'
import type { Head } from '../../verbs/gates.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'

/** The jobs that hold a group. The conditions are those of the index `pawl_jobs_strict`. */
const HOLDING = `
  limit_key >= 'strict/' AND limit_key < 'strict0'
    AND lane <> ${LANES.ended} AND lane <> ${LANES.delivering} AND NOT (lane = ${LANES.parked}
      AND instr(substr(limit_key, 1, instr(limit_key || ' ', ' ')), '=') > 0)
    AND substr(limit_key, 1, instr(replace(limit_key, '=', ' ') || ' ', ' ') - 1)`
/** The first of them. */
const SELECT_HEAD = `
  SELECT rid AS ref, lane, blocked_on AS blockedOn FROM pawl_jobs
  WHERE ${HOLDING} = ? ORDER BY created_at, rid LIMIT 1`
const SELECT_JOB = 'SELECT rid, created_at, limit_key FROM pawl_jobs WHERE id = ?'
const SELECT_HEAD_ID = `
  SELECT id FROM pawl_jobs WHERE ${HOLDING} = ? ORDER BY created_at, rid LIMIT 1`
const COUNT_AHEAD = `
  SELECT count(*) AS jobs FROM (
    SELECT 1 FROM pawl_jobs WHERE ${HOLDING} = ?1 AND (created_at, rid) < (?2, ?3) LIMIT ?4)`
const MAKE_READY = `UPDATE pawl_jobs SET lane = ${LANES.ready} WHERE rid = ?`

type Row = Pick<Head, 'ref'> & { readonly lane: number; readonly blockedOn: string | null }

/** The first jobs of groups. */
function findHeads(connection: Connection, groups: readonly string[]): Head[] {
  return groups.flatMap((group): Head | [] => {
    const row = connection.get<Row>(SELECT_HEAD, group)
    if (row === undefined) return []
    const isBlocked = row.lane === LANES.blocked && row.blockedOn === group
    return { group, ref: row.ref, isBlocked }
  })
}

/** Makes the first job of a group ready if the group blocks it. */
export function moveHead(connection: Connection, group: string): { readonly jobs: number } {
  const [head] = findHeads(connection, [group])
  if (head === undefined || !head.isBlocked) return { jobs: 0 }
  return { jobs: connection.run(MAKE_READY, head.ref as number) }
}

function groupPlace({ connection }: At, jobId: string, bound: number): GroupPlace | undefined {
  type Job = { readonly rid: number; readonly created_at: number; readonly limit_key: string }
  const job = connection.get<Job>(SELECT_JOB, jobId)
  const group = strictGroupOf(job?.limit_key ?? null)
  if (job === undefined || group === undefined) return undefined
  const { gate } = group
  const head = connection.get<{ id: string }>(SELECT_HEAD_ID, gate)
  if (head === undefined) return undefined
  const values = [gate, job.created_at, job.rid, bound]
  const ahead = connection.get<{ jobs: number }>(COUNT_AHEAD, ...values)
  return { gate, head: head.id, ahead: ahead?.jobs ?? 0 }
}

export const STRICT = {
  groupPlace,
  heads: ({ connection }: At, groups: readonly string[]) => findHeads(connection, groups),
}
