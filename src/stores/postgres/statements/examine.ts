/** What the doctor reads from a schema: every row of a job at one moment, and counts. */
import { FACT_CODES } from '../../../core/job/facts.ts'
import type {
  CounterDrift,
  Duplicate,
  RawEffect,
  RawFact,
  RawJob,
  Scan,
  StoredJob,
} from '../../contract/examination.ts'
import type { Ref } from '../../contract/store.ts'
import { USABLE } from '../../machines.ts'
import { assemble, FACTS_MAX, isCut, type Owned } from '../../stored-jobs.ts'
import { type Session, statement } from '../connect.ts'
import { isUuid } from '../context.ts'
import type { At } from './at.ts'

const FIRST = '00000000-0000-0000-0000-000000000000'
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** From one id to another, without the id that the last page ended with. */
interface Range {
  readonly from: string
  readonly to: string
  readonly but: string | null
}

/**
 * The page ends with an id and not with a row: if ids are not unique, all of its rows belong to it.
 */
const SELECT_IDS = statement(
  (s) => `
  SELECT id FROM ${s}.jobs
  WHERE id >= $1 AND id <= $2 AND id IS DISTINCT FROM $3 ORDER BY id LIMIT $4`,
)
const SELECT_JOBS = statement(
  (s) => `
  SELECT *, id AS job, ctid::text AS handle FROM ${s}.jobs
  WHERE id >= $1 AND id <= $2 AND id IS DISTINCT FROM $3 ORDER BY id, ctid`,
)
/** Results and payloads of steps may be large, and are not needed here. */
const INPUT = `CASE WHEN kind IN (${FACT_CODES.create}, ${FACT_CODES.replace}) THEN payload END`
const SELECT_FACTS = statement(
  (s) => `
  SELECT job, seq, kind, version, at, path, actor, attempt, statuses, claim, worker, lease_until,
    data, ${INPUT} AS payload,
    CASE kind WHEN ${FACT_CODES.create} THEN job END AS creates, ctid::text AS handle
  FROM ${s}.ledger
  WHERE job >= $1 AND job <= $2 AND job IS DISTINCT FROM $3 ORDER BY job, seq, tx, ctid LIMIT $4`,
)
const SELECT_EFFECTS = statement(
  (s) => `
  SELECT job, type, name, n, state, tries, run_at, claim, error, mark, eid AS handle
  FROM ${s}.outbox
  WHERE job >= $1 AND job <= $2 AND job IS DISTINCT FROM $3 ORDER BY job, name, n LIMIT $4`,
)
const SELECT_MACHINES = statement(
  (s) => `SELECT id, name, version FROM ${s}.machines WHERE ${USABLE}`,
)

/** The next jobs by id, and facts and effects of ids in between that no job has. */
async function storedJobs(
  session: Session,
  after: Ref | undefined,
  limit: number,
): Promise<StoredJob[]> {
  const but = isUuid(after) ? after : null
  const rest = { from: but ?? FIRST, to: LAST, but }
  const ids = await session.query<{ id: string }>(SELECT_IDS, [...valuesOf(rest), limit])
  const last = ids.length < limit ? undefined : ids[ids.length - 1]?.id
  const page: StoredJob[] = []
  for (const one of await readRange(session, { ...rest, to: last ?? LAST }, FACTS_MAX)) {
    page.push(isCut(one) ? ((await stored(session, String(one.ref))) ?? one) : one)
  }
  return page
}

/** Everything of one id. */
export async function stored(session: Session, id: string): Promise<StoredJob | undefined> {
  const [only] = await readRange(session, { from: id, to: id, but: null }, Number.MAX_SAFE_INTEGER)
  return only
}

/** Everything of the job with this id. */
async function storedJobOf(session: Session, id: string): Promise<StoredJob | undefined> {
  const found = isUuid(id) ? await stored(session, id) : undefined
  return found?.row === null ? undefined : found
}

