/**
 * Accepts jobs: one row and one fact each. A key that is taken is found by asking first, inside the
 * write transaction, where nobody can take it in between.
 */
import { JobExists, LifecycleUnknown } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { evolve } from '../../core/job/evolve.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { LANES, laneOf } from '../../core/job/lanes.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { KeyTaken } from '../errors.ts'
import { findPayloadFault } from '../requests.ts'
import type { JobRow } from '../rows.ts'
import type { Asker, Enqueued, EnqueueItem } from '../store.ts'
import { applyFact, insertFact } from './apply.ts'
import type { Connection } from './connect.ts'
import { contextOf, type Read, type Shared, toRead } from './context.ts'

const INSERT_JOB = `
  INSERT INTO pawl_jobs (id, lane, machine, state, queue, type, priority, run_at, seq, created_at,
    updated_at, key, limit_key, tags, retry_of, timeout_ms, deadline_at, policy)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (id) DO NOTHING`

/** A job with nothing special about it: binding a value costs as much as writing it. */
const INSERT_PLAIN = `
  INSERT INTO pawl_jobs (id, lane, machine, state, queue, type, priority, run_at, seq, created_at,
    updated_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?9, ?9)
  ON CONFLICT (id) DO NOTHING`

const SELECT_BY_KEY = 'SELECT * FROM pawl_jobs WHERE type = ? AND key = ?'

/** Accepts items; one that is refused hinders no other. */
export function enqueue(
  shared: Shared,
  connection: Connection,
  now: number,
  items: readonly EnqueueItem[],
  asker: Asker,
): Enqueued[] {
  return items.map((item) => enqueueOne(shared, connection, now, item, asker))
}

function enqueueOne(
  shared: Shared,
  connection: Connection,
  now: number,
  item: EnqueueItem,
  asker: Asker,
): Enqueued {
  const command = { ...item.command, kind: 'create' } as const
  const decision = decide(item.lifecycle, null, command, contextOf(shared, asker, now))
  if (decision.kind === 'rejected') return { kind: 'rejected', error: decision.error }
  const { fact } = decision as { fact: Fact }
  const fault = findPayloadFault('input', item.input)
  if (fault !== undefined) return { kind: 'rejected', error: fault }
  const machine = shared.machines.idOf(item.lifecycle)
  const { name, version } = item.lifecycle
  if (machine === undefined) {
    return { kind: 'rejected', error: new LifecycleUnknown(name, version) }
  }
  const row = findTaken(connection, command.type, command.key)
  if (row !== undefined) {
    const taken = toRead(shared, row)
    return taken === undefined
      ? { kind: 'rejected', error: new KeyTaken(command.type, command.key as string, row.id) }
      : settleConflict(shared, connection, now, item, taken, asker)
  }
  const job = insertJob(connection, item.lifecycle, machine, fact, item.input)
  return job === undefined
    ? { kind: 'rejected', error: new JobExists(command.jobId) }
    : { kind: 'created', job }
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
    job = applyFact(connection, taken.lifecycle, taken.rid, job, fact, payload) ?? job
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

/** Writes the row and the fact; nothing where the id exists already. */
function insertJob(
  connection: Connection,
  lifecycle: Lifecycle,
  machine: number,
  fact: Fact,
  input: string,
): Job | undefined {
  const job = evolve(null, fact)
  const lane = LANES[laneOf(lifecycle, job, fact.at)]
  const { id, state, queue, type, priority, runAt, createdAt } = job
  const always = [id, lane, machine, state, queue, type, priority, runAt, createdAt] as const
  const { changes, lastInsertRowid } = isPlain(job)
    ? connection.sql(INSERT_PLAIN).run(...always)
    : connection
        .sql(INSERT_JOB)
        .run(
          ...always,
          job.updatedAt,
          job.key,
          job.limitKey,
          job.tags.length === 0 ? null : JSON.stringify(job.tags),
          job.retryOf,
          job.timeoutMs,
          job.deadlineAt,
          job.policy === null ? null : JSON.stringify(job.policy),
        )
  if (Number(changes) === 0) return undefined
  insertFact(connection, Number(lastInsertRowid), fact, input)
  return job
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
