/** Gives a command to jobs by their ids: what clients and operators do. */

import { PawlError, TransitionRace } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import { LANES } from '../../core/job/lanes.ts'
import { EffectsOpen } from '../errors.ts'
import { hasMoved } from '../expected.ts'
import type { Answer, Asker } from '../store.ts'
import { answer } from './answer.ts'
import type { Connection } from './connect.ts'
import { readJob, type Shared } from './context.ts'
import { hasOpenEffects, resetEffects } from './outbox.ts'
import { hasStep } from './query.ts'

/** Reads each job, decides and writes; one that is refused hinders no other. */
export function tell(
  shared: Shared,
  connection: Connection,
  now: number,
  ids: readonly string[],
  command: Command,
  asker: Asker,
  seqs?: readonly number[],
): Answer[] {
  return ids.map((id, i) => {
    const read = readJob(shared, connection, id)
    if (read instanceof PawlError) return { kind: 'rejected', error: read }
    if (hasMoved(read.job, seqs?.[i])) return { kind: 'rejected', error: new TransitionRace(id) }
    if (command.kind === 'done' && hasOpenEffects(connection, read.rid)) {
      return { kind: 'rejected', error: new EffectsOpen(id) }
    }
    const known = command.kind === 'step' && hasStep(connection, read.rid, command.name, command.n)
    const asked = known ? { ...command, known } : command
    const answered = answer(shared, connection, now, read, asked, asker)
    if (command.kind === 'redrive' && answered.kind === 'done') {
      resetEffects(connection, now, read.rid)
    }
    return answered
  })
}

const ASK_HOLDER = `
  UPDATE pawl_jobs SET cancel_asked_at = coalesce(cancel_asked_at, ?)
  WHERE rid = ? AND lane = ${LANES.held}`

/** Asks the holder of a running job to cancel it; a job that nobody holds is cancelled at once. */
export function cancel(
  shared: Shared,
  connection: Connection,
  now: number,
  ids: readonly string[],
  asker: Asker,
  seqs?: readonly number[],
): Answer[] {
  return ids.map((id, i) => {
    const read = readJob(shared, connection, id)
    if (read instanceof PawlError) return { kind: 'rejected', error: read }
    if (hasMoved(read.job, seqs?.[i])) return { kind: 'rejected', error: new TransitionRace(id) }
    if (connection.run(ASK_HOLDER, now, read.rid) > 0) return { kind: 'asked', job: read.job }
    return answer(shared, connection, now, read, { kind: 'cancel' }, asker)
  })
}
