/** The SQLite store: a file, or a database in memory, behind the contract of `../store.ts`. */
import { StaleFence } from '../../core/errors.ts'
import type { Usage } from '../../core/job/commands.ts'
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import { systemEnvironment } from '../../environment/system.ts'
import { CLIENT } from '../asker.ts'
import { isDamage, settleEach } from '../damage.ts'
import { type JobDamaged, StoreClosed, StoreUnsafe } from '../errors.ts'
import { checkMigration, type Migration, type MigrationRequest } from '../migration.ts'
import { checkQueueChange, type QueueChange, type QueueRecord } from '../queue-records.ts'
import {
  checkClaim,
  checkEffectClaim,
  checkLease,
  checkName,
  checkProgress,
  isStep,
  payloadBoundsOf,
} from '../requests.ts'
import { lookAtOpening } from '../soundness.ts'
import type * as contract from '../store.ts'
import { logTimeChange, type TimeStatus } from '../store-time.ts'
import { VerbSide } from '../verb-side.ts'
import { mayWake, type VerbName } from '../verb-table.ts'
import type { Tx, Verb } from '../verbs/operations.ts'
import { toPawlError, whileBusy } from './busy.ts'
import { claim, hasReady } from './claim.ts'
import { FileClock } from './clock.ts'
import { commit } from './commit.ts'
import { type Connection, connect, explain, warnOfOldSqlite } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { enqueue, enqueueJoined, type Order } from './enqueue.ts'
import { SqliteExamination } from './examination.ts'
import { abandon, FileGuard } from './file-guard.ts'
import { GivingWay } from './give-way.ts'
import { heartbeat } from './heartbeat.ts'
import { Isolation } from './isolation.ts'
import { fileOf, isInTransaction } from './join.ts'
import { registerMachines, withNumbers } from './machines.ts'
import { migrate } from './migrate.ts'
import { migrateJobs } from './migrate-jobs.ts'
import { perform } from './operations.ts'
import { checkSqliteOptions, type SqliteOptions } from './options.ts'
import { claimEffects, findDueEffects } from './outbox.ts'
import { changeQueue } from './queue-records.ts'
import { PLACES, QUERIES } from './reads.ts'
import { SqliteRuns } from './runs.ts'
import { SqliteSeals } from './seals.ts'
import { settle } from './settle.ts'
import { runTransaction } from './transaction.ts'
import { WakeUps } from './wake.ts'
import { removeWorker, reportWorker } from './workers.ts'
import { type JointWork, type Work, Writer } from './writer.ts'

