/**
 * The delay between a hint of the store and the query that follows it. The first hint after a quiet
 * time is followed at once. As long as queries find nothing, the delay after a query doubles up to
 * a maximum. After a query that found something, the next hint is followed at once.
 */
const FIRST_MS = 1
/** It is quiet if no query was made for this many maximal delays. */
const QUIET = 10

export class Pace {
  readonly #maxMs: number
  #pauseMs = 0
  #lookedAt = Number.NEGATIVE_INFINITY

  constructor(maxMs: number) {
    this.#maxMs = maxMs
  }

  /** How long to wait before the next query. */
  delay(now: number): number {
    const since = now - this.#lookedAt
    if (since >= QUIET * this.#maxMs) this.#pauseMs = 0
    return Math.max(0, this.#pauseMs - since)
  }

  /** To be called after each query. */
  looked(now: number, didFind: boolean): void {
    this.#lookedAt = now
    this.#pauseMs = didFind ? 0 : Math.min(Math.max(this.#pauseMs * 2, FIRST_MS), this.#maxMs)
  }
}
