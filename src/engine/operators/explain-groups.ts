/** Explains why the group of a job keeps it back: others come first, or it waits for its turn. */
import type { Job } from '../../core/job/job.ts'
import { isRotating, isStrict } from '../../core/limits/keys.ts'
import { moment } from '../../environment/times.ts'
import type { GateInfo } from '../../stores/contract/limits.ts'
import type { Store } from '../../stores/contract/store.ts'
import { counted } from './words.ts'

/** A job of a strict group that others precede. */
export interface BehindOthers {
  readonly head: Job
  readonly ahead: number
}

/** Reads what comes before a job in its strict group; `undefined` if nothing does. */
export async function aheadInGroup(store: Store, job: Job): Promise<BehindOthers | undefined> {
  const place = await store.limits.groupPlace(job.id)
  if (place === undefined || place.head === job.id || place.ahead === 0) return undefined
  const head = await store.get(place.head)
  return head && { head, ahead: place.ahead }
}

/** Says why a group keeps a job back; `undefined` if its gate is not a group, or has room. */
export function explainGroup(
  { gate, key = '' }: GateInfo,
  behind: BehindOthers | undefined,
  ahead: number | undefined,
  now: number,
): string | undefined {
  if (isStrict(gate) && behind !== undefined) {
    const others = counted(behind.ahead, 'job of its group comes', 'jobs of its group come')
    const { head } = behind
    return `It is blocked: ${others} first (${key}); the head ${head.id} ${whatOf(head, now)}.`
  }
  if (!isRotating(gate)) return undefined
  const group = key === '' ? 'the jobs without a group' : `its group ${key}`
  const before = ahead === undefined ? '' : `; ${counted(ahead, 'job', 'jobs')} of it are ahead`
  return `It waits for the turn of ${group}${before}.`
}

/** What the first job of a group waits for. */
function whatOf(head: Job, now: number): string {
  if (head.execution !== null && head.blockedReason === null) {
    return `runs on ${head.execution.worker}`
  }
  if (head.blockedReason !== null) return `is parked: ${head.blockedReason}`
  if (head.runAt === null) return 'was not submitted yet'
  if (head.runAt <= now) return 'is ready or blocked by a limit'
  const what = head.attempt > 0 ? 'its retry' : 'its time'
  return `waits for ${what} ${moment(head.runAt, now)}`
}
