/**
 * Reports of finished attempts, kept until the store has recorded them. There is at most one report
 * per slot. If the store cannot be reached, the reports are kept and sent again; the fence makes a
 * repeated report harmless.
 */
import { Committed, StaleFence } from '../../core/errors.ts'
import type { JobError } from '../../core/job/job.ts'
import type { Answer, ClaimRequest, Held, Settlement } from '../../stores/contract/store.ts'
import type { WorkerParts } from './parts.ts'
import type { Report } from './report.ts'
import type { Running, RunningAttempts } from './running.ts'
import type { Slots } from './slots.ts'

/** A report that the store has not recorded yet. */
export interface WaitingReport {
  readonly running: Running
  readonly settlement: Settlement
  /** What the handler threw, if that is why the attempt failed. */
  readonly thrown?: { readonly error: unknown } | undefined
  /** Replaces a report that the store rejected. */
  readonly isFallback?: true
}

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

  /** How many reports are not recorded yet. */
  get count(): number {
    return this.#waiting.length
  }

  /** Takes the oldest reports, in order to send them. */
  take(count = this.#waiting.length): readonly WaitingReport[] {
    return this.#waiting.splice(0, count)
  }

  /** Adds the outcome of an attempt. What the store has recorded needs no further report. */
  add(running: Running, report: Report): void {
    if (report.kind === 'lost' && !running.isOver) this.#running.noteLost(running)
    running.isOver = true
    const isOk = report.kind === 'settle' ? isFine(report.settlement) : report.kind !== 'lost'
    this.#slots.moveOne(running.slot, isOk ? 'execution-ok' : 'execution-error')
    if (report.kind === 'settle') {
      const { settlement, thrown } = report
      this.#waiting.push({ running, settlement, thrown })
      return
    }
    this.#running.untrack([running])
    if (report.kind === 'committed') this.#parts.onReported(report.job)
    this.#running.release(running)
  }

  /**
   * Sends reports that were taken, together with a claim if one is given. Calls `onClaimed` with
   * the claimed jobs in the same moment in which the slots of the reports become free. If the call
   * fails, the reports wait again.
   */
  async send(
    sent: readonly WaitingReport[],
    request?: ClaimRequest,
    onClaimed?: (claimed: readonly Held[]) => void,
  ): Promise<void> {
    const settlements = sent.map(({ settlement }) => settlement)
    const { answers, claimed } = await this.#parts.store
      .settle(settlements, request)
      .catch((error: unknown) => {
        this.#waiting = [...sent, ...this.#waiting]
        throw error
      })
    this.#parts.environment.crashPoint?.('worker.reported')
    this.#running.untrack(sent.map(({ running }) => running))
    for (const [i, report] of sent.entries()) this.#take(report, answers[i])
    onClaimed?.(claimed)
  }

  #take(report: WaitingReport, answer: Answer | undefined): void {
    const { running, isFallback, thrown } = report
    if (answer?.kind === 'rejected') {
      const { error } = answer
      const isOver = error instanceof StaleFence || error instanceof Committed
      if (!isOver && !isFallback) {
        // The same report would be rejected again, so a failure is reported instead, once.
        const settlement = running.attempt.refusedBy(error)
        this.#waiting.push({ running, settlement, thrown, isFallback: true })
        this.#running.track(running)
        return
      }
      if (error instanceof StaleFence) this.#running.noteLost(running)
    } else if (answer !== undefined) {
      this.#noteFailure(report, answer)
      this.#parts.onReported(answer.job)
    }
    this.#running.release(running)
  }

  /** Emits a failure that the store has recorded. */
  #noteFailure({ settlement, thrown }: WaitingReport, answer: Answer): void {
    if (settlement.command.kind !== 'fail' || answer.kind !== 'done') return
    const { job, fact } = answer
    this.#parts.observe({
      type: 'failed',
      worker: this.#parts.settings.id,
      job,
      attempt: settlement.held.job.attempt,
      error: fact.error as JobError,
      retryAt: fact.trigger === 'retry' ? (fact.runAt as number) : null,
      ...(fact.thrown !== undefined && { thrown: fact.thrown }),
      ...(thrown !== undefined && { original: thrown.error }),
    })
  }
}

/** How many slots become free when these are recorded. A stuck handler keeps its slot. */
export function slotsFreedBy(reports: readonly WaitingReport[]): number {
  return reports.filter(({ running }) => !running.attempt.isStuck).length
}

/** Whether the attempt did what the handler wanted: it was committed or snoozed. */
function isFine({ command }: Settlement): boolean {
  return command.kind === 'commit' || command.kind === 'suspend'
}
