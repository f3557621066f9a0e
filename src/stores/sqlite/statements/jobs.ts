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
import { hasStep } from '../query.ts'
import type { At } from './at.ts'
import { refreshMachines } from './machines.ts'
import { findWaitingRetries } from './retries.ts'

const SELECT_JOB = 'SELECT * FROM pawl_jobs WHERE id = ?'

/** Reads jobs; the write lock of the transaction already protects them. */
function lockBy(at: At, ids: readonly string[], read: typeof toRead): Locked {
  const { connection, machines } = at
  const rows = [...new Set(ids)].flatMap((id) => {
    const row = connection.get<LockedRow & { readonly rid: number }>(SELECT_JOB, id)
    return row === undefined ? [] : { row, ref: row.rid }
  })
  // Another process may have registered a lifecycle meanwhile.
  const isNew = rows.some(({ row }) => !isKnown(machines, row))
  if (isNew) refreshMachines(connection, machines)
  return toLocked(machines, rows, read)
}

const SET_READY = `
  UPDATE pawl_jobs SET lane = ${LANES.ready} WHERE rid = ? AND lane = ${LANES.waiting}`

const ASK_HOLDER = `
  UPDATE pawl_jobs SET cancel_asked_at = coalesce(cancel_asked_at, ?)
  WHERE rid = ? AND lane = ${LANES.held}`

export const JOBS = {
  refreshMachines: ({ connection, machines }: At) => refreshMachines(connection, machines),
  lockJobs: (at: At, ids: readonly string[]) => lockBy(at, ids, toRead),
  lockDelivered: (at: At, ids: readonly string[]) => lockBy(at, ids, toDelivered).reads,
  waitingRetries: ({ connection, now }: At) => findWaitingRetries(connection, now),
  makeReady({ connection }: At, reads: readonly Read[]) {
    for (const { ref } of reads) connection.run(SET_READY, ref)
  },
  finishedSteps({ connection }: At, reads: readonly Read[], name: string, n: number) {
    const finished = reads.filter(({ ref }) => hasStep(connection, ref as number, name, n))
    return new Set(finished.map(({ job }) => job.id))
  },
  askHolders({ connection, now }: At, reads: readonly Read[]) {
    const asked = reads.filter(({ ref }) => connection.run(ASK_HOLDER, now, ref) > 0)
    return new Set(asked.map(({ job }) => job.id))
  },
}
