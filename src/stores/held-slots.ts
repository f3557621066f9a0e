/** Which gates a held job counts in, as its row should name them. */
import type { Job } from '../core/job/job.ts'
import { gateName, isRate, readKeys } from '../core/limits/keys.ts'
import { slotsIn } from './gate-rows.ts'

/**
 * Returns the slots of a held job whose row may be damaged. Its keys say them, except that of its
 * queue, which is kept if the row has it.
 */
export function slotsOf({ limitKey, queue }: Job, found: string | null): string | null {
  const queueGate = gateName('queue', queue)
  const own = readKeys(limitKey).flatMap(({ gate }) => (isRate(gate) ? [] : gate))
  const slots = slotsIn(found).includes(queueGate) ? [queueGate, ...own] : own
  return slots.length === 0 ? null : slots.join(' ')
}
