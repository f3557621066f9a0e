/**
 * The writer of a process. SQLite has one write lock per file. Taking it once for many callers
 * makes small writes fast, and not waiting for it inside SQLite keeps the event loop running.
 *
 * Group commit: work that arrives while a transaction runs, or within one turn of the event loop,
 * is done in one transaction. No call resolves before COMMIT has returned. If any work throws,
 * everything is rolled back and done again one by one, so that a bad item affects only itself; work
 * must therefore be safe to repeat. Work is synchronous, so no other work can run in between.
 *
 * Work of one's own: a transaction that waits for its caller (the function of a commit) is never
 * merged with others, and has the writer to itself until it ends.
 *
 * Callers get a busy error only after the time-out: see `busy.ts`.
 */

import type { Environment } from '../../environment/system.ts'
import { isLasting, StoreBusy, StoreClosed } from '../errors.ts'
import { assertOutside, runInside } from '../inside-commit.ts'
import type { VerbName } from '../verb-table.ts'
import { toPawlError, typed, whileBusy } from './busy.ts'
import type { Connection } from './connect.ts'
import { DiskRoom } from './disk-room.ts'
import type { FileGuard } from './file-guard.ts'

/** What is done inside a transaction; `now` is read while the lock is held. */
export type Work<T> = (connection: Connection, now: number) => T

/** What is done for several callers at once: one result for each of their inputs, in order. */
export type JointWork<I, T> = (
  connection: Connection,
  now: number,
  inputs: readonly I[],
) => readonly T[]

/** The time of transactions; see `clock.ts`. */
export interface TransactionClock {
  /** Called when the write lock is held. */
  begin(connection: Connection): number
  committed(): void
  rolledBack(): void
}

interface Task {
  /** The verb, by which crash points are named. */
  readonly verb: VerbName
  /** Waits for its caller, and must have the transaction to itself. */
  readonly alone: boolean
  readonly work: JointWork<unknown, unknown>
  readonly input: unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** How many callers share a transaction at most: one transaction must not grow without bound. */
const GROUP_MAX = 1000
/** How many callers may wait before further ones are made to wait outside. */
const QUEUE_MAX = 10_000

/** The writer of one connection. */
export class Writer {
  readonly #connection: Connection
  readonly #environment: Environment
  readonly #clock: TransactionClock
  readonly #busyTimeoutMs: number
  #queue: Task[] = []
  #waiting: (() => void)[] = []
  #running: Promise<void> | undefined
  /** Set while work of one's own holds a transaction open. */
  #open: Promise<void> | undefined
  #closed = false
  #guard: FileGuard | undefined
  readonly #room: DiskRoom

  constructor(
    connection: Connection,
    environment: Environment,
    clock: TransactionClock,
    busyTimeoutMs: number,
  ) {
    this.#connection = connection
    this.#environment = environment
    this.#clock = clock
    this.#busyTimeoutMs = busyTimeoutMs
    this.#room = new DiskRoom(connection, environment.clock)
  }

  /**
   * From now on no transaction is acknowledged unless the locks on the file are held, and the log
   * is kept short when its disk is nearly full.
   */
  watch(path: string, guard: FileGuard | undefined): void {
    this.#guard = guard
    this.#room.watch(path)
  }

  /** Does the work in a transaction, perhaps together with others'; durable when it resolves. */
  write<T>(verb: VerbName, work: Work<T>): Promise<T> {
    return this.#enqueue(verb, (connection, now) => [work(connection, now)], undefined, false)
  }

  /** The same for work that is done at once for all neighbours who ask for it. */
  writeTogether<I, T>(verb: VerbName, work: JointWork<I, T>, input: I): Promise<T> {
    return this.#enqueue(verb, work as JointWork<unknown, T>, input, false)
  }

  /** Does work that may wait, in a transaction of its own; durable when it resolves. */
  writeAlone<T>(verb: VerbName, work: Work<Promise<T>>): Promise<T> {
    const inside: JointWork<unknown, Promise<T>> = (connection, now) => [
      runInside(this, () => work(connection, now)),
    ]
    return this.#enqueue(verb, inside, undefined, true) as Promise<T>
  }

