/** The SQLite store: a file or a database in memory, behind `../contract/store.ts`. */
import { StaleFence } from '../../core/errors.ts'
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import { systemEnvironment } from '../../environment/system.ts'
import { CLIENT } from '../contract/requester.ts'
import {
  checkClaim,
  checkEffectClaim,
  checkEnqueue,
  checkLease,
  checkProgress,
  isStep,
  payloadBoundsOf,
} from '../contract/requests.ts'
import type * as contract from '../contract/store.ts'
import { isDamage, settleEach } from '../damage.ts'
import { StoreClosed, StoreUnsafe } from '../errors.ts'
import { ExaminationSide } from '../examination-side.ts'
import { lookAtOpening } from '../soundness.ts'
import { StatementMachines } from '../statement-machines.ts'
import { logTimeChange, type TimeStatus } from '../store-time.ts'
import { bindStatement } from '../user-sql.ts'
import { VerbSide } from '../verb-side.ts'
import { mayWake, type VerbName } from '../verb-table.ts'
import { StoredAdmissions } from '../verbs/admission-tables.ts'
import { admit } from '../verbs/admit.ts'
import { type Join, StoredFlows } from '../verbs/flow-tables.ts'
import { StoredLimits } from '../verbs/limit-tables.ts'
import { registerMachines } from '../verbs/machines.ts'
import type { Performed, Step, Tx } from '../verbs/operations.ts'
import { StoredRetention } from '../verbs/retention-tables.ts'
import { StoredRuns, type TableAccess } from '../verbs/run-tables.ts'
import { StoredSchedules } from '../verbs/schedule-tables.ts'
import { StoredSeals } from '../verbs/seal-tables.ts'
import { StoredTokens } from '../verbs/token-tables.ts'
import { StoredWaits } from '../verbs/wait-tables.ts'
import { toPawlError, whileBusy } from './busy.ts'
import { hasReady } from './claim.ts'
import { claimAll } from './claiming.ts'
import { FileClock } from './clock.ts'
import { commit } from './commit.ts'
import { type Connection, connect, explain, warnOfOldSqlite } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { type Admit, enqueue, enqueueJoined, type Order } from './enqueue.ts'
import { abandon, FileGuard } from './file-guard.ts'
import { GivingWay } from './give-way.ts'
import { heartbeat } from './heartbeat.ts'
import { fileOf, isInTransaction } from './join.ts'
import { migrate } from './migrate.ts'
import { perform, performJoined } from './operations.ts'
import { checkSqliteOptions, type SqliteOptions } from './options.ts'
import { CURSORS, QUERIES } from './reads.ts'
import { drift, restore } from './schema.ts'
import { settle, settleLists } from './settle.ts'
import { FORMS, withNumbers } from './statements/machines.ts'
import { findDueEffects } from './statements/outbox.ts'
import { allOf, runTransaction } from './transaction.ts'
import { WakeUps } from './wake.ts'
import { type JointWork, type Work, Writer } from './writer.ts'

const BUSY_TIMEOUT_MS = 10_000
/** No file can be watched; only this process can write to it. */
const SHARED_IN_MEMORY = '?vfs=memdb'
/** An open store, and a function to run other statements beside it. */
export interface OpenedSqlite {
  readonly store: contract.Store
  /** Runs one statement outside of every transaction of the store; returns its rows. */
  readonly query: contract.CommitTx['query']
}

/** Opens a store, creating or migrating the file as needed. */
export async function openSqliteStore(options: SqliteOptions): Promise<contract.Store> {
  return (await openSqlite(options)).store
}

