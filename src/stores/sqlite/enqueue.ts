/**
 * Accepts jobs: one row and one fact each. A key that is taken is found by asking first, inside the
 * write transaction, where nobody can take it in between.
 */

import { JobExists, PawlError, TransitionRace } from '../../core/errors.ts'
import type { Command } from '../../core/job/commands.ts'
import { decide } from '../../core/job/decide.ts'
import { evolve } from '../../core/job/evolve.ts'
import type { Fact } from '../../core/job/facts.ts'
import { type Accepted, Acceptor, areKin } from '../accept.ts'
import { CLIENT, contextOf, ENGINE } from '../asker.ts'
import { namesOf, PLAIN_COLUMNS, SPECIAL_COLUMNS, sharedFactValues, valuesOf } from '../columns.ts'
import { JobDamaged, KeyTaken, QueueFull } from '../errors.ts'
import { followRoute } from '../machines.ts'
import type { Value } from '../rows.ts'
import { needsRoom } from '../shedding.ts'
import type { Asker, Enqueued, EnqueueItem, EnqueueOptions } from '../store.ts'
import { applyFact, applyMigration, insertCreations } from './apply.ts'
import { isUniqueViolation, typed } from './busy.ts'
import type { Connection } from './connect.ts'
import { type NumberedRow, type Read, type Shared, toRead } from './context.ts'
import { endOf, joinTransaction } from './join.ts'
import { withNumbersInside } from './machines.ts'
import { Room } from './queues.ts'
import { blocksOf, insertBlock, insertInto } from './rows-at-once.ts'

const SPECIAL = [...PLAIN_COLUMNS, ...SPECIAL_COLUMNS]
const INSERT_JOB = `
  INSERT INTO pawl_jobs (${namesOf(SPECIAL)}, id) VALUES (${SPECIAL.map(() => '?').join(', ')}, ?)`

/** A job with nothing special about it; those of one call mostly differ in their ids alone. */
const INSERT_PLAIN = insertInto('pawl_jobs', namesOf(PLAIN_COLUMNS), 'id')

const SELECT_BY_KEY = 'SELECT * FROM pawl_jobs WHERE type = ? AND key = ?'

/** What one caller asks for. */
export interface Order {
  readonly items: readonly EnqueueItem[]
  readonly asker: Asker
}

/** A job with nothing special about it, and where its answer stands. */
interface Plain {
  readonly accepted: Accepted
  readonly answers: Enqueued[]
  readonly place: number
}

/** Accepts the items of several callers; one that is refused hinders no other. */
export function enqueue(
  shared: Shared,
  connection: Connection,
  now: number,
  orders: readonly Order[],
): Enqueued[][] {
  let gathered: Plain[] = []
  const writeGathered = () => {
    for (const block of blocksOf(gathered, isNextOfKin)) insertPlain(connection, block)
    gathered = []
  }
  const acceptor = new Acceptor(shared, now)
  const room = new Room(connection)
  const answers = orders.map(({ items, asker }) => {
    const answers: Enqueued[] = []
    for (const item of items) {
      const accepted = acceptor.accept({ item, asker })
      if (accepted instanceof PawlError) {
        answers.push({ kind: 'rejected', error: accepted })
      } else if (accepted.isPlain && !isBounded(room, accepted)) {
        const place = answers.push({ kind: 'created', job: accepted.job }) - 1
        gathered.push({ accepted, answers, place })
      } else {
        // Others may have to be found by their keys or ids, so what is gathered is written first.
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

/** Writes a block of jobs that are alike; where an id exists already, one by one. */
function insertPlain(connection: Connection, jobs: readonly Plain[]): void {
  if (insertTogether(connection, jobs)) return
  for (const one of jobs) {
    if (jobs.length > 1 && insertTogether(connection, [one])) continue
    const error = new JobExists(one.accepted.job.id)
    one.answers[one.place] = { kind: 'rejected', error }
  }
}

/** Writes rows and their facts; nothing where an id was taken. */
function insertTogether(connection: Connection, jobs: readonly Plain[]): boolean {
  const { accepted } = jobs[0] as Plain
  const last = insertRows(connection, valuesOf(PLAIN_COLUMNS, accepted), jobs)
  if (last === undefined) return false
  // Nobody else writes in this transaction, so a block has consecutive numbers.
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
 * Nothing where an id was taken. The statement must fail then: one that leaves the row out would
 * use up a number all the same, and numbers without gaps are how missing rows are noticed.
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
function insertSpecial(
  shared: Shared,
  connection: Connection,
  now: number,
  accepted: Accepted,
  room: Room,
): Enqueued {
  const { item, asker } = accepted.offer
  const { type, key, queue } = item.command
  const row = findTaken(connection, type, key)
  if (row === undefined) {
    const maxDepth = needsRoom(accepted) ? room.depthOf(queue) : undefined
    if (maxDepth !== undefined && !room.take(queue, maxDepth)) {
      return { kind: 'rejected', error: new QueueFull(queue, maxDepth) }
    }
    return insertJob(connection, accepted)
  }
  const taken = toRead(shared, row)
  if (taken instanceof JobDamaged) return { kind: 'rejected', error: taken }
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
  const { route } = taken
  const engine = contextOf(shared.environment, ENGINE, now)
  const migrated = route && followRoute(route, taken.job, engine)
  if (migrated !== undefined && 'kind' in migrated) return migrated
  let read = { ...taken, job: migrated?.job ?? taken.job }
  let { job } = read
  const facts: Fact[] = []
  for (const given of commands) {
    const decision = decide(
      read.lifecycle,
      read.job,
      given,
      contextOf(shared.environment, asker, now),
    )
    if (decision.kind === 'rejected') return decision
    if (decision.kind === 'same') continue
    facts.push(decision.fact)
    read = { ...read, job: evolve(read.job, decision.fact) }
  }
  if (route && migrated) applyMigration(connection, taken.rid, route, taken.job, migrated)
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
  { asker = CLIENT, tx, onJoined }: EnqueueOptions,
): Enqueued[] {
  const connection = joinTransaction(tx, own)
  return typed(() => {
    shared.clock.refresh(connection)
    const lifecycles = items.map(({ lifecycle }) => lifecycle)
    const work = () => enqueue(shared, connection, shared.clock.now(), [{ items, asker }])
    const [answers] = withNumbersInside(connection, shared.machines, lifecycles, work)
    onJoined?.(endOf(tx as object, connection))
    return answers as Enqueued[]
  })
}
