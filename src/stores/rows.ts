/**
 * How jobs and facts are kept as rows; the same in every store.
 *
 * The row of a job is its fold, column by column (`columns.ts`), plus what is volatile: `lane`,
 * `lease_until`, progress and the wish to cancel. The row of a fact has columns for what is asked
 * for often, the rest of the fact as JSON in `data`, and its payload, opaque, in `payload`:
 *
 *   kind      the fact's code (`FACT_CODES`)
 *   path      the states from → via… → to, joined by ">"; one state alone: no edge was taken
 *   statuses  what the attempt entered, by first letters: L, I, C, D, A
 */
import { crc32 } from 'node:zlib'
import { LedgerBroken } from '../core/errors.ts'
import type { AbortReason, ExecutionStatus } from '../core/execution.ts'
import { type ExecutionChange, FACT_CODES, type Fact, type FactTrigger } from '../core/job/facts.ts'
import type { Job, JobAttributes } from '../core/job/job.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'

/** What a column of a row can hold. */
export type Value = string | number | null

/** The row of a job, as both stores select it. */
export interface JobRow {
  readonly id: string
  readonly machine: number
  readonly type: string
  readonly queue: string
  readonly tags: string | null
  readonly key: string | null
  readonly limit_key: string | null
  readonly retry_of: string | null
  readonly timeout_ms: number | null
  readonly deadline_at: number | null
  readonly policy: string | null
  readonly flow: string | null
  readonly node: number | null
  readonly links: number | null
  readonly state: string
  readonly seq: number
  readonly attempt: number
  readonly failures: number
  readonly crashes: number
  readonly releases: number
  readonly priority: number
  readonly ahead_ms: number | null
  readonly run_at: number | null
  readonly created_at: number
  readonly started_at: number | null
  readonly ended_at: number | null
  readonly updated_at: number
  readonly outcome: Job['outcome']
  readonly reason: string | null
  readonly error: string | null
  readonly blocked_reason: string | null
  readonly stalled: number
  readonly status: string | null
  readonly claim: string | null
  readonly worker: string | null
  readonly lease_until: number | null
}

/** The job that a row holds; its lifecycle's name and version come from the table of machines. */
export function toJob(row: JobRow, lifecycle: Pick<Lifecycle, 'name' | 'version'>): Job {
  return {
    id: row.id,
    type: row.type,
    queue: row.queue,
    lifecycle: lifecycle.name,
    lifecycleVersion: lifecycle.version,
    tags: row.tags === null ? [] : (JSON.parse(row.tags) as string[]),
    key: row.key,
    limitKey: row.limit_key,
    retryOf: row.retry_of,
    timeoutMs: row.timeout_ms,
    deadlineAt: row.deadline_at,
    policy: row.policy === null ? null : (JSON.parse(row.policy) as Job['policy']),
    state: row.state,
    seq: row.seq,
    attempt: row.attempt,
    failures: row.failures,
    crashes: row.crashes,
    releases: row.releases,
    priority: row.priority,
    aheadMs: row.ahead_ms ?? 0,
    runAt: row.run_at,
    createdAt: row.created_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    updatedAt: row.updated_at,
    outcome: row.outcome,
    reason: row.reason,
    error: row.error === null ? null : (JSON.parse(row.error) as Job['error']),
    blockedReason: row.blocked_reason,
    stalled: row.stalled === 1,
    execution: executionOf(row),
    flow: row.flow,
    node: row.node,
    links: row.links ?? 0,
  }
}

function executionOf(row: JobRow): Job['execution'] {
  const { status, claim, worker, lease_until } = row
  if (status === null || claim === null || worker === null) return null
  const name = STATUSES.get(status) as NonNullable<Job['execution']>['status']
  // A committed execution has no lease. Its claim stays, so that the commit can be repeated.
  return { status: name, claim, worker, leaseUntil: lease_until ?? 0 }
}

/** The first letters by which statuses are kept. */
const STATUSES: ReadonlyMap<string, ExecutionStatus> = new Map([
  ['L', 'LEASED'],
  ['I', 'IN_PROGRESS'],
  ['C', 'COMMITTED'],
  ['D', 'DONE'],
  ['A', 'ABORTED'],
])

/** The letter under which the present execution's status is kept. */
export function statusLetter(status: ExecutionStatus): string {
  return status[0] as string
}

/** The row of a fact, as both stores select it. */
export interface FactRow {
  readonly seq: number
  readonly kind: number
  readonly version: number
  readonly at: number
  readonly path: string
  readonly actor: Fact['actor']
  readonly attempt: number | null
  readonly statuses: string | null
  readonly claim: string | null
  readonly worker: string | null
  readonly lease_until: number | null
  readonly data: string | null
}

/** What `data` holds: the rest of the fact, and of its change to the attempt. */
type FactData = Partial<Fact> & Pick<ExecutionChange, 'abort' | 'final'>

const TRIGGERS = new Map(
  Object.entries(FACT_CODES).map(([trigger, code]) => [code as number, trigger as FactTrigger]),
)

/** The fields of a fact that have columns of their own, or that `factData` writes by itself. */
const COLUMNED: ReadonlySet<string> = new Set([
  'version',
  'jobId',
  'seq',
  'at',
  'trigger',
  'from',
  'via',
  'to',
  'actor',
  'execution',
  'timing',
  'created',
])

