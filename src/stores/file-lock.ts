/**
 * Locks on files, made with SQLite: the holder has a write transaction open on the file. The
 * operating system releases the lock when the process dies; there is no time-out. Nothing is
 * written into the file. It must not be opened by other means: on POSIX systems closing any handle
 * of a file releases the locks that the process has on it.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOf } from '../core/errors.ts'
import type { FileLock, FileLocks } from '../core/ports.ts'
import { StoreUnusable } from './errors.ts'
import { isBusy } from './sqlite/busy.ts'
import { type Database, loadDriver } from './sqlite/driver.ts'

/** The locks of this machine. */
export const systemLocks: FileLocks = {
  async take(path) {
    const { DatabaseSync } = loadDriver()
    let database: Database | undefined
    try {
      makeFile(path)
      // SQLite resolves the path before it opens it, and must not create a file at the target.
      database = new DatabaseSync(`${pathToFileURL(resolve(path)).href}?mode=rw`, { timeout: 0 })
      database.exec('PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE')
      return new SqliteLock(database)
    } catch (error) {
      database?.close()
      if (isBusy(error)) return undefined
      const hint = 'Check that the file can be written to; if it holds anything, remove it.'
      throw new StoreUnusable(path, messageOf(error), hint)
    }
  },
}

/**
 * Creates the file if it does not exist, and opens no other: see above. Both calls are made in one
 * turn of the event loop, so that nothing in this process can take the lock between them.
 */
function makeFile(path: string): void {
  const { O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_RDWR } = constants
  try {
    closeSync(openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

class SqliteLock implements FileLock {
  #database: Database | undefined

  constructor(database: Database) {
    this.#database = database
  }

  async release(): Promise<void> {
    // Closing ends the transaction and with it the lock.
    this.#database?.close()
    this.#database = undefined
  }
}
