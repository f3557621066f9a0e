/** The rows of admission. */
import { TransitionRace } from '../../../core/errors.ts'
import type { Accepted } from '../../accept.ts'
import type { AdmissionName, AdmissionRow } from '../../contract/admissions.ts'
import type { Enqueued } from '../../contract/store.ts'
import { type LockedRow, toLocked } from '../../verbs/reading.ts'
import { type Session, statement } from '../connect.ts'
import { isUuid } from '../context.ts'
import { addWithin, answerTaken } from '../enqueue.ts'
import { arrayOf } from '../rows-at-once.ts'
import type { At } from './at.ts'

const NAMED = 'unnest($1::text[], $2::int[], $3::text[]) AS asked (type, kind, key)'

/**
 * An insert that meets a row waits for its lock and returns its newest version. A select would skip
 * rows that another transaction is about to insert.
 */
const LOCK = statement(
  (s) => `
  INSERT INTO ${s}.admissions AS own (type, kind, key, look_at)
  SELECT type, kind, key, $4::bigint FROM ${NAMED} ORDER BY type, kind, key
  ON CONFLICT (type, kind, key) DO UPDATE SET look_at = own.look_at RETURNING *`,
)

const SAVE = statement(
  (s) => `
  UPDATE ${s}.admissions AS own SET job = new.job, next = new.next, first_at = new.first_at,
    counts = new.counts, look_at = new.look_at
  FROM unnest($1::text[], $2::int[], $3::text[], $4::uuid[], $5::uuid[], $6::bigint[], $7::text[],
    $8::bigint[]) AS new (type, kind, key, job, next, first_at, counts, look_at)
  WHERE own.type = new.type AND own.kind = new.kind AND own.key = new.key`,
)

const REMOVE = statement(
  (s) => `
  DELETE FROM ${s}.admissions AS own USING ${NAMED}
  WHERE own.type = asked.type AND own.kind = asked.kind AND own.key = asked.key`,
)

const LOCK_DUE = statement(
  (s) => `
  SELECT * FROM ${s}.admissions WHERE look_at <= $1 ORDER BY look_at LIMIT $2
  FOR UPDATE SKIP LOCKED`,
)

const HAS_DUE = statement((s) => `SELECT 1 FROM ${s}.admissions WHERE look_at <= $1 LIMIT 1`)

const SELECT_AFTER = statement(
  (s) => `
  SELECT * FROM ${s}.admissions WHERE (type, kind, key) > ($1::text, $2::smallint, $3::text)
  ORDER BY type, kind, key LIMIT $4`,
)

const SELECT_NEXT = statement((s) => `SELECT * FROM ${s}.admissions WHERE next = $1::uuid`)

const SELECT_JOBS = statement((s) => `SELECT * FROM ${s}.jobs WHERE id = ANY ($1::uuid[])`)

const SELECT_TAKEN = statement(
  (s) => `
  SELECT place::int - 1 AS place FROM unnest($1::text[], $2::text[])
    WITH ORDINALITY AS asked (type, key, place)
  WHERE (SELECT id FROM ${s}.jobs WHERE jobs.type = asked.type AND jobs.key = asked.key) IS NOT NULL
    OR EXISTS (SELECT 1 FROM ${s}.tombstones AS gone
      WHERE gone.type = asked.type AND gone.key = asked.key AND gone.keep_until > $3)`,
)

/** How often a job may find its key taken by a job that is gone when it is read. */
const TRIES_MAX = 5

export const ADMISSIONS = {
  async withTakenKeys({ session, now }: At, jobs: readonly Accepted[]) {
    const keyed = jobs.filter(({ job }) => job.key !== null)
    if (keyed.length === 0) return new Set<Accepted>()
    const rows = await session.query<{ place: number }>(SELECT_TAKEN, [
      arrayOf(keyed.map(({ job }) => job.type)),
      arrayOf(keyed.map(({ job }) => job.key)),
      now,
    ])
    return new Set(rows.map(({ place }) => keyed[place] as Accepted))
  },
  async lockAdmissions({ session, now }: At, names: readonly AdmissionName[]) {
    if (names.length === 0) return []
    return session.query<AdmissionRow>(LOCK, [...namesOf(names), now])
  },
  async saveAdmissions({ session }: At, rows: readonly AdmissionRow[]) {
    if (rows.length === 0) return
    await session.query(SAVE, [
      ...namesOf(rows),
      arrayOf(rows.map(({ job }) => job)),
      arrayOf(rows.map(({ next }) => next)),
      arrayOf(rows.map(({ first_at }) => first_at)),
      arrayOf(rows.map(({ counts }) => counts)),
      arrayOf(rows.map(({ look_at }) => look_at)),
    ])
  },
  async removeAdmissions({ session }: At, names: readonly AdmissionName[]) {
    if (names.length > 0) await session.query(REMOVE, namesOf(names))
  },
  async peekJobs({ session, machines }: At, ids: readonly string[]) {
    const asked = ids.filter(isUuid)
    if (asked.length === 0) return new Map()
    const rows = await session.query<LockedRow>(SELECT_JOBS, [arrayOf(asked)])
    return toLocked(
      machines,
      rows.map((row) => ({ row, ref: row.id })),
    ).reads
  },
  addJob,
  lockDueAdmissions: ({ session, now }: At, limit: number) =>
    session.query<AdmissionRow>(LOCK_DUE, [now, limit]),
  hasDueAdmissions: async ({ session, now }: At) =>
    (await session.query(HAS_DUE, [now])).length > 0,
  admissionsAfter({ session }: At, after: AdmissionName | undefined, limit: number) {
    const { type, kind, key } = after ?? { type: '', kind: 0, key: '' }
    return session.query<AdmissionRow>(SELECT_AFTER, [type, kind, key, limit])
  },
  async admissionOfNext({ session }: At, jobId: string) {
    if (!isUuid(jobId)) return undefined
    return (await session.query<AdmissionRow>(SELECT_NEXT, [jobId]))[0]
  },
}

function namesOf(names: readonly AdmissionName[]): string[] {
  return [
    arrayOf(names.map(({ type }) => type)),
    arrayOf(names.map(({ kind }) => kind)),
    arrayOf(names.map(({ key }) => key)),
  ]
}

async function addJob(at: At, job: Accepted): Promise<Enqueued> {
  const session: Session = at.session
  for (let tries = 0; tries <= TRIES_MAX; tries++) {
    const { added, refused } = await addWithin(session, [job])
    if (added.has(job)) return { kind: 'created', job: job.job }
    const error = refused?.get(job)
    if (error !== undefined) return { kind: 'rejected', error }
    const [answer] = await answerTaken(at, session, at.now, [job], false)
    if (answer !== undefined) return answer
  }
  return { kind: 'rejected', error: new TransitionRace(job.job.id) }
}