const BUSY_TIMEOUT_MS = 10_000
/** There is no file whose changes could be watched; only this process can write to it. */
const SHARED_IN_MEMORY = '?vfs=memdb'
/** An open store, and a way to run statements of the user's own beside it. */
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
      return registerMachines(connection, options.lifecycles ?? LIFECYCLES)
    }
    const machines = unlessChanged(writing, clock, prepare) ?? (await writer.write('open', prepare))
    // A database of one store in memory has one connection, for reading and writing.
    const reading = isPrivate ? writing : await open()
    warnOfOldSqlite(reading, options.logger)
    const file = isPrivate || location.endsWith(SHARED_IN_MEMORY) ? undefined : location
    const shared = { environment, clock, machines, payloadBounds }
    const query: contract.CommitTx['query'] = async (sql, values = []) => {
      await writer.outsideTransactions()
      return writing.database.prepare(sql).all(...values)
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
    // Whatever it was, the writer meets it as well, and says so.
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
  readonly runs: SqliteRuns
  readonly examination: SqliteExamination
  readonly seals: SqliteSeals
  readonly #shared: Shared
  readonly #writing: Connection
  readonly #reading: Connection
  readonly #writer: Writer
  readonly #busyTimeoutMs: number
  readonly #guard: FileGuard | undefined
  readonly #wakeUps: WakeUps
  readonly #givingWay: GivingWay
  readonly #isolation: Isolation
  readonly #enqueue: JointWork<Order, contract.Enqueued[]>
  #closing: Promise<void> | undefined

  constructor({ shared, writing, reading, writer, busyTimeoutMs, path, guard }: Parts) {
    super(QUERIES, PLACES)
    this.#shared = shared
    this.#writing = writing
    this.#reading = reading
    this.#writer = writer
    this.#busyTimeoutMs = busyTimeoutMs
    this.#guard = guard
    this.#wakeUps = new WakeUps(reading, shared.environment, path)
    this.#givingWay = new GivingWay(shared.environment)
    this.#enqueue = (connection, now, orders) => enqueue(shared, connection, now, orders)
    const access = {
      read: <T>(work: (connection: Connection) => T) => this.read(work),
      write: <T>(verb: VerbName, work: Work<T>) => this.#writer.write(verb, work),
    }
    this.#isolation = new Isolation({ shared, now: () => this.now(), ...access })
    this.runs = new SqliteRuns(access, () => this.now())
    this.examination = new SqliteExamination(access, shared)
    this.seals = new SqliteSeals(access)
  }

  /** Readers are never kept out by a writer of a file, but may be by a recovery after a crash. */
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

  protected perform<T>(name: VerbName, verb: (tx: Tx) => Verb<T>): Promise<T> {
    return this.#write(name, (db, now) => perform(atOf(this.#shared, db, now), verb))
  }

  protected look<T>(verb: (tx: Tx) => Verb<T>): Promise<T> {
    return this.read((db) => perform(atOf(this.#shared, db, this.now()), verb))
  }

  protected aroundDamage<T>(verb: () => Promise<T>): Promise<T> {
    return this.#isolation.around(verb)
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
    const { asker = CLIENT, tx } = options
    if (tx !== undefined) return enqueueJoined(this.#shared, this.#writing, items, options)
    const answers = await withNumbers(
      this.#shared.machines,
      items.map(({ lifecycle }) => lifecycle),
      () => this.#writer.writeTogether('enqueue', this.#enqueue, { items, asker }),
      () => this.listMachines(),
    )
    this.#wakeUps.signal()
    return answers
  }

  async claim(request: contract.ClaimRequest): Promise<contract.Held[]> {
    checkClaim(request)
    // Idle workers claim with every commit of anybody; a look keeps nobody from writing.
    await this.#writer.outsideTransactions()
    if (this.#reading !== this.#writing) {
      if (!(await this.read(hasReady))) return []
      request.onFound?.()
    }
    return this.#isolation.around(
      () => this.#write('claim', (db, now) => claim(this.#shared, db, now, request)),
      request,
    )
  }

  isolate(): Promise<contract.Isolated[]> {
    return this.#isolation.isolate()
  }

  protected setHeldAside(damage: JobDamaged): Promise<void> {
    return this.#isolation.setHeldAside(damage)
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

  /** Reports and claims at once. What keeps a claim from being made must not lose a report. */
  async #settle(
    settlements: readonly contract.Settlement[],
    next: contract.ClaimRequest | undefined,
  ): Promise<contract.Settled> {
    try {
      return await this.#writer.write('settle', (db, now) => ({
        answers: settle(this.#shared, db, now, settlements),
        claimed: next === undefined ? [] : claim(this.#shared, db, now, next),
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
    work: (tx: contract.CommitTx) => string | Promise<string>,
    usage?: () => Usage | undefined,
  ): Promise<contract.CommitAnswer> {
    try {
      const answer = await this.#givingWay.run(held, (othersFirst) =>
        this.#writer.writeAlone('commit', async (db, now) =>
          othersFirst(db, now) ? undefined : commit(this.#shared, db, now, held, work, usage),
        ),
      )
      // Only effects can have become due by it.
      if (answer.kind === 'done' && answer.job.outcome === null) this.#wakeUps.signal()
      return answer
    } catch (error) {
      // A fence that was lost while the function ran is an answer, not a failure.
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

  async claimEffects(request: contract.EffectClaim): Promise<contract.HeldEffect[]> {
    checkEffectClaim(request)
    this.#writer.assertOutside()
    // Whoever waits for effects asks often, and must not take the write lock for nothing.
    const due = await this.read((db) => findDueEffects(db, this.now(), request))
    if (due === undefined) return []
    return this.#write('claimEffects', (db, now) => claimEffects(this.#shared, db, now, request))
  }

  async heartbeat(beats: readonly contract.Beat[], leaseMs: number): Promise<contract.Heartbeat> {
    checkLease(leaseMs)
    checkProgress(beats, this.#shared.payloadBounds)
    return this.#write('heartbeat', (db, now) => heartbeat(db, now, beats, leaseMs))
  }

  async migrate(
    request: MigrationRequest,
    asker: contract.Asker,
  ): Promise<contract.Page<Migration>> {
    checkMigration(request, asker, PLACES.jobs)
    return this.#write('migrate', (db, now) => migrateJobs(this.#shared, db, now, request, asker))
  }

  async pauseQueue(queue: string, asker: contract.Asker): Promise<QueueRecord | undefined> {
    return this.#changeQueue({ action: 'pause', queue }, asker)
  }

  async resumeQueue(queue: string, asker: contract.Asker): Promise<QueueRecord | undefined> {
    return this.#changeQueue({ action: 'resume', queue }, asker)
  }

  async limitQueue(queue: string, limits: contract.QueueLimits, asker = CLIENT) {
    return this.#changeQueue({ action: 'limit', queue, limits }, asker)
  }

  #changeQueue(change: QueueChange, asker: contract.Asker): Promise<QueueRecord | undefined> {
    checkQueueChange(change, asker)
    return this.#write(`${change.action}Queue` as const, (db, now) =>
      changeQueue(db, now, change, asker),
    )
  }

  async reportWorker(worker: Pick<contract.WorkerRow, 'id' | 'state' | 'info'>): Promise<void> {
    checkName('worker', worker.id)
    return this.#write('reportWorker', (db, now) => {
      reportWorker(db, now, worker, this.timeStatus()?.aheadMs)
    })
  }

  removeWorker(id: string): Promise<void> {
    return this.#write('removeWorker', (db) => removeWorker(db, id))
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
