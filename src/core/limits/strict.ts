/**
 * Strict groups: jobs of one type and key run one at a time, in the order in which they were
 * enqueued, whatever their priority and due time.
 *
 * A job holds its group from its creation until its work is committed or it has ended. A job that
 * is parked holds it as well, unless its key says that it is skipped. The first job that holds a
 * group, by the time of its creation, is the only one that may start. It may have to wait itself,
 * for its due time or for a retry: then the group waits with it.
 *
 * A job that has ended and is redriven holds its group again, at its old place. If another job of
 * the group runs at that time, the redriven job waits for its end: a group counts what runs.
 */
import type { Lane } from '../job/lanes.ts'
import { strictGroupOf } from './keys.ts'

/** Returns the strict groups that a job held before a change and does not hold after it. */
export function groupsLeft(before: string | null, after: string | null, lane: Lane): string[] {
  const group = strictGroupOf(before)
  if (group === undefined) return []
  const now = strictGroupOf(after)
  const holds = now?.gate === group.gate && holdsGroup(lane, now.skip === true)
  return holds ? [] : [group.gate]
}

/** Returns true if no later job of the group of a job may start. */
export function holdsGroup(lane: Lane, isSkipped: boolean): boolean {
  if (lane === 'ended' || lane === 'delivering') return false
  return lane !== 'parked' || !isSkipped
}
