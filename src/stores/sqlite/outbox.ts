/**
 * The outbox: effects that a commit declared, delivered after it. Each has its own lease, tries and
 * parked state, and a stable key (job id / name / n) by which its receiver can tell a repetition.
 * When the last effect of a job is delivered, the job is done in the same transaction.
 *
 * Taking an effect moves its due time to the end of the lease, so that whoever looks for due ones
 * never meets those that others deliver. An effect is held while it has a claim and is not due.
 */
import { COUNT_MAX } from '../damage.ts'
import { type EffectRow, markOf, strayWhy, toHeldEffect } from '../effects.ts'
import { NOTICE } from '../notices.ts'
import type { EffectClaim, HeldEffect } from '../store.ts'
import type { Read } from '../verbs/reading.ts'
import type { Connection } from './connect.ts'
import type { Shared } from './context.ts'

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

/** The effects that are longest due, of those that may be taken; as a JSON list, or nothing. */
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

/** Takes effects that are due and that nobody is delivering. */
export function claimEffects(
  { environment }: Shared,
  connection: Connection,
  now: number,
  request: EffectClaim,
): HeldEffect[] {
  const due = findDueEffects(connection, now, request)
  if (due === undefined) return []
  const claim = environment.ids.next()
  const rows = connection.all<EffectRow>(TAKE, claim, now + request.leaseMs, due)
  // The order of RETURNING is not defined.
  rows.sort((a, b) => a.eid - b.eid)
  return rows.flatMap((row) => {
    // The key by which its receiver knows it may be another one.
    const why = strayWhy(row)
    if (why === undefined) return [toHeldEffect(claim, row)]
    connection.run(PARK_STRAY, now, why, row.eid)
    return []
  })
}

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
  const numbers = new Map<string, number>()
  for (const { name, payload } of effects) {
    const n = (numbers.get(name) ?? 0) + 1
    numbers.set(name, n)
    const mark = markOf({ job_id: id, type, name, n, payload })
    connection.run(INSERT_EFFECT, ref, type, name, n, payload, now, mark)
  }
}
