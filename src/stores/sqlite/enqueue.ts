/**
 * Accepts jobs: one row and one fact each. A key that is taken is found by a read inside the write
 * transaction, in which no other process can write.
 */

import { JobExists, PawlError } from '../../core/errors.ts'
import { type Acceptance, type Accepted, Acceptor, areKin } from '../accept.ts'
import { namesOf, PLAIN_COLUMNS, SPECIAL_COLUMNS, sharedFactValues, valuesOf } from '../columns.ts'
import { CLIENT } from '../contract/requester.ts'
import type { Enqueued, EnqueueItem, EnqueueOptions, Requester } from '../contract/store.ts'
import { QueueFull } from '../errors.ts'
import type { Value } from '../rows.ts'
import { needsRoom } from '../shedding.ts'
import { Changes } from '../verbs/changes.ts'
import { answerConflict, answerRemoved } from '../verbs/conflict.ts'
import { toRead } from '../verbs/reading.ts'
import { insertCreations, writeChanges } from './apply.ts'
import { isUniqueViolation, typed } from './busy.ts'
import type { Connection } from './connect.ts'
import type { NumberedRow, Shared } from './context.ts'
import { endOf, joinTransaction } from './join.ts'
import { Room } from './queues.ts'
import { blocksOf, insertBlock, insertInto } from './rows-at-once.ts'
import { withNumbersInside } from './statements/machines.ts'
import { findRemoved } from './statements/retention.ts'

const SPECIAL = [...PLAIN_COLUMNS, ...SPECIAL_COLUMNS]
const INSERT_JOB = `
  INSERT INTO pawl_jobs (${namesOf(SPECIAL)}, id) VALUES (${SPECIAL.map(() => '?').join(', ')}, ?)`

/** The row of a plain job; those of one call mostly differ in their ids alone. */
const INSERT_PLAIN = insertInto('pawl_jobs', namesOf(PLAIN_COLUMNS), 'id')

const SELECT_BY_KEY = 'SELECT * FROM pawl_jobs WHERE type = ? AND key = ?'

/** What one caller asks for. */
export interface Order {
  readonly items: readonly EnqueueItem[]
  readonly requester: Requester
}

/** Accepts a job that is subject to admission. */
export type Admit = (connection: Connection, now: number, accepted: Accepted) => Enqueued

/** A plain job, and the index of its answer. */
interface Plain {
  readonly accepted: Accepted
  readonly answers: Enqueued[]
  readonly index: number
}

/**
 * Accepts the items of several callers. A job that is refused does not affect the others. Schedules
 * pass an acceptance of their own.
 */
export function enqueue(
  shared: Pick<Shared, 'environment' | 'machines'>,
  connection: Connection,
  now: number,
  orders: readonly Order[],
  admit: Admit,
  acceptance: Acceptance = shared as Shared,
): Enqueued[][] {
  let gathered: Plain[] = []
  const writeGathered = () => {
    for (const block of blocksOf(gathered, isNextOfKin)) insertPlain(connection, block)
    gathered = []
  }
  const acceptor = new Acceptor(acceptance, now)
  const room = new Room(connection)
  const answers = orders.map(({ items, requester }) => {
    const answers: Enqueued[] = []
    for (const item of items) {
      const accepted = acceptor.accept({ item, requester })
      if (accepted instanceof PawlError) {
        answers.push({ kind: 'rejected', error: accepted })
      } else if (item.admission !== undefined) {
        writeGathered()
        answers.push(admit(connection, now, accepted))
      } else if (accepted.isPlain && !isBounded(room, accepted)) {
        const index = answers.push({ kind: 'created', job: accepted.job }) - 1
        gathered.push({ accepted, answers, index })
      } else {
        // Other jobs may have to be found by key or id, so the plain ones are written first.
        writeGathered()
        answers.push(insertSpecial(shared, connection, now, accepted, room))
      }
    }
    return answers
  })
  writeGathered()
  return answers
}

function isNextOfKin(one: Plain, other: Plain): boolean {
  return areKin(one.accepted, other.accepted)
}

/** Writes a block of plain jobs; one by one if an id exists already. */
function insertPlain(connection: Connection, jobs: readonly Plain[]): void {
  if (insertTogether(connection, jobs)) return
  for (const one of jobs) {
    if (jobs.length > 1 && insertTogether(connection, [one])) continue
    const error = new JobExists(one.accepted.job.id)
    one.answers[one.index] = { kind: 'rejected', error }
  }
}

