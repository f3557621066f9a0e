/** Gives a command to jobs by their ids: what clients and operators do. */
import { JobNotFound, TransitionRace } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import { EffectsOpen } from '../errors.ts'
import { hasMoved } from '../expected.ts'
import type { Answer, Asker } from '../store.ts'
import { answer } from './answer.ts'
import { Changes } from './apply.ts'
import { type Session, statement } from './connect.ts'
import { lockAll, type Read, type Shared } from './context.ts'
import { findOpenEffects, resetEffects } from './outbox.ts'
import { findSteps, stepKey } from './query.ts'
import { arrayOf } from './rows-at-once.ts'

/** Locks the jobs, decides and writes; one that is refused hinders no other. */
export async function tell(
  shared: Shared,
  session: Session,
  now: number,
  ids: readonly string[],
  command: Command,
  asker: Asker,
  seqs?: readonly number[],
): Promise<Answer[]> {
  const { reads, unknown } = await lockAll(shared, session, ids)
  const found = [...reads.keys()]
  const open = command.kind === 'done' ? await findOpenEffects(session, found) : new Set<string>()
  const steps = command.kind === 'step' ? found.map((id) => ({ ...command, id })) : []
  const known = await findSteps(session, steps)
  const changes = new Changes()
  const redriven: string[] = []
  const answers = ids.map((id, i): Answer => {
    const read = reads.get(id)
    if (read === undefined) {
      return { kind: 'rejected', error: unknown.get(id) ?? new JobNotFound(id) }
    }
    if (hasMoved(read.job, seqs?.[i])) return { kind: 'rejected', error: new TransitionRace(id) }
    if (open.has(id)) return { kind: 'rejected', error: new EffectsOpen(id) }
    const step = command.kind === 'step' ? stepKey(id, command.name, command.n) : undefined
    const isKnown = step !== undefined && known.has(step)
    const asked = isKnown ? { ...command, known: true as const } : command
    const answered = answer(shared, changes, now, read, asked as Command, asker)
    if (step !== undefined && answered.kind === 'done') known.add(step)
    if (command.kind === 'redrive' && answered.kind === 'done') redriven.push(id)
    return answered
  })
  await resetEffects(session, now, redriven)
  await changes.write(session)
  return answers
}

const ASK_HOLDERS = statement(
  (s) => `
  UPDATE ${s}.jobs SET cancel_asked_at = coalesce(cancel_asked_at, $1)
  WHERE id = ANY ($2::uuid[]) AND lease_until IS NOT NULL RETURNING id`,
)

/** Asks the holder of a running job to cancel it; a job that nobody holds is cancelled at once. */
export async function cancel(
  shared: Shared,
  session: Session,
  now: number,
  ids: readonly string[],
  asker: Asker,
  seqs?: readonly number[],
): Promise<Answer[]> {
  const { reads, unknown } = await lockAll(shared, session, ids)
  const isMoved = (read: Read, i: number) => hasMoved(read.job, seqs?.[i])
  const found = arrayOf(
    ids.filter((id, i) => {
      const read = reads.get(id)
      return read !== undefined && !isMoved(read, i)
    }),
  )
  const rows = await session.query<{ id: string }>(ASK_HOLDERS, [now, found])
  const asked = new Set(rows.map(({ id }) => id))
  const changes = new Changes()
  const answers = ids.map((id, i): Answer => {
    const read = reads.get(id)
    if (read === undefined) {
      return { kind: 'rejected', error: unknown.get(id) ?? new JobNotFound(id) }
    }
    if (isMoved(read, i)) return { kind: 'rejected', error: new TransitionRace(id) }
    if (asked.has(id)) return { kind: 'asked', job: read.job }
    return answer(shared, changes, now, read, { kind: 'cancel' }, asker)
  })
  await changes.write(session)
  return answers
}
