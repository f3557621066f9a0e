/** Reads jobs, their facts and payloads, lists, counts and the tail of the ledger. */

import { uuid } from '../../core/checks.ts'
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
import { VERSION_MAX } from '../machines.ts'
import { type QueueCount, type QueueRow, queuesOf } from '../queue-info.ts'
import type { TraceDataRow } from '../read-side.ts'
import { type FactRow, toFact, type Value } from '../rows.ts'
import type { Connection } from './connect.ts'
import type { NumberedRow } from './context.ts'

type NamedJobRow = NumberedRow & {
  readonly machine_name: string | null
  readonly machine_version: number
  readonly lane: number
}

const SELECT_JOB = `
  SELECT pawl_jobs.*, pawl_machines.name AS machine_name, pawl_machines.version AS machine_version
  FROM pawl_jobs LEFT JOIN pawl_machines
    ON pawl_machines.id = pawl_jobs.machine AND version BETWEEN 1 AND ${VERSION_MAX}`

const SELECT_FACTS = `
  SELECT pawl_ledger.* FROM pawl_ledger JOIN pawl_jobs ON pawl_jobs.rid = pawl_ledger.job
  WHERE pawl_jobs.id = ? AND pawl_ledger.seq <= ? ORDER BY pawl_ledger.seq`

const SELECT_PAYLOADS = `
  SELECT kind, payload FROM pawl_ledger JOIN pawl_jobs ON pawl_jobs.rid = pawl_ledger.job
  WHERE pawl_jobs.id = ? AND payload IS NOT NULL
    AND kind IN (${FACT_CODES.create}, ${FACT_CODES.replace}, ${FACT_CODES.commit})
  ORDER BY pawl_ledger.seq`

const SELECT_TAIL = `
  SELECT pawl_ledger.*, pawl_jobs.id AS job_id
  FROM pawl_ledger JOIN pawl_jobs ON pawl_jobs.rid = pawl_ledger.job
  WHERE pos > ? ORDER BY pos LIMIT ?`

/** The job with this id. */
export function get(connection: Connection, id: string): Job | undefined {
  return sound(connection.get<NamedJobRow>(`${SELECT_JOB} WHERE pawl_jobs.id = ?`, id))
}

/** Those of these jobs that exist and can be read. */
export function getMany(connection: Connection, ids: readonly string[]): Job[] {
  const those = `${SELECT_JOB} WHERE pawl_jobs.id IN (SELECT value FROM json_each(?))`
  const rows = connection.all<NamedJobRow>(those, JSON.stringify(ids))
  return rows.map(named).filter((job) => !(job instanceof JobDamaged)) as Job[]
}

/** The job of this type that has this key. */
export function getByKey(connection: Connection, type: string, key: string): Job | undefined {
  const row = connection.get<NamedJobRow>(
    `${SELECT_JOB} WHERE pawl_jobs.type = ? AND pawl_jobs.key = ?`,
    type,
    key,
  )
  return sound(row)
}

/** The facts of a job up to a seq, in order. */
export function facts(connection: Connection, id: string, upTo = Number.MAX_SAFE_INTEGER): Fact[] {
  return connection.all<FactRow>(SELECT_FACTS, id, upTo).map((row) => toFact(id, row))
}

/** The creation is the first fact of a job, and there is at most one commit: both by an index. */
const tracesOf = (which: string) => `
  SELECT asked.value AS id, pawl_ledger.data
  FROM json_each(?) AS asked
  CROSS JOIN pawl_jobs ON pawl_jobs.id = asked.value
  CROSS JOIN pawl_ledger ON pawl_ledger.job = pawl_jobs.rid AND pawl_ledger.${which}`

const SELECT_TRACES = {
  create: tracesOf('seq = 1'),
  commit: tracesOf(`kind = ${FACT_CODES.commit}`),
}

/** The data of the facts that created or committed jobs. */
export function traceData(
  connection: Connection,
  ids: readonly string[],
  of: TracedTrigger,
): TraceDataRow[] {
  return connection.all<TraceDataRow>(SELECT_TRACES[of], JSON.stringify(ids))
}

/** The job as it was after a fact. */
export function asOf(connection: Connection, id: string, seq: number): Job | undefined {
  return fold(facts(connection, id, seq)) ?? undefined
}

/** Input and result of a job. */
export function payloads(
  connection: Connection,
  id: string,
): { input: string; result?: string } | undefined {
  const rows = connection.all<{ kind: number; payload: string | null }>(SELECT_PAYLOADS, id)
  const input = rows.findLast(({ kind }) => kind !== FACT_CODES.commit)?.payload
  const result = rows.find(({ kind }) => kind === FACT_CODES.commit)?.payload
  if (input === undefined || input === null) return undefined
  return { input, ...(result !== undefined && result !== null && { result }) }
}

