// Connections to PostgreSQL that outlive the store that used them. A new connection is a new server
// process, which reads the catalogue and plans every statement again; most tests of the contract
// take less time than that. A store cannot tell the difference: before a connection is kept, its
// settings, locks, subscriptions and transaction are reset. Prepared statements stay.
import { EventEmitter } from 'node:events'
import pg from 'pg'

const RESET = 'ROLLBACK; RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all()'
const EVENTS = ['error', 'end', 'notification'] as const

/** What the driver has and its types do not mention. */
type Driver = pg.Client & {
  readonly _activeQuery: unknown
  readonly _queryable: boolean
  readonly processID: number
}

type Callback = (error?: Error) => void

/** Connections that no store uses. */
export class KeptConnections {
  readonly #idle: Driver[] = []

  /** A client for a pool of `pg`, which connects to this place. */
  readonly Client: new (
    config: pg.ClientConfig,
  ) => KeptClient

  constructor(connectionString: string) {
    const idle = this.#idle
    this.Client = class extends KeptClient {
      constructor() {
        super(idle, connectionString)
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((client) => client.end()))
  }
}

/** Behaves as a client of `pg`, as far as pools and stores use one. */
class KeptClient extends EventEmitter {
  readonly #idle: Driver[]
  readonly #client: Driver
  readonly #isNew: boolean
  _ending = false

  constructor(idle: Driver[], connectionString: string) {
    super()
    const kept = idle.pop()
    this.#idle = idle
    this.#isNew = kept === undefined
    this.#client = kept ?? (new pg.Client({ connectionString }) as Driver)
    for (const event of EVENTS) {
      this.#client.on(event as 'end', (...values) => this.emit(event, ...values))
    }
  }

  get processID(): number {
    return this.#client.processID
  }

  get host(): string {
    return this.#client.host
  }

  get port(): number {
    return this.#client.port
  }

  get connection(): unknown {
    return (this.#client as { connection?: unknown }).connection
  }

  get _queryable(): boolean {
    return this.#client._queryable
  }

  ref(): void {}

  unref(): void {}

  connect(callback: Callback): void {
    if (this.#isNew) this.#client.connect(callback)
    else setImmediate(callback)
  }

  query(config: pg.QueryConfig): Promise<pg.QueryResult> {
    return this.#client.query(config)
  }

  end(callback: Callback = () => {}): void {
    this._ending = true
    const client = this.#client
    // A statement that still runs, or waits for a lock, ends with its connection.
    if (!client._queryable || client._activeQuery) return void client.end(callback)
    for (const event of EVENTS) client.removeAllListeners(event)
    client.on('error', () => {})
    client.query(RESET).then(
      () => {
        client.removeAllListeners('error')
        this.#idle.push(client)
        this.emit('end')
        callback()
      },
      () => client.end(callback),
    )
  }
}
