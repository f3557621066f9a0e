/**
 * The outbox: effects that a commit declared, delivered after it. Each has its own lease, tries and
 * parked state, and a stable key (job id / name / n) by which its receiver can tell a repetition.
 * When the last effect of a job is delivered, the job is done in the same transaction.
 *
 * Taking an effect moves its due time to the end of the lease, so that whoever looks for due ones
 * never meets those that others deliver. An effect is held while it has a claim and is not due.
 */
import type { Job } from '../../core/job/job.ts'
import { ENGINE } from '../asker.ts'
import { COUNT_MAX } from '../damage.ts'
import { type EffectRow, markOf, STATE_AFTER, strayWhy, toHeldEffect } from '../effects.ts'
import { NOTICE } from '../notices.ts'
import type { Answer, EffectClaim, EffectReport, HeldEffect } from '../store.ts'
import { answer } from './answer.ts'
import { Changes, TX } from './apply.ts'
import type { Ticket } from './claim.ts'
import { type Session, statement } from './connect.ts'
import { isStorable, isUuid, lockDelivered, type Shared } from './context.ts'
import { arrayOf } from './rows-at-once.ts'

/**
 * The types to look at, so that effects which the caller cannot deliver cost nothing; where none
 * are asked for, all that have something pending, found by skipping through the index.
 */
export const pendingTypes = (s: string) => `
  RECURSIVE pending (type) AS (
    (SELECT type FROM ${s}.outbox
      WHERE state = 'pending' AND type > '' AND $1::text[] IS NULL ORDER BY type LIMIT 1)
    UNION ALL
    SELECT (
      SELECT type FROM ${s}.outbox
      WHERE state = 'pending' AND type > pending.type ORDER BY type LIMIT 1)
    FROM pending WHERE pending.type IS NOT NULL
  ), wanted AS (
    SELECT DISTINCT type FROM unnest($1::text[]) AS given (type)
    UNION ALL
    SELECT type FROM pending WHERE type IS NOT NULL
  )`

/**
 * `job_id` is null for orphans. A look by the primary key for each effect, in the same statement; a
 * join would let the planner read the whole index of jobs instead.
 */
const taken = (s: string) => `
  SELECT took.*, (
    SELECT owner.id FROM ${s}.jobs AS owner
    WHERE owner.id = took.job AND took.type IN (owner.type, '${NOTICE}')) AS job_id
  FROM took ORDER BY took.eid`

const TAKE = statement(
  (s) => `
  WITH ${pendingTypes(s)}, pick AS (
    SELECT due.eid FROM wanted CROSS JOIN LATERAL (
      SELECT eid, run_at FROM ${s}.outbox
      WHERE state = 'pending' AND type = wanted.type AND run_at <= $4
      ORDER BY run_at, eid LIMIT $5 FOR UPDATE SKIP LOCKED
    ) AS due ORDER BY due.run_at, due.eid LIMIT $5
  ), took AS (
    UPDATE ${s}.outbox SET claim = $2, run_at = $3, tries = least(tries, ${COUNT_MAX}) + 1
    WHERE eid = ANY (ARRAY (SELECT eid FROM pick))
    RETURNING *
  ) ${taken(s)}`,
)

/** By the index of what is due, and told from others of the same millisecond by the claim. */
const RECALL = statement(
  (s) => `
  WITH ${pendingTypes(s)}, took AS MATERIALIZED (
    SELECT * FROM ${s}.outbox
    WHERE state = 'pending' AND type = ANY (ARRAY (SELECT type FROM wanted))
      AND run_at = $3 AND claim = $2
  ) ${taken(s)}`,
)

const PARK_STRAYS = statement(
  (s) => `
  UPDATE ${s}.outbox SET state = 'parked', claim = NULL, run_at = $1, error = stray.why
  FROM unnest($2::bigint[], $3::text[]) AS stray (eid, why)
  WHERE outbox.eid = stray.eid AND outbox.eid = ANY ($2::bigint[]) AND outbox.claim = $4`,
)

/** Takes effects that are due and that nobody is delivering; first those of a lost answer. */
export async function claimEffects(
  session: Session,
  { now, claimId }: Ticket,
  { limit, leaseMs, types }: EffectClaim,
  redo: boolean,
): Promise<HeldEffect[]> {
  const asked = types === undefined ? null : arrayOf(types.filter(isStorable))
  const lease = [asked, claimId, now + leaseMs]
  const mine = redo ? await session.query<EffectRow>(RECALL, lease) : []
  const rows = mine.length > 0 ? mine : await session.query<EffectRow>(TAKE, [...lease, now, limit])
  const strays: { eid: number; why: string }[] = []
  const sound = rows.filter((row) => {
    // The key by which its receiver knows it may be another one.
    const why = strayWhy(row)
    if (why !== undefined) strays.push({ eid: row.eid, why })
    return why === undefined
  })
  if (strays.length > 0) {
    const eids = arrayOf(strays.map(({ eid }) => eid))
    await session.query(PARK_STRAYS, [now, eids, arrayOf(strays.map(({ why }) => why)), claimId])
  }
  return sound.map((row) => toHeldEffect(claimId, row))
}

