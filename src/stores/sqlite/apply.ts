/**
 * How a decided fact reaches the file: the folded row under the fence of what was read, and the
 * fact. Both or neither, inside the caller's transaction. `applyFact` returns nothing where the row
 * no longer is what the decision was made on; then nothing was written.
 */
import { TransitionRace } from '../../core/errors.ts'
import { evolve } from '../../core/job/evolve.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { LANES, laneOf } from '../../core/job/lanes.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import {
  CHANGING_COLUMNS,
  changingValues,
  type FactEntry,
  namesOf,
  SHARED_FACT_COLUMNS,
  sharedFactValues,
} from '../columns.ts'
import { endOf, type Migrated, type Route } from '../machines.ts'
import { noticeOf } from '../notices.ts'
import { creationMark, factData, type Value } from '../rows.ts'
import type { Connection } from './connect.ts'
import { insertNotice } from './notices.ts'
import { blocksOf, insertBlock, insertInto } from './rows-at-once.ts'

/** The lane is the first of the columns that change. */
const SET_JOB = `
  UPDATE pawl_jobs SET ${CHANGING_COLUMNS.map(({ name }) => `${name} = ?`).join(', ')},
    cancel_asked_at = CASE WHEN ?1 <> ${LANES.ended} THEN cancel_asked_at END
  WHERE rid = ?`
const UPDATE_JOB = `${SET_JOB} AND seq = ?`

/** Facts of one call are mostly alike: the same step, at the same time, under the same claim. */
const SHARED = namesOf(SHARED_FACT_COLUMNS)
const BUT_DATA = SHARED_FACT_COLUMNS.filter(({ name }) => name !== 'data')
const INSERT_FACTS = insertInto('pawl_ledger', SHARED, 'job, seq, attempt, payload')
/** Facts that close attempts differ in their data: each has the times of its attempt. */
const INSERT_CLOSINGS = insertInto(
  'pawl_ledger',
  namesOf(BUT_DATA),
  'job, seq, attempt, payload, data',
)
/** The ledger itself says which job a first fact creates. */
const INSERT_CREATIONS = insertInto('pawl_ledger', SHARED, 'job, seq, creates, payload')

/** Writes the row that a fact folds to, and the fact; nothing if the row has moved on. */
export function applyFact(
  connection: Connection,
  lifecycle: Lifecycle,
  rid: number,
  before: Job,
  fact: Fact,
  payload: string | null = null,
  pending?: Pending,
): Job | undefined {
  const job = evolve(before, fact)
  const lane = LANES[laneOf(lifecycle, job, fact.at)]
  const changes = connection.run(UPDATE_JOB, ...mutableColumns(job, lane), rid, before.seq)
  if (changes === 0) return undefined
  const notice = noticeOf(lifecycle, before, fact)
  if (notice !== undefined) insertNotice(connection, rid, notice)
  const written = pending ?? new Pending()
  written.add(rid, before, job, fact, payload)
  if (pending === undefined) written.write(connection)
  return job
}

const MIGRATE_JOB = `
  UPDATE pawl_jobs SET
    machine = ?, lane = ?, state = ?, seq = ?, updated_at = ?, blocked_reason = ?
  WHERE rid = ? AND seq = ?`

/** Writes the facts of a migration and the row that they fold to; throws if the row moved on. */
export function applyMigration(
  connection: Connection,
  rid: number,
  route: Route,
  before: Job,
  { job, facts }: Migrated,
): void {
  const { machine, lifecycle } = endOf(route)
  const lane = LANES[laneOf(lifecycle, job, job.updatedAt)]
  const { state, seq, updatedAt, blockedReason } = job
  const values = [machine, lane, state, seq, updatedAt, blockedReason]
  const changes = connection.run(MIGRATE_JOB, ...values, rid, before.seq)
  if (changes === 0) throw new TransitionRace(job.id)
  const pending = new Pending()
  // Of an ended job the roll-up counts the state, which the migration may rename.
  for (const [i, fact] of facts.entries()) {
    const isLast = i === facts.length - 1
    pending.add(rid, before, isLast ? job : before, fact, null)
  }
  pending.write(connection)
}

/** Writes the row and the fact of a job whose present row is not trusted; see `../damage.ts`. */
export function overwrite(
  connection: Connection,
  lifecycle: Lifecycle,
  rid: number,
  before: Job,
  fact: Fact,
): void {
  const job = evolve(before, fact)
  const lane = LANES[laneOf(lifecycle, job, fact.at)]
  connection.run(SET_JOB, ...mutableColumns(job, lane), rid)
  const notice = noticeOf(lifecycle, before, fact)
  if (notice !== undefined) insertNotice(connection, rid, notice)
  appendFact(connection, rid, fact)
}

