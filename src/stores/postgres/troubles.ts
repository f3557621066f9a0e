/**
 * Reports an outage that lasts to listeners. Verbs try again by themselves and fail only when their
 * time is up; an operator wants to know earlier. So the first report comes when the database has
 * been away for a second, further ones every five seconds, and one when it is back.
 */
import { StoreUnavailable } from '../errors.ts'
import type { Trouble } from '../outage.ts'

const TELL_AFTER_MS = 1000
const TELL_EVERY_MS = 5000

/** The outage of one store, if there is one. */
export class Troubles {
  readonly #listeners = new Set<(trouble: Trouble) => void>()
  #since: number | undefined
  #toldAt: number | undefined

  /** Calls `listener` until the returned function is called. */
  subscribe(listener: (trouble: Trouble) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** A try that began at this time of the process has failed because of the database. */
  note(error: unknown, startedAt: number): void {
    const now = performance.now()
    this.#since ??= startedAt
    const forMs = Math.round(now - this.#since)
    if (forMs < TELL_AFTER_MS) return
    if (this.#toldAt !== undefined && now - this.#toldAt < TELL_EVERY_MS) return
    this.#toldAt = now
    this.#tell({ kind: 'away', forMs, error: new StoreUnavailable(forMs, error) })
  }

  /** The database has answered. */
  over(): void {
    if (this.#since === undefined) return
    const forMs = Math.round(performance.now() - this.#since)
    const wasTold = this.#toldAt !== undefined
    this.#since = undefined
    this.#toldAt = undefined
    if (wasTold) this.#tell({ kind: 'back', forMs })
  }

  #tell(trouble: Trouble): void {
    for (const listener of this.#listeners) {
      try {
        listener(trouble)
      } catch {
        // A listener cannot make a verb fail.
      }
    }
  }
}
