/**
 * The verbs of a store that read: the same checks and bounds on both databases, before the
 * statements of each. A list that takes too long ends early and returns a cursor to go on from.
 */
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import { contextIn, type TraceContext } from '../core/trace.ts'
import type { AuditEntry, AuditFilter, AuditOptions } from './audit.ts'
import { checkAudit, checkJobFilter, checkPage, type PageOptions } from './contract/filters.ts'
import { checkCursor, checkLimit } from './contract/requests.ts'
import type {
  Counts,
  JobFilter,
  Page,
  QueueInfo,
  Ref,
  StepResult,
  TailEntry,
  TracedTrigger,
  UnreadableFact,
} from './contract/store.ts'
import { assertJson } from './damage.ts'
import { JobDamaged } from './errors.ts'

type Awaitable<T> = T | Promise<T>

/** The queries of a store, on its own type of connection. */
export interface Queries<C> {
  /** How long a list may take. */
  readonly LIST_BUDGET_MS: number
  get(connection: C, id: string): Awaitable<Job | undefined>
  getMany(connection: C, ids: readonly string[]): Awaitable<Job[]>
  getByKey(connection: C, type: string, key: string): Awaitable<Job | undefined>
  facts(connection: C, id: string): Awaitable<Fact[]>
  /** The data of these facts, by job. */
  traceData(connection: C, ids: readonly string[], of: TracedTrigger): Awaitable<TraceDataRow[]>
  asOf(connection: C, id: string, seq: number): Awaitable<Job | undefined>
  payloads(connection: C, id: string): Awaitable<{ input: string; result?: string } | undefined>
  progress(connection: C, id: string): Awaitable<string | undefined>
  steps(connection: C, ref: Ref): Awaitable<StepResult[]>
  counts(connection: C): Awaitable<Counts>
  listQueues(connection: C): Awaitable<QueueInfo[]>
  list(
    connection: C,
    filter: JobFilter,
    page: PageOptions,
    expired: () => boolean,
  ): Awaitable<Page<Job>>
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

/** How a store writes cursors of lists of jobs and of effects, and of the ledger. */
export interface Cursors {
  readonly jobs: RegExp
  readonly effects: RegExp
  readonly ledger: RegExp
}

/** What is stored of a fact beside its columns. */
export interface TraceDataRow {
  readonly id: string
  readonly data: string | null
}

/** The span that the data of a fact names. Damaged data names none. */
function traceInData(data: string | null): TraceContext | undefined {
  if (data === null || !data.includes('"spanId"')) return undefined
  try {
    return contextIn(JSON.parse(data) as object)
  } catch {
    return undefined
  }
}

/** The read side of a store. */
export abstract class ReadSide<C> {
  readonly #queries: Queries<C>
  protected readonly cursors: Cursors

  constructor(queries: Queries<C>, cursors: Cursors) {
    this.#queries = queries
    this.cursors = cursors
  }

  abstract now(): number

  /** Reads; tries again if the database was busy. */
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

  async traces(ids: readonly string[], of: TracedTrigger): Promise<Map<string, TraceContext>> {
    checkLimit(ids.length)
    if (ids.length === 0) return new Map()
    const rows = await this.read((connection) => this.#queries.traceData(connection, ids, of))
    return new Map(
      rows.flatMap(({ id, data }) => {
        const trace = traceInData(data)
        return trace === undefined ? [] : [[id, trace]]
      }),
    )
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

  /** If a step cannot be read, a later attempt would repeat it: the job is set aside instead. */
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

  counts(): Promise<Counts> {
    return this.read((connection) => this.#queries.counts(connection))
  }

  listQueues(): Promise<QueueInfo[]> {
    return this.read((connection) => this.#queries.listQueues(connection))
  }

  async list(filter: JobFilter, page: PageOptions = {}): Promise<Page<Job>> {
    checkJobFilter(filter)
    checkPage(page)
    checkCursor('after', page.after, this.cursors.jobs)
    const expired = this.budget()
    return this.read((connection) => this.#queries.list(connection, filter, page, expired))
  }

  async audit(filter: AuditFilter, options: AuditOptions = {}): Promise<Page<AuditEntry>> {
    checkAudit(filter, options)
    checkCursor('after', options.after, this.cursors.ledger)
    const expired = this.budget()
    return this.read((connection) => this.#queries.audit(connection, filter, options, expired))
  }

  async tail(after: string | undefined, limit: number): Promise<(TailEntry | UnreadableFact)[]> {
    checkLimit(limit)
    checkCursor('after', after, this.cursors.ledger)
    return this.read((connection) => this.#queries.tail(connection, after, limit))
  }

  tailEnd(): Promise<string> {
    return this.read((connection) => this.#queries.tailEnd(connection))
  }

  /** Returns a function that says whether the time of a list that begins now is over. */
  protected budget(): () => boolean {
    const deadline = this.now() + this.#queries.LIST_BUDGET_MS
    return () => this.now() > deadline
  }
}