/** Writes rows and their facts; returns false if an id was taken. */
function insertTogether(connection: Connection, jobs: readonly Plain[]): boolean {
  const { accepted } = jobs[0] as Plain
  const last = insertRows(connection, valuesOf(PLAIN_COLUMNS, accepted), jobs)
  if (last === undefined) return false
  // No other process writes during this transaction, so a block has consecutive numbers.
  let rid = last - jobs.length
  const facts = jobs.map(({ accepted: { fact, offer } }) => ({
    rid: ++rid,
    fact,
    payload: offer.item.input,
  }))
  insertCreations(connection, sharedFactValues(accepted.fact), facts)
  return true
}

/** The number of the last row; a statement that meets a taken id writes no row at all. */
function insertRows(
  connection: Connection,
  values: Value[],
  jobs: readonly Plain[],
): number | undefined {
  for (const { accepted } of jobs) values.push(accepted.job.id)
  return unlessTaken(() => insertBlock(connection, INSERT_PLAIN, jobs.length, values))
}

/**
 * Returns `undefined` if an id was taken. The statement must fail then: one that skips the row
 * would still use up a number, and gaps in the numbers are how missing rows are noticed.
 */
function unlessTaken(insert: () => number): number | undefined {
  try {
    return insert()
  } catch (error) {
    if (isUniqueViolation(error)) return undefined
    throw error
  }
}

/** Whether a job is for a queue that may have no room for it. */
function isBounded(room: Room, accepted: Accepted): boolean {
  return room.depthOf(accepted.job.queue) !== undefined && needsRoom(accepted)
}

/** A job that has a key, or attributes that most have not, or needs room in its queue. */
export function insertSpecial(
  shared: Pick<Shared, 'environment' | 'machines'>,
  connection: Connection,
  now: number,
  accepted: Accepted,
  room: Room,
): Enqueued {
  const { type, key, queue } = accepted.offer.item.command
  const row = findTaken(connection, type, key)
  if (row === undefined) {
    const removed = key === undefined ? undefined : findRemoved(connection, type, key, now)
    if (removed !== undefined) return answerRemoved(accepted, removed)
    const maxDepth = needsRoom(accepted) ? room.depthOf(queue) : undefined
    if (maxDepth !== undefined && !room.take(queue, maxDepth)) {
      return { kind: 'rejected', error: new QueueFull(queue, maxDepth) }
    }
    return insertJob(connection, accepted)
  }
  const moment = { environment: shared.environment, now }
  const changes = new Changes(moment)
  const holder = { id: row.id, read: toRead(shared.machines, row, row.rid) }
  const answered = answerConflict(moment, changes, accepted, holder)
  writeChanges(connection, changes)
  return answered
}

/** The row of the job that has a key. */
export function findTaken(
  connection: Connection,
  type: string,
  key: string | undefined,
): NumberedRow | undefined {
  return key === undefined ? undefined : connection.get<NumberedRow>(SELECT_BY_KEY, type, key)
}

/** Writes one row and its fact. */
function insertJob(connection: Connection, accepted: Accepted): Enqueued {
  const { job, fact, offer } = accepted
  const values = [...valuesOf(SPECIAL, accepted), job.id]
  const rid = unlessTaken(() => Number(connection.sql(INSERT_JOB).run(...values).lastInsertRowid))
  if (rid === undefined) return { kind: 'rejected', error: new JobExists(job.id) }
  const entry = { rid, fact, payload: offer.item.input }
  insertCreations(connection, sharedFactValues(fact), [entry])
  return { kind: 'created', job }
}

/**
 * Enqueues jobs in a transaction that the caller has opened; they are durable when it commits.
 * `own` is the store's own connection.
 */
export function enqueueJoined(
  shared: Shared,
  own: Connection,
  items: readonly EnqueueItem[],
  { requester = CLIENT, tx, onJoined }: EnqueueOptions,
  admit: Admit,
): Enqueued[] {
  const connection = joinTransaction(tx, own)
  return typed(() => {
    shared.clock.refresh(connection)
    const lifecycles = items.map(({ lifecycle }) => lifecycle)
    const work = () =>
      enqueue(shared, connection, shared.clock.nowInside(), [{ items, requester }], admit)
    const [answers] = withNumbersInside(connection, shared.machines, lifecycles, work)
    onJoined?.(endOf(tx as object, connection))
    return answers as Enqueued[]
  })
}
