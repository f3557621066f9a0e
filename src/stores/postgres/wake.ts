/**
 * Hints that something may have become ready, so that an idle worker need not wait for its next
 * poll. A hint may be wrong or missing: workers also poll.
 *
 *   this process      every commit of its own signals at once
 *   other processes   a notification after the commit, never inside it, at most one every five
 *                     milliseconds for each process, and only while another process listens
 *   back-stop         a hint every second while there is a listener; five times as often behind a
 *                     pooler, where notifications do not arrive
 */
import type { Timer } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import type { Database } from './connect.ts'
import { Listener, notifySql } from './listen.ts'

const NOTIFY_EVERY_MS = 5
/** If no process listened, writers do not check again for so long; a new listener reads at once. */
const NOBODY_MS = 100
const POLL_MS = 1000
const POLL_POOLED_MS = 200
/** The connection is kept for a while, for a worker that is idle again soon. */
const LINGER_MS = 1000

/** The hints of one store. */
export class WakeUps {
  readonly #database: Database
  readonly #environment: Environment
  readonly #listeners = new Set<() => void>()
  #listener: Listener | undefined
  #poll: Timer | undefined
  #linger: Timer | undefined
  #notifying = false
  #pause: Timer | undefined
  #again = false
  #closed = false

  constructor(database: Database, environment: Environment) {
    this.#database = database
    this.#environment = environment
  }

  /**
   * Calls `listener` when something may have become ready, until the returned function is called.
   */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#stop()
    }
  }

  /** This process has written something. */
  signal(): void {
    this.#tell()
    this.#notify()
  }

  /** Stops listening; listeners are not called any more. */
  close(): void {
    this.#closed = true
    for (const timer of [this.#poll, this.#linger, this.#pause]) timer?.cancel()
    this.#listener?.close()
    this.#listeners.clear()
  }

  #tell(): void {
    for (const listener of this.#listeners) {
      try {
        listener()
      } catch {
        // If a listener throws, the hint is lost; the write is not.
      }
    }
  }

  #start(): void {
    this.#linger?.cancel()
    this.#linger = undefined
    if (this.#poll === undefined) this.#armPoll()
    if (this.#listener !== undefined || !this.#canListen) return
    this.#listener = new Listener(this.#database, this.#environment, () => this.#tell())
  }

  #stop(): void {
    this.#poll?.cancel()
    this.#poll = undefined
    this.#linger = this.#environment.timers.after(LINGER_MS, () => {
      this.#listener?.close()
      this.#listener = undefined
    })
  }

  /** A listener keeps its connection, so one more must be left for everything else. */
  get #canListen(): boolean {
    return !this.#database.pooled && this.#database.size > 1
  }

  #armPoll(): void {
    const delay = this.#canListen ? POLL_MS : POLL_POOLED_MS
    this.#poll = this.#environment.timers.after(delay, () => {
      this.#tell()
      this.#armPoll()
    })
  }

  /** At once, and once more after the pause if more was written meanwhile. */
  #notify(): void {
    if (this.#closed || this.#database.pooled) return
    if (this.#notifying) {
      this.#again = true
      return
    }
    this.#notifying = true
    void this.#send().then((wasHeard) => {
      if (this.#closed) return
      const pause = wasHeard ? NOTIFY_EVERY_MS : NOBODY_MS
      this.#pause = this.#environment.timers.after(pause, () => {
        this.#notifying = false
        if (!this.#again) return
        this.#again = false
        this.#notify()
      })
    })
  }

  /** Whether another process listened. If a hint cannot be sent, it is lost. */
  async #send(): Promise<boolean> {
    const text = notifySql(this.#database.schema, this.#listener?.pid)
    try {
      return (await this.#database.atOnce((session) => session.raw(text, []))).length > 0
    } catch {
      return false
    }
  }
}
