/** The verbs of a store that are written once: each checks its arguments and runs a generator. */
import type { Environment } from '../environment/system.ts'
import { textOf } from './archive.ts'
import { checkEffectFilter, checkPage, type PageOptions } from './contract/filters.ts'
import type { WorkerReport } from './contract/job-types.ts'
import { CLIENT, checkRequester } from './contract/requester.ts'
import {
  checkCursor,
  checkEffectClaim,
  checkLimit,
  checkName,
  checkPrune,
  checkReports,
  checkRetry,
} from './contract/requests.ts'
import type * as contract from './contract/store.ts'
import type { JobDamaged } from './errors.ts'
import { earliest } from './gate-rows.ts'
import { Isolation } from './isolation.ts'
import type { MachineRow } from './machines.ts'
import { checkMigration, type Migration, type MigrationRequest } from './migration.ts'
import {
  checkQueueChange,
  checkQueueRecordFilter,
  type QueueChange,
  type QueueRecord,
  type QueueRecordFilter,
} from './queue-records.ts'
import { type Cursors, type Queries, ReadSide } from './read-side.ts'
import type { VerbName } from './verb-table.ts'
import { applyCommand, cancel } from './verbs/apply-command.ts'
import { claimEffects } from './verbs/claim-effects.ts'
import { retryEffects, settleEffects } from './verbs/effects.ts'
import { listEffects } from './verbs/list-effects.ts'
import { migrateJobs } from './verbs/migrate-jobs.ts'
import type { Performed, Step, Tx } from './verbs/operations.ts'
import { promote } from './verbs/promote.ts'
import { collectPrunable, removePruned } from './verbs/prune.ts'
import { changeQueue, listQueueRecords } from './verbs/queues.ts'
import { recover } from './verbs/recover.ts'
import { shed } from './verbs/shed.ts'

/** Records of queues are numbered the same way in every store. */
const RECORD_NUMBER = /^\d{1,15}$/

type Args<K extends keyof contract.Store> = contract.Store[K] extends (...args: infer A) => unknown
  ? A
  : never

/** The part of a store that both databases have in common. */
export abstract class VerbSide<S> extends ReadSide<S> {
  protected readonly isolation: Isolation
  readonly #environment: Environment

  constructor(environment: Environment, queries: Queries<S>, cursors: Cursors) {
    super(queries, cursors)
    this.#environment = environment
    this.isolation = new Isolation({
      look: (verb) => this.look(verb),
      perform: (name, verb) => this.perform(name, verb),
    })
  }

  /** Runs a verb in a transaction of its own or with others; durable when it resolves. */
  protected abstract perform<T>(name: VerbName, verb: Performed<T>): Promise<T>

  /**
   * Runs a verb each of whose operations may be a transaction of its own. PostgreSQL then needs
   * neither BEGIN nor COMMIT.
   */
  protected abstract performEach<T>(name: VerbName, verb: Performed<T>): Promise<T>

  /** Runs a verb that only reads. */
  protected abstract look<T>(verb: (tx: Tx) => Step<T>): Promise<T>

  applyCommand(...args: Args<'applyCommand'>): Promise<contract.Answer[]> {
    return this.perform('applyCommand', (tx) => applyCommand(tx, ...args))
  }

  async cancel(...args: Args<'cancel'>): Promise<contract.Answer[]> {
    checkRequester(args[1])
    return this.perform('cancel', (tx) => cancel(tx, ...args))
  }

  async settleEffects(...[reports, onMoved]: Args<'settleEffects'>): Promise<boolean[]> {
    checkReports(reports)
    const { answers, finished } = await this.perform('settleEffects', (tx) =>
      settleEffects(tx, reports),
    )
    onMoved?.(finished)
    return [...answers]
  }

  async retryEffects(...[keys, requester]: Args<'retryEffects'>): Promise<boolean[]> {
    checkRetry(keys, requester)
    return this.perform('retryEffects', (tx) => retryEffects(tx, keys, requester))
  }

  async promote(...[limit, onMoved]: Args<'promote'>): Promise<number> {
    checkLimit(limit)
    const promoted = await this.isolation.around(() =>
      this.perform('promote', (tx) => promote(tx, limit)),
    )
    onMoved?.(promoted)
    return promoted.length
  }

