/**
 * Compares what the row of a job says about limits with the keys of the job. These columns are not
 * in the facts: they follow from the keys, from the limit of the queue and from the lane.
 */
import type { Job } from '../core/job/job.ts'
import { gateName, isRate, isRotating, readKeys } from '../core/limits/keys.ts'
import { slotsIn } from '../stores/gate-rows.ts'
import type { ExaminedJob } from './examined-job.ts'

/** Returns what is wrong; the lane must be right. */
export function limitFaults({ stored, lane }: ExaminedJob, folded: Job): string[] {
  if (stored.row === null) return []
  const { slots, blocked_on: gate } = stored.row
  const queueGate = gateName('queue', folded.queue)
  const gates = readKeys(folded.limitKey).map((key) => key.gate)
  if (lane === 'blocked') {
    if (gate === null) return ['it is blocked, and its row names no limit that blocks it']
    // Jobs without a group wait together if the groups of their queue take turns.
    return [...gates, queueGate, gateName('group', folded.queue)].includes(gate)
      ? []
      : [`it is blocked by ${gate}, which is no limit of its own`]
  }
  if (lane !== 'held') return slots === null ? [] : ['it counts in limits and is not held']
  // The limit of a queue may have been removed or declared since the claim.
  const counted = slotsIn(slots).filter((one) => one !== queueGate)
  const wanted = gates.filter((one) => !isRate(one) && !isRotating(one))
  const isSame = counted.length === wanted.length && wanted.every((one) => counted.includes(one))
  return isSame ? [] : [`it counts in other limits than its own: ${slots ?? 'none'}`]
}
