/** The report of an operator's command: counts, and the first entries of each list. */
import type { PawlError } from '../../core/errors.ts'

/** A job that the command was rejected for. */
export interface Refusal {
  readonly id: string
  readonly code: string
  readonly message: string
  readonly hint: string
}

/** The report of an operator's command. */
export interface OperatorReport {
  readonly dryRun: boolean
  /** How many jobs were selected, including ids without a job. */
  readonly matched: number
  readonly done: number
  /** Jobs that needed no change. */
  readonly same: number
  /** Running jobs whose worker was asked to cancel them. */
  readonly asked: number
  readonly refused: number
  /** The first refusals. */
  readonly refusals: readonly Refusal[]
  /** The first of the selected jobs. */
  readonly sample: readonly string[]
  /**
   * In a dry run by a filter: the ids of the selected jobs, at most 100,000. Pass them as `among`
   * to change only these jobs.
   */
  readonly ids?: readonly string[]
  /** The first of the copies that were enqueued. */
  readonly copies: readonly { readonly of: string; readonly id: string }[]
  /** Whether jobs are left, because `limit` was reached or `signal` was aborted. */
  readonly more: boolean
}

const SAMPLE_MAX = 20
/** The largest number of ids in the report of a dry run. */
export const LISTED_MAX = 100_000

/** Returns the report of commands that belong together. */
export function joinReports(reports: readonly OperatorReport[]): OperatorReport {
  const sum = (count: (report: OperatorReport) => number) =>
    reports.reduce((all, report) => all + count(report), 0)
  return {
    dryRun: reports.some(({ dryRun }) => dryRun),
    matched: sum(({ matched }) => matched),
    done: sum(({ done }) => done),
    same: sum(({ same }) => same),
    asked: sum(({ asked }) => asked),
    refused: sum(({ refused }) => refused),
    refusals: reports.flatMap(({ refusals }) => refusals).slice(0, SAMPLE_MAX),
    sample: reports.flatMap(({ sample }) => sample).slice(0, SAMPLE_MAX),
    copies: reports.flatMap(({ copies }) => copies).slice(0, SAMPLE_MAX),
    more: reports.some(({ more }) => more),
  }
}

/** The result for one job. */
export type Outcome =
  | { readonly kind: 'done' | 'same' | 'asked'; readonly copyId?: string }
  | { readonly kind: 'refused'; readonly error: PawlError }

export class Tally {
  more = false
  readonly #dryRun: boolean
  readonly #counts = { done: 0, same: 0, asked: 0, refused: 0 }
  readonly #refusals: Refusal[] = []
  readonly #sample: string[] = []
  readonly #copies: { of: string; id: string }[] = []
  readonly #ids: string[] | undefined
  #matched = 0

  /** `lists`: whether the report contains the ids of all selected jobs. */
  constructor(dryRun: boolean, lists: boolean) {
    this.#dryRun = dryRun
    this.#ids = lists ? [] : undefined
  }

  get matched(): number {
    return this.#matched
  }

  add(id: string, outcome: Outcome): void {
    this.#matched++
    this.#counts[outcome.kind]++
    if (this.#sample.length < SAMPLE_MAX) this.#sample.push(id)
    if (this.#ids !== undefined && this.#ids.length < LISTED_MAX) this.#ids.push(id)
    if (outcome.kind === 'refused') {
      const { code, message, hint } = outcome.error
      if (this.#refusals.length < SAMPLE_MAX) this.#refusals.push({ id, code, message, hint })
    } else if (outcome.copyId !== undefined && this.#copies.length < SAMPLE_MAX) {
      this.#copies.push({ of: id, id: outcome.copyId })
    }
  }

  report(): OperatorReport {
    return {
      dryRun: this.#dryRun,
      matched: this.#matched,
      ...this.#counts,
      refusals: this.#refusals,
      sample: this.#sample,
      copies: this.#copies,
      ...(this.#ids !== undefined && { ids: this.#ids }),
      more: this.more,
    }
  }
}
