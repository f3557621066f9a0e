/**
 * The columns of the tables of jobs and facts, the same in every store. From these two tables come
 * the INSERT and UPDATE statements of both stores, what a claim reads of a job, the row as the
 * doctor compares it with the facts, and the checks of what was read.
 *
 * To add a column: a line here, the field in `JobRow` and `toJob` (`rows.ts`), and a migration for
 * each database. The compiler reports a column of `JobRow` that is missing here.
 */
import { FACT_CODES, type Fact } from '../core/job/facts.ts'
import { isPastDeadline, type Job } from '../core/job/job.ts'
import { LANES } from '../core/job/lanes.ts'
import { factData, factPath, factStatuses, type JobRow, statusLetter, type Value } from './rows.ts'

/** What the row of a job is made of. */
export interface JobFold {
  readonly job: Job
  /** The code of its lane. */
  readonly lane: number
  /** The number of its lifecycle in the store. */
  readonly machine: number
  /** When its lease ends; written only if the job is held. */
  readonly leaseUntil: number | null
}

/** The type of a column on PostgreSQL. SQLite has INTEGER for numbers and TEXT for the rest. */
type ColumnType = 'uuid' | 'smallint' | 'int' | 'bigint' | 'text'

/** One column of the table of jobs. */
export interface JobColumn {
  readonly name: Exclude<keyof JobRow, 'rid'> | 'lane'
  readonly type: ColumnType
  readonly value: (row: JobFold) => Value
  /**
   * How a new job writes it: `plain` columns differ from the default of every job, `special` ones
   * are null for most jobs. Absent if a new job has the default of the table.
   */
  readonly insert?: 'plain' | 'special'
  /** Whether a later fact can change it. */
  readonly changes?: true
  /**
   * How a claim learns it: `read` from every row, `rare` from rows in which it is not what `absent`
   * says. The other columns follow from the claim itself.
   */
  readonly claim?: 'read' | 'rare'
  /** The value of a `rare` column in most rows. */
  readonly absent?: null | 0
  /** It holds JSON, which is compared by value. */
  readonly json?: true
}

const RARE = { claim: 'rare', absent: null } as const
const RARE_COUNT = { claim: 'rare', absent: 0, changes: true } as const

