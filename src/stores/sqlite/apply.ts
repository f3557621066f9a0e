/**
 * Writes what was decided: the folded rows, each under the number of the fact that it was decided
 * on, the facts, notices, and the roll-up of ended jobs, inside the caller's transaction.
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
import type { Held } from '../contract/store.ts'
import { noticeOf } from '../notices.ts'
import { creationMark, factData, type Value } from '../rows.ts'
import { type Changes, EndedCounts } from '../verbs/changes.ts'
import type { Connection } from './connect.ts'
import { blocksOf, insertBlock, insertInto } from './rows-at-once.ts'
import { freeSlots } from './statements/gates.ts'
import { writeLinks } from './statements/links.ts'
import { insertNotice } from './statements/notices.ts'

/** The lane is the first of the columns that change. */
const CHANGED = `
  ${CHANGING_COLUMNS.map(({ name }) => `${name} = ?`).join(', ')},
  cancel_asked_at = CASE WHEN ?1 <> ${LANES.ended} THEN cancel_asked_at END,
  slots = CASE WHEN ?1 = ${LANES.held} THEN slots END`
const SET_JOB = `UPDATE pawl_jobs SET ${CHANGED} WHERE rid = ?`
const UPDATE_JOB = `${SET_JOB} AND seq = ?`
const UPDATE_MIGRATED = `UPDATE pawl_jobs SET ${CHANGED}, machine = ? WHERE rid = ? AND seq = ?`

/** Facts of one call mostly have the same kind, time and claim. */
const SHARED = namesOf(SHARED_FACT_COLUMNS)
const BUT_DATA = SHARED_FACT_COLUMNS.filter(({ name }) => name !== 'data')
const INSERT_FACTS = insertInto('pawl_ledger', SHARED, 'job, seq, attempt, payload')
/** Facts that close attempts differ in their data: each has the times of its attempt. */
const INSERT_CLOSINGS = insertInto(
  'pawl_ledger',
  namesOf(BUT_DATA),
  'job, seq, attempt, payload, data',
)
/** The first fact of a job contains its id. */
const INSERT_CREATIONS = insertInto('pawl_ledger', SHARED, 'job, seq, creates, payload')

/**
 * Writes what a call has decided. Facts and counts are left to `pending` if it is given. Throws
 * `TransitionRace` if a row is not what the decision was made on: inside one transaction that
 * cannot happen.
 */
