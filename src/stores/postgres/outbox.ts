/**
 * The outbox: effects that a commit declared, delivered after it. Each has its own lease, tries and
 * parked state, and a stable key (job id / name / n) by which its receiver can tell a repetition.
 * When the last effect of a job is delivered, the job is done in the same transaction.
 */
import { ENGINE } from '../asker.ts'
import type { EffectClaim, EffectReport, HeldEffect } from '../store.ts'
import { answer } from './answer.ts'
import { Changes, TX } from './apply.ts'
import { type Session, statement } from './connect.ts'
import { isUuid, lockJobs, type Shared } from './context.ts'
import { arrayOf } from './rows-at-once.ts'

const TAKE = statement(
  (s) => `
  WITH pick AS (
    SELECT eid FROM ${s}.outbox
    WHERE state = 'pending' AND run_at <= $1 AND (lease_until IS NULL OR lease_until <= $1)
    ORDER BY run_at, eid LIMIT $2 FOR UPDATE SKIP LOCKED
  ), took AS (
    UPDATE ${s}.outbox SET claim = $3, lease_until = $4, tries = tries + 1
    WHERE eid = ANY (ARRAY (SELECT eid FROM pick))
    RETURNING eid, job, name, n, payload, tries
  )
  SELECT took.*, jobs.type AS job_type
  FROM took JOIN ${s}.jobs ON jobs.id = took.job AND jobs.id = ANY (ARRAY (SELECT job FROM took))
  ORDER BY eid`,
)

interface EffectRow {
  readonly eid: number
  readonly name: string
  readonly n: number
  readonly payload: string
  readonly tries: number
  readonly job: string
  readonly job_type: string
}

/** Takes effects that are due and that nobody is delivering. */
export async function claimEffects(
  { environment }: Shared,
  session: Session,
  now: number,
  { limit, leaseMs }: EffectClaim,
): Promise<HeldEffect[]> {
  const claim = environment.ids.next()
  const rows = await session.query<EffectRow>(TAKE, [now, limit, claim, now + leaseMs])
  return rows.map((row) => ({
    ref: row.eid,
    claim,
    jobId: row.job,
    jobType: row.job_type,
    name: row.name,
    key: `${row.job}/${row.name}/${row.n}`,
    payload: row.payload,
    tries: row.tries,
  }))
}

const REPORT = statement(
  (s) => `
  UPDATE ${s}.outbox SET
    state = report.state, run_at = coalesce(report.run_at, outbox.run_at), error = report.error,
    claim = NULL, lease_until = NULL
  FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[], $5::text[])
    AS report (eid, claim, state, run_at, error)
  WHERE outbox.eid = report.eid AND outbox.eid = ANY ($1::bigint[])
    AND outbox.claim = report.claim
  RETURNING outbox.eid, ${TX} AS tx`,
)

const STATES = { delivered: 'delivered', retry: 'pending', parked: 'parked' } as const

/**
 * Records deliveries, each under its claim; answers which of them were still the caller's. The jobs
 * are locked first, as everywhere, so that nobody waits in a circle.
 */
export async function settleEffects(
  shared: Shared,
  session: Session,
  now: number,
  reports: readonly EffectReport[],
): Promise<boolean[]> {
  const delivered = reports.filter(({ kind }) => kind === 'delivered')
  const reads = await lockJobs(
    shared,
    session,
    delivered.map(({ effect }) => effect.jobId),
  )
  // Of several reports on one effect the first one counts.
  const first = new Map<number, EffectReport>()
  for (const report of reports) {
    const { ref, claim } = report.effect
    const isSound = Number.isSafeInteger(ref) && isUuid(claim)
    if (isSound && !first.has(ref)) first.set(ref, report)
  }
  const given = [...first.values()]
  const rows = await session.query<{ eid: number; tx: number }>(REPORT, [
    arrayOf(given.map(({ effect }) => effect.ref)),
    arrayOf(given.map(({ effect }) => effect.claim)),
    arrayOf(given.map(({ kind }) => STATES[kind])),
    arrayOf(given.map((report) => (report.kind === 'retry' ? report.runAt : null))),
    arrayOf(given.map((report) => (report.kind === 'delivered' ? null : report.error))),
  ])
  if (rows[0] !== undefined) session.wrote = { tx: rows[0].tx }
  const done = new Set(rows.map(({ eid }) => eid))
  await finishDelivered(shared, session, now, [...reads.values()])
  return reports.map(
    (report) => done.has(report.effect.ref) && first.get(report.effect.ref) === report,
  )
}

const OPEN_EFFECTS = statement(
  (s) => `
  SELECT DISTINCT job FROM ${s}.outbox WHERE job = ANY ($1::uuid[]) AND state <> 'delivered'`,
)

/** Which of these jobs still have effects to deliver. */
export async function findOpenEffects(
  session: Session,
  ids: readonly string[],
): Promise<Set<string>> {
  const rows = await session.query<{ job: string }>(OPEN_EFFECTS, [arrayOf(ids)])
  return new Set(rows.map(({ job }) => job))
}

/** Finishes committed jobs that have nothing left to deliver (promise P10). */
async function finishDelivered(
  shared: Shared,
  session: Session,
  now: number,
  reads: readonly Parameters<typeof answer>[3][],
): Promise<void> {
  if (reads.length === 0) return
  const open = await findOpenEffects(
    session,
    reads.map(({ job }) => job.id),
  )
  const changes = new Changes()
  for (const read of reads) {
    if (open.has(read.job.id)) continue
    answer(shared, changes, now, read, { kind: 'done', attempt: read.job.attempt }, ENGINE)
  }
  await changes.write(session)
}

const INSERT_EFFECTS = statement(
  (s) => `
  INSERT INTO ${s}.outbox (job, name, n, payload, run_at)
  SELECT $1, name, n, payload, $2
  FROM unnest($3::text[], $4::int[], $5::text[]) WITH ORDINALITY AS e (name, n, payload, place)
  ORDER BY place`,
)

/** Declares effects of a commit; the same name again gets the next number. */
export async function insertEffects(
  session: Session,
  now: number,
  jobId: string,
  effects: readonly { readonly name: string; readonly payload: string }[],
): Promise<void> {
  if (effects.length === 0) return
  const numbers = new Map<string, number>()
  const placed = effects.map(({ name }) => {
    const n = (numbers.get(name) ?? 0) + 1
    numbers.set(name, n)
    return n
  })
  await session.query(INSERT_EFFECTS, [
    jobId,
    now,
    arrayOf(effects.map(({ name }) => name)),
    arrayOf(placed),
    arrayOf(effects.map(({ payload }) => payload)),
  ])
}

const RESET_EFFECTS = statement(
  (s) => `
  UPDATE ${s}.outbox SET state = 'pending', tries = 0, run_at = $1, error = NULL
  WHERE job = ANY ($2::uuid[]) AND state <> 'delivered'`,
)

/** Lets what jobs have not delivered yet be delivered at once (rule G6). */
export async function resetEffects(
  session: Session,
  now: number,
  ids: readonly string[],
): Promise<void> {
  if (ids.length > 0) await session.query(RESET_EFFECTS, [now, arrayOf(ids)])
}
