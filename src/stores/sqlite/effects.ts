/** What operators see of the outbox. */
import {
  EffectPage,
  type EffectRow,
  SCAN_CHUNK,
  type SeenEffect,
  toEffectInfo,
} from '../effects.ts'
import type { EffectFilter, EffectInfo, Page } from '../store.ts'
import type { Connection } from './connect.ts'

const SEEN = 'SELECT eid, state, type FROM pawl_outbox'

const SELECT_WINDOW = `${SEEN} WHERE eid < ? ORDER BY eid DESC LIMIT ${SCAN_CHUNK}`

const SELECT_PARKED = `${SEEN} INDEXED BY pawl_outbox_parked
  WHERE state = 'parked' AND eid < ? ORDER BY eid DESC LIMIT ${SCAN_CHUNK}`

const SELECT_OF_JOB = `${SEEN} WHERE job = (SELECT rid FROM pawl_jobs WHERE id = ?)`

const SELECT_EFFECTS = `
  SELECT pawl_outbox.*, coalesce(pawl_jobs.id, 'missing') AS job_id
  FROM pawl_outbox LEFT JOIN pawl_jobs ON pawl_jobs.rid = pawl_outbox.job
  WHERE eid = ?`

/** Effects by keyset, newest first; stops at the time budget and says where to go on. */
export function listEffects(
  connection: Connection,
  filter: EffectFilter,
  options: { limit?: number; after?: string },
  expired: () => boolean,
): Page<EffectInfo> {
  const page = new EffectPage(filter, options)
  const rest =
    filter.jobId === undefined
      ? lookThrough(connection, filter.state === 'parked' ? SELECT_PARKED : SELECT_WINDOW)
      : page.lookAtAll(connection.all<SeenEffect>(SELECT_OF_JOB, filter.jobId))
  const rows = page.found.map((eid) => connection.get<EffectRow>(SELECT_EFFECTS, eid) as EffectRow)
  return { items: rows.map(toEffectInfo), ...rest }

  function lookThrough(db: Connection, window: string): Omit<Page<EffectInfo>, 'items'> {
    for (;;) {
      const rows = db.all<SeenEffect>(window, page.cursor)
      const rest = page.look(rows, rows.length < SCAN_CHUNK, expired())
      if (rest !== undefined) return rest
    }
  }
}
