/** In what the row of a job differs from what its facts say of it. */
import { encode } from '../core/canonical-json.ts'
import type { Job } from '../core/job/job.ts'
import { laneOf } from '../core/job/lanes.ts'
import { DELAY_MAX_MS } from '../core/retry.ts'
import type { Patient } from './patient.ts'

/** No lease was ever given for longer. */
export const LEASE_MAX_MS = DELAY_MAX_MS

/** What is wrong with the row; to be asked only where nothing speaks against the facts. */
export function rowFaults(patient: Patient, now: number): string[] {
  const { dossier, job, rowFault, folded } = patient
  if (folded === null) return []
  if (dossier.row === null) return ['there is no row of it']
  if (job === null) return [`the row cannot be read: ${rowFault}`]
  const fields = differencesOf(job, folded)
  return [
    ...(fields.length === 0 ? [] : [`row and facts differ in ${fields.join(', ')}`]),
    ...laneFaults(patient, folded, now),
  ]
}

/** The fields in which two jobs differ; when a lease ends is written without a fact. */
export function differencesOf(one: Job, other: Job): (keyof Job)[] {
  return (Object.keys(one) as (keyof Job)[]).filter((field) => {
    const [a, b] = [one[field], other[field]]
    if (a === b) return false
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return true
    return encode(settled(a)) !== encode(settled(b))
  })
}

function settled(value: object): object {
  return 'leaseUntil' in value ? { ...value, leaseUntil: 0 } : value
}

/** What the scheduler sees must be what the job is, or it is never claimed, or claimed too often. */
function laneFaults({ lifecycle, lane, dossier }: Patient, folded: Job, now: number): string[] {
  if (lifecycle === undefined || dossier.row === null) return []
  const { lease_until: leaseUntil } = dossier.row
  // Time passes without a write: a job that came due may still be where it waited.
  const allowed = [folded.updatedAt, now].map((time) => laneOf(lifecycle, folded, time))
  if (lane === undefined || !allowed.includes(lane)) {
    return [`it is in lane ${lane ?? dossier.row.lane} instead of ${allowed[1]}`]
  }
  if ((lane === 'held') !== (leaseUntil !== null)) {
    return [lane === 'held' ? 'it is held without a lease' : 'it has a lease and is not held']
  }
  return leaseUntil !== null && leaseUntil > now + LEASE_MAX_MS
    ? ['its lease lasts beyond all measure']
    : []
}
