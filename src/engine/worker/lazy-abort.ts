/**
 * A signal that is made when somebody asks for it. Many handlers never do, and making one costs two
 * microseconds.
 */
export class LazyAbort {
  #controller: AbortController | undefined
  #isAborted = false
  #reason: unknown

  get isAborted(): boolean {
    return this.#isAborted
  }

  /** Why; nothing where it was not aborted. */
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

  /** The first reason counts. */
  abort(reason: unknown): void {
    if (this.#isAborted) return
    this.#isAborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
  }
}