/** The same, for a test that has no other way into a database in memory. */
export async function openSqlite(options: SqliteOptions): Promise<OpenedSqlite> {
  checkSqliteOptions(options)
  const environment = options.environment ?? systemEnvironment()
  const durability = options.durability ?? 'full'
  const location = options.path
  const isPrivate = location === ':memory:'
  const busyTimeoutMs = options.busyTimeoutMs ?? BUSY_TIMEOUT_MS
  const payloadBounds = payloadBoundsOf(options)
  const open = () => connect(location, durability, environment, busyTimeoutMs, options.driver)
  const writing = await open()
  const clock = new FileClock(
    environment.clock,
    (change) => {
      logTimeChange(options.logger, change)
      options.onTimeChange?.(change)
    },
    options.changesTime,
  )
  const writer = new Writer(writing, environment, clock, busyTimeoutMs)
  try {
    const prepare = (connection: Connection, now: number) => {
      migrate(connection, now)
      clock.open(connection)
      const lifecycles = options.lifecycles ?? LIFECYCLES
      const machines = new StatementMachines(lifecycles, FORMS)
      const at = atOf({ environment, clock, machines }, connection, now)
      perform(at, (tx) => registerMachines(tx, lifecycles))
      return machines
    }
    const machines = unlessChanged(writing, clock, prepare) ?? (await writer.write('open', prepare))
    // A database of one store in memory has one connection, for reading and writing.
    const reading = isPrivate ? writing : await open()
    warnOfOldSqlite(reading, options.logger)
    const file = isPrivate || location.endsWith(SHARED_IN_MEMORY) ? undefined : location
    const shared = { environment, clock, machines, payloadBounds }
    const query: contract.CommitTx['query'] = async (sql, given) => {
      const { text, values } = bindStatement(sql, given, 'sqlite')
      await writer.outsideTransactions()
      return allOf(writing.database.prepare(text), values)
    }
    const realPath = file === undefined ? undefined : fileOf(writing)
    const guard = realPath === undefined ? undefined : FileGuard.open(realPath)
    if (realPath !== undefined) writer.watch(realPath, guard)
    const parts = { shared, writing, reading, writer, busyTimeoutMs, path: file, guard }
    const store = new SqliteStore(parts)
    return { store: await lookAtOpening(store, options), query }
  } catch (error) {
    if (error instanceof StoreUnsafe) abandon(writing)
    else writing.close()
    throw explain(location, error)
  }
}

/**
 * Prepares a file that needs no change without taking its write lock, so that a store can be opened
 * while another process holds it. Returns `undefined` if something would have to be written.
 */
function unlessChanged<T>(connection: Connection, clock: FileClock, prepare: Work<T>) {
  const { database } = connection
  database.exec('PRAGMA query_only = ON')
  try {
    database.exec('BEGIN')
    const prepared = prepare(connection, clock.now())
    database.exec('COMMIT')
    clock.committed()
    return prepared
  } catch {
    // The writer meets the same error and throws it.
    if (isInTransaction(database)) database.exec('ROLLBACK')
    clock.rolledBack()
    return undefined
  } finally {
    database.exec('PRAGMA query_only = OFF')
  }
}

/** What an open store is made of. */
interface Parts {
  readonly shared: Shared
  readonly writing: Connection
  readonly reading: Connection
  readonly writer: Writer
  readonly busyTimeoutMs: number
  /** The file; absent for a database in memory. */
  readonly path: string | undefined
  readonly guard: FileGuard | undefined
}

class SqliteStore extends VerbSide<Connection> implements contract.Store {
  readonly runs: StoredRuns
  readonly schedules: StoredSchedules
  readonly examination: ExaminationSide
  readonly seals: StoredSeals
  readonly limits: StoredLimits
  readonly retention: StoredRetention
  readonly admissions: StoredAdmissions
  readonly tokens: StoredTokens
  readonly waits: StoredWaits
  readonly flows: StoredFlows
  readonly #shared: Shared
  readonly #writing: Connection
  readonly #reading: Connection
  readonly #writer: Writer
  readonly #busyTimeoutMs: number
  readonly #guard: FileGuard | undefined
  readonly #wakeUps: WakeUps
  /** Whether jobs were enqueued in a transaction since the last commit. */
  #hasJoined = false
  readonly #givingWay: GivingWay
  readonly #admit: Admit
  readonly #enqueue: JointWork<Order, contract.Enqueued[]>
  readonly #settleLists: JointWork<readonly contract.Settlement[], contract.Answer[]>
  #closing: Promise<void> | undefined