const REPORT = statement(
  (s) => `
  UPDATE ${s}.outbox SET
    state = report.state, run_at = report.run_at, error = report.error,
    tries = outbox.tries - report.untried, claim = NULL
  FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::int[])
    AS report (eid, claim, state, run_at, error, untried)
  WHERE outbox.eid = report.eid AND outbox.eid = ANY ($1::bigint[])
    AND outbox.claim = report.claim
  RETURNING report.eid || ' ' || report.claim AS hold, ${TX} AS tx`,
)

/**
 * Records deliveries, each under its claim; answers which of them were still the caller's. The jobs
 * are locked first, as everywhere, so that nobody waits in a circle.
 */
export async function settleEffects(
  shared: Shared,
  session: Session,
  now: number,
  reports: readonly EffectReport[],
): Promise<{ readonly answers: boolean[]; readonly finished: Answer[] }> {
  const delivered = reports.filter(
    ({ kind, effect }) => kind === 'delivered' && effect.name !== NOTICE,
  )
  // The doctor finishes a damaged job once it is repaired.
  const reads = await lockDelivered(
    shared,
    session,
    delivered.map(({ effect }) => effect.jobId),
  )
  // The first of several reports under one claim counts. Those of earlier claims do not hide it.
  const first = new Map<string, EffectReport>()
  for (const report of reports) {
    const { ref, claim } = report.effect
    const isSound = Number.isSafeInteger(ref) && isUuid(claim)
    if (isSound && !first.has(holdOf(report))) first.set(holdOf(report), report)
  }
  const given = [...first.values()]
  const rows = await session.query<{ hold: string; tx: number }>(REPORT, [
    arrayOf(given.map(({ effect }) => effect.ref)),
    arrayOf(given.map(({ effect }) => effect.claim)),
    arrayOf(given.map(({ kind }) => STATE_AFTER[kind])),
    arrayOf(given.map((report) => ('runAt' in report ? report.runAt : now))),
    arrayOf(given.map((report) => (report.kind === 'delivered' ? null : report.error))),
    arrayOf(given.map(({ kind }) => (kind === 'released' ? 1 : 0))),
  ])
  if (rows[0] !== undefined) session.wrote = { tx: rows[0].tx }
  const done = new Set(rows.map(({ hold }) => hold))
  const answers = reports.map(
    (report) => first.get(holdOf(report)) === report && done.delete(holdOf(report)),
  )
  const touched = new Set(
    reports.filter(({ kind }, i) => answers[i] && kind === 'delivered').map(jobIdOf),
  )
  const last = [...reads.values()].filter(({ job }) => touched.has(job.id))
  return { answers, finished: await finishDelivered(shared, session, now, last) }
}

const jobIdOf = ({ effect }: EffectReport) => effect.jobId

/** The effect of a report, under the claim of whoever reports. */
function holdOf({ effect }: EffectReport): string {
  return `${effect.ref} ${effect.claim}`
}

const OPEN_EFFECTS = statement(
  (s) => `
  SELECT DISTINCT job FROM ${s}.outbox
  WHERE job = ANY ($1::uuid[]) AND state <> 'delivered' AND name <> '${NOTICE}'`,
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
): Promise<Answer[]> {
  if (reads.length === 0) return []
  const open = await findOpenEffects(
    session,
    reads.map(({ job }) => job.id),
  )
  const changes = new Changes()
  const finished = reads
    .filter(({ job }) => !open.has(job.id))
    .map((read) => {
      const command = { kind: 'done', attempt: read.job.attempt } as const
      return answer(shared, changes, now, read, command, ENGINE)
    })
  await changes.write(session)
  return finished
}

const INSERT_EFFECTS = statement(
  (s) => `
  INSERT INTO ${s}.outbox (job, type, name, n, payload, run_at, mark)
  SELECT $1, $2, name, n, payload, $3, mark
  FROM unnest($4::text[], $5::int[], $6::text[], $7::text[]) WITH ORDINALITY
    AS e (name, n, payload, mark, place)
  ORDER BY place`,
)

/** Declares effects of a commit; the same name again gets the next number. */
export async function insertEffects(
  session: Session,
  now: number,
  { id, type }: Pick<Job, 'id' | 'type'>,
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
    id,
    type,
    now,
    arrayOf(effects.map(({ name }) => name)),
    arrayOf(placed),
    arrayOf(effects.map(({ payload }) => payload)),
    arrayOf(
      effects.map(({ name, payload }, i) =>
        markOf({ job_id: id, type, name, n: placed[i] as number, payload }),
      ),
    ),
  ])
}

const RESET_EFFECTS = statement(
  (s) => `
  UPDATE ${s}.outbox SET state = 'pending', tries = 0, error = NULL,
    run_at = CASE WHEN claim IS NOT NULL AND run_at > $1 THEN run_at ELSE $1 END
  WHERE job = ANY ($2::uuid[]) AND state <> 'delivered' AND name <> '${NOTICE}'`,
)

/** Lets what jobs have not delivered yet be delivered at once (rule G6). */
export async function resetEffects(
  session: Session,
  now: number,
  ids: readonly string[],
): Promise<void> {
  if (ids.length > 0) await session.query(RESET_EFFECTS, [now, arrayOf(ids)])
}