async function readRange(session: Session, range: Range, max: number): Promise<StoredJob[]> {
  const values = valuesOf(range)
  const bounded = [...values, max]
  type Machine = { id: number; name: string; version: number }
  const machines = await session.query<Machine>(SELECT_MACHINES)
  return assemble({
    jobs: await session.query<Owned<RawJob, string>>(SELECT_JOBS, values),
    facts: await session.query<Owned<RawFact, string>>(SELECT_FACTS, bounded),
    effects: await session.query<Owned<RawEffect, string>>(SELECT_EFFECTS, bounded),
    machines: new Map(machines.map(({ id, name, version }) => [id, { name, version }])),
    max,
  })
}

function valuesOf({ from, to, but }: Range) {
  return [from, to, but]
}

const DUPLICATE_IDS = statement(
  (s) => `SELECT id FROM ${s}.jobs GROUP BY id HAVING count(*) > 1 LIMIT $1`,
)
const DUPLICATE_KEYS = statement(
  (s) => `
  SELECT id, type, key FROM ${s}.jobs WHERE (type, key) IN (
    SELECT type, key FROM ${s}.jobs WHERE key IS NOT NULL GROUP BY type, key HAVING count(*) > 1
  ) ORDER BY type, key, id LIMIT $1`,
)

/** Ids and keys that several jobs have. */
async function duplicates(session: Session, limit: number): Promise<Duplicate[]> {
  return [
    ...(await session.query<Duplicate>(DUPLICATE_IDS, [limit])),
    ...(await session.query<Duplicate>(DUPLICATE_KEYS, [limit])),
  ]
}

/** The sums of the roll-up and the counts of rows, if they differ. */
export const COUNTER_DRIFT = (s: string) => `
  SELECT queue, state, sum(counted)::bigint AS counted, sum(actual)::bigint AS actual FROM (
    SELECT queue, state, jobs AS counted, 0 AS actual FROM ${s}.ended_counts
    UNION ALL
    SELECT queue, state, 0, count(*) FROM ${s}.jobs WHERE outcome IS NOT NULL GROUP BY queue, state
  ) AS either GROUP BY queue, state HAVING sum(counted) <> sum(actual)`
const COUNTERS = statement(COUNTER_DRIFT)

const STATES_MAX = 1000
const UNKNOWN_MAX = 10

const SELECT_STATES = statement(
  (s) => `
  SELECT state, definition FROM (SELECT DISTINCT machine, state FROM ${s}.jobs LIMIT $1) AS used
  LEFT JOIN ${s}.machines ON machines.id = used.machine`,
)
const NEGATIVE = statement(
  (s) => `
  SELECT count(*) AS jobs FROM ${s}.jobs
  WHERE least(attempt, failures, crashes, releases) < 0`,
)

/** Counts values that Pawl never writes. */
async function scan(session: Session): Promise<Scan> {
  type Used = { state: string; definition: string | null }
  const used = await session.query<Used>(SELECT_STATES, [STATES_MAX])
  const unknown = new Set(used.filter((one) => !knows(one)).map(({ state }) => state))
  const [negative] = await session.query<{ jobs: number }>(NEGATIVE)
  return {
    duplicates: (await session.query(DUPLICATE_IDS, [1000])).length,
    unknownStates: [...unknown].slice(0, UNKNOWN_MAX),
    negativeAttempts: negative?.jobs ?? 0,
  }
}

/** Whether a definition, which may be damaged itself, has a state. */
function knows({ state, definition }: { state: string; definition: string | null }): boolean {
  try {
    const { states } = JSON.parse(definition ?? '{}') as { states?: object }
    return states !== undefined && Object.hasOwn(states, state)
  } catch {
    return false
  }
}

export const EXAMINE = {
  /** Numbers are also used up by transactions that are rolled back: only seals can show a gap. */
  missingRows: () => undefined,
  scan: ({ session }: At) => scan(session),
  /** PostgreSQL has no such check: its own tools read the files, as another user. */
  storage: (): string[] => [],
  storedJobs: ({ session }: At, after: Ref | undefined, limit: number) =>
    storedJobs(session, after, limit),
  storedJobOf: ({ session }: At, id: string) => storedJobOf(session, id),
  storedJob: ({ session }: At, ref: Ref) => stored(session, String(ref)),
  duplicates: ({ session }: At, limit: number) => duplicates(session, limit),
  counters: ({ session }: At) => session.query<CounterDrift>(COUNTERS),
}
