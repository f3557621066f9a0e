/** The PostgreSQL store, behind the contract of `../store.ts`. */
import { StaleFence } from '../../core/errors.ts'
import type { Usage } from '../../core/job/commands.ts'
import type { Clock } from '../../core/ports.ts'
import type { Offer } from '../accept.ts'
import { CLIENT } from '../asker.ts'
import type { JobDamaged } from '../errors.ts'
import { checkMigration, type Migration, type MigrationRequest } from '../migration.ts'
import type { Trouble } from '../outage.ts'
import { checkQueueChange, type QueueChange, type QueueRecord } from '../queue-records.ts'
import { checkClaim, checkEffectClaim, checkLease, checkName, checkProgress } from '../requests.ts'
import type * as contract from '../store.ts'
import { VerbSide } from '../verb-side.ts'
import { mayWake, type VerbName } from '../verb-table.ts'
import type { Tx, Verb } from '../verbs/operations.ts'
import { compactCounts } from './apply.ts'
import { claim, newTicket, recall, type Ticket } from './claim.ts'
import { commit } from './commit.ts'
import type { Database, OwnSession, Session } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { acceptAll, addJobs, addNew, addWithin, answerTaken } from './enqueue.ts'
import { PostgresExamination } from './examination.ts'
import { heartbeat } from './heartbeat.ts'
import { Isolation } from './isolation.ts'
import { insideTransaction } from './join.ts'
import { migrateJobs } from './migrate-jobs.ts'
import { perform } from './operations.ts'
import { claimEffects } from './outbox.ts'
import { changeQueue } from './queue-records.ts'
import { BoundedQueues } from './queues.ts'
import { PLACES, QUERIES } from './reads.ts'
import { Runner } from './runner.ts'
import { type Access, PostgresRuns } from './runs.ts'
import { PostgresSeals } from './seals.ts'
import { Settling } from './settling.ts'
import { runTransaction } from './transaction.ts'
import { WakeUps } from './wake.ts'
import { removeWorker, reportWorker } from './workers.ts'
import { Group, Slots, Writer } from './writer.ts'

/** After how many writes the roll-up of ended jobs is made small again. */
const TIDY_EVERY = 500

/** What an open store is made of. */
export interface Parts {
  readonly shared: Shared
  readonly database: Database
  readonly clock: Clock & { refresh?(): void }
  readonly storeId: string
  readonly timeoutMs: number
}

/** A store on PostgreSQL; `open.ts` makes them. */
export class PostgresStore extends VerbSide<Session> implements contract.Store {
  readonly runs: PostgresRuns
  readonly examination: PostgresExamination
  readonly seals: PostgresSeals
  readonly #parts: Parts
  readonly #writer = new Writer()
  readonly #runner: Runner
  readonly #wakeUps: WakeUps
  readonly #enqueues: Group<Offer, contract.Enqueued>
  readonly #settling: Settling
  readonly #settles: Group<contract.Settlement, contract.Answer>
  readonly #commits: Slots
  readonly #bounded: BoundedQueues
  readonly #isolation: Isolation
  /** Since the roll-up of ended jobs was made small. */
  #writes = 0
  #closing: Promise<void> | undefined

