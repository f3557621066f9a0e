/** Answers for a new job whose key belongs to another job. */
import { TransitionRace } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import type { Accepted } from '../accept.ts'
import type { RemovedJob } from '../contract/retention.ts'
import type { Enqueued } from '../contract/store.ts'
import { JobDamaged, JobRemoved, KeyTaken } from '../errors.ts'
import { Changes } from './changes.ts'
import type { Moment } from './operations.ts'
import type { Read } from './reading.ts'

/** The job that has the key, as far as this process can read it. */
export interface KeyHolder {
  readonly id: string
  readonly read: Read | JobDamaged | undefined
}

/** Returns the holder of the key, replaces its input, or refuses the new job. */
export function answerConflict(
  moment: Moment,
  changes: Changes,
  { offer, job }: Accepted,
  { id, read }: KeyHolder,
): Enqueued {
  const { onConflict, input } = offer.item
  if (read instanceof JobDamaged) return { kind: 'rejected', error: read }
  if (onConflict === 'reject' || read === undefined) {
    return { kind: 'rejected', error: new KeyTaken(job.type, job.key ?? '', id) }
  }
  if (onConflict !== 'replace') return { kind: 'existing', job: read.job }
  const commands = replacement(offer.item)
  // All commands or none: if a later one is refused, the first one must not be applied.
  const trial = { ...read }
  const tried = new Changes(moment)
  for (const command of commands) {
    const answer = tried.answer(trial, command, offer.requester)
    if (answer.kind === 'rejected') return answer
  }
  for (const command of commands) {
    const payload = command.kind === 'replace' ? input : null
    const answer = changes.answer(read, command, offer.requester, payload)
    if (answer.kind === 'rejected') throw new TransitionRace(read.job.id)
  }
  return { kind: 'replaced', job: read.job }
}

/**
 * Answers for a new job whose key belongs to a job that retention removed: as for a job that has
 * ended, except that there is no job to return.
 */
export function answerRemoved({ offer }: Accepted, removed: RemovedJob): Enqueued {
  const { id, type, key } = removed
  switch (offer.item.onConflict) {
    case 'reject':
      return { kind: 'rejected', error: new KeyTaken(type, key, id) }
    case 'replace':
      return { kind: 'rejected', error: new JobRemoved(removed) }
    default:
      return { kind: 'removed', removed }
  }
}

/**
 * The commands that replace the input of a job, and its time and priority if the new job has them.
 */
function replacement({ command }: Accepted['offer']['item']): Command[] {
  const { runAt, priority = 0, aheadMs = 0, limitKeys = [] } = command
  const isPrioritised = command.priority !== undefined || aheadMs > 0
  return [
    { kind: 'replace', limitKeys },
    ...(runAt === undefined ? [] : [{ kind: 'reschedule', runAt } as const]),
    ...(isPrioritised ? [{ kind: 'prioritise', priority, aheadMs } as const] : []),
  ]
}
