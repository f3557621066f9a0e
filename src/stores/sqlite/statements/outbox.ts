/** Effects that are claimed, listed and declared. */

import type { EffectClaim } from '../../contract/store.ts'
import { COUNT_MAX } from '../../damage.ts'
import { type EffectRow, markOf, numbered, SCAN_CHUNK, type SeenEffect } from '../../effects.ts'
import { NOTICE } from '../../notices.ts'
import type { Read } from '../../verbs/reading.ts'
import type { Connection } from '../connect.ts'
import type { At } from './at.ts'

const SELECT_DUE = `
  SELECT eid, run_at FROM pawl_outbox
  WHERE state = 'pending' AND type = ? AND run_at <= ? ORDER BY run_at, eid LIMIT ?`

/** Types with something pending, found by skipping through the index from one to the next. */
const SELECT_TYPES = `
  WITH RECURSIVE pending (type) AS (
    SELECT (SELECT type FROM pawl_outbox WHERE state = 'pending' ORDER BY type LIMIT 1)
    UNION ALL
    SELECT (SELECT type FROM pawl_outbox WHERE state = 'pending' AND type > pending.type
      ORDER BY type LIMIT 1)
    FROM pending WHERE pending.type IS NOT NULL
  ) SELECT type FROM pending WHERE type IS NOT NULL`

/** Types with effects that wait. */
export function pendingTypes(connection: Connection): string[] {
  return connection.all<{ type: string }>(SELECT_TYPES).map(({ type }) => type)
}

/** The effects that are longest due, as a JSON list; `undefined` if there are none. */
export function findDueEffects(
  connection: Connection,
  now: number,
  { types, limit }: EffectClaim,
): string | undefined {
  const wanted = types ?? pendingTypes(connection)
  const due = [...new Set(wanted)].flatMap((type) =>
    connection.all<Pick<EffectRow, 'eid' | 'run_at'>>(SELECT_DUE, type, now, limit),
  )
  if (due.length === 0) return undefined
  due.sort((a, b) => a.run_at - b.run_at || a.eid - b.eid)
  return JSON.stringify(due.slice(0, limit).map(({ eid }) => eid))
}

const TAKE = `
  UPDATE pawl_outbox SET claim = ?1, run_at = ?2, tries = min(tries, ${COUNT_MAX}) + 1
  WHERE eid IN (SELECT value FROM json_each(?3))
  RETURNING *, (
    SELECT id FROM pawl_jobs WHERE rid = pawl_outbox.job
      AND pawl_outbox.type IN (type, '${NOTICE}')) AS job_id`

const PARK_STRAY = `
  UPDATE pawl_outbox SET state = 'parked', claim = NULL, run_at = ?, error = ? WHERE eid = ?`

const INSERT_EFFECT = `
  INSERT INTO pawl_outbox (job, type, name, n, payload, run_at, mark)
  VALUES (?, ?, ?, ?, ?, ?, ?)`

/** Declares effects of a commit; the same name again gets the next number. */
export function insertEffects(
  connection: Connection,
  now: number,
  { ref, job: { id, type } }: Pick<Read, 'ref' | 'job'>,
  effects: readonly { readonly name: string; readonly payload: string }[],
): void {
  for (const { name, n, payload } of numbered(effects)) {
    const mark = markOf({ job_id: id, type, name, n, payload })
    connection.run(INSERT_EFFECT, ref, type, name, n, payload, now, mark)
  }
}

const SEEN = 'SELECT eid, state, type FROM pawl_outbox'
const SELECT_WINDOW = `${SEEN} WHERE eid < ? ORDER BY eid DESC LIMIT ${SCAN_CHUNK}`
const SELECT_PARKED = `${SEEN} INDEXED BY pawl_outbox_parked
  WHERE state = 'parked' AND eid < ? ORDER BY eid DESC LIMIT ${SCAN_CHUNK}`
const SELECT_OF_JOB = `${SEEN} WHERE job = (SELECT rid FROM pawl_jobs WHERE id = ?)`

const SELECT_EFFECTS = `
  SELECT pawl_outbox.*, coalesce(pawl_jobs.id, 'missing') AS job_id
  FROM pawl_outbox LEFT JOIN pawl_jobs ON pawl_jobs.rid = pawl_outbox.job
  WHERE eid = ?`

export const OUTBOX = {
  takeEffects({ connection, now }: At, claim: string, request: EffectClaim) {
    const due = findDueEffects(connection, now, request)
    if (due === undefined) return []
    const rows = connection.all<EffectRow>(TAKE, claim, now + request.leaseMs, due)
    // SQLite does not define the order of RETURNING.
    return rows.sort((a, b) => a.eid - b.eid)
  },
  parkStrays(
    { connection, now }: At,
    _claim: string,
    strays: readonly { readonly eid: number; readonly why: string }[],
  ) {
    for (const { eid, why } of strays) connection.run(PARK_STRAY, now, why, eid)
  },
  effectsBelow: ({ connection }: At, cursor: number, parkedOnly: boolean) =>
    connection.all<SeenEffect>(parkedOnly ? SELECT_PARKED : SELECT_WINDOW, cursor),
  effectsOfJob: ({ connection }: At, jobId: string) =>
    connection.all<SeenEffect>(SELECT_OF_JOB, jobId),
  effectsByNumber: ({ connection }: At, eids: readonly number[]) =>
    eids.map((eid) => connection.get<EffectRow>(SELECT_EFFECTS, eid) as EffectRow),
}
