/** The PostgreSQL store, behind the contract of `../contract/store.ts`. */
import { StaleFence } from '../../core/errors.ts'
import type { Clock } from '../../core/ports.ts'
import type { Offer } from '../accept.ts'
import { CLIENT } from '../contract/requester.ts'
import { checkClaim, checkEnqueue, checkLease, checkProgress } from '../contract/requests.ts'
import type * as contract from '../contract/store.ts'
import type { Trouble } from '../outage.ts'
import { VerbSide } from '../verb-side.ts'
import { mayWake, type VerbName } from '../verb-table.ts'
import { StoredAdmissions } from '../verbs/admission-tables.ts'
import { admit } from '../verbs/admit.ts'
import { type Join, StoredFlows } from '../verbs/flow-tables.ts'
import { StoredLimits } from '../verbs/limit-tables.ts'
import type { Performed, Step, Tx } from '../verbs/operations.ts'
import { StoredRetention } from '../verbs/retention-tables.ts'
import { StoredRuns, type TableAccess } from '../verbs/run-tables.ts'
import { StoredSchedules } from '../verbs/schedule-tables.ts'
import { StoredSeals } from '../verbs/seal-tables.ts'
import { StoredTokens } from '../verbs/token-tables.ts'
import { StoredWaits } from '../verbs/wait-tables.ts'
import { compactCounts } from './apply.ts'
import { newTicket, type Ticket } from './claim.ts'
import { Claiming } from './claiming.ts'
import { commit } from './commit.ts'
import type { Database, OwnSession, Session } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { acceptAll, addJobs, addNew, addWithin, answerTaken } from './enqueue.ts'
import { PostgresExamination } from './examination.ts'
import { heartbeat } from './heartbeat.ts'
import { insideTransaction } from './join.ts'
import { perform } from './operations.ts'
import { BoundedQueues } from './queues.ts'
import { CURSORS, QUERIES } from './reads.ts'
import { Runner } from './runner.ts'
import { Settling } from './settling.ts'
import { runTransaction } from './transaction.ts'
import { WakeUps } from './wake.ts'
import { Group, Slots, Writer } from './writer.ts'

