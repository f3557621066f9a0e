/**
 * How offered jobs are decided on, the same in every store. Jobs of one call mostly differ in id
 * and input alone. The decision on one of them is then the decision on all, except for the id. It
 * is made once, which makes large batches fast.
 */
import type { JsonBounds } from '../core/canonical-json.ts'
import { uuid } from '../core/checks.ts'
import { CommandInvalid, PawlError } from '../core/errors.ts'
import { decide } from '../core/job/decide.ts'
import { evolve } from '../core/job/evolve.ts'
import type { Fact } from '../core/job/facts.ts'
import type { Job } from '../core/job/job.ts'
import { LANES, laneOf } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Environment } from '../environment/system.ts'
import { isPlain } from './columns.ts'
import { contextOf } from './contract/requester.ts'
import { findItemFault, findPayloadFault } from './contract/requests.ts'
import type { EnqueueItem, Requester } from './contract/store.ts'

/** An item, and who enqueues it. */
export interface Offer {
  readonly item: EnqueueItem
  readonly requester: Requester
}

/** A job that was decided on and is about to be written. */
export interface Accepted {
  readonly offer: Offer
  readonly job: Job
  readonly fact: Fact
  readonly lane: number
  /** The number of its lifecycle in the store. */
  readonly machine: number
  /** A new job is not held. */
  readonly leaseUntil: null
  /** It has none of the attributes that most jobs do not have. */
  readonly isPlain: boolean
  /** The first of those that differ from it in id and input alone. */
  readonly model: Accepted | undefined
}

/** What decisions on offers need of a store. */
export interface Acceptance {
  readonly environment: Environment
  readonly machines: {
    idOf(lifecycle: Lifecycle): number | undefined
    missing(lifecycle: Lifecycle): PawlError
  }
  readonly payloadBounds: JsonBounds
}

/** Decides on offers of one moment, one after the other. */
export class Acceptor {
  readonly #shared: Acceptance
  readonly #now: number
  #model: Accepted | undefined

  constructor(shared: Acceptance, now: number) {
    this.#shared = shared
    this.#now = now
  }

  /** The job that an offer makes, or why there is none. */
  accept(offer: Offer): Accepted | PawlError {
    const fault = findPayloadFault('input', offer.item.input, this.#shared.payloadBounds)
    const model = this.#model
    if (model !== undefined && fault === undefined && areAlike(model.offer, offer)) {
      return follow(model, offer)
    }
    const accepted = this.#decide(offer)
    if (accepted instanceof PawlError) return accepted
    if (fault !== undefined) return fault
    this.#model = accepted
    return accepted
  }

  #decide(offer: Offer): Accepted | PawlError {
    const { environment, machines } = this.#shared
    const fault = findItemFault(offer.item)
    if (fault !== undefined) return fault
    const { lifecycle, command } = offer.item
    // The kind comes first: the other order takes several times as long, here and in checks.
    const create = { kind: 'create', ...command } as const
    const context = contextOf(environment, offer.requester, this.#now)
    const decision = decide(lifecycle, null, create, context)
    if (decision.kind === 'rejected') return decision.error
    const machine = machines.idOf(lifecycle)
    if (machine === undefined) return machines.missing(lifecycle)
    const { fact } = decision as { fact: Fact }
    const job = evolve(null, fact)
    const lane = LANES[laneOf(lifecycle, job, fact.at)]
    const row = { job, lane, machine, leaseUntil: null }
    return { offer, fact, ...row, isPlain: isPlain(row), model: undefined }
  }
}

/** Only the id is new, and it was not checked yet. */
function follow(model: Accepted, offer: Offer): Accepted | PawlError {
  const { jobId } = offer.item.command
  const why = uuid(jobId)
  if (why !== undefined) return new CommandInvalid('jobId', why)
  return {
    offer,
    job: { ...model.job, id: jobId },
    fact: { ...model.fact, jobId },
    lane: model.lane,
    machine: model.machine,
    leaseUntil: null,
    isPlain: model.isPlain,
    model,
  }
}

/** Whether two offers differ in id and input alone; keys and copies belong to one job. */
function areAlike({ item: a, requester }: Offer, { item: b, requester: other }: Offer): boolean {
  const [one, two] = [a.command, b.command]
  return (
    requester === other &&
    a.lifecycle === b.lifecycle &&
    one.type === two.type &&
    one.queue === two.queue &&
    one.priority === two.priority &&
    one.aheadMs === two.aheadMs &&
    one.runAt === two.runAt &&
    one.hold === two.hold &&
    one.timeoutMs === two.timeoutMs &&
    one.deadlineAt === two.deadlineAt &&
    one.policy === two.policy &&
    one.tags === two.tags &&
    one.flow === undefined &&
    two.flow === undefined &&
    a.admission === undefined &&
    b.admission === undefined &&
    one.key === undefined &&
    two.key === undefined &&
    one.limitKeys === two.limitKeys &&
    one.retryOf === undefined &&
    two.retryOf === undefined
  )
}

/** Whether two accepted jobs differ in id and input alone. */
export function areKin(a: Accepted, b: Accepted): boolean {
  return (a.model ?? a) === (b.model ?? b)
}