  constructor({ shared, writing, reading, writer, busyTimeoutMs, path, guard }: Parts) {
    super(shared.environment, QUERIES, CURSORS)
    this.#shared = shared
    this.#writing = writing
    this.#reading = reading
    this.#writer = writer
    this.#busyTimeoutMs = busyTimeoutMs
    this.#guard = guard
    this.#wakeUps = new WakeUps(reading, shared.environment, path)
    this.#givingWay = new GivingWay(shared.environment)
    this.#admit = (connection, now, accepted) => {
      const at = atOf(shared, connection, now)
      return perform(at, (tx) => admit(tx, [accepted], false))[0] as contract.Enqueued
    }
    this.#enqueue = (connection, now, orders) =>
      enqueue(shared, connection, now, orders, this.#admit)
    this.#settleLists = (connection, now, lists) => settleLists(shared, connection, now, lists)
    const write: TableAccess['write'] = (name, verb) => this.perform(name, verb)
    const join: TableAccess['join'] = (tx, verb) => this.#join({ tx }, verb)
    const tables: TableAccess = { look: (verb) => this.look(verb), write, change: write, join }
    this.runs = new StoredRuns(tables)
    this.schedules = new StoredSchedules(tables)
    this.seals = new StoredSeals(tables, 'pos')
    this.limits = new StoredLimits(tables)
    this.retention = new StoredRetention(tables)
    this.admissions = new StoredAdmissions(tables)
    this.tokens = new StoredTokens(tables)
    this.waits = new StoredWaits(tables, shared.payloadBounds)
    const joinFlow: Join = (options, verb) => this.#join(options, verb)
    this.flows = new StoredFlows({
      access: tables,
      join: joinFlow,
      bounds: shared.payloadBounds,
      store: this,
    })
    this.examination = new ExaminationSide({
      look: (verb) => this.look(verb),
      perform: (name, verb) => this.perform(name, verb),
      drift: () => this.read(drift),
      restore: (object) => this.#write('restore', (db) => restore(db, object)),
    })
  }

