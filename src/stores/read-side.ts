/**
 * What can be asked of a store without changing it: the same checks and bounds in every store, in
 * front of the statements of each. Lists have a budget of time, past which they say where to go on.
 */
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from './audit.ts'
import { assertJson } from './damage.ts'
import { JobDamaged } from './errors.ts'
import {
  checkAudit,
  checkEffectFilter,
  checkJobFilter,
  checkPage,
  type PageOptions,
} from './filters.ts'
import type { MachineRow } from './machines.ts'
import {
  checkQueueRecordFilter,
  type QueueRecord,
  type QueueRecordFilter,
} from './queue-records.ts'
import { checkLimit, checkPlace } from './requests.ts'
import type {
  Counts,
  EffectFilter,
  EffectInfo,
  JobFilter,
  Page,
  QueueInfo,
  Ref,
  StepResult,
  TailEntry,
  UnreadableFact,
  WorkerRow,
} from './store.ts'

const LIST_BUDGET_MS = 200
/** Records of queues are numbered the same way in every store. */
const RECORD_NUMBER = /^\d{1,15}$/

type Awaitable<T> = T | Promise<T>

/** The statements of a store, on its own kind of connection. */
export interface Queries<C> {
  get(connection: C, id: string): Awaitable<Job | undefined>
  getMany(connection: C, ids: readonly string[]): Awaitable<Job[]>
  getByKey(connection: C, type: string, key: string): Awaitable<Job | undefined>
  facts(connection: C, id: string): Awaitable<Fact[]>
  asOf(connection: C, id: string, seq: number): Awaitable<Job | undefined>
  payloads(connection: C, id: string): Awaitable<{ input: string; result?: string } | undefined>
  progress(connection: C, id: string): Awaitable<string | undefined>
  steps(connection: C, ref: Ref): Awaitable<StepResult[]>
  nextDue(connection: C): Awaitable<number | undefined>
  counts(connection: C): Awaitable<Counts>
  listQueues(connection: C): Awaitable<QueueInfo[]>
  listQueueRecords(
    connection: C,
    filter: QueueRecordFilter,
    page: PageOptions,
  ): Awaitable<Page<QueueRecord>>
  listWorkers(connection: C): Awaitable<WorkerRow[]>
  listMachines(connection: C): Awaitable<MachineRow[]>
  list(
    connection: C,
    filter: JobFilter,
    page: PageOptions,
    expired: () => boolean,
  ): Awaitable<Page<Job>>
  listEffects(
    connection: C,
    filter: EffectFilter,
    page: PageOptions,
    expired: () => boolean,
  ): Awaitable<Page<EffectInfo>>
  audit(
    connection: C,
    filter: AuditFilter,
    options: AuditOptions,
    expired: () => boolean,
  ): Awaitable<Page<AuditEntry>>
  tail(
    connection: C,
    after: string | undefined,
    limit: number,
  ): Awaitable<(TailEntry | UnreadableFact)[]>
  tailEnd(connection: C): Awaitable<string>
}

/** How a store writes places in lists of jobs and of effects, and in the ledger. */
export interface Places {
  readonly jobs: RegExp
  readonly effects: RegExp
  readonly ledger: RegExp
}

/** The read side of a store. */
export abstract class ReadSide<C> {
  readonly #queries: Queries<C>
  readonly #places: Places

  constructor(queries: Queries<C>, places: Places) {
    this.#queries = queries
    this.#places = places
  }

  abstract now(): number

  /** Reads by a connection that is up to it, again where the database was busy. */
  protected abstract read<T>(work: (connection: C) => Awaitable<T>): Promise<T>

  get(id: string): Promise<Job | undefined> {
    return this.read((connection) => this.#queries.get(connection, id))
  }

  getMany(ids: readonly string[]): Promise<Job[]> {
    return this.read((connection) => this.#queries.getMany(connection, ids))
  }

  getByKey(type: string, key: string): Promise<Job | undefined> {
    return this.read((connection) => this.#queries.getByKey(connection, type, key))
  }

  facts(id: string): Promise<Fact[]> {
    return this.read((connection) => this.#queries.facts(connection, id))
  }

  asOf(id: string, seq: number): Promise<Job | undefined> {
    return this.read((connection) => this.#queries.asOf(connection, id, seq))
  }

  payloads(id: string): Promise<{ input: string; result?: string } | undefined> {
    return this.read((connection) => this.#queries.payloads(connection, id))
  }

  progress(id: string): Promise<string | undefined> {
    return this.read((connection) => this.#queries.progress(connection, id))
  }

  /** A later attempt would repeat what was done already: the job waits for a repair instead. */
  async steps(ref: Ref, check?: 'json'): Promise<StepResult[]> {
    try {
      const results = await this.read((connection) => this.#queries.steps(connection, ref))
      if (check === 'json') assertJson(ref, results)
      return results
    } catch (error) {
      if (error instanceof JobDamaged) await this.setHeldAside(error)
      throw error
    }
  }

  /** Sets aside a job that is held, because one of its facts cannot be read. */
  protected abstract setHeldAside(damage: JobDamaged): Promise<void>

  nextDue(): Promise<number | undefined> {
    return this.read((connection) => this.#queries.nextDue(connection))
  }

  counts(): Promise<Counts> {
    return this.read((connection) => this.#queries.counts(connection))
  }

  listQueues(): Promise<QueueInfo[]> {
    return this.read((connection) => this.#queries.listQueues(connection))
  }

  async listQueueRecords(
    filter: QueueRecordFilter,
    page: PageOptions = {},
  ): Promise<Page<QueueRecord>> {
    checkQueueRecordFilter(filter)
    checkPage(page)
    checkPlace('after', page.after, RECORD_NUMBER)
    return this.read((connection) => this.#queries.listQueueRecords(connection, filter, page))
  }

  listWorkers(): Promise<WorkerRow[]> {
    return this.read((connection) => this.#queries.listWorkers(connection))
  }

  listMachines(): Promise<MachineRow[]> {
    return this.read((connection) => this.#queries.listMachines(connection))
  }

  async list(filter: JobFilter, page: PageOptions = {}): Promise<Page<Job>> {
    checkJobFilter(filter)
    checkPage(page)
    checkPlace('after', page.after, this.#places.jobs)
    const expired = this.#budget()
    return this.read((connection) => this.#queries.list(connection, filter, page, expired))
  }

  async listEffects(filter: EffectFilter, page: PageOptions = {}): Promise<Page<EffectInfo>> {
    checkEffectFilter(filter)
    checkPage(page)
    checkPlace('after', page.after, this.#places.effects)
    const expired = this.#budget()
    return this.read((connection) => this.#queries.listEffects(connection, filter, page, expired))
  }

  async audit(filter: AuditFilter, options: AuditOptions = {}): Promise<Page<AuditEntry>> {
    checkAudit(filter, options)
    checkPlace('after', options.after, this.#places.ledger)
    const expired = this.#budget()
    return this.read((connection) => this.#queries.audit(connection, filter, options, expired))
  }

  async tail(after: string | undefined, limit: number): Promise<(TailEntry | UnreadableFact)[]> {
    checkLimit(limit)
    checkPlace('after', after, this.#places.ledger)
    return this.read((connection) => this.#queries.tail(connection, after, limit))
  }

  tailEnd(): Promise<string> {
    return this.read((connection) => this.#queries.tailEnd(connection))
  }

  #budget(): () => boolean {
    const deadline = this.now() + LIST_BUDGET_MS
    return () => this.now() > deadline
  }
}