/** The progress that the present attempt last reported. */
export function progress(connection: Connection, id: string): string | undefined {
  const sql = 'SELECT progress FROM pawl_jobs WHERE id = ?'
  return connection.get<{ progress: string | null }>(sql, id)?.progress ?? undefined
}

const SELECT_STEPS = `
  SELECT data, payload FROM pawl_ledger WHERE job = ? AND kind = ${FACT_CODES.step} ORDER BY seq`

/** The results of the steps that were finished. */
export function steps(connection: Connection, ref: Ref): StepResult[] {
  const rows = connection.all<{ data: string; payload: string | null }>(SELECT_STEPS, ref)
  return rows.map(({ data, payload }) => {
    return stepIn(ref, data, payload ?? 'null')
  })
}

const SELECT_STEP = `
  SELECT 1 FROM pawl_ledger WHERE job = ? AND kind = ${FACT_CODES.step}
    AND json_extract(data, '$.step.name') = ? AND json_extract(data, '$.step.n') = ?`

/** Whether a step was finished; its first result counts. */
export function hasStep(connection: Connection, rid: number, name: string, n: number): boolean {
  return connection.get(SELECT_STEP, rid, name, n) !== undefined
}

/** Facts after a position in the ledger. On SQLite `pos` is the order of commits. */
export function tail(
  connection: Connection,
  after: string | undefined,
  limit: number,
): (TailEntry | UnreadableFact)[] {
  type TailRow = FactRow & { readonly pos: number; readonly job_id: string }
  const rows = connection.all<TailRow>(SELECT_TAIL, Number(after ?? 0), limit)
  return rows.map((row) => readFact(String(row.pos), row.job_id, row))
}

/** The position after the last fact. */
export function tailEnd(connection: Connection): string {
  const sql = 'SELECT coalesce(max(pos), 0) AS pos FROM pawl_ledger'
  return String(connection.get<{ pos: number }>(sql)?.pos)
}

/** How many jobs each lane holds, from the partial indexes, and the roll-up of ended ones. */
export function counts(connection: Connection): Counts {
  const ended = connection.all<{ state: string; jobs: number }>(
    'SELECT state, sum(jobs) AS jobs FROM pawl_ended_counts GROUP BY state HAVING sum(jobs) > 0',
  )
  const live = Object.entries(LANES)
    .filter(([lane]) => lane !== 'ended')
    .map(([lane, code]) => [lane, countLane(connection, code)] as const)
  const total = ended.reduce((sum, { jobs }) => sum + jobs, 0)
  return {
    lanes: { ...Object.fromEntries(live), ended: total } as Record<Lane, number>,
    ended: Object.fromEntries(ended.map(({ state, jobs }) => [state, jobs])),
  }
}

/** The lane is part of the text: only then does SQLite use the partial index. */
function countLane(connection: Connection, lane: number): number {
  const sql = `SELECT count(*) AS jobs FROM pawl_jobs WHERE lane = ${lane}`
  return connection.get<{ jobs: number }>(sql)?.jobs ?? 0
}

const COUNT_BY_QUEUE = [
  ...Object.values(LANES)
    .filter((lane) => lane !== LANES.ended)
    .map(
      (lane) => `
      SELECT queue, ${lane} AS lane, count(*) AS jobs, min(run_at) AS first
      FROM pawl_jobs WHERE lane = ${lane} GROUP BY queue`,
    ),
  `SELECT queue, ${LANES.ended}, sum(jobs), NULL FROM pawl_ended_counts GROUP BY queue`,
].join(' UNION ALL ')

const SELECT_QUEUES = `
  SELECT *, CASE WHEN paused_at IS NOT NULL THEN (
    SELECT note FROM pawl_queue_records WHERE queue = name AND action = 'pause'
    ORDER BY number DESC LIMIT 1) END AS pause_note
  FROM pawl_queues`

/** Every queue, by name, with what is in it. */
export function listQueues(connection: Connection): QueueInfo[] {
  return queuesOf(
    connection.all<QueueCount>(COUNT_BY_QUEUE),
    connection.all<QueueRow>(SELECT_QUEUES),
  )
}

/** How long a list may take. It runs in the thread of its caller, and others wait meanwhile. */
export const LIST_BUDGET_MS = 40
/** Pages of lists, and how many rows are read between two checks of the time. */
const PAGE_DEFAULT = 50
const PAGE_MAX = 1000
const SCAN_CHUNK = 1000