  async nextDue(): Promise<number | undefined> {
    return earliest(await this.look((tx) => tx.nextDue()))
  }

  async recover(limit: number): Promise<contract.Recovered[]> {
    checkLimit(limit)
    return this.isolation.around(() => this.perform('recover', (tx) => recover(tx, limit)))
  }

  async shed(limit: number): Promise<contract.Answer[]> {
    checkLimit(limit)
    return this.isolation.around(() => this.perform('shed', (tx) => shed(tx, limit)))
  }

  async prune(request: contract.PruneRequest): Promise<number> {
    const { endedBefore, limit, archive } = checkPrune(request)
    const collected = await this.look((tx) => collectPrunable(tx, endedBefore, limit))
    if (collected.length === 0) return 0
    await archive?.(textOf(collected))
    const removing = { endedBefore, archived: archive !== undefined }
    return this.perform('prune', function* (tx) {
      return (yield* removePruned(tx, collected, removing)).removed
    })
  }

  isolate(): Promise<contract.Isolated[]> {
    return this.isolation.isolate()
  }

  protected setHeldAside(damage: JobDamaged): Promise<void> {
    return this.isolation.setHeldAside(damage)
  }

  async claimEffects(request: contract.EffectClaim): Promise<contract.HeldEffect[]> {
    checkEffectClaim(request)
    // One id for all tries: by it a try finds what an earlier one has claimed.
    const claim = this.#environment.ids.next()
    return this.performEach('claimEffects', (tx, redo) => claimEffects(tx, claim, request, redo))
  }

  async listEffects(
    filter: contract.EffectFilter,
    page: PageOptions = {},
  ): Promise<contract.Page<contract.EffectInfo>> {
    checkEffectFilter(filter)
    checkPage(page)
    checkCursor('after', page.after, this.cursors.effects)
    const expired = this.budget()
    return this.look((tx) => listEffects(tx, filter, page, expired))
  }

  async migrate(
    request: MigrationRequest,
    requester: contract.Requester,
  ): Promise<contract.Page<Migration>> {
    checkMigration(request, requester, this.cursors.jobs)
    return this.perform('migrate', (tx) => migrateJobs(tx, request, requester))
  }

  async pauseQueue(queue: string, requester: contract.Requester): Promise<QueueRecord | undefined> {
    return this.#changeQueue({ action: 'pause', queue }, requester)
  }

  async resumeQueue(
    queue: string,
    requester: contract.Requester,
  ): Promise<QueueRecord | undefined> {
    return this.#changeQueue({ action: 'resume', queue }, requester)
  }

  async limitQueue(
    queue: string,
    limits: contract.QueueLimits,
    requester = CLIENT,
  ): Promise<QueueRecord | undefined> {
    return this.#changeQueue({ action: 'limit', queue, limits }, requester)
  }

  #changeQueue(
    change: QueueChange,
    requester: contract.Requester,
  ): Promise<QueueRecord | undefined> {
    checkQueueChange(change, requester)
    const name = `${change.action}Queue` as const
    return this.perform(name, (tx) => changeQueue(tx, change, requester))
  }

  async listQueueRecords(
    filter: QueueRecordFilter,
    page: PageOptions = {},
  ): Promise<contract.Page<QueueRecord>> {
    checkQueueRecordFilter(filter)
    checkPage(page)
    checkCursor('after', page.after, RECORD_NUMBER)
    return this.look((tx) => listQueueRecords(tx, filter, page))
  }

  async reportWorker(worker: WorkerReport): Promise<void> {
    checkName('worker', worker.id)
    return this.performEach('reportWorker', (tx) => tx.reportWorker(worker))
  }

  removeWorker(id: string): Promise<void> {
    return this.performEach('removeWorker', (tx) => tx.removeWorker(id))
  }

  listWorkers(): Promise<contract.WorkerRow[]> {
    return this.look((tx) => tx.workers())
  }

  listMachines(): Promise<MachineRow[]> {
    return this.look((tx) => tx.machineRows())
  }
}
