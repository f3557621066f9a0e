/** Reads jobs, queues and workers through the library, with the filters of the command line. */
import { abortSignal, count } from '../core/checks.ts'
import { checkFields, type FieldChecks, unchecked } from '../core/fields.ts'
import type { Job } from '../core/job/job.ts'
import { checkJobFilter } from '../stores/contract/filters.ts'
import type { DamagedJob, JobFilter, QueueInfo, Store } from '../stores/contract/store.ts'
import { type WorkerInfo, workerOf } from '../stores/worker-info.ts'
import { pagesOf } from './pages.ts'

/** Which part of a list is read, and in which portions. */
export interface JobListOptions {
  /** The largest number of jobs; all if absent. */
  readonly limit?: number
  /** The cursor `next` of a page: the list continues after it. */
  readonly after?: string
  /** Jobs per page, up to 10,000; 100 if absent. */
  readonly pageSize?: number
  /** Ends the list: the next page is not read, and the iteration throws the reason. */
  readonly signal?: AbortSignal
}

/** A page of a list of jobs. */
export interface JobPage {
  readonly items: readonly Job[]
  /** Jobs whose rows cannot be read. The doctor reports and repairs them. */
  readonly damaged: readonly DamagedJob[]
  /** The cursor with which the list continues; undefined at its end. */
  readonly next: string | undefined
}

/** A queue with its live workers. */
export interface QueueSummary extends QueueInfo {
  /** For how long the oldest ready job has been due; absent if no job is ready. */
  readonly oldestReadyMs?: number
  /** How many live workers claim from this queue. */
  readonly workers: number
}

const PAGE = 100
const PAGE_MAX = 10_000
const COUNT_PAGE = 1000

const LIST: FieldChecks<JobListOptions> = {
  limit: (value) => count(value, 1, Number.MAX_SAFE_INTEGER),
  // The store checks its cursors.
  after: unchecked,
  pageSize: (value) => count(value, 1, PAGE_MAX),
  signal: abortSignal,
}

const COUNT: FieldChecks<Pick<JobListOptions, 'limit' | 'signal'>> = {
  limit: LIST.limit,
  signal: abortSignal,
}

/** A list of jobs that is read while it is iterated, newest first; see `pawl.jobs.list`. */
export class JobList implements AsyncIterable<Job> {
  readonly #store: Store
  readonly #filter: JobFilter
  readonly #options: JobListOptions

  /** Use `pawl.jobs.list`. @internal */
  constructor(store: Store, filter: JobFilter, options: JobListOptions) {
    this.#store = store
    this.#filter = filter
    this.#options = options
  }

  /** The pages, with their cursors and with jobs that cannot be read. A page may be empty. */
  async *pages(): AsyncGenerator<JobPage> {
    const { limit, after, pageSize: size = PAGE, signal } = this.#options
    const walk = { size, after, ...(limit !== undefined && { limit }) }
    const ask = (page: { limit: number; after?: string }) => {
      signal?.throwIfAborted()
      return this.#store.list(this.#filter, page)
    }
    signal?.throwIfAborted()
    for await (const { items, damaged = [], after: next } of pagesOf(ask, walk)) {
      yield { items, damaged, next }
      signal?.throwIfAborted()
    }
  }

  /** The jobs. Those that cannot be read are left out; `pages` has them. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Job> {
    for await (const { items } of this.pages()) yield* items
  }
}

/** Reads jobs; see `pawl.jobs`. */
export class Jobs {
  readonly #store: Store

  /** Use `pawl.jobs`. @internal */
  constructor(store: Store) {
    this.#store = store
  }

  /** The job as it is now; undefined if it does not exist. `pawl.job(id)` is its handle. */
  get(id: string): Promise<Job | undefined> {
    return this.#store.get(id)
  }

  /**
   * Jobs that match a filter, newest first. Iterate the list for jobs, or its `pages()` for pages
   * with cursors. Each page is one query when it is asked for, so jobs may change meanwhile.
   */
  list(filter: JobFilter = {}, options: JobListOptions = {}): JobList {
    checkJobFilter(filter, 'filter.')
    checkFields(options, LIST, { what: 'options' })
    return new JobList(this.#store, filter, options)
  }

  /**
   * How many jobs match a filter. With no condition, or only `queue` and `lane`, it is read from
   * counters; otherwise all matching jobs are read. With `limit` it stops there.
   */
  async count(
    filter: JobFilter = {},
    options: Pick<JobListOptions, 'limit' | 'signal'> = {},
  ): Promise<number> {
    checkJobFilter(filter, 'filter.')
    checkFields(options, COUNT, { what: 'options' })
    const { queue, lane, ...others } = filter
    if (Object.keys(others).length === 0) {
      const counted = await this.#counted({ queue, lane })
      return Math.min(counted, options.limit ?? counted)
    }
    let found = 0
    const list = this.list(filter, { ...options, pageSize: COUNT_PAGE })
    for await (const { items, damaged } of list.pages()) found += items.length + damaged.length
    return found
  }

  async #counted({ queue, lane }: { queue: string | undefined; lane: JobFilter['lane'] }) {
    const sources =
      queue === undefined
        ? [await this.#store.counts()]
        : (await this.#store.listQueues()).filter(({ name }) => name === queue)
    const numbers = sources.flatMap(({ lanes }) =>
      lane === undefined ? Object.values(lanes) : [lanes[lane]],
    )
    return numbers.reduce((sum, number) => sum + number, 0)
  }
}

/** Reads queues; see `pawl.queues`. */
export class Queues {
  readonly #store: Store

  /** Use `pawl.queues`. @internal */
  constructor(store: Store) {
    this.#store = store
  }

  /** Every queue that has or had jobs, or has settings, by name. */
  async list(): Promise<QueueSummary[]> {
    const queues = await this.#store.listQueues()
    const now = this.#store.now()
    const workers = (await this.#store.listWorkers()).map((row) => workerOf(row, now))
    return queues.map((queue) => {
      const { name, readySince } = queue
      const own = workers.filter(({ live, queues }) => live && (queues?.includes(name) ?? true))
      return {
        ...queue,
        ...(readySince !== undefined && { oldestReadyMs: Math.max(0, now - readySince) }),
        workers: own.length,
      }
    })
  }
}

/** Reads workers; see `pawl.workers`. */
export class Workers {
  readonly #store: Store

  /** Use `pawl.workers`. @internal */
  constructor(store: Store) {
    this.#store = store
  }

  /** The workers of all processes that have reported, also those that are gone. */
  async list(): Promise<WorkerInfo[]> {
    const now = this.#store.now()
    return (await this.#store.listWorkers()).map((row) => workerOf(row, now))
  }
}
