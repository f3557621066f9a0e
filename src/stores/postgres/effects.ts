/** What operators see of the outbox. */
import {
  EffectPage,
  type EffectRow,
  SCAN_CHUNK,
  type SeenEffect,
  toEffectInfo,
} from '../effects.ts'
import type { EffectFilter, EffectInfo, Page } from '../store.ts'
import { type Session, type Statement, statement } from './connect.ts'
import { isUuid } from './context.ts'
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