  /** A writer does not block readers of a file, but a recovery after a crash may. */
  protected async read<T>(work: (connection: Connection) => T | Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw new StoreClosed()
    if (this.#reading === this.#writing) await this.#writer.outsideTransactions()
    const { environment, clock } = this.#shared
    try {
      const result = await whileBusy(environment, this.#busyTimeoutMs, () => {
        clock.refresh(this.#reading)
        return work(this.#reading)
      })
      this.#guard?.assertAlone()
      return result
    } catch (error) {
      throw toPawlError(error)
    }
  }

  async #write<T>(verb: VerbName, work: Work<T>): Promise<T> {
    const result = await this.#writer.write(verb, work)
    if (mayWake(verb, result)) this.#wakeUps.signal()
    return result
  }

  protected perform<T>(name: VerbName, verb: Performed<T>): Promise<T> {
    return this.#write(name, (db, now) =>
      perform(atOf(this.#shared, db, now), (tx) => verb(tx, false)),
    )
  }

  protected look<T>(verb: (tx: Tx) => Step<T>): Promise<T> {
    return this.read((db) => perform(atOf(this.#shared, db, this.now()), verb))
  }

  /** A transaction of several operations costs no more than one of a single operation. */
  protected performEach<T>(name: VerbName, verb: Performed<T>): Promise<T> {
    return this.perform(name, verb)
  }

  onWake(listener: () => void): () => void {
    return this.#wakeUps.subscribe(listener)
  }

  now(): number {
    return this.#shared.clock.now()
  }

  timeStatus(): TimeStatus | undefined {
    return this.#shared.clock.status()
  }

  async enqueue(
    items: readonly contract.EnqueueItem[],
    options: contract.EnqueueOptions = {},
  ): Promise<contract.Enqueued[]> {
    const { requester = CLIENT, tx } = checkEnqueue(options)
    if (tx !== undefined) {
      this.#hasJoined = true
      return enqueueJoined(this.#shared, this.#writing, items, options, this.#admit)
    }
    const answers = await withNumbers(
      this.#shared.machines,
      items.map(({ lifecycle }) => lifecycle),
      () => this.#writer.writeTogether('enqueue', this.#enqueue, { items, requester }),
      () => this.listMachines(),
    )
    this.#wakeUps.signal()
    return answers
  }

  /** Runs a verb in a transaction that the caller has opened; durable when that commits. */
  async #join<T>(
    { tx, onJoined }: Pick<contract.EnqueueOptions, 'tx' | 'onJoined'>,
    verb: Performed<T>,
  ): Promise<T> {
    this.#hasJoined = true
    return performJoined(this.#shared, this.#writing, { tx, ...(onJoined && { onJoined }) }, verb)
  }

  async claim(request: contract.ClaimRequest): Promise<contract.Held[]> {
    checkClaim(request)
    // Idle workers claim after every commit; a read does not take the write lock.
    await this.#writer.outsideTransactions()
    if (this.#reading !== this.#writing) {
      if (!(await this.read(hasReady))) return []
      request.onFound?.()
    }
    return this.isolation.around(
      () => this.#write('claim', (db, now) => claimAll(this.#shared, db, now, request)),
      request,
    )
  }

  async settle(
    settlements: readonly contract.Settlement[],
    next?: contract.ClaimRequest,
  ): Promise<contract.Settled> {
    if (next !== undefined) checkClaim(next)
    const settled = await this.#settle(settlements, next)
    if (!settlements.every(isStep)) this.#wakeUps.signal()
    return settled
  }

  /** Reports and claims at once. If the claim fails, no report is lost. */
  async #settle(
    settlements: readonly contract.Settlement[],
    next: contract.ClaimRequest | undefined,
  ): Promise<contract.Settled> {
    try {
      if (next === undefined) {
        const answers = await this.#writer.writeTogether('settle', this.#settleLists, settlements)
        return { answers, claimed: [] }
      }
      return await this.#writer.write('settle', (db, now) => ({
        answers: settle(this.#shared, db, now, settlements),
        claimed: claimAll(this.#shared, db, now, next),
      }))
    } catch (error) {
      if (!isDamage(error)) throw error
      const answers = await settleEach(settlements, (one) =>
        this.#writer.write('settle', (db, now) => settle(this.#shared, db, now, [one])),
      )
      return { answers, claimed: next === undefined ? [] : await this.claim(next) }
    }
  }

  async commit(
    held: contract.Held,
    work: contract.CommitWork,
    closing?: () => contract.Closing,
  ): Promise<contract.CommitAnswer> {
    try {
      const answer = await this.#givingWay.run(held, (othersFirst) =>
        this.#writer.writeAlone('commit', async (db, now) =>
          othersFirst(db, now) ? undefined : commit(this.#shared, db, now, held, work, closing),
        ),
      )
      // Only effects, and jobs that were enqueued in it, can have become due.
      const isDue = answer.kind === 'done' && (answer.job.outcome === null || this.#hasJoined)
      this.#hasJoined = false
      if (isDue) this.#wakeUps.signal()
      return answer
    } catch (error) {
      // If the fence was lost while the function ran, that is an answer and not an error.
      if (error instanceof StaleFence) return { kind: 'rejected', error }
      throw error
    }
  }

  async transaction<T>(work: (tx: contract.StoreTx) => T | Promise<T>): Promise<T> {
    const { value } = await this.#givingWay.run(undefined, (othersFirst) =>
      this.#writer.writeAlone('transaction', async (db, now) =>
        othersFirst(db, now) ? undefined : { value: await runTransaction(this.#shared, db, work) },
      ),
    )
    // Jobs may have joined it.
    this.#wakeUps.signal()
    return value
  }

  override async claimEffects(request: contract.EffectClaim): Promise<contract.HeldEffect[]> {
    checkEffectClaim(request)
    this.#writer.assertOutside()
    // Dispatchers ask often: they must not take the write lock if nothing is due.
    const due = await this.read((db) => findDueEffects(db, this.now(), request))
    return due === undefined ? [] : super.claimEffects(request)
  }

  async heartbeat(beats: readonly contract.Beat[], leaseMs: number): Promise<contract.Heartbeat> {
    checkLease(leaseMs)
    checkProgress(beats, this.#shared.payloadBounds)
    return this.#write('heartbeat', (db, now) => heartbeat(db, now, beats, leaseMs))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#wakeUps.close()
    await this.#writer.close()
    this.#guard?.close()
    if (this.#guard?.isUnsafe) {
      abandon(this.#reading, this.#writing)
      return
    }
    if (this.#reading !== this.#writing) this.#reading.close()
    this.#writing.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
