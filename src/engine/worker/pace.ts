/**
 * How soon to look again after a hint. The first hint after a quiet time is followed at once. While
 * hints keep coming for nothing, as they do where others are busy, each look keeps a growing
 * distance from the one before; one that found something is followed by the next at once.
 */

const FIRST_MS = 1
/** After so many of the longest distances without a look it is quiet. */
const QUIET = 10

/** The distances between looks. */
export class Pace {
  readonly #maxMs: number
  #pauseMs = 0
  #lookedAt = Number.NEGATIVE_INFINITY

  constructor(maxMs: number) {
    this.#maxMs = maxMs
  }

  /** How long to wait, from now, before the next look. */
  delay(now: number): number {
    const since = now - this.#lookedAt
    if (since >= QUIET * this.#maxMs) this.#pauseMs = 0
    return Math.max(0, this.#pauseMs - since)
  }

  /** A look was taken. */
  looked(now: number, didFind: boolean): void {
    this.#lookedAt = now
    this.#pauseMs = didFind ? 0 : Math.min(Math.max(this.#pauseMs * 2, FIRST_MS), this.#maxMs)
  }
}
