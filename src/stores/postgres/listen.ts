/**
 * The connection on which this process receives notifications about writes of others. A shared
 * advisory lock shows that it listens, so that writers notify only if needed. It tests itself by
 * notifying itself, because a connection can be dead without an error. If it ends for any reason,
 * it is made again, less and less often while that fails.
 */
import { createHash } from 'node:crypto'
import type { Timer } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import { ask } from './answer.ts'
import type { Database } from './connect.ts'
import type { PgPoolClient } from './driver.ts'

const TEST_EVERY_MS = 10_000
const TEST_WITHIN_MS = 5000
const HEAL_MIN_MS = 50
const HEAL_MAX_MS = 5000

/** The first half of the key of the lock; the second is made from the schema. */
const LOCK_CLASS = 0x7061776c

/** The channel and the lock of a schema, as statements need them. */
export function channelOf(schema: string): { readonly channel: string; readonly lock: number } {
  const hash = createHash('sha256').update(schema).digest()
  return { channel: `pawl_${hash.toString('hex', 0, 8)}`, lock: hash.readInt32BE(8) }
}

/** A statement that notifies if a process listens, except by the connection of `ownPid`. */
export function notifySql(schema: string, ownPid: number | undefined): string {
  const { channel, lock } = channelOf(schema)
  return `SELECT pg_notify('${channel}', '') WHERE EXISTS (
    SELECT 1 FROM pg_locks
    WHERE locktype = 'advisory' AND classid = ${LOCK_CLASS} AND objid::int8 = ${lock >>> 0}
      AND objsubid = 2 AND mode = 'ShareLock' AND granted AND pid <> ${ownPid ?? 0}
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`
}

/** Listens until it is closed. */
export class Listener {
  readonly #database: Database
  readonly #environment: Environment
  readonly #onHint: () => void
  #client: PgPoolClient | undefined
  #timer: Timer | undefined
  #failures = 0
  #closed = false
  #heard = true

  constructor(database: Database, environment: Environment, onHint: () => void) {
    this.#database = database
    this.#environment = environment
    this.#onHint = onHint
    void this.#connect()
  }

  /** The server process of the connection, if there is one. */
  get pid(): number | undefined {
    return (this.#client as { readonly processID?: number } | undefined)?.processID
  }

  /** Ends the connection. */
  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#client?.release(true)
    this.#client = undefined
  }

  async #connect(): Promise<void> {
    try {
      const client = await this.#database.keep()
      if (this.#closed) return client.release(true)
      this.#client = client
      client.on('error', () => this.#heal(client))
      client.on('end', () => this.#heal(client))
      client.on('notification', () => {
        this.#heard = true
        this.#onHint()
      })
      const { channel, lock } = channelOf(this.#database.schema)
      const text = `LISTEN ${channel}; SELECT pg_advisory_lock_shared(${LOCK_CLASS}, ${lock})`
      await ask(client, { text }, TEST_WITHIN_MS)
      this.#failures = 0
      this.#heard = true
      // Notifications were missed while the connection was down.
      this.#onHint()
      this.#arm(TEST_EVERY_MS, () => this.#test(client, channel))
    } catch {
      this.#heal(this.#client)
    }
  }

  #test(client: PgPoolClient, channel: string): void {
    this.#heard = false
    const text = `NOTIFY ${channel}`
    ask(client, { text }, TEST_WITHIN_MS).catch(() => this.#heal(client))
    this.#arm(TEST_WITHIN_MS, () => {
      if (!this.#heard) this.#heal(client)
      else this.#arm(TEST_EVERY_MS, () => this.#test(client, channel))
    })
  }

  /** Closes the connection, once, and connects again after a pause. */
  #heal(client: PgPoolClient | undefined): void {
    if (this.#closed || client !== this.#client) return
    this.#client = undefined
    client?.release(true)
    const delay = Math.min(HEAL_MIN_MS * 2 ** this.#failures, HEAL_MAX_MS)
    this.#failures++
    this.#arm(delay, () => void this.#connect())
  }

  #arm(delayMs: number, callback: () => void): void {
    this.#timer?.cancel()
    this.#timer = this.#environment.timers.after(delayMs, callback)
  }
}
