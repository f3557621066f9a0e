/** What becomes of a new job whose key belongs to another one. */
import { TransitionRace } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import type { Accepted } from '../accept.ts'
import { JobDamaged, KeyTaken } from '../errors.ts'
import type { Enqueued } from '../store.ts'
import { Changes } from './changes.ts'
import type { Moment } from './operations.ts'
import type { Read } from './reading.ts'

/** The job that has the key, as far as this process can read it. */
export interface KeyHolder {
  readonly id: string
  readonly read: Read | JobDamaged | undefined
}

/** The holder of the key is the answer, or gets the new input, or is the reason for the refusal. */
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
  // All of it or nothing: a later command that is refused must not leave the first one done.
  const trial = { ...read }
  const tried = new Changes(moment)
  for (const command of commands) {
    const answer = tried.answer(trial, command, offer.asker)
    if (answer.kind === 'rejected') return answer
  }
  for (const command of commands) {
    const payload = command.kind === 'replace' ? input : null
    const answer = changes.answer(read, command, offer.asker, payload)
    if (answer.kind === 'rejected') throw new TransitionRace(read.job.id)
  }
  return { kind: 'replaced', job: read.job }
}

/** The commands that give a job the input of another one, and what else that one asks for. */
function replacement({ command: { runAt, priority } }: Accepted['offer']['item']): Command[] {
  return [
    { kind: 'replace' },
    ...(runAt === undefined ? [] : [{ kind: 'reschedule', runAt } as const]),
    ...(priority === undefined ? [] : [{ kind: 'prioritise', priority } as const]),
  ]
}