/** Every column that the facts of a job determine, and the lane. */
export const JOB_COLUMNS = [
  { name: 'id', type: 'uuid', value: ({ job }) => job.id, claim: 'read' },
  { name: 'lane', type: 'smallint', value: ({ lane }) => lane, insert: 'plain', changes: true },
  { name: 'machine', type: 'int', value: (row) => row.machine, insert: 'plain', claim: 'read' },
  { name: 'state', type: 'text', value: ({ job }) => job.state, insert: 'plain', changes: true },
  { name: 'queue', type: 'text', value: ({ job }) => job.queue, insert: 'plain', claim: 'read' },
  { name: 'type', type: 'text', value: ({ job }) => job.type, insert: 'plain', claim: 'read' },
  {
    name: 'priority',
    type: 'int',
    value: ({ job }) => job.priority,
    insert: 'plain',
    changes: true,
    claim: 'read',
  },
  {
    name: 'ahead_ms',
    type: 'int',
    value: aheadOf,
    insert: 'special',
    changes: true,
    ...RARE,
  },
  {
    name: 'run_at',
    type: 'bigint',
    value: ({ job }) => job.runAt,
    insert: 'plain',
    changes: true,
    claim: 'read',
  },
  {
    name: 'seq',
    type: 'int',
    value: ({ job }) => job.seq,
    insert: 'plain',
    changes: true,
    claim: 'read',
  },
  { name: 'attempt', type: 'int', value: ({ job }) => job.attempt, changes: true, claim: 'read' },
  { name: 'failures', type: 'int', value: ({ job }) => job.failures, ...RARE_COUNT },
  { name: 'crashes', type: 'int', value: ({ job }) => job.crashes, ...RARE_COUNT },
  { name: 'releases', type: 'int', value: ({ job }) => job.releases, ...RARE_COUNT },
  { name: 'status', type: 'text', value: statusOf, changes: true },
  { name: 'claim', type: 'uuid', value: ({ job }) => job.execution?.claim ?? null, changes: true },
  {
    name: 'worker',
    type: 'text',
    value: ({ job }) => job.execution?.worker ?? null,
    changes: true,
  },
  { name: 'lease_until', type: 'bigint', value: leaseOf, changes: true },
  {
    name: 'created_at',
    type: 'bigint',
    value: ({ job }) => job.createdAt,
    insert: 'plain',
    claim: 'read',
  },
  {
    name: 'updated_at',
    type: 'bigint',
    value: ({ job }) => job.updatedAt,
    insert: 'plain',
    changes: true,
  },
  { name: 'started_at', type: 'bigint', value: ({ job }) => job.startedAt, changes: true },
  { name: 'ended_at', type: 'bigint', value: ({ job }) => job.endedAt, changes: true },
  { name: 'outcome', type: 'text', value: ({ job }) => job.outcome, changes: true },
  { name: 'reason', type: 'text', value: ({ job }) => job.reason, changes: true },
  {
    name: 'error',
    type: 'text',
    value: ({ job }) => jsonOf(job.error),
    changes: true,
    json: true,
    ...RARE,
  },
  { name: 'blocked_reason', type: 'text', value: ({ job }) => job.blockedReason, changes: true },
  { name: 'stalled', type: 'smallint', value: ({ job }) => (job.stalled ? 1 : 0), changes: true },
  { name: 'key', type: 'text', value: ({ job }) => job.key, insert: 'special', ...RARE },
  {
    name: 'limit_key',
    type: 'text',
    value: ({ job }) => job.limitKey,
    insert: 'special',
    changes: true,
    ...RARE,
  },
  { name: 'tags', type: 'text', value: tagsOf, insert: 'special', json: true, ...RARE },
  { name: 'retry_of', type: 'uuid', value: ({ job }) => job.retryOf, insert: 'special', ...RARE },
  {
    name: 'timeout_ms',
    type: 'bigint',
    value: ({ job }) => job.timeoutMs,
    insert: 'special',
    ...RARE,
  },
  {
    name: 'deadline_at',
    type: 'bigint',
    value: ({ job }) => job.deadlineAt,
    insert: 'special',
    ...RARE,
  },
  {
    name: 'policy',
    type: 'text',
    value: ({ job }) => jsonOf(job.policy),
    insert: 'special',
    json: true,
    ...RARE,
  },
  { name: 'flow', type: 'uuid', value: ({ job }) => job.flow, insert: 'special', ...RARE },
  { name: 'node', type: 'int', value: ({ job }) => job.node, insert: 'special', ...RARE },
  {
    name: 'links',
    type: 'smallint',
    value: ({ job }) => linksOf(job),
    insert: 'special',
    changes: true,
    ...RARE,
  },
] as const satisfies readonly JobColumn[]

/** Does not compile if a column of `JobRow` is missing above. */
type Missing = Exclude<keyof JobRow, (typeof JOB_COLUMNS)[number]['name']>
const NONE_MISSING: [Missing] extends [never] ? true : Missing = true
void NONE_MISSING

function statusOf({ job }: JobFold): Value {
  return job.execution === null ? null : statusLetter(job.execution.status)
}

function leaseOf({ lane, leaseUntil }: JobFold): Value {
  return lane === LANES.held ? leaseUntil : null
}

function aheadOf({ job }: JobFold): Value {
  return job.aheadMs === 0 ? null : job.aheadMs
}

function linksOf({ links }: Job): Value {
  return links === 0 ? null : links
}

function tagsOf({ job }: JobFold): Value {
  return job.tags.length === 0 ? null : JSON.stringify(job.tags)
}

function jsonOf(value: unknown): Value {
  return value === null ? null : JSON.stringify(value)
}

const columnsWith = (isMeant: (column: JobColumn) => boolean): readonly JobColumn[] =>
  JOB_COLUMNS.filter(isMeant)

/** What a new job with nothing special about it writes, beside its id. */
export const PLAIN_COLUMNS = columnsWith(({ insert }) => insert === 'plain')
/** What most jobs do not have. */
export const SPECIAL_COLUMNS = columnsWith(({ insert }) => insert === 'special')
/** What a fact can change. */
export const CHANGING_COLUMNS = columnsWith(({ changes }) => changes === true)
/** What a claim cannot know of a job that it took, and every job has. */
export const CLAIM_COLUMNS = columnsWith(({ claim }) => claim === 'read')
/** What a claim cannot know either, and most jobs do not have. */
export const RARE_COLUMNS = columnsWith(({ claim }) => claim === 'rare')

