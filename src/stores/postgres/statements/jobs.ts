/** Jobs by their ids, and what is written of them. */
import { LANES } from '../../../core/job/lanes.ts'
import type { Locked } from '../../verbs/operations.ts'
import {
  isKnown,
  type LockedRow,
  type Read,
  toDelivered,
  toLocked,
  toRead,
} from '../../verbs/reading.ts'
import { TX } from '../apply.ts'
import { statement } from '../connect.ts'
import { isUuid, LOCK } from '../context.ts'
import { findSteps, stepKey } from '../query.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'
import { refreshMachines } from './machines.ts'
import { findWaitingRetries } from './retries.ts'

async function lockBy(
  { session, machines }: At,
  ids: readonly string[],
  read: typeof toRead,
): Promise<Locked> {
  const found = await session.query<LockedRow>(LOCK, [arrayOf(ids.filter(isUuid))])
  const rows = found.map((row) => ({ row, ref: row.id }))
  // Another process may have registered a lifecycle meanwhile.
  const isNew = rows.some(({ row }) => !isKnown(machines, row))
  if (isNew) await refreshMachines(session, machines)
  return toLocked(machines, rows, read)
}

const SET_READY = statement(
  (s) =>
    `UPDATE ${s}.jobs SET lane = ${LANES.ready} WHERE id = ANY ($1::uuid[]) RETURNING ${TX} AS tx`,
)

const ASK_HOLDERS = statement(
  (s) => `
  UPDATE ${s}.jobs SET cancel_asked_at = coalesce(cancel_asked_at, $1)
  WHERE id = ANY ($2::uuid[]) AND lease_until IS NOT NULL RETURNING id`,
)

export const JOBS = {
  refreshMachines: ({ session, machines }: At) => refreshMachines(session, machines),
  lockJobs: (at: At, ids: readonly string[]) => lockBy(at, ids, toRead),
  async lockDelivered(at: At, ids: readonly string[]) {
    return (await lockBy(at, ids, toDelivered)).reads
  },
  waitingRetries: ({ session, now }: At) => findWaitingRetries(session, now),
  async makeReady({ session }: At, reads: readonly Read[]) {
    if (reads.length === 0) return
    const [changed] = await session.query<{ tx: number }>(SET_READY, [idsOf(reads)])
    if (changed !== undefined) session.wrote = { tx: changed.tx }
  },
  async finishedSteps({ session }: At, reads: readonly Read[], name: string, n: number) {
    const asked = reads.map(({ job }) => ({ id: job.id, name, n }))
    const keys = await findSteps(session, asked)
    return new Set(reads.map(({ job }) => job.id).filter((id) => keys.has(stepKey(id, name, n))))
  },
  async askHolders({ session, now }: At, reads: readonly Read[]) {
    const rows = await session.query<{ id: string }>(ASK_HOLDERS, [now, idsOf(reads)])
    return new Set(rows.map(({ id }) => id))
  },
}

/** The ids of jobs, as a parameter. */
export function idsOf(reads: readonly Read[]): string {
  return arrayOf(reads.map(({ job }) => job.id))
}
