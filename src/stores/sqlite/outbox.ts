/**
 * The outbox: effects that a commit declared, delivered after it. Each has its own lease, tries and
 * parked state, and a stable key (job id / name / n) by which its receiver can tell a repetition.
 * When the last effect of a job is delivered, the job is done in the same transaction.
 *
 * Taking an effect moves its due time to the end of the lease, so that whoever looks for due ones
 * never meets those that others deliver. An effect is held while it has a claim and is not due.
 */
import { PawlError } from '../../core/errors.ts'
import { ENGINE } from '../asker.ts'
import { COUNT_MAX } from '../damage.ts'
import { type EffectRow, markOf, STATE_AFTER, strayWhy, toHeldEffect } from '../effects.ts'
import { NOTICE } from '../notices.ts'
import type { Answer, EffectClaim, EffectReport, HeldEffect } from '../store.ts'
import { answer } from './answer.ts'
import type { Connection } from './connect.ts'
import { type Read, readDelivered, type Shared } from './context.ts'

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

const REPORT = `
  UPDATE pawl_outbox SET state = ?, run_at = ?, error = ?, tries = tries - ?, claim = NULL
  WHERE eid = ? AND claim = ? AND state = 'pending'`

/** Records deliveries, each under its claim; answers which of them were still the caller's. */
export function settleEffects(
  shared: Shared,
  connection: Connection,
  now: number,
  reports: readonly EffectReport[],
): { readonly answers: boolean[]; readonly finished: Answer[] } {
  const touched = new Set<string>()
  const answers = reports.map((report) => {
    const { effect, kind } = report
    const runAt = 'runAt' in report ? report.runAt : now
    const error = kind === 'delivered' ? null : report.error
    const untried = kind === 'released' ? 1 : 0
    const { ref, claim } = effect
    const state = STATE_AFTER[kind]
    const changes = connection.run(REPORT, state, runAt, error, untried, ref, claim)
    if (changes > 0 && kind === 'delivered' && effect.name !== NOTICE) touched.add(effect.jobId)
    return changes > 0
  })
  const finished = [...touched].flatMap((id) => finishIfDelivered(shared, connection, now, id))
  return { answers, finished }
}

const OPEN_EFFECTS = `
  SELECT 1 FROM pawl_outbox
  WHERE job = ? AND state <> 'delivered' AND name <> '${NOTICE}' LIMIT 1`

/** Whether a job still has effects to deliver. */
export function hasOpenEffects(connection: Connection, rid: number): boolean {
  return connection.get(OPEN_EFFECTS, rid) !== undefined
}

/** Finishes a committed job that has nothing left to deliver (promise P10). */
function finishIfDelivered(
  shared: Shared,
  connection: Connection,
  now: number,
  jobId: string,
): Answer[] {
  const read = readDelivered(shared, connection, jobId)
  // The doctor finishes a damaged job once it is repaired.
  if (read instanceof PawlError || hasOpenEffects(connection, read.rid)) return []
  const command = { kind: 'done', attempt: read.job.attempt } as const
  return [answer(shared, connection, now, read, command, ENGINE)]
}

const INSERT_EFFECT = `
  INSERT INTO pawl_outbox (job, type, name, n, payload, run_at, mark)
  VALUES (?, ?, ?, ?, ?, ?, ?)`

/** Declares effects of a commit; the same name again gets the next number. */
export function insertEffects(
  connection: Connection,
  now: number,
  { rid, job: { id, type } }: Pick<Read, 'rid' | 'job'>,
  effects: readonly { readonly name: string; readonly payload: string }[],
): void {
  const numbers = new Map<string, number>()
  for (const { name, payload } of effects) {
    const n = (numbers.get(name) ?? 0) + 1
    numbers.set(name, n)
    const mark = markOf({ job_id: id, type, name, n, payload })
    connection.run(INSERT_EFFECT, rid, type, name, n, payload, now, mark)
  }
}

const RESET_EFFECTS = `
  UPDATE pawl_outbox SET state = 'pending', tries = 0, error = NULL,
    run_at = CASE WHEN claim IS NOT NULL AND run_at > ?1 THEN run_at ELSE ?1 END
  WHERE job = ?2 AND state <> 'delivered' AND name <> '${NOTICE}'`

/** Lets what a job has not delivered yet be delivered at once (rule G6). */
export function resetEffects(connection: Connection, now: number, rid: number): void {
  connection.run(RESET_EFFECTS, now, rid)
}