type Named<Claim> = Extract<(typeof JOB_COLUMNS)[number], { readonly claim: Claim }>['name']
/** The columns that a claim reads of every job. */
export type CommonRow = Pick<JobRow, Named<'read'>>
/** The columns that most jobs do not have. */
export type RareRow = Pick<JobRow, Named<'rare'>>
/** Those columns in most rows. */
export const NOTHING_RARE = Object.fromEntries(
  RARE_COLUMNS.map(({ name, absent }) => [name, absent]),
) as unknown as RareRow

/** What a claim writes into every job that it takes. */
export interface GivenRow {
  readonly status: string
  readonly claim: string
  readonly worker: string
  readonly leaseUntil: number
  readonly now: number
}

/**
 * The row of a job that was claimed, as its columns were read. Like the two functions below it is
 * written out: a loop over the table makes claims twice as slow. `test/stores/columns.test.ts`
 * compares all three with the table.
 */
export function claimedRow(read: CommonRow, rare: RareRow, given: GivenRow, state: string): JobRow {
  return {
    id: read.id,
    machine: read.machine,
    type: read.type,
    queue: read.queue,
    tags: rare.tags,
    key: rare.key,
    limit_key: rare.limit_key,
    retry_of: rare.retry_of,
    timeout_ms: rare.timeout_ms,
    deadline_at: rare.deadline_at,
    policy: rare.policy,
    flow: rare.flow,
    node: rare.node,
    links: rare.links,
    state,
    seq: read.seq,
    attempt: read.attempt,
    failures: rare.failures,
    crashes: rare.crashes,
    releases: rare.releases,
    priority: read.priority,
    ahead_ms: rare.ahead_ms,
    run_at: read.run_at,
    created_at: read.created_at,
    started_at: given.now,
    ended_at: null,
    updated_at: given.now,
    outcome: null,
    reason: null,
    error: rare.error,
    blocked_reason: null,
    stalled: 0,
    // Past the deadline of its job an attempt does not start.
    status: isPast(rare.deadline_at, given.now) ? statusLetter('LEASED') : given.status,
    claim: given.claim,
    worker: given.worker,
    lease_until: given.leaseUntil,
  }
}

function isPast(deadlineAt: number | null, now: number): boolean {
  return isPastDeadline({ deadlineAt }, now)
}

/** The index of each column in a list of `CLAIM_COLUMNS` and `RARE_COLUMNS`. */
const AT = Object.fromEntries(
  [...CLAIM_COLUMNS, ...RARE_COLUMNS].map(({ name }, i) => [name, i]),
) as Readonly<Record<keyof (CommonRow & RareRow), number>>

/** The columns that a claim reads, from a list of their values. */
export function unpackClaimed(values: readonly Value[]): CommonRow & RareRow {
  return {
    id: values[AT.id],
    machine: values[AT.machine],
    queue: values[AT.queue],
    type: values[AT.type],
    priority: values[AT.priority],
    ahead_ms: values[AT.ahead_ms],
    run_at: values[AT.run_at],
    seq: values[AT.seq],
    attempt: values[AT.attempt],
    created_at: values[AT.created_at],
    failures: values[AT.failures],
    crashes: values[AT.crashes],
    releases: values[AT.releases],
    error: values[AT.error],
    key: values[AT.key],
    limit_key: values[AT.limit_key],
    tags: values[AT.tags],
    retry_of: values[AT.retry_of],
    timeout_ms: values[AT.timeout_ms],
    deadline_at: values[AT.deadline_at],
    policy: values[AT.policy],
    flow: values[AT.flow],
    node: values[AT.node],
    links: values[AT.links],
  } satisfies Record<keyof (CommonRow & RareRow), unknown> as CommonRow & RareRow
}

/** Columns that hold JSON. */
export const JSON_COLUMNS: ReadonlySet<string> = new Set(
  columnsWith(({ json }) => json === true).map(({ name }) => name),
)

/** The values of some columns, in their order. */
export function valuesOf(columns: readonly JobColumn[], row: JobFold): Value[] {
  return columns.map(({ value }) => value(row))
}

