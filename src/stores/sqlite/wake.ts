/**
 * Hints that something may have become ready, so that an idle worker need not wait for its next
 * poll. A hint may be wrong or missing: workers also poll.
 *
 *   this process      every commit of its own signals at once
 *   other processes   the folder is watched for writes to the log of the file; the event comes
 *                     before the commit can be seen, so `data_version` is then read at once and
 *                     every millisecond, a few times
 *   back-stop         `data_version` is read every 20 milliseconds while there is a listener
 */
import { type FSWatcher, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Timer } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import type { Connection } from './connect.ts'

const LOOKS_MAX = 4
const LOOK_MS = 1
const POLL_MS = 20

/** The hints of one store. */
export class WakeUps {
  readonly #connection: Connection
  readonly #environment: Environment
  /** The file; absent for a database in memory, which no other process can write to. */
  readonly #path: string | undefined
  readonly #listeners = new Set<() => void>()
  #watcher: FSWatcher | undefined
  #poll: Timer | undefined
  #look: Timer | undefined
  #version = 0

  constructor(connection: Connection, environment: Environment, path: string | undefined) {
    this.#connection = connection
    this.#environment = environment
    this.#path = path
  }

  /**
   * Calls `listener` when something may have become ready, until the returned function is called.
   */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  /** This process has written something. */
  signal(): void {
    for (const listener of this.#listeners) {
      try {
        listener()
      } catch {
        // If a listener throws, the hint is lost; the write is not.
      }
    }
  }

  /** Stops watching; listeners are not called any more. */
  close(): void {
    this.#watcher?.close()
    this.#poll?.cancel()
    this.#look?.cancel()
    this.#watcher = undefined
    this.#poll = undefined
    this.#look = undefined
    this.#listeners.clear()
  }

  #start(): void {
    if (this.#path === undefined) return
    this.#version = this.#dataVersion()
    this.#watch(dirname(this.#path), `${basename(this.#path)}-wal`)
    this.#armPoll()
  }

  #watch(folder: string, log: string): void {
    try {
      this.#watcher = watch(folder, { persistent: false }, (_event, name) => {
        if (name === log) this.#lookAgain(LOOKS_MAX)
      })
      // If the folder can no longer be watched, the slower back-stop remains.
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      this.#watcher = undefined
    }
  }

  #armPoll(): void {
    this.#poll = this.#environment.timers.after(POLL_MS, () => {
      this.#lookOnce()
      this.#armPoll()
    })
  }

  #lookAgain(left: number): void {
    this.#look?.cancel()
    this.#look = undefined
    if (this.#lookOnce() || left === 0) return
    this.#look = this.#environment.timers.after(LOOK_MS, () => this.#lookAgain(left - 1))
  }

  /** Whether another connection has committed since the last call. */
  #lookOnce(): boolean {
    const version = this.#dataVersion()
    const changed = version !== this.#version
    this.#version = version
    if (changed) this.signal()
    return changed
  }

  #dataVersion(): number {
    try {
      const row = this.#connection.get<{ data_version: number }>('PRAGMA data_version')
      return row?.data_version ?? 0
    } catch {
      // Busy for a moment: the next read will show it.
      return this.#version
    }
  }
}
