/**
 * Creates its abort signal on first use. Many handlers never use it, and creating one costs 2 µs.
 */
export class LazyAbort {
  #controller: AbortController | undefined
  #isAborted = false
  #reason: unknown

  get isAborted(): boolean {
    return this.#isAborted
  }

  /** Undefined if it was not aborted. */
  get reason(): unknown {
    return this.#reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#isAborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** Only the first call has an effect. */
  abort(reason: unknown): void {
    if (this.#isAborted) return
    this.#isAborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
  }
}
