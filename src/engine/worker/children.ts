/**
 * Jobs that a handler enqueues outside of its commit. An attempt may be repeated after any of them,
 * so each has an id that follows from the job, a name and a number, as the key of a step does: the
 * n-th call with a name enqueues the same job in every attempt. The id is a UUID of version 8 (RFC
 * 9562): the first 48 bits are those of the job, so that both are stored near each other, and the
 * others are a hash.
 *
 * The store does not check the fence for such an enqueue. An attempt that has lost its lease
 * without knowing it can still enqueue a job, but only the one that the next attempt would enqueue.
 */
import { name as checkName } from '../../core/checks.ts'
import { CommandInvalid, JobExists } from '../../core/errors.ts'
import type { Job } from '../../core/job/job.ts'
import type { Requester } from '../../stores/contract/store.ts'
import { childId } from '../../stores/derived-ids.ts'
import type { JobHandle } from '../job-handle.ts'
import type { AnyJob } from '../job-types.ts'
import { type ChildOptions, checkChildOptions, type EnqueueOptions } from '../options.ts'

/** Enqueues one job; throws if it is rejected. */
export interface EnqueueOne {
  (
    definition: AnyJob,
    input: unknown,
    options: EnqueueOptions,
    requester: Requester,
  ): Promise<JobHandle>
  /** The job with this id; undefined if there is none. */
  readonly find: (id: string) => Promise<Job | undefined>
  /** The handle of a job that exists. */
  readonly handleOf: (job: Job) => JobHandle
}

/** What children need from their attempt. @internal */
export interface ChildParts {
  readonly job: Job
  readonly enqueue: EnqueueOne
  /** Throws if the attempt is over. */
  readonly assertLive: () => void
}

/** The keys in the metadata of the fact that creates a child. */
export const ENQUEUED_BY = 'enqueuedBy'
const ENQUEUED_AS = 'enqueuedAs'

/** Who enqueues, as the ledger of the new job records it: the job, and the name and number. */
export function parentOf(job: Job, as?: string): Requester {
  const metadata = { [ENQUEUED_BY]: job.id, ...(as !== undefined && { [ENQUEUED_AS]: as }) }
  return { actor: 'worker', metadata }
}

const CHILDREN_MAX = 10_000

/** The jobs that one attempt enqueues. @internal */
export class Children {
  readonly #parts: ChildParts
  readonly #counts = new Map<string, number>()
  readonly #open = new Set<Promise<unknown>>()
  #calls = 0

  constructor(parts: ChildParts) {
    this.#parts = parts
  }

  /** Enqueues a job once, however often the attempt is repeated. */
  async enqueue(
    definition: AnyJob,
    input: unknown,
    options: ChildOptions = {},
  ): Promise<JobHandle> {
    this.#parts.assertLive()
    checkChildOptions(options)
    const { name = definition.name, ...own } = options
    const n = this.#next(name)
    const made = this.#make(definition, input, own, `${name}/${n}`)
    this.#open.add(made)
    try {
      return await made
    } finally {
      this.#open.delete(made)
    }
  }

  /** Waits for calls that the handler did not wait for; throws if one of them fails. */
  async settled(): Promise<void> {
    await Promise.all(this.#open)
  }

  #next(name: string): number {
    const why = checkName(name)
    if (why !== undefined) throw new CommandInvalid('name', why)
    if (++this.#calls > CHILDREN_MAX) {
      throw new CommandInvalid('enqueue', `must not be called more than ${CHILDREN_MAX} times`)
    }
    const n = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, n)
    return n
  }

  async #make(
    definition: AnyJob,
    input: unknown,
    options: EnqueueOptions,
    as: string,
  ): Promise<JobHandle> {
    const { job, enqueue } = this.#parts
    const jobId = childId(job.id, as)
    // An earlier attempt may have enqueued it. Then neither its key nor a full queue matters.
    const known = job.attempt > 1 ? await this.#find(jobId, definition, as) : undefined
    if (known !== undefined) return known
    try {
      return await enqueue(definition, input, { ...options, jobId }, parentOf(job, as))
    } catch (error) {
      if (!(error instanceof JobExists)) throw error
      const existing = await this.#find(jobId, definition, as)
      if (existing === undefined) throw error
      return existing
    }
  }

  async #find(id: string, { name: type }: AnyJob, as: string): Promise<JobHandle | undefined> {
    const { enqueue } = this.#parts
    const found = await enqueue.find(id)
    if (found === undefined) return undefined
    if (found.type === type) return enqueue.handleOf(found)
    throw new CommandInvalid('name', `must be another one: ${as} is a job of type ${found.type}`)
  }
}