  constructor(parts: Parts) {
    super(QUERIES, PLACES)
    const { database, shared } = parts
    this.#parts = parts
    this.#runner = new Runner(database, shared.environment, parts.timeoutMs)
    this.#wakeUps = new WakeUps(database, shared.environment)
    this.#bounded = new BoundedQueues(shared.environment.clock)
    const { environment } = shared
    this.#enqueues = new Group(environment, parts.timeoutMs, (offers) => this.#accept(offers))
    this.#settling = new Settling({
      shared,
      clock: parts.clock,
      runner: this.#runner,
      signal: () => this.#wakeUps.signal(),
      claim: (request) => this.claim(request),
      setAside: (damaged) => this.#setAside(damaged),
    })
    this.#settles = new Group(environment, parts.timeoutMs, async (settlements) => {
      const { answers } = await this.#settling.settle(settlements, undefined)
      return answers
    })
    const access: Access = {
      read: (work) => this.read(work),
      write: (verb, work) =>
        this.#write(verb, (now) =>
          this.#runner.atOnce((session, redo) => work(session, now, redo)),
        ),
      change: (verb, work) => this.#change(verb, work),
    }
    this.#isolation = new Isolation({
      shared,
      now: () => this.now(),
      read: (work) => this.read(work),
      change: (verb, work) => this.#change(verb, work),
    })
    this.runs = new PostgresRuns(access, () => this.now())
    this.seals = new PostgresSeals(access)
    this.examination = new PostgresExamination(
      {
        now: () => this.now(),
        look: (settings, work) => this.#writer.run(() => this.#runner.look(settings, work)),
        change: (verb, work) => this.#change(verb, work),
      },
      shared,
      database.schema,
    )
    // Two connections are left to everything that is not a commit.
    this.#commits = new Slots(Math.max(1, database.size - 2))
  }

  now(): number {
    return this.#parts.clock.now()
  }

  onWake(listener: () => void): () => void {
    return this.#wakeUps.subscribe(listener)
  }

  onTrouble(listener: (trouble: Trouble) => void): () => void {
    return this.#parts.database.troubles.subscribe(listener)
  }

  protected read<T>(work: (session: Session) => T | Promise<T>): Promise<T> {
    return this.#writer.run(() => this.#runner.read(work))
  }

  /** Runs a verb that writes, and wakes who may wait for what it wrote. */
  #write<T>(verb: VerbName, work: (now: number) => Promise<T>): Promise<T> {
    const { clock, shared } = this.#parts
    return this.#writer.run(async () => {
      clock.refresh?.()
      shared.environment.crashPoint?.(`${verb}.begun`)
      const result = await work(clock.now())
      shared.environment.crashPoint?.(`${verb}.committed`)
      this.#tidyUp()
      if (mayWake(verb, result)) this.#wakeUps.signal()
      return result
    })
  }

  /** Nobody waits for it, and if it fails, the next time will do. */
  #tidyUp(): void {
    this.#writes++
    if (this.#writes < TIDY_EVERY) return
    this.#writes = 0
    this.#parts.database.atOnce(compactCounts).catch(() => {})
  }

  /** Runs a verb that reads, decides and writes in one transaction. */
  #change<T>(
    verb: VerbName,
    work: (session: OwnSession, now: number, redo: boolean) => Promise<T>,
  ): Promise<T> {
    return this.#write(verb, (now) =>
      this.#runner.transact(verb, (session, redo) => work(session, now, redo)),
    )
  }

  protected perform<T>(name: VerbName, verb: (tx: Tx) => Verb<T>): Promise<T> {
    const { shared } = this.#parts
    return this.#change(name, (session, now) => perform(atOf(shared, session, now), verb))
  }

  protected look<T>(verb: (tx: Tx) => Verb<T>): Promise<T> {
    const { shared } = this.#parts
    return this.read((session) => perform(atOf(shared, session, this.now()), verb))
  }

  protected aroundDamage<T>(verb: () => Promise<T>): Promise<T> {
    return this.#isolation.around(verb)
  }

  enqueue(
    items: readonly contract.EnqueueItem[],
    { asker = CLIENT, tx, onJoined }: contract.EnqueueOptions = {},
  ): Promise<contract.Enqueued[]> {
    const offers = items.map((item) => ({ item, asker }))
    if (tx !== undefined) return this.#enqueueInside(offers, tx, onJoined)
    return this.#write('enqueue', () => this.#enqueues.add(offers))
  }

  /** In the user's transaction, or in that of a commit, where this is the one verb that may run. */
  async #enqueueInside(
    offers: readonly Offer[],
    tx: unknown,
    onJoined: contract.EnqueueOptions['onJoined'],
  ): Promise<contract.Enqueued[]> {
    const { shared, database, storeId, clock } = this.#parts
    const { value, hasEnded } = await insideTransaction(tx, database, storeId, (session) => {
      const now = clock.now()
      return acceptAll(shared, now, offers, {
        add: async (jobs) => {
          if (this.#bounded.isStale) await this.#bounded.ask(session)
          return this.#bounded.concern(jobs) ? addWithin(session, jobs) : addJobs(session, jobs)
        },
        answer: (met) => answerTaken(shared, session, now, met, false),
      })
    })
    onJoined?.(hasEnded)
    return value
  }

  #accept(offers: readonly Offer[]): Promise<contract.Enqueued[]> {
    const { shared, clock } = this.#parts
    const now = clock.now()
    const patience = this.#runner.patience()
    let redone = false
    const note = (redo: boolean) => {
      redone ||= redo
      return redone
    }
    const carried = { patience, isUnsure: () => redone }
    return acceptAll(shared, now, offers, {
      add: async (jobs) => {
        if (this.#bounded.isStale) {
          await this.#runner.atOnce((session) => this.#bounded.ask(session), { patience })
        }
        if (this.#bounded.concern(jobs)) {
          const within = (session: OwnSession, redo: boolean) => {
            note(redo)
            return addWithin(session, jobs)
          }
          return this.#runner.repeat(within, carried)
        }
        const isQuick = !redone && jobs.every(({ isPlain }) => isPlain)
        const quick = async (session: OwnSession, redo: boolean) =>
          !note(redo) && addNew(session, jobs)
        if (isQuick && (await this.#runner.atOnce(quick, carried))) return { added: new Set(jobs) }
        return this.#runner.atOnce((session, redo) => {
          note(redo)
          return addJobs(session, jobs)
        }, carried)
      },
      answer: (met) =>
        this.#runner.transact(
          'enqueue',
          (session) => answerTaken(shared, session, now, met, redone),
          carried,
        ),
    })
  }

  async claim(request: contract.ClaimRequest): Promise<contract.Held[]> {
    checkClaim(request)
    return this.#isolation.around(() => this.#claim(request), request)
  }

  async #claim(request: contract.ClaimRequest): Promise<contract.Held[]> {
    const { shared } = this.#parts
    const ticket = newTicket(shared, this.now())
    const held = await this.#write('claim', () =>
      this.#runner
        .atOnce(async (session, redo) => {
          const taken = redo ? await recall(shared, session, ticket, request) : []
          return taken.length > 0 ? taken : claim(shared, session, ticket, request)
        })
        .then((taken) => this.#settling.migrated(taken)),
    )
    await this.#setAside(ticket.damaged)
    return held
  }

  /** What a claim took and cannot be read is given to nobody. */
  async #setAside(damaged: Ticket['damaged']): Promise<void> {
    if (damaged.length > 0) await this.#isolation.setAside(damaged.map(({ ref }) => ref))
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
    return this.#writer.run(async () => {
      this.#parts.clock.refresh?.()
      this.#tidyUp()
      if (next !== undefined) {
        const { answers, claimed } = await this.#settling.settle(settlements, next)
        return { answers, claimed: await this.#settling.migrated(claimed) }
      }
      return { answers: await this.#settles.add(settlements), claimed: [] }
    })
  }

  async commit(
    held: contract.Held,
    work: (tx: contract.CommitTx) => string | Promise<string>,
    usage?: () => Usage | undefined,
  ): Promise<contract.CommitAnswer> {
    const { shared, database, timeoutMs, clock } = this.#parts
    const store = { shared, database, timeoutMs, now: () => clock.now() }
    const inside = (tx: contract.CommitTx) => this.#writer.runInside(() => work(tx))
    try {
      return await this.#write('commit', () =>
        this.#commits.use(() => commit(store, held, inside, usage)),
      )
    } catch (error) {
      // A fence that was lost while the function ran is an answer, not a failure.
      if (error instanceof StaleFence) return { kind: 'rejected', error }
      throw error
    }
  }

  async transaction<T>(work: (tx: contract.StoreTx) => T | Promise<T>): Promise<T> {
    const inside = (tx: contract.StoreTx) => this.#writer.runInside(() => work(tx))
    const run = () => this.#commits.use(() => runTransaction(this.#parts, inside))
    return (await this.#write('transaction', run)).value
  }

  async claimEffects(request: contract.EffectClaim): Promise<contract.HeldEffect[]> {
    checkEffectClaim(request)
    const { shared } = this.#parts
    return this.#write('claimEffects', (now) => {
      const ticket = newTicket(shared, now)
      return this.#runner.atOnce((session, redo) => claimEffects(session, ticket, request, redo))
    })
  }

  async heartbeat(beats: readonly contract.Beat[], leaseMs: number): Promise<contract.Heartbeat> {
    checkLease(leaseMs)
    checkProgress(beats, this.#parts.shared.payloadBounds)
    return this.#write('heartbeat', (now) =>
      this.#runner.atOnce((session) => heartbeat(session, now, beats, leaseMs)),
    )
  }

  async migrate(
    request: MigrationRequest,
    asker: contract.Asker,
  ): Promise<contract.Page<Migration>> {
    checkMigration(request, asker, PLACES.jobs)
    const { shared } = this.#parts
    return this.#change('migrate', (session, now) =>
      migrateJobs(shared, session, now, request, asker),
    )
  }

  async pauseQueue(queue: string, asker: contract.Asker): Promise<QueueRecord | undefined> {
    return this.#changeQueue({ action: 'pause', queue }, asker)
  }

  async resumeQueue(queue: string, asker: contract.Asker): Promise<QueueRecord | undefined> {
    return this.#changeQueue({ action: 'resume', queue }, asker)
  }

  async limitQueue(queue: string, limits: contract.QueueLimits, asker = CLIENT) {
    const record = await this.#changeQueue({ action: 'limit', queue, limits }, asker)
    this.#bounded.forget()
    return record
  }

  #changeQueue(change: QueueChange, asker: contract.Asker): Promise<QueueRecord | undefined> {
    checkQueueChange(change, asker)
    return this.#change(`${change.action}Queue` as const, (session, now) =>
      changeQueue(session, now, change, asker),
    )
  }

  async reportWorker(worker: Pick<contract.WorkerRow, 'id' | 'state' | 'info'>): Promise<void> {
    checkName('worker', worker.id)
    return this.#write('reportWorker', (now) =>
      this.#runner.atOnce((session) => reportWorker(session, now, worker)),
    )
  }

  removeWorker(id: string): Promise<void> {
    return this.#write('removeWorker', () =>
      this.#runner.atOnce((session) => removeWorker(session, id)),
    )
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#writer.close()
    this.#wakeUps.close()
    await this.#parts.database.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
