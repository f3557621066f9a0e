/**
 * Accepts jobs: one row and one fact each. A key that is taken is found by asking first, inside the
 * write transaction, where nobody can take it in between.
 */
import { JobExists, LifecycleUnknown, TransitionRace } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { evolve } from '../../core/job/evolve.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { LANES, laneOf } from '../../core/job/lanes.ts'
import { KeyTaken } from '../errors.ts'
import { findPayloadFault } from '../requests.ts'
import type { JobRow, Value } from '../rows.ts'
import type { Asker, Enqueued, EnqueueItem } from '../store.ts'
import { applyFact, insertPlainFacts } from './apply.ts'
import { isUniqueViolation } from './busy.ts'
import type { Connection } from './connect.ts'
import { contextOf, type Read, type Shared, toRead } from './context.ts'
import { insertTexts, ROWS_IN_BLOCK } from './rows-at-once.ts'

const INSERT_JOB = `
  INSERT INTO pawl_jobs (id, lane, machine, state, queue, type, priority, run_at, seq, created_at,
    updated_at, key, limit_key, tags, retry_of, timeout_ms, deadline_at, policy)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO NOTHING`

/** A job with nothing special about it: binding a value costs as much as writing it. */
const INSERT_PLAIN = insertTexts(
  `INSERT INTO pawl_jobs (id, lane, machine, state, queue, type, priority, run_at, seq, created_at,
    updated_at)`,
  11,
)

const SELECT_BY_KEY = 'SELECT * FROM pawl_jobs WHERE type = ? AND key = ?'

/** A job that was decided on and is about to be written. */
interface Accepted {
  readonly job: Job
  readonly fact: Fact
  readonly input: string
  readonly lane: number
  readonly machine: number
}

/** Accepts items; one that is refused hinders no other. */
export function enqueue(
  shared: Shared,
  connection: Connection,
  now: number,
  items: readonly EnqueueItem[],
  asker: Asker,
): Enqueued[] {
  const results: Enqueued[] = []
  let plain: Accepted[] = []
  for (const item of items) {
    const accepted = accept(shared, now, item, asker)
    const isKeyed = accepted.kind === 'accepted' && !isPlain(accepted.value.job)
    if (accepted.kind === 'accepted' && !isKeyed) {
      plain.push(accepted.value)
      continue
    }
    // Others may have to be found by their keys or ids, so what is gathered is written first.
    results.push(...insertPlain(connection, plain))
    plain = []
    results.push(
      accepted.kind === 'accepted'
        ? insertKeyed(shared, connection, now, item, accepted.value, asker)
        : accepted,
    )
  }
  results.push(...insertPlain(connection, plain))
  return results
}

function accept(
  shared: Shared,
  now: number,
  { lifecycle, command, input }: EnqueueItem,
  asker: Asker,
): { kind: 'accepted'; value: Accepted } | Extract<Enqueued, { kind: 'rejected' }> {
  const create = { ...command, kind: 'create' } as const
  const decision = decide(lifecycle, null, create, contextOf(shared, asker, now))
  if (decision.kind === 'rejected') return { kind: 'rejected', error: decision.error }
  const fault = findPayloadFault('input', input, shared.payloadBytesMax)
  if (fault !== undefined) return { kind: 'rejected', error: fault }
  const machine = shared.machines.idOf(lifecycle)
  if (machine === undefined) {
    return { kind: 'rejected', error: new LifecycleUnknown(lifecycle.name, lifecycle.version) }
  }
  const { fact } = decision as { fact: Fact }
  const job = evolve(null, fact)
  const lane = LANES[laneOf(lifecycle, job, fact.at)]
  return { kind: 'accepted', value: { job, fact, input, lane, machine } }
}

/** Writes jobs that have no key, many at once; where an id exists already, one by one. */
function insertPlain(connection: Connection, jobs: readonly Accepted[]): Enqueued[] {
  const results: Enqueued[] = []
  for (let i = 0; i < jobs.length; i += ROWS_IN_BLOCK) {
    const block = jobs.slice(i, i + ROWS_IN_BLOCK)
    const whole = block.length === ROWS_IN_BLOCK && insertTogether(connection, block)
    if (whole) results.push(...block.map(({ job }) => ({ kind: 'created', job }) as const))
    else results.push(...block.map((one) => insertAlone(connection, one)))
  }
  return results
}

function insertAlone(connection: Connection, one: Accepted): Enqueued {
  return insertTogether(connection, [one])
    ? { kind: 'created', job: one.job }
    : { kind: 'rejected', error: new JobExists(one.job.id) }
}