/** After how many writes rows of the roll-up are merged. */
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
  readonly runs: StoredRuns
  readonly schedules: StoredSchedules
  readonly examination: PostgresExamination
  readonly seals: StoredSeals
  readonly limits: StoredLimits
  readonly retention: StoredRetention
  readonly admissions: StoredAdmissions
  readonly tokens: StoredTokens
  readonly waits: StoredWaits
  readonly flows: StoredFlows
  readonly #parts: Parts
  readonly #writer = new Writer()
  readonly #runner: Runner
  readonly #wakeUps: WakeUps
  readonly #enqueues: Group<Offer, contract.Enqueued>
  readonly #claiming: Claiming
  readonly #settling: Settling
  readonly #settles: Group<contract.Settlement, contract.Answer>
  readonly #commits: Slots
  readonly #bounded: BoundedQueues
  /** Writes since rows of the roll-up were merged. */
  #writes = 0
  #closing: Promise<void> | undefined

  constructor(parts: Parts) {
    super(parts.shared.environment, QUERIES, CURSORS)
    const { database, shared } = parts
    this.#parts = parts
    this.#runner = new Runner(database, shared.environment, parts.timeoutMs)
    this.#wakeUps = new WakeUps(database, shared.environment)
    this.#bounded = new BoundedQueues(shared.environment.clock)
    const { environment } = shared
    this.#enqueues = new Group(environment, parts.timeoutMs, (offers) => this.#accept(offers))
    const ways = { shared, clock: parts.clock, runner: this.#runner }
    this.#claiming = new Claiming(ways)
    this.#settling = new Settling({
      ...ways,
      claiming: this.#claiming,
      signal: () => this.#wakeUps.signal(),
      claim: (request) => this.claim(request),
      setAside: (damaged) => this.#setAside(damaged),
    })
    this.#settles = new Group(environment, parts.timeoutMs, async (settlements) => {
      const { answers } = await this.#settling.settle(settlements, undefined)
      return answers
    })
    const tables: TableAccess = {
      look: (verb) => this.look(verb),
      write: (name, verb) => this.performEach(name, verb),
      change: (name, verb) => this.perform(name, verb),
      join: (tx, verb) => this.#join({ tx }, verb),
    }
    this.runs = new StoredRuns(tables)
    this.schedules = new StoredSchedules(tables)
    this.seals = new StoredSeals(tables, 'tx')
    this.limits = new StoredLimits(tables)
    this.retention = new StoredRetention(tables)
    this.admissions = new StoredAdmissions(tables)
    this.tokens = new StoredTokens(tables)
    this.waits = new StoredWaits(tables, parts.shared.payloadBounds)
    const join: Join = (options, verb) => this.#join(options, verb)
    this.flows = new StoredFlows({
      access: tables,
      join,
      bounds: parts.shared.payloadBounds,
      store: this,
    })
    this.examination = new PostgresExamination(
      {
        now: () => this.now(),
        look: (settings, work) => this.#writer.run(() => this.#runner.look(settings, work)),
        change: (verb, work) => this.#change(verb, work),
      },
      shared,
    )
    // Two connections are left to everything that is not a commit.
    this.#commits = new Slots(Math.max(1, database.size - 2))
  }

  now(): number {
    return this.#parts.clock.now()
  }

  /**
   * More than two calls were not faster, and smaller batches cost more than they gain: see decision
   * 0044. Small pools are left to others.
   * @internal
   */
  get flights(): contract.FlightLimits {
    return { max: this.#parts.database.size > 3 ? 2 : 1, reportsMin: 50 }
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

  /** Runs a verb that writes, and wakes listeners that may wait for it. */
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

  /** Runs in the background; if it fails, a later call does it. */
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

  protected perform<T>(name: VerbName, verb: Performed<T>): Promise<T> {
    const { shared } = this.#parts
    return this.#change(name, (session, now, redo) =>
      perform(atOf(shared, session, now), (tx) => verb(tx, redo)),
    )
  }

  protected look<T>(verb: (tx: Tx) => Step<T>): Promise<T> {
    const { shared } = this.#parts
    return this.read((session) => perform(atOf(shared, session, this.now()), verb))
  }

  protected performEach<T>(name: VerbName, verb: Performed<T>): Promise<T> {
    const { shared } = this.#parts
    return this.#write(name, (now) =>
      this.#runner.atOnce((session, redo) =>
        perform(atOf(shared, session, now), (tx) => verb(tx, redo)),
      ),
    )
  }

  async enqueue(
    items: readonly contract.EnqueueItem[],
    options: contract.EnqueueOptions = {},
  ): Promise<contract.Enqueued[]> {
    const { requester = CLIENT, tx, onJoined } = checkEnqueue(options)
    const offers = items.map((item) => ({ item, requester }))
    if (tx !== undefined) return this.#enqueueInside(offers, tx, onJoined)
    // A key that another transaction has locked must not keep the jobs of other callers.
    const isSubject = items.some(({ admission }) => admission !== undefined)
    return this.#write('enqueue', () =>
      isSubject ? this.#accept(offers) : this.#enqueues.add(offers),
    )
  }

  /** Runs a verb in a transaction that the caller has opened; durable when that commits. */
  async #join<T>(
    { tx, onJoined }: Pick<contract.EnqueueOptions, 'tx' | 'onJoined'>,
    verb: Performed<T>,
  ): Promise<T> {
    const { shared, database, storeId, clock } = this.#parts
    const { value, hasEnded } = await insideTransaction(tx, database, storeId, (session) =>
      perform(atOf(shared, session, clock.now()), (own) => verb(own, false)),
    )
    onJoined?.(hasEnded)
    return value
  }

  /** In the user's transaction, or in that of a commit, in which no other verb may run. */
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
        admit: (jobs) => perform(atOf(shared, session, now), (tx) => admit(tx, jobs, false)),
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
      admit: (jobs) => {
        const admitted = (session: OwnSession, redo: boolean) =>
          perform(atOf(shared, session, now), (tx) => admit(tx, jobs, note(redo)))
        return this.#runner.transact('enqueue', admitted, carried)
      },
    })
  }

  async claim(request: contract.ClaimRequest): Promise<contract.Held[]> {
    checkClaim(request)
    return this.isolation.around(() => this.#claim(request), request)
  }

  async #claim(request: contract.ClaimRequest): Promise<contract.Held[]> {
    const { shared } = this.#parts
    const ticket = newTicket(shared, this.now())
    const held = await this.#write('claim', async () =>
      this.#settling.migrated(await this.#claiming.claim(ticket, request)),
    )
    await this.#setAside(ticket.damaged)
    return held
  }

  /** Sets aside jobs that a claim took and that cannot be read. */
  async #setAside(damaged: Ticket['damaged']): Promise<void> {
    if (damaged.length > 0) await this.isolation.setAside(damaged.map(({ ref }) => ref))
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
    work: contract.CommitWork,
    closing?: () => contract.Closing,
  ): Promise<contract.CommitAnswer> {
    const { shared, database, timeoutMs, clock } = this.#parts
    const store = { shared, database, timeoutMs, now: () => clock.now() }
    const inside = (tx: contract.CommitTx) => this.#writer.runInside(() => work(tx))
    try {
      return await this.#write('commit', () =>
        this.#commits.use(() => commit(store, held, inside, closing)),
      )
    } catch (error) {
      // If the fence was lost while the function ran, that is an answer and not an error.
      if (error instanceof StaleFence) return { kind: 'rejected', error }
      throw error
    }
  }

  async transaction<T>(work: (tx: contract.StoreTx) => T | Promise<T>): Promise<T> {
    const inside = (tx: contract.StoreTx) => this.#writer.runInside(() => work(tx))
    const run = () => this.#commits.use(() => runTransaction(this.#parts, inside))
    return (await this.#write('transaction', run)).value
  }

  async heartbeat(beats: readonly contract.Beat[], leaseMs: number): Promise<contract.Heartbeat> {
    checkLease(leaseMs)
    checkProgress(beats, this.#parts.shared.payloadBounds)
    return this.#write('heartbeat', (now) =>
      this.#runner.atOnce((session) => heartbeat(session, now, beats, leaseMs)),
    )
  }

  override async limitQueue(queue: string, limits: contract.QueueLimits, requester = CLIENT) {
    const record = await super.limitQueue(queue, limits, requester)
    this.#bounded.forget()
    return record
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
