/** What operators see of the outbox, and how they let an effect be tried again. */
import { PawlError } from '../../core/errors.ts'
import {
  askerFor,
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
import type { Connection } from './connect.ts'
import { readJob, type Shared } from './context.ts'

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

const RETRY = `
  UPDATE pawl_outbox SET state = 'pending', tries = 0, error = NULL, claim = NULL, run_at = ?1
  WHERE job = ?2 AND name = ?3 AND n = ?4 AND state <> 'delivered'
    AND (claim IS NULL OR run_at <= ?1) AND (state = 'parked' OR run_at > ?1 OR tries > 0)`

/** Makes effects due now, each with a fact of its own; answers which of them. */
export function retryEffects(
  shared: Shared,
  connection: Connection,
  now: number,
  keys: readonly string[],
  asker: Asker,
): boolean[] {
  return keys.map((text) => {
    const key = parseKey(text)
    const read = key && readJob(shared, connection, key.jobId)
    if (read instanceof JobDamaged) throw read
    if (key === undefined || read === undefined || read instanceof PawlError) return false
    if (connection.run(RETRY, now, read.rid, key.name, key.n) === 0) return false
    // A notice is no part of the job's life, which may be over.
    if (key.name === NOTICE) return true
    const told = answer(shared, connection, now, read, { kind: 'redrive' }, askerFor(key, asker))
    if (told.kind === 'rejected') throw told.error
    return true
  })
}
