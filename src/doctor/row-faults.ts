/** In what the row of a job differs from what its facts say of it. */
import { encode } from '../core/canonical-json.ts'
import { isEndless } from '../core/job/fence.ts'
import type { Job } from '../core/job/job.ts'
import { LANES, laneOf } from '../core/job/lanes.ts'
import { columnsOf, JSON_COLUMNS } from '../stores/columns.ts'
import type { RawJob } from '../stores/examination.ts'
import type { Patient } from './patient.ts'

/** What is wrong with the row; to be asked only where nothing speaks against the facts. */
export function rowFaults(patient: Patient, now: number): string[] {
  const { dossier, job, rowFault, folded } = patient
  if (folded === null) return []
  if (dossier.row === null) return ['there is no row of it']
  if (job === null) return [`the row cannot be read: ${rowFault}`]
  const isOther = ({ lifecycle, lifecycleVersion }: Job) =>
    lifecycle !== folded.lifecycle || lifecycleVersion !== folded.lifecycleVersion
  const columns = [...strayColumns(dossier.row, folded), ...(isOther(job) ? ['machine'] : [])]
  return [
    ...(columns.length === 0 ? [] : [`row and facts differ in ${columns.join(', ')}`]),
    ...laneFaults(patient, folded, now),
  ]
}

/** What no fact says, or what is judged with the lane. */
const OTHERWISE = ['lane', 'lease_until', 'machine']

/** The columns that are not what the facts say. */
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

/** What the scheduler sees must be what the job is, or it is claimed never, or too often. */
function laneFaults({ lifecycle, lane, dossier }: Patient, folded: Job, now: number): string[] {
  if (lifecycle === undefined || dossier.row === null) return []
  const { lease_until: leaseUntil } = dossier.row
  // Time passes without a write: a job that came due may still be where it waited. And clocks can
  // be set back: what was made ready before its time is not claimed before it.
  const times = [folded.updatedAt, now, Math.max(now, folded.runAt ?? now)]
  const allowed = times.map((time) => laneOf(lifecycle, folded, time))
  if (lane === undefined || !allowed.includes(lane)) {
    return [`it is in lane ${lane ?? dossier.row.lane} instead of ${allowed[1]}`]
  }
  if ((lane === 'held') !== (leaseUntil !== null)) {
    return [lane === 'held' ? 'it is held without a lease' : 'it has a lease and is not held']
  }
  return leaseUntil !== null && isEndless(leaseUntil, now)
    ? ['its lease lasts longer than any lease can']
    : []
}
