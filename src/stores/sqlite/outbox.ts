/**
 * The outbox: effects that a commit declared, delivered after it. Each has its own lease, tries and
 * parked state, and a stable key (job id / name / n) by which its receiver can tell a repetition.
 * When the last effect of a job is delivered, the job is done in the same transaction.
 */
import { ENGINE } from '../asker.ts'
import type { EffectClaim, EffectReport, HeldEffect } from '../store.ts'
import { answer } from './answer.ts'
import type { Connection } from './connect.ts'
import { readJob, type Shared } from './context.ts'

const TAKE = `
  UPDATE pawl_outbox SET claim = ?1, lease_until = ?2, tries = tries + 1
  WHERE eid IN (
    SELECT eid FROM pawl_outbox
    WHERE state = 'pending' AND run_at <= ?3 AND (lease_until IS NULL OR lease_until <= ?3)
    ORDER BY run_at, eid LIMIT ?4
  )
  RETURNING eid, name, n, payload, tries,
    (SELECT id FROM pawl_jobs WHERE rid = pawl_outbox.job) AS job_id,
    (SELECT type FROM pawl_jobs WHERE rid = pawl_outbox.job) AS job_type`

interface EffectRow {
  readonly eid: number
  readonly name: string
  readonly n: number
  readonly payload: string
  readonly tries: number
  readonly job_id: string
  readonly job_type: string
}

/** Takes effects that are due and that nobody is delivering. */
export function claimEffects(
  { environment }: Shared,
  connection: Connection,
  now: number,
  { limit, leaseMs }: EffectClaim,
): HeldEffect[] {
  const claim = environment.ids.next()
  const rows = connection.all<EffectRow>(TAKE, claim, now + leaseMs, now, limit)
  // The order of RETURNING is not defined.
  rows.sort((a, b) => a.eid - b.eid)
  return rows.map((row) => ({
    ref: row.eid,
    claim,
    jobId: row.job_id,
    jobType: row.job_type,
    name: row.name,
    key: `${row.job_id}/${row.name}/${row.n}`,
    payload: row.payload,
    tries: row.tries,
  }))
}

const REPORT = `
  UPDATE pawl_outbox
  SET state = ?, run_at = coalesce(?, run_at), error = ?, claim = NULL, lease_until = NULL
  WHERE eid = ? AND claim = ? AND state = 'pending'`

const STATES = { delivered: 'delivered', retry: 'pending', parked: 'parked' } as const

/** Records deliveries, each under its claim; answers which of them were still the caller's. */
export function settleEffects(
  shared: Shared,
  connection: Connection,
  now: number,
  reports: readonly EffectReport[],
): boolean[] {
  const touched = new Set<string>()
  const answers = reports.map((report) => {
    const { effect, kind } = report
    const runAt = kind === 'retry' ? report.runAt : null
    const error = kind === 'delivered' ? null : report.error
    const { ref, claim } = effect
    const changes = connection.run(REPORT, STATES[kind], runAt, error, ref, claim)
    if (changes > 0 && kind === 'delivered') touched.add(effect.jobId)
    return changes > 0
  })
  for (const id of touched) finishIfDelivered(shared, connection, now, id)
  return answers
}

const OPEN_EFFECTS = `
  SELECT 1 FROM pawl_outbox WHERE job = ? AND state <> 'delivered' LIMIT 1`

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
): void {
  const read = readJob(shared, connection, jobId)
  if (read === undefined || hasOpenEffects(connection, read.rid)) return
  answer(shared, connection, now, read, { kind: 'done', attempt: read.job.attempt }, ENGINE)
}

const INSERT_EFFECT = `
  INSERT INTO pawl_outbox (job, name, n, payload, run_at) VALUES (?, ?, ?, ?, ?)`

/** Declares effects of a commit; the same name again gets the next number. */
export function insertEffects(
  connection: Connection,
  now: number,
  rid: number,
  effects: readonly { readonly name: string; readonly payload: string }[],
): void {
  const numbers = new Map<string, number>()
  for (const { name, payload } of effects) {
    const n = (numbers.get(name) ?? 0) + 1
    numbers.set(name, n)
    connection.run(INSERT_EFFECT, rid, name, n, payload, now)
  }
}

const RESET_EFFECTS = `
  UPDATE pawl_outbox SET state = 'pending', tries = 0, run_at = ?, error = NULL
  WHERE job = ? AND state <> 'delivered'`

/** Lets what a job has not delivered yet be delivered at once (rule G6). */
export function resetEffects(connection: Connection, now: number, rid: number): void {
  connection.run(RESET_EFFECTS, now, rid)
}
