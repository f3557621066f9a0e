/**
 * Makes jobs ready whose time has come. A job with a state of its own for waiting takes its `due`
 * edge; one that waits in its ready state only changes its lane (rule G2). What another process is
 * promoting is left to it.
 */
import { LANES } from '../../core/job/lanes.ts'
import { ENGINE } from '../asker.ts'
import type { Promoted } from '../store.ts'
import { answer } from './answer.ts'
import { Changes, TX } from './apply.ts'
import { type Session, statement } from './connect.ts'
import { type LockedRow, type Read, type Shared, toSound } from './context.ts'
import { arrayOf } from './rows-at-once.ts'

/** A lifecycle that this process does not know is left to one that does. */
const LOCK_DUE = statement(
  (s) => `
  SELECT * FROM ${s}.jobs
  WHERE lane = ${LANES.waiting} AND run_at <= $1 AND machine = ANY ($2::int[])
  ORDER BY run_at, id LIMIT $3 FOR UPDATE SKIP LOCKED`,
)

const FLIP_LANE = statement(
  (s) =>
    `UPDATE ${s}.jobs SET lane = ${LANES.ready} WHERE id = ANY ($1::uuid[]) RETURNING ${TX} AS tx`,
)

/** Promotes up to `limit` jobs; returns an answer for each that became ready. */
export async function promote(
  shared: Shared,
  session: Session,
  now: number,
  limit: number,
): Promise<Promoted[]> {
  const rows = await session.query<LockedRow>(LOCK_DUE, [now, shared.machines.known, limit])
  const changes = new Changes()
  const answers = rows.map((row) => {
    const read = toSound(shared, row) as Read
    return answer(shared, changes, now, read, { kind: 'due' }, ENGINE)
  })
  const waiting = rows.filter((_, i) => answers[i]?.kind === 'same').map(({ id }) => id)
  if (waiting.length > 0) {
    const [flipped] = await session.query<{ tx: number }>(FLIP_LANE, [arrayOf(waiting)])
    if (flipped !== undefined) session.wrote = { tx: flipped.tx }
  }
  await changes.write(session)
  return answers.filter((one): one is Promoted => one.kind !== 'rejected')
}