/** The end of a success, under the whole fence and the very lease that its holder knows. */
const UPDATE_SUCCEEDED = `
  UPDATE pawl_jobs SET
    lane = ${LANES.ended}, state = ?1, seq = seq + 1, status = 'D', lease_until = NULL,
      updated_at = ?2,
    ended_at = ?2, outcome = 'succeeded', reason = NULL, error = NULL, stalled = 0,
    cancel_asked_at = NULL
  WHERE rid = ?3 AND id = ?4 AND seq = ?5 AND attempt = ?6 AND claim = ?7 AND lease_until = ?8`

/**
 * Writes a success that was decided on what its holder has, without reading the row: the statement
 * itself proves that nothing has changed since. Nothing is written where something has.
 */
export function applySuccess(
  connection: Connection,
  rid: number,
  before: Job,
  fact: Fact,
  payload: string | null,
  pending: Pending,
): Job | undefined {
  const job = evolve(before, fact)
  const { execution } = before
  if (job.outcome !== 'succeeded' || execution === null) return undefined
  const { id, seq, attempt } = before
  const fence = [rid, id, seq, attempt, execution.claim, execution.leaseUntil] as const
  if (connection.run(UPDATE_SUCCEEDED, job.state, fact.at, ...fence) === 0) return undefined
  pending.add(rid, before, job, fact, payload)
  return job
}

function mutableColumns(job: Job, lane: number): Value[] {
  const leaseUntil = job.execution?.leaseUntil ?? null
  return changingValues({ job, lane, machine: 0, leaseUntil })
}

/** A fact that is about to be written, on the job with this number. */
interface NumberedEntry extends FactEntry {
  readonly rid: number
}

/** Appends a block of facts that have the same shared columns. */
function insertFacts(
  connection: Connection,
  shared: readonly Value[],
  facts: readonly NumberedEntry[],
): void {
  const values = [...shared]
  for (const { rid, fact, payload } of facts) {
    values.push(rid, fact.seq, fact.execution?.attempt ?? null, payload)
    if (fact.timing !== undefined) values.push(factData(fact))
  }
  const isClosing = facts[0]?.fact.timing !== undefined
  insertBlock(connection, isClosing ? INSERT_CLOSINGS : INSERT_FACTS, facts.length, values)
}

/** Appends one fact; the row is the caller's affair. */
export function appendFact(connection: Connection, rid: number, fact: Fact): void {
  insertFacts(connection, sharedFactValues(fact), [{ rid, fact, payload: null }])
}

/** Appends the first facts of jobs, a block that has the same shared columns. */
export function insertCreations(
  connection: Connection,
  shared: readonly Value[],
  facts: readonly NumberedEntry[],
): void {
  const values = [...shared]
  for (const { rid, fact, payload } of facts)
    values.push(rid, fact.seq, creationMark(fact.jobId), payload)
  insertBlock(connection, INSERT_CREATIONS, facts.length, values)
}

type PendingFact = NumberedEntry & { readonly shared: readonly Value[] }

function haveSameColumns(a: PendingFact, b: PendingFact): boolean {
  return a.shared.length === b.shared.length && a.shared.every((value, i) => value === b.shared[i])
}

/**
 * What the verbs of one call write once for all their jobs: facts in blocks, and the roll-up of
 * ended jobs. It must be written before the transaction ends, and before anybody reads the ledger.
 */
export class Pending {
  readonly #counts = new EndedCounts()
  #facts: PendingFact[] = []

  add(rid: number, before: Job, after: Job, fact: Fact, payload: string | null): void {
    this.#facts.push({ rid, fact, payload, shared: sharedFactValues(fact) })
    this.#counts.note(before, after)
  }

  write(connection: Connection): void {
    for (const block of blocksOf(this.#facts, haveSameColumns)) {
      insertFacts(connection, (block[0] as PendingFact).shared, block)
    }
    this.#facts = []
    this.#counts.write(connection)
  }
}

const COUNT_ENDED = `
  INSERT INTO pawl_ended_counts (queue, state, jobs) VALUES (?, ?, ?)
  ON CONFLICT (queue, state) DO UPDATE SET jobs = jobs + excluded.jobs`

/** Keeps the roll-up of ended jobs in step: one write for all jobs of a call, not one for each. */
class EndedCounts {
  readonly #changes = new Map<string, { queue: string; state: string; jobs: number }>()

  /** A redriven job is no longer an ended one. */
  note(before: Job, after: Job): void {
    if (before.state === after.state) return
    if (before.outcome !== null) this.#add(before, -1)
    if (after.outcome !== null) this.#add(after, 1)
  }

  #add({ queue, state }: Job, jobs: number): void {
    const change = this.#changes.get(`${state} ${queue}`)
    if (change === undefined) this.#changes.set(`${state} ${queue}`, { queue, state, jobs })
    else change.jobs += jobs
  }

  /** Writes what was noted, inside the transaction of the facts. */
  write(connection: Connection): void {
    for (const { queue, state, jobs } of this.#changes.values()) {
      connection.run(COUNT_ENDED, queue, state, jobs)
    }
    this.#changes.clear()
  }
}
