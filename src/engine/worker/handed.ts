/**
 * Promises that Pawl hands to a handler: of `step`, of `commit` and of `tx.query`. If a handler
 * forgets to await one and it rejects, Node.js would end the process because of an unhandled
 * rejection. So every such rejection is caught here, and reported if nothing waits for the promise:
 *
 *   rejected   it has rejected, and nothing has waited for it by the end of the handler
 *   running    the handler has returned, and it has not settled yet; or nothing waits for it
 *
 * Promises made from these by `then`, `catch` and `finally` are of the same kind. The promise of an
 * `async` function of the handler is not: Pawl does not see it.
 */

/** What a handler left behind. */
export interface Leftover {
  readonly problem: 'rejected' | 'running'
  /** For example `step "charge"`. */
  readonly what: string
  /** Absent while it is running. */
  readonly error?: unknown
}

interface Given {
  readonly what: string
  readonly promise: HandedPromise<unknown>
  isSettled: boolean
  failure?: { readonly error: unknown }
}

/** Knows whether anything waits for it: `await` and `Promise.all` call `then` of a subclass. */
class HandedPromise<T> extends Promise<T> {
  isUsed = false
  onDerived: ((promise: HandedPromise<unknown>) => void) | undefined

  // biome-ignore lint/suspicious/noThenProperty: this is a promise
  override then<A = T, B = never>(
    onDone?: ((value: T) => A | PromiseLike<A>) | null,
    onFailed?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isUsed = true
    const derived = super.then(onDone, onFailed)
    this.onDerived?.(derived as HandedPromise<unknown>)
    return derived
  }
}

/** The promises that one handler was given. */
export class HandedPromises {
  readonly #report: (leftover: Leftover) => void
  /** Those that may have to be reported: not settled, or rejected and not used. */
  readonly #given = new Set<Given>()
  #isOver = false

  constructor(report: (leftover: Leftover) => void) {
    this.#report = report
  }

  /** Returns a promise of the same result. */
  give<T>(what: string, work: Promise<T>): Promise<T> {
    const promise = new HandedPromise<T>((resolve, reject) => {
      work.then(resolve, reject)
    })
    this.#watch(what, promise as HandedPromise<unknown>)
    return promise
  }

  /** To be called when the handler has ended. */
  end(hasReturned: boolean): void {
    this.#isOver = true
    for (const one of this.#given) {
      const { what, promise, failure, isSettled } = one
      if (failure !== undefined) this.#reject(one)
      else if (!isSettled && (hasReturned || !promise.isUsed)) {
        this.#report({ problem: 'running', what })
      }
    }
  }

  #watch(what: string, promise: HandedPromise<unknown>): void {
    const one: Given = { what, promise, isSettled: false }
    this.#given.add(one)
    promise.onDerived = (derived) => this.#watchDerived(what, derived)
    const done = () => {
      one.isSettled = true
      this.#given.delete(one)
    }
    const failed = (error: unknown) => {
      one.isSettled = true
      one.failure = { error }
      if (this.#isOver) this.#reject(one)
    }
    // The `then` of the base class does not count as use.
    void Promise.prototype.then.call(promise, done, failed)
  }

  /** Only its rejection matters: what it was made from is watched itself. */
  #watchDerived(what: string, promise: HandedPromise<unknown>): void {
    promise.onDerived = (derived) => this.#watchDerived(what, derived)
    const failed = (error: unknown) => {
      const one: Given = { what, promise, isSettled: true, failure: { error } }
      if (this.#isOver) this.#reject(one)
      else this.#given.add(one)
    }
    void Promise.prototype.then.call(promise, undefined, failed)
  }

  #reject(one: Given): void {
    this.#given.delete(one)
    const { what, promise, failure } = one
    if (!promise.isUsed) this.#report({ problem: 'rejected', what, error: failure?.error })
  }
}
