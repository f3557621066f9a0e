/** Answers that are costly to compute and the same for everybody. */
import type { Clock } from '../core/ports.ts'

/** A value is kept for this many times as long as it took to compute, up to `KEEP_MAX_MS`. */
const KEEP_FACTOR = 20
const KEEP_MAX_MS = 10_000
/** What was computed more quickly is kept for `keepMs` only. */
const COSTLY_MS = 20

/**
 * Keeps a value for some time. There is one computation at a time, which all who ask share. A value
 * that is costly is kept for longer, so that clients who poll cannot keep the process busy: on
 * SQLite it is computed in the thread of the server.
 */
export class Kept<T> {
  readonly #compute: () => Promise<T>
  readonly #clock: Pick<Clock, 'now'>
  readonly #keepMs: number
  #value: { readonly at: number; readonly until: number; readonly value: T } | undefined
  #running: Promise<T> | undefined

  constructor(compute: () => Promise<T>, clock: Pick<Clock, 'now'>, keepMs: number) {
    this.#compute = compute
    this.#clock = clock
    this.#keepMs = keepMs
  }

  /** Returns the value. It is kept for `keepMs` at least. */
  get(): Promise<T> {
    const known = this.#value
    const now = this.#clock.now()
    if (known !== undefined && now >= known.at && now < known.until) {
      return Promise.resolve(known.value)
    }
    if (this.#running !== undefined) return this.#running
    const running: Promise<T> = this.#run(() => this.#running === running).finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }

  /** Computes the value again when it is next asked for. A computation that runs is not kept. */
  forget(): void {
    this.#value = undefined
    this.#running = undefined
  }

  async #run(isWanted: () => boolean): Promise<T> {
    const at = this.#clock.now()
    const value = await this.#compute()
    const tookMs = this.#clock.now() - at
    const costMs = tookMs < COSTLY_MS ? 0 : Math.min(KEEP_FACTOR * tookMs, KEEP_MAX_MS)
    const until = at + tookMs + Math.max(this.#keepMs, costMs)
    if (isWanted()) this.#value = { at, until, value }
    return value
  }
}