/** Jobs by keyset, newest first; a page that takes too long ends early, with a cursor. */
export function list(
  connection: Connection,
  filter: JobFilter,
  options: { limit?: number; after?: string },
  expired: () => boolean,
): Page<Job> {
  const limit = Math.min(options.limit ?? PAGE_DEFAULT, PAGE_MAX)
  if (limit === 0) return { items: [] }
  const [conditions, values] = conditionsOf(filter)
  const page = new JobPage(limit)
  const few = filter.flow === undefined ? ifFew(connection, laneIn(filter)) : ofFlow(filter.flow)
  // The window is chosen by rid alone, so that a rare match cannot make one statement long.
  const window = `
    SELECT min(rid) AS first, count(*) AS seen
    FROM (SELECT rid FROM pawl_jobs WHERE rid < ? ${few} ORDER BY rid DESC LIMIT ${SCAN_CHUNK})`
  const where = ['rid < ?', 'rid >= ?', ...conditions].join(' AND ')
  const inWindow = `${SELECT_JOB} WHERE ${where} ${few} ORDER BY rid DESC LIMIT ${limit}`
  let cursor = options.after === undefined ? Number.MAX_SAFE_INTEGER : Number(options.after)
  for (;;) {
    const { first, seen } = connection.get(window, cursor) as { first: number; seen: number }
    if (seen === 0) return page.end()
    for (const row of connection.all<NamedJobRow>(inWindow, cursor, first, ...values)) {
      page.add(row, named(row))
      if (page.isFull) return page.end(String(row.rid))
    }
    cursor = first
    if (seen < SCAN_CHUNK) return page.end()
    if (expired()) return { ...page.end(String(cursor)), partial: true }
  }
}

/** The lane that all matching jobs are in, if the filter says so. Stalled jobs are held. */
function laneIn({ lane, outcome, stalled }: JobFilter): Lane | undefined {
  if (stalled) return 'held'
  return outcome === 'parked' ? 'parked' : lane
}

const FEW_MAX = 5000

/**
 * A lane with few jobs is read by its partial index: among a million ended jobs a scan by rid would
 * not find them within the budget.
 */
function ifFew(connection: Connection, lane: Lane | undefined): string {
  if (lane === undefined || lane === 'ended') return ''
  const those = `SELECT rid FROM pawl_jobs WHERE lane = ${LANES[lane]}`
  const bounded = `SELECT count(*) AS found FROM (${those} LIMIT ${FEW_MAX + 1})`
  const { found } = connection.get(bounded) as { found: number }
  return found > FEW_MAX ? '' : `AND rid IN (${those})`
}

/** The jobs of a flow are found by their index. A text that is not an id matches nothing. */
function ofFlow(flow: string): string {
  const isId = uuid(flow) === undefined
  return `AND rid IN (SELECT rid FROM pawl_jobs WHERE ${isId ? `flow = '${flow}'` : 'false'})`
}

/** What a filter by error looks through: the message, the code and the fingerprint. */
const ERROR_TEXT = ['message', 'code', 'fingerprint']
  .map((field) => `coalesce(json_extract(${ifJson('error')}, '$.${field}'), '')`)
  .join(' || char(10) || ')

function conditionsOf(filter: JobFilter): [string[], Value[]] {
  const entries: [string, Value | undefined][] = [
    ['state = ?', filter.state],
    ['lane = ?', filter.lane === undefined ? undefined : LANES[filter.lane]],
    [OUTCOME_IS, filter.outcome],
    ['stalled = ?', filter.stalled === undefined ? undefined : Number(filter.stalled)],
    ['queue = ?', filter.queue],
    ['type = ?', filter.type],
    ['key = ?', filter.key],
    [`EXISTS (SELECT 1 FROM json_each(${ifJson('tags')}) WHERE value = ?)`, filter.tag],
    [`instr(${ERROR_TEXT}, ?) > 0`, filter.error],
    ['reason = ?', reasonToFind(filter.waitsFor)],
    ['flow = ?', filter.flow],
    ['reason GLOB ?', filter.waitsForSignal && `${reasonToFind('')}*`],
    ['created_at >= ?', filter.createdFrom],
    ['created_at < ?', filter.createdBefore],
  ]
  const given = entries.filter((entry): entry is [string, Value] => entry[1] !== undefined)
  return [given.map(([condition]) => condition), given.map(([, value]) => value)]
}

/** Other content of a column must not make the whole list fail. */
function ifJson(column: string): string {
  return `iif(json_valid(${column}), ${column}, NULL)`
}

function named(row: NamedJobRow): Job | JobDamaged {
  if (row.machine_name === null) return unknownMachine(row, row.rid)
  return readRow(row, { name: row.machine_name, version: row.machine_version }, row.rid)
}

function sound(row: NamedJobRow | undefined): Job | undefined {
  const job = row && named(row)
  if (job instanceof JobDamaged) throw job
  return job
}