export function writeChanges(connection: Connection, changes: Changes, pending?: Pending): void {
  if (changes.isEmpty) return
  const written = pending ?? new Pending()
  for (const row of changes.rows()) {
    const fence = [row.ref, row.before.seq] as const
    const count = row.isMigrated
      ? connection.run(UPDATE_MIGRATED, ...changingValues(row), row.machine, ...fence)
      : connection.run(UPDATE_JOB, ...changingValues(row), ...fence)
    if (count === 0) throw new TransitionRace(row.job.id)
    written.count(row.before, row.job)
  }
  for (const { ref, notice } of changes.notices) insertNotice(connection, ref as number, notice)
  for (const { ref, fact, payload } of changes.facts) written.add(ref as number, fact, payload)
  written.free(changes.freed(), changes.left())
  for (const [gate, until] of changes.closed) written.close(gate, until)
  const links = changes.links()
  if (links !== undefined) writeLinks(connection, links)
  if (pending === undefined) written.write(connection, changes.now)
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

/** Ends a success, under the whole fence and the lease that its holder knows. */
const UPDATE_SUCCEEDED = `
  UPDATE pawl_jobs SET
    lane = ${LANES.ended}, state = ?1, seq = seq + 1, status = 'D', lease_until = NULL,
      updated_at = ?2,
    ended_at = ?2, outcome = 'succeeded', reason = NULL, error = NULL, stalled = 0,
    cancel_asked_at = NULL, slots = NULL
  WHERE rid = ?3 AND id = ?4 AND seq = ?5 AND attempt = ?6 AND claim = ?7 AND lease_until = ?8
    AND slots IS ?9`

/**
 * Writes a success that was decided on the job that its holder has, without reading the row. The
 * statement finds the row only if nothing has changed since. Returns `undefined` if something has.
 */
export function applySuccess(
  connection: Connection,
  { ref, job: before, slots }: Held,
  fact: Fact,
  payload: string | null,
  pending: Pending,
): Job | undefined {
  const rid = Number(ref)
  const job = evolve(before, fact)
  const { execution } = before
  if (job.outcome !== 'succeeded' || execution === null) return undefined
  const { id, seq, attempt } = before
  const fence = [rid, id, seq, attempt, execution.claim, execution.leaseUntil] as const
  const own = slots ?? null
  if (connection.run(UPDATE_SUCCEEDED, job.state, fact.at, ...fence, own) === 0) return undefined
  if (own !== null) pending.free([own])
  pending.add(rid, fact, payload)
  pending.count(before, job)
  return job
}

/** Notes a step, under the same fence; a step changes nothing else of its job. */
const UPDATE_STEPPED = `
  UPDATE pawl_jobs SET seq = seq + 1, updated_at = ?1
  WHERE rid = ?2 AND id = ?3 AND seq = ?4 AND attempt = ?5 AND claim = ?6 AND lease_until = ?7`

/** The same for the result of a step. */
export function applyStep(
  connection: Connection,
  { ref, job: before }: Held,
  fact: Fact,
  payload: string | null,
  pending: Pending,
): Job | undefined {
  const rid = Number(ref)
  const { id, seq, attempt, execution } = before
  if (execution === null) return undefined
  const fence = [rid, id, seq, attempt, execution.claim, execution.leaseUntil] as const
  if (connection.run(UPDATE_STEPPED, fact.at, ...fence) === 0) return undefined
  pending.add(rid, fact, payload)
  return evolve(before, fact)
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

/** Appends one fact; the caller writes the row. */
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
 * ended jobs. It must be written before the transaction ends, and before the ledger is read.
 */
export class Pending {
  readonly #counts = new EndedCounts()
  #facts: PendingFact[] = []
  #slots: string[] = []
  #left: string[] = []
  readonly #closed = new Map<string, number>()

  /** Notes the slots of jobs that have stopped, and strict groups that jobs have left. */
  free(slots: readonly string[], left: readonly string[] = []): void {
    if (slots.length > 0) this.#slots.push(...slots)
    if (left.length > 0) this.#left.push(...left)
  }

  /** Notes that no job may pass a throttle until a time. */
  close(gate: string, until: number): void {
    this.#closed.set(gate, Math.max(until, this.#closed.get(gate) ?? 0))
  }

  add(rid: number, fact: Fact, payload: string | null): void {
    this.#facts.push({ rid, fact, payload, shared: sharedFactValues(fact) })
  }

  /** Notes how a job changed, for the roll-up of ended jobs. */
  count(before: Job, after: Job): void {
    this.#counts.note(before, after)
  }

  write(connection: Connection, now: number): void {
    for (const block of blocksOf(this.#facts, haveSameColumns)) {
      insertFacts(connection, (block[0] as PendingFact).shared, block)
    }
    this.#facts = []
    for (const { queue, state, jobs } of this.#counts.take()) {
      connection.run(COUNT_ENDED, queue, state, jobs)
    }
    if (this.#slots.length === 0 && this.#closed.size === 0 && this.#left.length === 0) return
    freeSlots(connection, now, this.#slots, this.#closed, this.#left)
    this.#slots = []
    this.#left = []
    this.#closed.clear()
  }
}

const COUNT_ENDED = `
  INSERT INTO pawl_ended_counts (queue, state, jobs) VALUES (?, ?, ?)
  ON CONFLICT (queue, state) DO UPDATE SET jobs = jobs + excluded.jobs`
