/** What operators see of the outbox, and how they let an effect be tried again. */
import {
  askerFor,
  type EffectKey,
  EffectPage,
  type EffectRow,
  parseKey,
  SCAN_CHUNK,
  type SeenEffect,
  toEffectInfo,
} from '../effects.ts'
import { JobDamaged } from '../errors.ts'
import { NOTICE } from '../notices.ts'
import type { Asker, EffectFilter, EffectInfo, Page } from '../store.ts'
import { answer } from './answer.ts'
import { Changes } from './apply.ts'
import { type Session, type Statement, statement } from './connect.ts'
import { isStorable, isUuid, lockAll, type Shared } from './context.ts'
import { arrayOf } from './rows-at-once.ts'

const windowOf = (where: string) =>
  statement(
    (s) => `
  SELECT eid, state, type FROM ${s}.outbox WHERE ${where} eid < $1
  ORDER BY eid DESC LIMIT ${SCAN_CHUNK}`,
  )

const SELECT_WINDOW = windowOf('')
const SELECT_PARKED = windowOf("state = 'parked' AND")

const SELECT_OF_JOB = statement((s) => `SELECT eid, state, type FROM ${s}.outbox WHERE job = $1`)

const SELECT_EFFECTS = statement(
  (s) => `
  SELECT *, job AS job_id FROM ${s}.outbox WHERE eid = ANY ($1::bigint[]) ORDER BY eid DESC`,
)

/** Effects by keyset, newest first; stops at the time budget and says where to go on. */
export async function listEffects(
  session: Session,
  filter: EffectFilter,
  options: { limit?: number; after?: string },
  expired: () => boolean,
): Promise<Page<EffectInfo>> {
  const { jobId, state } = filter
  if (jobId !== undefined && !isUuid(jobId)) return { items: [] }
  const page = new EffectPage(filter, options)
  const rest =
    jobId === undefined
      ? await lookThrough(state === 'parked' ? SELECT_PARKED : SELECT_WINDOW)
      : page.lookAtAll(await session.query<SeenEffect>(SELECT_OF_JOB, [jobId]))
  const rows = await session.query<EffectRow>(SELECT_EFFECTS, [arrayOf(page.found)])
  return { items: rows.map(toEffectInfo), ...rest }

  async function lookThrough(window: Statement): Promise<Omit<Page<EffectInfo>, 'items'>> {
    for (;;) {
      const rows = await session.query<SeenEffect>(window, [page.cursor])
      const rest = page.look(rows, rows.length < SCAN_CHUNK, expired())
      if (rest !== undefined) return rest
    }
  }
}

const RETRY = statement(
  (s) => `
  UPDATE ${s}.outbox SET state = 'pending', tries = 0, error = NULL, claim = NULL, run_at = $1
  FROM unnest($2::uuid[], $3::text[], $4::int[]) AS asked (job, name, n)
  WHERE outbox.job = asked.job AND outbox.job = ANY ($2::uuid[])
    AND outbox.name = asked.name AND outbox.n = asked.n AND outbox.state <> 'delivered'
    AND (outbox.claim IS NULL OR outbox.run_at <= $1)
    AND (outbox.state = 'parked' OR outbox.run_at > $1 OR outbox.tries > 0)
  RETURNING outbox.job, outbox.name, outbox.n`,
)

/** Makes effects due now, each with a fact of its own; answers which of them. */
export async function retryEffects(
  shared: Shared,
  session: Session,
  now: number,
  texts: readonly string[],
  asker: Asker,
): Promise<boolean[]> {
  const keys = texts.map(parseKey)
  const sound = keys.filter((key) => key !== undefined && isStorable(key.name)) as EffectKey[]
  const { reads, unknown } = await lockAll(
    shared,
    session,
    sound.map(({ jobId }) => jobId),
  )
  for (const error of unknown.values()) if (error instanceof JobDamaged) throw error
  const known = sound.filter(({ jobId }) => reads.has(jobId))
  const rows = await session.query<{ job: string; name: string; n: number }>(RETRY, [
    now,
    arrayOf(known.map(({ jobId }) => jobId)),
    arrayOf(known.map(({ name }) => name)),
    arrayOf(known.map(({ n }) => n)),
  ])
  const open = new Set(rows.map(({ job, name, n }) => `${job}/${n}/${name}`))
  const changes = new Changes()
  const answers = keys.map((key) => {
    const read = key && reads.get(key.jobId)
    if (key === undefined || read === undefined) return false
    // Of one that is asked for twice the first counts.
    if (!open.delete(`${key.jobId}/${key.n}/${key.name}`)) return false
    // A notice is no part of the job's life, which may be over.
    if (key.name === NOTICE) return true
    const told = answer(shared, changes, now, read, { kind: 'redrive' }, askerFor(key, asker))
    if (told.kind === 'rejected') throw told.error
    return true
  })
  await changes.write(session)
  return answers
}
