/**
 * Reports of finished attempts, from the handler's end until the store has them. Reports that wait
 * are at most one for each slot. If the store cannot be reached they stay; the fence makes it safe
 * to send one again.
 */
import { Committed, StaleFence } from '../../core/errors.ts'
import type { Answer, ClaimRequest, Held, Settlement } from '../../stores/store.ts'
import type { Report } from './attempt.ts'
import type { WorkerParts } from './parts.ts'
import type { Running, RunningAttempts } from './running.ts'
import type { Slots } from './slots.ts'

interface WaitingReport {
  readonly running: Running
  readonly settlement: Settlement
  /** It replaces a report that the store refused. */
  readonly isFallback?: true
}

/** The reports of one worker. */
export class Reports {
  readonly #parts: WorkerParts
  readonly #slots: Slots
  readonly #running: RunningAttempts
  #waiting: WaitingReport[] = []

  constructor(parts: WorkerParts, slots: Slots, running: RunningAttempts) {
    this.#parts = parts
    this.#slots = slots
    this.#running = running
  }

  /** How many wait for the store. */
  get count(): number {
    return this.#waiting.length
  }

  /** How many slots are free once the store has these. A stuck handler keeps its slot. */
  get slotsFreed(): number {
    return this.#waiting.filter(({ running }) => !running.attempt.isStuck).length
  }

  /** Takes the outcome of an attempt; most outcomes are still to be sent. */
  add(running: Running, report: Report): void {
    if (report.kind === 'lost' && !running.isOver) this.#running.noteLost(running)
    running.isOver = true
    const isCommit = report.kind === 'settle' && report.settlement.command.kind === 'commit'
    const isOk = isCommit || report.kind === 'committed'
    this.#slots.moveOne(running.slot, isOk ? 'execution-ok' : 'execution-error')
    if (report.kind === 'settle') {
      this.#waiting.push({ running, settlement: report.settlement })
      return
    }
    this.#running.untrack([running])
    if (report.kind === 'committed') this.#parts.onReported(report.job)
    this.#running.release(running)
  }

  /** Sends what waits, together with a claim if one is given; returns what was claimed. */
  async send(request: ClaimRequest | undefined): Promise<readonly Held[]> {
    const reports = this.#waiting
    this.#waiting = []
    const settlements = reports.map(({ settlement }) => settlement)
    const { answers, claimed } = await this.#parts.store
      .settle(settlements, request)
      .catch((error: unknown) => {
        this.#waiting = [...reports, ...this.#waiting]
        throw error
      })
    this.#parts.environment.crashPoint?.('worker.reported')
    this.#running.untrack(reports.map(({ running }) => running))
    for (const [i, report] of reports.entries()) this.#take(report, answers[i])
    return claimed
  }

  #take({ running, isFallback }: WaitingReport, answer: Answer | undefined): void {
    if (answer?.kind === 'rejected') {
      const { error } = answer
      const isOver = error instanceof StaleFence || error instanceof Committed
      if (!isOver && !isFallback) {
        // The same report would be refused again, so a failure is reported instead, once.
        const settlement = running.attempt.refusedBy(error)
        this.#waiting.push({ running, settlement, isFallback: true })
        this.#running.track(running)
        return
      }
      if (error instanceof StaleFence) this.#running.noteLost(running)
    } else if (answer !== undefined) {
      this.#parts.onReported(answer.job)
    }
    this.#running.release(running)
  }
}