type AnyAttribute = 'type' | 'queue' | 'lifecycle' | 'lifecycleVersion'

/**
 * What most jobs have. The first fact of a job leaves out attributes with these values, a priority
 * of 0, and a due time that is its own time; `toFact` adds them. Facts of earlier releases have
 * all of them. The compiler reports an attribute that is missing here.
 */
const ABSENT: Omit<JobAttributes, AnyAttribute> = {
  tags: [],
  key: null,
  limitKey: null,
  retryOf: null,
  timeoutMs: null,
  deadlineAt: null,
  policy: null,
}

/** The attributes of a new job that differ from `ABSENT`, as JSON. */
function attributesText(created: JobAttributes): string {
  let fields = ''
  let name: keyof JobAttributes
  for (name in created) {
    const value = created[name]
    if (value === null || (name === 'tags' && created.tags.length === 0)) continue
    fields += `,"${name}":${JSON.stringify(value)}`
  }
  return `{${fields.slice(1)}}`
}

/** The data of a first fact, with what `factData` has left out. */
function completed(data: FactData, at: number): FactData {
  const { created, priority = 0, runAt = at, ...rest } = data
  const attributes = { ...ABSENT, ...created } as JobAttributes
  return { created: attributes, priority, ...rest, runAt }
}

/** The fields of a fact that have no column of their own, as JSON; null if there are none. */
export function factData(fact: Fact): string | null {
  const { created, execution, timing } = fact
  let fields = created === undefined ? '' : `,"created":${attributesText(created)}`
  let name: keyof Fact
  for (name in fact) {
    if (COLUMNED.has(name) || (created !== undefined && isUsual(fact, name))) continue
    const text = JSON.stringify(fact[name])
    if (text !== undefined) fields += `,"${name}":${text}`
  }
  if (timing !== undefined) {
    // Every attempt ends with it, and JSON.stringify of a small object is slow.
    fields += `,"timing":{"queueMs":${timing.queueMs},"durationMs":${timing.durationMs}}`
  }
  if (execution?.abort !== undefined) fields += `,"abort":${JSON.stringify(execution.abort)}`
  if (execution?.final) fields += ',"final":true'
  return fields === '' ? null : `{${fields.slice(1)}}`
}

/** Whether a first fact leaves a field out. */
function isUsual(fact: Fact, name: keyof Fact): boolean {
  return (
    (name === 'priority' && fact.priority === 0) || (name === 'runAt' && fact.runAt === fact.at)
  )
}

/** The states of a fact, as its column holds them. */
export function factPath(fact: Fact): string {
  const { from, via, to } = fact
  if (via === undefined) return from === null || from === to ? to : `${from}>${to}`
  return from === null ? `${via.join('>')}>${to}` : `${from}>${via.join('>')}>${to}`
}

/** The statuses of a fact, as its column holds them. */
export function factStatuses(fact: Fact): string | null {
  return fact.execution?.statuses.map(statusLetter).join('') ?? null
}

/** The fact that a row holds. */
export function toFact(jobId: string, row: FactRow): Fact {
  const trigger = TRIGGERS.get(row.kind)
  if (trigger === undefined) throw new LedgerBroken(`job ${jobId}`, row.seq, 'unknown kind of fact')
  const { abort, final, ...stored } = dataOf(jobId, row)
  const states = row.path.split('>')
  const created = trigger === 'create'
  const data = stored.created === undefined ? stored : completed(stored, row.at)
  const via = states.slice(created ? 0 : 1, -1)
  return {
    version: row.version,
    jobId,
    seq: row.seq,
    at: row.at,
    trigger,
    from: created ? null : states[0],
    ...(via.length > 0 && { via }),
    to: states[states.length - 1],
    actor: row.actor,
    ...data,
    ...(row.attempt !== null && { execution: changeOf(row, abort, final) }),
  } as Fact
}

function dataOf(jobId: string, { seq, data }: FactRow): FactData {
  try {
    const read = JSON.parse(data ?? '{}') as FactData | null
    if (typeof read === 'object' && read !== null) return read
  } catch {
    // Reported below, with the job and the number of the fact, which the parser does not know.
  }
  throw new LedgerBroken(`job ${jobId}`, seq, 'its data cannot be read')
}

function changeOf(row: FactRow, abort?: AbortReason, final?: true): ExecutionChange {
  const letters = [...(row.statuses ?? '')]
  return {
    attempt: row.attempt as number,
    statuses: letters.map((letter) => STATUSES.get(letter) as ExecutionStatus),
    ...(row.claim !== null && { claim: row.claim }),
    ...(row.worker !== null && { worker: row.worker }),
    ...(row.lease_until !== null && { leaseUntil: row.lease_until }),
    ...(abort !== undefined && { abort }),
    ...(final !== undefined && { final }),
  }
}

/** The id of the job that a fact creates, with a checksum, in case row and ledger disagree. */
export function creationMark(id: string): string {
  return `${id}-${crc32(id).toString(16).padStart(8, '0')}`
}

/** The id in a mark; null if the mark is damaged. */
export function idInMark(mark: string | null): string | null {
  const id = mark?.slice(0, -9) ?? ''
  return mark !== null && creationMark(id) === mark ? id : null
}
