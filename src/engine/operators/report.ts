/** What becomes of the jobs that an operator selects, counted and with the first of each kind. */
import type { PawlError } from '../../core/errors.ts'

/** A job that a verb did not apply to. */
export interface Refusal {
  readonly id: string
  readonly code: string
  readonly message: string
  readonly hint: string
}

/** What became of the jobs that were selected. */
export interface OperatorReport {
  readonly dryRun: boolean
  /** How many jobs were selected, ids without a job included. */
  readonly matched: number
  readonly done: number
  /** Where there was nothing to do. */
  readonly same: number
  /** Where the job runs, and its holder was asked to cancel it. */
  readonly asked: number
  readonly refused: number
  /** The first of those that were refused. */
  readonly refusals: readonly Refusal[]
  /** The first of the jobs that were selected. */
  readonly sample: readonly string[]
  /**
   * The ids of the jobs that were selected, in a dry run by a filter; the first 100,000. Pass them
   * as `among` to change these jobs and no others.
   */
  readonly ids?: readonly string[]
  /** The first of the copies that were made. */
  readonly copies: readonly { readonly of: string; readonly id: string }[]
  /** The limit, or the signal, ended it although there are more jobs. */
  readonly more: boolean
}

const SAMPLE_MAX = 20
/** How many ids the report of a dry run holds. */
export const LISTED_MAX = 100_000

/** What became of one job. */
export type Outcome =
  | { readonly kind: 'done' | 'same' | 'asked'; readonly copyId?: string }
  | { readonly kind: 'refused'; readonly error: PawlError }

/** Counts what became of jobs, and keeps the first of each kind. */
export class Tally {
  more = false
  readonly #dryRun: boolean
  readonly #counts = { done: 0, same: 0, asked: 0, refused: 0 }
  readonly #refusals: Refusal[] = []
  readonly #sample: string[] = []
  readonly #copies: { of: string; id: string }[] = []
  readonly #ids: string[] | undefined
  #matched = 0

  /** `lists` says whether the report has the ids of all jobs. */
  constructor(dryRun: boolean, lists: boolean) {
    this.#dryRun = dryRun
    this.#ids = lists ? [] : undefined
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
