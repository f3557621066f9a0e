/** Reads jobs, their facts and payloads, lists, counts and the tail of the ledger. */
import { fold } from '../../core/job/evolve.ts'
import { FACT_CODES, type Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { LANES, type Lane } from '../../core/job/lanes.ts'
import { reasonToFind } from '../../core/job/waits.ts'
import type {
  Counts,
  JobFilter,
  Page,
  QueueInfo,
  Ref,
  StepResult,
  TailEntry,
  TracedTrigger,
  UnreadableFact,
} from '../contract/store.ts'
import { JobPage, readFact, readRow, stepIn, unknownMachine } from '../damage.ts'
import { OUTCOME_IS } from '../ends.ts'
import { JobDamaged } from '../errors.ts'
import { type QueueCount, type QueueRow, queuesOf } from '../queue-info.ts'
import type { TraceDataRow } from '../read-side.ts'
import { type FactRow, type JobRow, toFact, type Value } from '../rows.ts'
import { type Session, type Statement, statement } from './connect.ts'
import { isStorable, isUuid } from './context.ts'
import { arrayOf } from './rows-at-once.ts'

type NamedJobRow = JobRow & {
  readonly machine_name: string | null
  readonly machine_version: number
  readonly lane: number
}

const selectJob = (s: string) => `
  SELECT jobs.*, machines.name AS machine_name, machines.version AS machine_version
  FROM ${s}.jobs LEFT JOIN ${s}.machines ON machines.id = jobs.machine`

const SELECT_JOB = statement((s) => `${selectJob(s)} WHERE jobs.id = $1`)

const SELECT_BY_KEY = statement((s) => `${selectJob(s)} WHERE jobs.type = $1 AND jobs.key = $2`)

const SELECT_FACTS = statement(
  (s) => `
  SELECT * FROM ${s}.ledger WHERE job = $1 AND seq <= $2::bigint ORDER BY seq`,
)

const SELECT_PAYLOADS = statement(
  (s) => `
  SELECT kind, payload FROM ${s}.ledger WHERE job = $1 AND payload IS NOT NULL
    AND kind IN (${FACT_CODES.create}, ${FACT_CODES.replace}, ${FACT_CODES.commit})
  ORDER BY seq`,
)

/** The job with this id. */
export async function get(session: Session, id: string): Promise<Job | undefined> {
  if (!isUuid(id)) return undefined
  const [row] = await session.query<NamedJobRow>(SELECT_JOB, [id])
  return row && sound(row)
}

const SELECT_JOBS = statement((s) => `${selectJob(s)} WHERE jobs.id = ANY ($1::uuid[])`)

/** Those of these jobs that exist and can be read, in any order. */
export async function getMany(session: Session, ids: readonly string[]): Promise<Job[]> {
  const rows = await session.query<NamedJobRow>(SELECT_JOBS, [arrayOf(ids.filter(isUuid))])
  return rows.map(named).filter((job) => !(job instanceof JobDamaged)) as Job[]
}

/** The job of this type that has this key. */
export async function getByKey(
  session: Session,
  type: string,
  key: string,
): Promise<Job | undefined> {
  if (!isStorable(type) || !isStorable(key)) return undefined
  const [row] = await session.query<NamedJobRow>(SELECT_BY_KEY, [type, key])
  return row && sound(row)
}

/** The facts of a job up to a seq, in order. */
export async function facts(
  session: Session,
  id: string,
  upTo = Number.MAX_SAFE_INTEGER,
): Promise<Fact[]> {
  if (!isUuid(id) || !Number.isSafeInteger(upTo)) return []
  const rows = await session.query<FactRow>(SELECT_FACTS, [id, upTo])
  return rows.map((row) => toFact(id, row))
}

/** The creation is the first fact of a job, and there is at most one commit: both by an index. */
const tracesOf = (which: string): Statement =>
  statement(
    (s) => `
  SELECT fact.job AS id, fact.data FROM ${s}.ledger AS fact
  WHERE fact.job = ANY ($1::uuid[]) AND ${which}`,
  )

const SELECT_TRACES = {
  create: tracesOf('fact.seq = 1'),
  commit: tracesOf(`fact.kind = ${FACT_CODES.commit}`),
}

/** The data of the facts that created or committed jobs. */
export async function traceData(
  session: Session,
  ids: readonly string[],
  of: TracedTrigger,
): Promise<TraceDataRow[]> {
  const sound = ids.filter(isUuid)
  return session.query<TraceDataRow>(SELECT_TRACES[of], [arrayOf(sound)])
}

/** The job as it was after a fact. */
export async function asOf(session: Session, id: string, seq: number): Promise<Job | undefined> {
  return fold(await facts(session, id, seq)) ?? undefined
}

/** Input and result of a job. */
export async function payloads(
  session: Session,
  id: string,
): Promise<{ input: string; result?: string } | undefined> {
  if (!isUuid(id)) return undefined
  const rows = await session.query<{ kind: number; payload: string }>(SELECT_PAYLOADS, [id])
  const input = rows.findLast(({ kind }) => kind !== FACT_CODES.commit)?.payload
  const result = rows.find(({ kind }) => kind === FACT_CODES.commit)?.payload
  if (input === undefined) return undefined
  return { input, ...(result !== undefined && { result }) }
}

const SELECT_PROGRESS = statement((s) => `SELECT progress FROM ${s}.jobs WHERE id = $1`)

/** The progress that the present attempt last reported. */
export async function progress(session: Session, id: string): Promise<string | undefined> {
  if (!isUuid(id)) return undefined
  const [row] = await session.query<{ progress: string | null }>(SELECT_PROGRESS, [id])
  return row?.progress ?? undefined
}

const SELECT_STEPS = statement(
  (s) => `
  SELECT data, payload FROM ${s}.ledger WHERE job = $1 AND kind = ${FACT_CODES.step} ORDER BY seq`,
)

/** The results of the steps that were finished. */
export async function steps(session: Session, ref: Ref): Promise<StepResult[]> {
  if (!isUuid(ref)) return []
  const rows = await session.query<{ data: string; payload: string | null }>(SELECT_STEPS, [ref])
  return rows.map(({ data, payload }) => {
    return stepIn(ref, data, payload ?? 'null')
  })
}

/** Looks by index for the step that a row asks for: true if it was finished, else null. */
export const findStep = (s: string, row: string) => `
  (SELECT true FROM ${s}.ledger
    WHERE ledger.job = ${row}.id AND ledger.kind = ${FACT_CODES.step}
      AND (ledger.data::json #>> '{step,name}') = ${row}.name
      AND (ledger.data::json #>> '{step,n}') = ${row}.n)`

const FIND_STEPS = statement(
  (s) => `
  SELECT asked.id, asked.name, asked.n
  FROM unnest($1::uuid[], $2::text[], $3::text[]) AS asked (id, name, n)
  WHERE ${findStep(s, 'asked')}`,
)

/** Which of these steps were finished already; the first result of each counts. */
export async function findSteps(
  session: Session,
  asked: readonly { readonly id: Ref; readonly name: string; readonly n: number }[],
): Promise<Set<string>> {
  const sound = asked.filter(({ id, name }) => isUuid(id) && isStorable(name))
  if (sound.length === 0) return new Set()
  const rows = await session.query<{ id: string; name: string; n: string }>(FIND_STEPS, [
    arrayOf(sound.map(({ id }) => id)),
    arrayOf(sound.map(({ name }) => name)),
    arrayOf(sound.map(({ n }) => String(n))),
  ])
  return new Set(rows.map(({ id, name, n }) => stepKey(id, name, n)))
}

/** The key of a step. */
export function stepKey(id: string, name: string, n: number | string): string {
  return `${id}/${n}/${name}`
}

const SELECT_OPEN = statement(
  (s) => `
  SELECT base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS open FROM ${s}.store`,
)

/** Before this transaction everything is complete: no fact can be written there any more. */
export async function firstOpen(session: Session): Promise<number> {
  const [row] = await session.query<{ open: number }>(SELECT_OPEN)
  return row?.open ?? 0
}

const SELECT_TAIL = statement(
  (s) => `
  SELECT * FROM ${s}.ledger
  WHERE tx >= $1 AND tx < $4 AND (tx, job, seq) > ($1::bigint, $2::uuid, $3::int)
  ORDER BY tx, job, seq LIMIT $5`,
)

/** How many transactions the first window has; the next are larger if nothing is found. */
const TAIL_WIDTH = 256
/** Less than every id. */
export const NO_JOB = '00000000-0000-0000-0000-000000000000'

/**
 * Facts after a position in the ledger: transaction, job and number of the fact. Only facts of
 * transactions that began before every open one: no fact can appear later at a position that was
 * already read. A transaction that stays open for long delays the followers.
 */
export async function tail(
  session: Session,
  after: string | undefined,
  limit: number,
): Promise<(TailEntry | UnreadableFact)[]> {
  type TailRow = FactRow & { tx: number; job: string }
  const open = await firstOpen(session)
  const [position = '0', from = NO_JOB, number = '0'] = (after ?? '').split('.').filter(Boolean)
  let [tx, job, seq] = [Number(position), from, Number(number)]
  for (let width = TAIL_WIDTH; tx < open && limit > 0; width *= 4) {
    const end = Math.min(open, tx + width)
    const rows = await session.query<TailRow>(SELECT_TAIL, [tx, job, seq, end, limit])
    if (rows.length > 0) return rows.map(toEntry)
    ;[tx, job, seq] = [end, NO_JOB, 0]
  }
  return []

  function toEntry(row: TailRow): TailEntry | UnreadableFact {
    return readFact(`${row.tx}.${row.job}.${row.seq}`, row.job, row)
  }
}

/** The position after every fact of transactions that began before all open ones. */
export async function tailEnd(session: Session): Promise<string> {
  return `${await firstOpen(session)}.${NO_JOB}.0`
}

const COUNT_ENDED = statement(
  (s) => `
  SELECT state, sum(jobs)::bigint AS jobs FROM ${s}.ended_counts
  GROUP BY state HAVING sum(jobs) > 0`,
)

/** The lane is part of the text: only then does PostgreSQL use the partial index. */
const COUNT_LIVE = statement((s) =>
  Object.entries(LANES)
    .filter(([lane]) => lane !== 'ended')
    .map(
      ([lane, code]) =>
        `SELECT '${lane}' AS lane, count(*) AS jobs FROM ${s}.jobs WHERE lane = ${code}`,
    )
    .join(' UNION ALL '),
)

/** How many jobs each lane holds, from the partial indexes, and the roll-up of ended ones. */
export async function counts(session: Session): Promise<Counts> {
  const ended = await session.query<{ state: string; jobs: number }>(COUNT_ENDED)
  const live = await session.query<{ lane: string; jobs: number }>(COUNT_LIVE)
  const total = ended.reduce((sum, { jobs }) => sum + jobs, 0)
  const lanes = Object.fromEntries(live.map(({ lane, jobs }) => [lane, jobs]))
  return {
    lanes: { ...lanes, ended: total } as Record<Lane, number>,
    ended: Object.fromEntries(ended.map(({ state, jobs }) => [state, jobs])),
  }
}

const COUNT_BY_QUEUE = statement((s) =>
  [
    ...Object.values(LANES)
      .filter((lane) => lane !== LANES.ended)
      .map(
        (lane) => `
        SELECT queue, ${lane} AS lane, count(*) AS jobs, min(run_at) AS first
        FROM ${s}.jobs WHERE lane = ${lane} GROUP BY queue`,
      ),
    `SELECT queue, ${LANES.ended}, sum(jobs)::bigint, NULL FROM ${s}.ended_counts GROUP BY queue`,
  ].join(' UNION ALL '),
)
const SELECT_QUEUES = statement(
  (s) => `
  SELECT *, CASE WHEN paused_at IS NOT NULL THEN (
    SELECT note FROM ${s}.queue_records WHERE queue = name AND action = 'pause'
    ORDER BY number DESC LIMIT 1) END AS pause_note
  FROM ${s}.queues`,
)

/** Every queue, by name, with what is in it. */
export async function listQueues(session: Session): Promise<QueueInfo[]> {
  const counts = await session.query<QueueCount>(COUNT_BY_QUEUE)
  return queuesOf(counts, await session.query<QueueRow>(SELECT_QUEUES))
}

/** How long a list may take. */
export const LIST_BUDGET_MS = 200
const PAGE_DEFAULT = 50
const PAGE_MAX = 1000
/** Greater than every id. */
const LAST_JOB = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
/** How many rows are read between two checks of the time. */
const SCAN_CHUNK = 1000

/** Jobs by keyset, newest first; a page that takes too long ends early, with a cursor. */
export async function list(
  session: Session,
  filter: JobFilter,
  options: { limit?: number; after?: string },
  expired: () => boolean,
): Promise<Page<Job>> {
  const limit = Math.min(options.limit ?? PAGE_DEFAULT, PAGE_MAX)
  const isNone = filter.flow !== undefined && !isUuid(filter.flow)
  if (limit === 0 || isNone) return { items: [] }
  const page = new JobPage(limit)
  let cursor = options.after
  for (;;) {
    const [text, values] = windowOf(filter, cursor)
    const window = await session.query<WindowRow>(text, values)
    for (const row of window) {
      cursor = row.id
      if (row.matches === 't' && isMeant(row, filter)) page.add(row, named(row))
      if (page.isFull) return page.end(row.id)
    }
    if ((window[0]?.seen ?? 0) < SCAN_CHUNK) return page.end()
    if (expired()) return { ...page.end(cursor), partial: true }
  }
}

type WindowRow = NamedJobRow & { readonly matches: string; readonly seen: number }

/**
 * The window is chosen by id alone, so that a rare match cannot make one statement long. It returns
 * only matches, and the last row, which is the cursor.
 */
function windowOf(filter: JobFilter, after: string | undefined): [Statement, Value[]] {
  const given = Object.entries(conditionsOf(filter)).filter(([, value]) => value !== undefined)
  const conditions = given.map(([condition], i) => condition.replace('?', `$${i + 1}`))
  const matches = ['true', ...conditions].join(' AND ')
  const values = given.map(([, value]) => value as Value)
  const older = after === undefined ? `<= '${LAST_JOB}'` : `< $${values.push(after)}`
  // The jobs of a flow are few, and found by their index.
  const { flow } = filter
  const within = flow === undefined ? '' : `jobs.flow = $${values.push(flow)}::uuid AND`
  const text = statement(
    (s) => `
    SELECT * FROM (
      SELECT *, (${matches}) IS TRUE AS matches FROM (
        SELECT *, count(*) OVER () AS seen, min(id::text) OVER () AS last FROM (
          ${selectJob(s)} WHERE ${within} jobs.id ${older} ORDER BY jobs.id DESC LIMIT ${SCAN_CHUNK}
        ) AS scanned
      ) AS counted
    ) AS judged WHERE matches OR id::text = last ORDER BY id DESC`,
  )
  return [text, values]
}

function conditionsOf(filter: JobFilter): Record<string, Value | undefined> {
  return {
    'state = ?': filter.state,
    'lane = ?': filter.lane && LANES[filter.lane],
    [OUTCOME_IS]: filter.outcome,
    'stalled = ?': filter.stalled === undefined ? undefined : Number(filter.stalled),
    'queue = ?': filter.queue,
    'type = ?': filter.type,
    'key = ?': filter.key,
    'reason = ?': reasonToFind(filter.waitsFor),
    'reason LIKE ?': filter.waitsForSignal && `${reasonToFind('')}%`,
    'created_at >= ?': filter.createdFrom,
    'created_at < ?': filter.createdBefore,
    // JSON columns are searched in this process: they may contain what the JSON of PostgreSQL
    // cannot, and a cast of a damaged one would make the whole list fail.
    'tags IS NOT NULL AND ?::text IS NOT NULL': filter.tag && 'asked for',
    'error IS NOT NULL AND ?::text IS NOT NULL': filter.error && 'asked for',
  }
}

/** What a filter by error looks through: the message, the code and the fingerprint. */
function textOf(error: Job['error']): string {
  return [error?.message, error?.code, error?.fingerprint].map((text) => text ?? '').join('\n')
}

/** The conditions that the statement does not check. */
function isMeant(row: NamedJobRow, { tag, error }: JobFilter): boolean {
  if (tag === undefined && error === undefined) return true
  const job = named(row)
  if (job instanceof JobDamaged) return false
  const hasTag = tag === undefined || job.tags.includes(tag)
  return hasTag && (error === undefined || textOf(job.error).includes(error))
}

function named(row: NamedJobRow): Job | JobDamaged {
  if (row.machine_name === null) return unknownMachine(row, row.id)
  return readRow(row, { name: row.machine_name, version: row.machine_version })
}

function sound(row: NamedJobRow): Job {
  const job = named(row)
  if (job instanceof JobDamaged) throw job
  return job
}