  /**
   * Resolves when no transaction is open. A read on the same connection must wait for that, because
   * it would see what may be rolled back.
   */
  async outsideTransactions(): Promise<void> {
    this.assertOutside()
    while (this.#open !== undefined) await this.#open
  }

  /** Refuses what the function of a commit must not call. */
  assertOutside(): void {
    assertOutside(this)
  }

  /** Finishes what was accepted and refuses the rest. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#running
  }

  async #enqueue<T>(
    verb: VerbName,
    work: JointWork<unknown, T>,
    input: unknown,
    alone: boolean,
  ): Promise<T> {
    // It would wait for the transaction that waits for it.
    this.assertOutside()
    while (this.#queue.length >= QUEUE_MAX) {
      await new Promise<void>((resume) => this.#waiting.push(resume))
    }
    if (this.#closed) throw new StoreClosed()
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ verb, alone, work, input, resolve: resolve as Task['resolve'], reject })
      this.#running ??= this.#run()
    })
  }

  async #run(): Promise<void> {
    // One turn of the event loop, so that callers of the same moment share a transaction.
    await new Promise<void>((turn) => this.#environment.timers.defer(turn))
    while (this.#queue.length > 0) {
      const group = this.#takeGroup()
      for (const resume of this.#waiting.splice(0)) resume()
      const done = this.#commitGroup(group)
      if (group[0]?.alone) this.#open = done
      await done
      this.#open = undefined
    }
    this.#running = undefined
  }

  /** The next tasks in order: those that may share a transaction, or one of its own. */
  #takeGroup(): Task[] {
    const firstAlone = this.#queue.findIndex(({ alone }) => alone)
    const end = firstAlone < 0 ? GROUP_MAX : Math.max(1, Math.min(firstAlone, GROUP_MAX))
    const group = this.#queue.slice(0, end)
    this.#queue = this.#queue.slice(end)
    return group
  }

  async #commitGroup(group: readonly Task[], mayRepeat = true): Promise<void> {
    try {
      const results = await this.#transact(group)
      for (const [i, { resolve }] of group.entries()) resolve(results[i])
    } catch (error) {
      if (this.#room.make(error) && mayRepeat && !group[0]?.alone) {
        return this.#commitGroup(group, false)
      }
      if (group.length === 1 || error instanceof StoreBusy || isLasting(error)) {
        for (const { reject } of group) reject(error)
        return
      }
      // Doing each alone shows which work fails.
      for (const task of group) await this.#commitGroup([task])
    }
  }

  async #transact(group: readonly Task[]): Promise<unknown[]> {
    await this.#begin()
    try {
      const now = typed(() => this.#clock.begin(this.#connection))
      this.#passCrashPoint(group, 'begun')
      const results = this.#perform(group, now)
      // Only work of one's own may wait; awaiting anything else would let others in between.
      if (group[0]?.alone) results[0] = await results[0]
      this.#passCrashPoint(group, 'written')
      // A deleted log must receive nothing; and what it has received all the same is not
      // acknowledged.
      this.#guard?.assertAlone()
      this.#end()
      this.#clock.committed()
      this.#guard?.assertLocked()
      this.#room.look()
      this.#passCrashPoint(group, 'committed')
      return results
    } catch (error) {
      rollBack(this.#connection)
      this.#clock.rolledBack()
      // Work of one's own says itself which errors are the store's, and which its caller's.
      throw group[0]?.alone ? error : toPawlError(error)
    }
  }

  #end(): void {
    typed(() => this.#connection.database.exec('COMMIT'))
  }

  /** Does the work of all in order; neighbours with the same work are served together. */
  #perform(group: readonly Task[], now: number): unknown[] {
    const results: unknown[] = []
    for (let start = 0, end = 0; start < group.length; start = end) {
      const { work } = group[start] as Task
      while (group[end]?.work === work) end++
      const inputs = group.slice(start, end).map(({ input }) => input)
      results.push(...work(this.#connection, now, inputs))
    }
    return results
  }

  #passCrashPoint(group: readonly Task[], point: string): void {
    const { crashPoint } = this.#environment
    if (crashPoint === undefined) return
    for (const { verb } of group) crashPoint(`${verb}.${point}`)
  }

  async #begin(): Promise<void> {
    this.#room.assert()
    try {
      await whileBusy(this.#environment, this.#busyTimeoutMs, () =>
        this.#connection.database.exec('BEGIN IMMEDIATE'),
      )
    } catch (error) {
      throw toPawlError(error)
    }
  }
}

/** Ends a transaction that failed, unless SQLite has ended it already. */
function rollBack(connection: Connection): void {
  try {
    connection.database.exec('ROLLBACK')
  } catch {
    // The transaction has ended in any case, and the first error says more than this one.
  }
}
