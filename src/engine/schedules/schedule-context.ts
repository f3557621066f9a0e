/** What a handler learns about the schedule that made its job. */
import type { Job } from '../../core/job/job.ts'
import { parseScheduleKey } from '../../core/schedule/keys.ts'
import type { Store } from '../../stores/contract/store.ts'

/** The schedule that made a job. */
export interface ScheduleContext {
  readonly name: string
  /** The time for which the job was made; when an operator asked for it, if that is the cause. */
  readonly tick: Date
  /** The tick before it, if the schedule had one. */
  readonly previous: Date | undefined
  /** Whether the job was made more than a minute after its tick. */
  readonly late: boolean
}

/** Returns `undefined` if no schedule made the job. Reads the store only if one did. */
export async function scheduleOf(
  { key, createdAt }: Job,
  store: Pick<Store, 'schedules'>,
): Promise<ScheduleContext | undefined> {
  const scheduled = parseScheduleKey(key)
  if (scheduled === undefined) return undefined
  const { name, tick } = scheduled
  if (tick === undefined) {
    return { name, tick: new Date(createdAt), previous: undefined, late: false }
  }
  const record = await store.schedules.recordOf(name, tick)
  const previous = record?.previous === undefined ? undefined : new Date(record.previous)
  const late = record?.action === 'late' || record?.action === 'backfilled'
  return { name, tick: new Date(tick), previous, late }
}
