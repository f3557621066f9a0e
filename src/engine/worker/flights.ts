/**
 * The calls of one worker that are on their way to the store. A call sends reports of finished
 * attempts and claims jobs for the slots that become free with it. So while the store answers one
 * call, the worker handles the answer to another. A store says how many calls it can use
 * (`flights`). With one, the worker reports, claims and starts in turn.
 *
 * Rules:
 *
 *   - Calls are for disjoint slots. A call claims for the slots of its own reports and for the free
 *     slots that no other call was promised. If the store rejects a report, its slot is not free:
 *     a claimed job without a slot is released.
 *   - A call beside another one needs enough reports to be worth a round trip, or a last claim that
 *     was filled: a short claim has found all there was.
 *   - Reports that are many enough for two calls are divided, so that both go at once.
 *   - If a call fails, its reports are sent again later, and no call starts before all others have
 *     ended (`land`).
 *
 * Each call claims in the order of claims, and its jobs start in that order. The jobs of two calls
 * may start in any order, as those of two workers do.
 */
import type { ClaimRequest, FlightLimits, Held, Settlement } from '../../stores/contract/store.ts'
import type { WorkerParts } from './parts.ts'
import { type Reports, slotsFreedBy, type WaitingReport } from './reports.ts'
import { beatOf, type RunningAttempts } from './running.ts'
import type { Slots } from './slots.ts'

const ONE: FlightLimits = { max: 1, reportsMin: 1 }

/** A call on its way. */
interface Flight {
  readonly sent: readonly WaitingReport[]
  /** How many free slots it claims for, beside those of its reports. */
  readonly promised: number
  readonly request: ClaimRequest | undefined
}

interface FlightParts {
  readonly worker: WorkerParts
  readonly slots: Slots
  readonly running: RunningAttempts
  readonly reports: Reports
  /** A call has ended, and so many of the jobs that it claimed were started. */
  readonly onLanded: (started: number) => void
}

export class Flights {
  readonly #parts: FlightParts
  readonly #max: number
  /** So many reports are worth a call beside others. */
  readonly #batch: number
  readonly #flying = new Set<Promise<number>>()
  /** The job types that the worker runs. */
  readonly #types: readonly string[]
  /** How many of the free slots were promised to calls. */
  #promised = 0
  /** Whether there may be jobs that no claim has looked for. */
  #mayFind = true
  /** Whether the last claim found as many jobs as it wanted. */
  #isFilled = false
  #failure: { readonly error: unknown } | undefined

  constructor(parts: FlightParts) {
    this.#parts = parts
    const { store, settings, jobs } = parts.worker
    this.#types = [...jobs.keys()]
    const { max, reportsMin } = store.flights ?? ONE
    this.#max = max
    const share = Math.max(reportsMin, Math.ceil(settings.concurrency / max))
    this.#batch = max === 1 ? Number.POSITIVE_INFINITY : share
  }

  /** How many calls are on their way. */
  get count(): number {
    return this.#flying.size
  }

  /** Whether a call has failed that `land` has not reported yet. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  /** Whether nothing is on its way or waits to be sent, and the last claim found nothing. */
  get isIdle(): boolean {
    const { reports, slots } = this.#parts
    return this.count === 0 && reports.count === 0 && slots.free > 0 && !this.#mayFind
  }

  /** Something may have become ready: the next claim does not have to wait for a report. */
  expect(): void {
    this.#mayFind = true
  }

  /** Starts every call that may start now. */
  launch(): void {
    while (this.#mayLaunch()) this.#launchOne()
  }

  /** Waits for the calls that are on their way. Throws the error of the first that failed. */
  async land(): Promise<void> {
    while (this.#flying.size > 0) await Promise.all(this.#flying)
    const failure = this.#failure
    this.#failure = undefined
    if (failure !== undefined) throw failure.error
  }

  #mayLaunch(): boolean {
    const { reports } = this.#parts
    if (this.#failure !== undefined || this.count >= this.#max) return false
    const hasRoom = this.#room > 0
    if (this.count === 0) return reports.count > 0 || (hasRoom && this.#mayFind)
    return reports.count >= this.#batch || (hasRoom && this.#isFilled)
  }

  /** How many free slots no call was promised. */
  get #room(): number {
    return this.#parts.slots.free - this.#promised
  }

  #launchOne(): void {
    const { reports } = this.#parts
    const sent = reports.take(reports.count < 2 * this.#batch ? reports.count : this.#batch)
    const promised = this.#room
    const limit = promised + slotsFreedBy(sent)
    this.#promised += promised
    if (limit > 0) this.#mayFind = false
    this.#isFilled = false
    const flying = this.#fly({ sent, promised, request: this.#request(limit) })
    this.#flying.add(flying)
    void flying.then((started) => {
      this.#flying.delete(flying)
      this.#parts.onLanded(started)
    })
  }

  /** Returns how many jobs were started. Never rejects. */
  async #fly(flight: Flight): Promise<number> {
    let isPromised = true
    const keepPromise = () => {
      if (isPromised) this.#promised -= flight.promised
      isPromised = false
    }
    let claimed: readonly Held[] = []
    let started = 0
    // Called as soon as the slots of the reports are free, so that no other call counts them.
    const onClaimed = (jobs: readonly Held[]) => {
      keepPromise()
      claimed = jobs
      started = this.#parts.running.start(jobs.slice(0, Math.max(0, this.#room)))
      this.#isFilled = jobs.length > 0 && jobs.length === flight.request?.limit
      this.#mayFind ||= jobs.length > 0
    }
    try {
      await this.#ask(flight, onClaimed)
      await this.#returnUnstarted(claimed.slice(started))
    } catch (error) {
      this.#failure ??= { error }
    }
    keepPromise()
    return started
  }

  async #ask({ sent, request }: Flight, onClaimed: (jobs: readonly Held[]) => void): Promise<void> {
    const { reports, slots, worker } = this.#parts
    if (sent.length > 0) return reports.send(sent, request, onClaimed)
    if (request === undefined) return
    // The state Claiming begins when the store has found a ready job, and ends with its lease.
    const onFound = () => slots.find()
    try {
      onClaimed(await worker.store.claim({ ...request, onFound }))
      slots.miss('claim-lost')
    } catch (error) {
      slots.miss('exception')
      throw error
    }
  }

  /** Releases jobs for which no slot is free. */
  async #returnUnstarted(unstarted: readonly Held[]): Promise<void> {
    if (unstarted.length === 0) return
    const release = (held: Held): Settlement => {
      return { held, command: { kind: 'release', fence: beatOf(held).fence } }
    }
    await this.#parts.worker.store.settle(unstarted.map(release))
  }

  #request(limit: number): ClaimRequest | undefined {
    if (limit === 0) return undefined
    const { settings } = this.#parts.worker
    return {
      worker: settings.id,
      limit,
      leaseMs: settings.leaseMs,
      start: true,
      types: this.#types,
      ...(settings.queues !== undefined && { queues: settings.queues }),
    }
  }
}
