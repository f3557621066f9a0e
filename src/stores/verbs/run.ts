/**
 * The two drivers of verbs. On SQLite every operation returns at once, so a verb runs to its end
 * without a pause: work inside a transaction cannot wait for anything. On PostgreSQL each operation
 * returns a promise, which the driver awaits; a rejection is thrown inside the verb.
 */
import type { AsyncDialect, Dialect, Scope, Step, Tx } from './operations.ts'

type Run<At> = (at: At, ...args: readonly unknown[]) => unknown

/** Runs verbs in a transaction whose statements return at once. */
export function syncDriver<At extends Scope>(dialect: Dialect<At>) {
  const bind = binder<At>(dialect, (run, at, args) => new Done(run(at, ...args)))
  return <T>(at: At, verb: (tx: Tx) => Step<T>): T => {
    const result = verb(bind(at)).next()
    // Nothing in the dialect can pause a verb.
    if (!result.done) throw new Error('a verb paused inside a transaction')
    return result.value
  }
}

/** Runs verbs in a transaction whose statements have to be awaited. */
export function asyncDriver<At extends Scope>(dialect: AsyncDialect<At>) {
  const bind = binder<At>(dialect, (run, at, args) => new Awaited(() => run(at, ...args)))
  return async <T>(at: At, verb: (tx: Tx) => Step<T>): Promise<T> => {
    const running = verb(bind(at))
    let result = running.next()
    while (!result.done) {
      let value: unknown
      try {
        value = await result.value
      } catch (error) {
        if (running.throw === undefined) throw error
        result = running.throw(error)
        continue
      }
      result = running.next(value)
    }
    return result.value
  }
}

/** Makes a class whose methods are the operations, once for each store: calls are frequent. */
function binder<At extends Scope>(
  dialect: object,
  step: (run: Run<At>, at: At, args: readonly unknown[]) => unknown,
): (at: At) => Tx {
  class Bound {
    readonly at: At
    readonly now: number
    readonly environment: Scope['environment']
    readonly machines: Scope['machines']

    constructor(at: At) {
      this.at = at
      this.now = at.now
      this.environment = at.environment
      this.machines = at.machines
    }
  }
  for (const [name, run] of Object.entries(dialect)) {
    const value = function (this: Bound, ...args: readonly unknown[]) {
      return step(run as Run<At>, this.at, args)
    }
    Object.defineProperty(Bound.prototype, name, { value })
  }
  return (at) => new Bound(at) as unknown as Tx
}

/** An operation that has its result. */
class Done {
  readonly done = true
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }

  [Symbol.iterator]() {
    return this
  }

  next() {
    return this
  }
}

/** An operation that begins when the verb asks for its result. */
class Awaited {
  readonly #run: () => unknown
  #isRunning = false

  constructor(run: () => unknown) {
    this.#run = run
  }

  [Symbol.iterator]() {
    return this
  }

  next(value: unknown): IteratorResult<unknown, unknown> {
    if (this.#isRunning) return { done: true, value }
    this.#isRunning = true
    return { done: false, value: this.#run() }
  }

  throw(error: unknown): never {
    throw error
  }
}
