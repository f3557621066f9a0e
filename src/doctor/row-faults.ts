/** Compares the row of a job with the fold of its facts. */
import { encode } from '../core/canonical-json.ts'
import { isEndless } from '../core/job/fence.ts'
import type { Job } from '../core/job/job.ts'
import { LANES, laneOf } from '../core/job/lanes.ts'
import { columnsOf, JSON_COLUMNS } from '../stores/columns.ts'
import type { RawJob } from '../stores/contract/examination.ts'
import type { ExaminedJob } from './examined-job.ts'
import { limitFaults } from './limit-faults.ts'

/** Returns what is wrong with the row. The facts must be free of doubts. */
export function rowFaults(examined: ExaminedJob, now: number): string[] {
  const { stored, job, rowFault, folded } = examined
  if (folded === null) return []
  if (stored.row === null) return ['its row is missing']
  if (job === null) return [`the row cannot be read: ${rowFault}`]
  const isOther = ({ lifecycle, lifecycleVersion }: Job) =>
    lifecycle !== folded.lifecycle || lifecycleVersion !== folded.lifecycleVersion
  const columns = [...strayColumns(stored.row, folded), ...(isOther(job) ? ['machine'] : [])]
  return [
    ...(columns.length === 0 ? [] : [`row and facts differ in ${columns.join(', ')}`]),
    ...laneFaults(examined, folded, now),
  ]
}

/** Columns that are not part of the fold, or that `laneFaults` compares. */
const OTHERWISE = ['lane', 'lease_until', 'machine']

/** Returns the columns that differ from the fold. */
function strayColumns(row: RawJob, folded: Job): string[] {
  const { machine } = row
  const wanted = columnsOf({ job: folded, machine, lane: LANES.ended, leaseUntil: null })
  return Object.entries(wanted)
    .filter(([column, value]) => {
      const own = row[column as keyof RawJob]
      if (own === value || OTHERWISE.includes(column)) return false
      if (!JSON_COLUMNS.has(column) || own === null || value === null) return true
      return encode(JSON.parse(String(own))) !== encode(JSON.parse(String(value)))
    })
    .map(([column]) => column)
}

/** A job in the wrong lane is never claimed, or is claimed too often. */
function laneFaults(examined: ExaminedJob, folded: Job, now: number): string[] {
  const { lifecycle, lane, stored } = examined
  if (lifecycle === undefined || stored.row === null) return []
  const { lease_until: leaseUntil } = stored.row
  // A job that has become due may still be in the lane waiting: no write has moved it yet. A clock
  // that was set back may leave a job ready before its due time.
  const times = [folded.updatedAt, now, Math.max(now, folded.runAt ?? now)]
  const allowed = times.map((time) => laneOf(lifecycle, folded, time))
  // A limit blocks jobs that are ready otherwise.
  if (lane === undefined || !allowed.includes(lane === 'blocked' ? 'ready' : lane)) {
    return [`it is in lane ${lane ?? stored.row.lane} instead of ${allowed[1]}`]
  }
  if ((lane === 'held') !== (leaseUntil !== null)) {
    return [lane === 'held' ? 'it is held without a lease' : 'it has a lease and is not held']
  }
  if (leaseUntil !== null && isEndless(leaseUntil, now)) {
    return ['its lease lasts longer than a lease can']
  }
  return limitFaults(examined, folded)
}