/** Writes one row, or a block of them, with their facts; nothing where an id was taken. */
function insertTogether(connection: Connection, jobs: readonly Accepted[]): boolean {
  const last = insertRowsOf(connection, jobs)
  if (last === undefined) return false
  // Nobody else writes in this transaction, so a block has consecutive numbers.
  const first = last - jobs.length + 1
  const entries = jobs.map(({ fact, input }, n) => ({ rid: first + n, fact, payload: input }))
  insertPlainFacts(connection, entries)
  return true
}

/** The number of the last row; a statement that meets a taken id writes no row at all. */
function insertRowsOf(connection: Connection, jobs: readonly Accepted[]): number | undefined {
  const text = jobs.length === 1 ? INSERT_PLAIN.one : INSERT_PLAIN.block
  try {
    return Number(connection.sql(text).run(...jobs.flatMap(plainColumns)).lastInsertRowid)
  } catch (error) {
    if (isUniqueViolation(error)) return undefined
    throw error
  }
}

function plainColumns({ job, lane, machine }: Accepted): Value[] {
  const { id, state, queue, type, priority, runAt, createdAt, updatedAt } = job
  return [id, lane, machine, state, queue, type, priority, runAt, 1, createdAt, updatedAt]
}

function insertKeyed(
  shared: Shared,
  connection: Connection,
  now: number,
  item: EnqueueItem,
  accepted: Accepted,
  asker: Asker,
): Enqueued {
  const { type, key } = item.command
  const row = findTaken(connection, type, key)
  if (row === undefined) return insertJob(connection, accepted)
  const taken = toRead(shared, row)
  return taken === undefined
    ? { kind: 'rejected', error: new KeyTaken(type, key as string, row.id) }
    : settleConflict(shared, connection, now, item, taken, asker)
}

/** The key belongs to a job: that job is the answer, or gets the new input, or is the refusal. */
function settleConflict(
  shared: Shared,
  connection: Connection,
  now: number,
  { command, input, onConflict }: EnqueueItem,
  taken: Read,
  asker: Asker,
): Enqueued {
  const { type, key = '', runAt, priority } = command
  if (onConflict === 'reject') {
    return { kind: 'rejected', error: new KeyTaken(type, key, taken.job.id) }
  }
  if (onConflict !== 'replace') return { kind: 'existing', job: taken.job }
  const commands: Command[] = [
    { kind: 'replace' },
    ...(runAt === undefined ? [] : [{ kind: 'reschedule', runAt } as const]),
    ...(priority === undefined ? [] : [{ kind: 'prioritise', priority } as const]),
  ]
  // All of it or nothing: a later command that is refused must not leave the first one done.
  let read = taken
  const facts: Fact[] = []
  for (const given of commands) {
    const decision = decide(read.lifecycle, read.job, given, contextOf(shared, asker, now))
    if (decision.kind === 'rejected') return decision
    if (decision.kind === 'same') continue
    facts.push(decision.fact)
    read = { ...read, job: evolve(read.job, decision.fact) }
  }
  let { job } = taken
  for (const fact of facts) {
    const payload = fact.trigger === 'replace' ? input : null
    const after = applyFact(connection, taken.lifecycle, taken.rid, job, fact, payload)
    // Inside one transaction nobody can have moved the row; if it happens all the same, say so.
    if (after === undefined) throw new TransitionRace(job.id)
    job = after
  }
  return { kind: 'replaced', job }
}

function findTaken(
  connection: Connection,
  type: string,
  key: string | undefined,
): JobRow | undefined {
  return key === undefined ? undefined : connection.get<JobRow>(SELECT_BY_KEY, type, key)
}

/** Writes one row and its fact. */
function insertJob(connection: Connection, accepted: Accepted): Enqueued {
  const { job, fact, input } = accepted
  const { changes, lastInsertRowid } = connection
    .sql(INSERT_JOB)
    .run(
      ...plainColumns(accepted),
      job.key,
      job.limitKey,
      job.tags.length === 0 ? null : JSON.stringify(job.tags),
      job.retryOf,
      job.timeoutMs,
      job.deadlineAt,
      job.policy === null ? null : JSON.stringify(job.policy),
    )
  if (Number(changes) === 0) return { kind: 'rejected', error: new JobExists(job.id) }
  insertPlainFacts(connection, [{ rid: Number(lastInsertRowid), fact, payload: input }])
  return { kind: 'created', job }
}

/** Whether the columns that only `INSERT_JOB` writes stay empty. */
function isPlain(job: Job): boolean {
  return (
    job.key === null &&
    job.limitKey === null &&
    job.tags.length === 0 &&
    job.retryOf === null &&
    job.timeoutMs === null &&
    job.deadlineAt === null &&
    job.policy === null
  )
}
