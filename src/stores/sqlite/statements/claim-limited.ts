/** Claims of jobs that have limits. */
import { LANES } from '../../../core/job/lanes.ts'
import type { Gate } from '../../../core/limits/gates.ts'
import { orderAt } from '../../columns.ts'
import type { ClaimRequest, Held } from '../../contract/store.ts'
import type {
  BlockedJob,
  BlockedKeys,
  GrantedJob,
  Look,
  OpenQueue,
  ReadyJob,
} from '../../verbs/claim-limited.ts'
import { claimable, readyQueues, takeGranted } from '../claim.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'
import { GATES } from './gates.ts'

const SELECT_SETTINGS = `
  SELECT name, paused_at, gated, rotates FROM pawl_queues
  WHERE paused_at IS NOT NULL OR gated = 1 OR rotates = 1`

const LOCK_READY = claimable(
  `rid AS ref, queue, priority, ${orderAt()} AS orderAt, created_at AS createdAt,
    limit_key AS limitKey`,
  '?5',
)

const BLOCK = `
  UPDATE pawl_jobs SET lane = ${LANES.blocked}, blocked_on = ?2
  WHERE rid = ?1 AND lane IN (${LANES.ready}, ${LANES.blocked})`

const SKIM = `
  UPDATE pawl_jobs SET lane = ${LANES.blocked}, blocked_on = ?4
  WHERE limit_key = ?3 AND rid IN (
    SELECT rid FROM pawl_jobs WHERE lane = ${LANES.ready} AND queue = ?1
    ORDER BY priority, ${orderAt()}, rid LIMIT ?2)`

/** Queues with ready jobs, and those whose jobs are behind their groups. */
function openQueues(
  connection: Connection,
  settings: Iterable<{ readonly name: string; readonly rotates: number }>,
): string[] {
  const rotating = [...settings].filter(({ rotates }) => rotates === 1).map(({ name }) => name)
  return [...new Set([...readyQueues(connection), ...rotating])]
}

export const CLAIM_LIMITED = {
  openQueues({ connection }: At, { queues }: ClaimRequest): OpenQueue[] {
    type Row = { name: string; paused_at: number | null; gated: number; rotates: number }
    const settings = new Map(
      connection.all<Row>(SELECT_SETTINGS).map((row) => [row.name, row] as const),
    )
    return (queues ?? openQueues(connection, settings.values())).flatMap((queue) => {
      const setting = settings.get(queue)
      if (setting !== undefined && setting.paused_at !== null) return []
      return { queue, gated: setting?.gated === 1, rotates: setting?.rotates === 1 }
    })
  },
  lockReady({ connection, machines, now }: At, looks: readonly Look[], { types }: ClaimRequest) {
    const known = types === undefined ? null : JSON.stringify(types)
    return looks.flatMap(({ queue, limit }) =>
      connection.all<ReadyJob>(LOCK_READY, queue, machines.readyStates, known, limit, now),
    )
  },
  takeJobs(
    at: At,
    jobs: readonly GrantedJob[],
    claim: string,
    request: ClaimRequest,
    gates: readonly Gate[],
  ): Held[] {
    const held = takeGranted(at, at.connection, at.now, jobs, claim, request)
    GATES.writeGates(at, gates)
    return held
  },
  blockJobs({ connection }: At, jobs: readonly BlockedJob[]) {
    for (const { ref, by } of jobs) connection.run(BLOCK, ref, by)
  },
  skim({ connection }: At, keys: readonly BlockedKeys[], looks: readonly Look[]) {
    for (const { queue, limit } of looks) {
      for (const { limitKey, by } of keys) connection.run(SKIM, queue, limit, limitKey, by)
    }
  },
}