/** The values of the columns that a fact can change, in their order. */
export function changingValues(row: JobFold): Value[] {
  const { job, lane } = row
  return [
    lane,
    job.state,
    job.priority,
    aheadOf(row),
    job.runAt,
    job.seq,
    job.attempt,
    job.failures,
    job.crashes,
    job.releases,
    statusOf(row),
    job.execution?.claim ?? null,
    job.execution?.worker ?? null,
    leaseOf(row),
    job.updatedAt,
    job.startedAt,
    job.endedAt,
    job.outcome,
    job.reason,
    jsonOf(job.error),
    job.blockedReason,
    job.stalled ? 1 : 0,
    job.limitKey,
    linksOf(job),
  ]
}

/**
 * The time by which ready and blocked jobs with the same priority are ordered, as in the indexes of
 * these lanes: the same text, so that they are used.
 */
export const orderAt = (of = ''): string => `(${of}run_at - coalesce(${of}ahead_ms, 0))`

/** Names as a list in SQL. */
export function namesOf(columns: readonly { readonly name: string }[], prefix = ''): string {
  return columns.map(({ name }) => `${prefix}${name}`).join(', ')
}

/** Every column of the row of a job, by name. */
export function columnsOf(row: JobFold): Readonly<Record<string, Value>> {
  return Object.fromEntries(JOB_COLUMNS.map(({ name, value }) => [name, value(row)]))
}

/** Whether a job has none of the attributes that most jobs do not have. */
export function isPlain(row: JobFold): boolean {
  return SPECIAL_COLUMNS.every(({ value }) => value(row) === null)
}

/** A fact that is about to be written, with the result or input that it carries. */
export interface FactEntry {
  readonly fact: Fact
  readonly payload: string | null
}

/** One column of the ledger. */
export interface FactColumn {
  readonly name: string
  readonly type: ColumnType
  readonly value: (fact: Fact) => Value
  /** Facts of one call mostly have the same value. */
  readonly shared?: true
  /** The doctor compares it with what the rest of the fact says. */
  readonly derived?: true
}

/** The columns of a fact, but for its job, which each store refers to in its own way. */
export const FACT_COLUMNS: readonly FactColumn[] = [
  { name: 'seq', type: 'int', value: (fact) => fact.seq },
  { name: 'kind', type: 'smallint', value: (fact) => FACT_CODES[fact.trigger], shared: true },
  { name: 'at', type: 'bigint', value: (fact) => fact.at, shared: true },
  { name: 'path', type: 'text', value: factPath, shared: true, derived: true },
  { name: 'actor', type: 'text', value: (fact) => fact.actor, shared: true },
  { name: 'statuses', type: 'text', value: factStatuses, shared: true, derived: true },
  { name: 'attempt', type: 'int', value: (fact) => fact.execution?.attempt ?? null, derived: true },
  {
    name: 'claim',
    type: 'uuid',
    value: (fact) => fact.execution?.claim ?? null,
    shared: true,
    derived: true,
  },
  {
    name: 'worker',
    type: 'text',
    value: (fact) => fact.execution?.worker ?? null,
    shared: true,
    derived: true,
  },
  {
    name: 'lease_until',
    type: 'bigint',
    value: (fact) => fact.execution?.leaseUntil ?? null,
    shared: true,
    derived: true,
  },
  { name: 'data', type: 'text', value: factData, shared: true },
]

/** What facts of one call mostly have in common; `data` comes last. */
export const SHARED_FACT_COLUMNS = FACT_COLUMNS.filter(({ shared }) => shared === true)
/** The values of those columns; without `data` for facts with times, which differ in it. */
export function sharedFactValues(fact: Fact): Value[] {
  const { execution } = fact
  const values = [
    FACT_CODES[fact.trigger],
    fact.at,
    factPath(fact),
    fact.actor,
    factStatuses(fact),
    execution?.claim ?? null,
    execution?.worker ?? null,
    execution?.leaseUntil ?? null,
  ]
  if (fact.timing === undefined) values.push(factData(fact))
  return values
}

/** What follows from the rest of a fact; the doctor compares it. */
export const DERIVED_FACT_COLUMNS = FACT_COLUMNS.filter(({ derived }) => derived === true)
