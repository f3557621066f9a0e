/**
 * Connections. Every one is asked once what it is:
 *
 *   direct   the process that answers is the one that was greeted by: statements are prepared under
 *            names, and settings last as long as the connection
 *   pooled   a pooler is in between, and each transaction may go to another server process: nothing
 *            may be kept in the session, so statements have no names and settings are local to
 *            transactions
 *
 * A pool of the user's own is never given lasting settings, because it is not ours alone.
 *
 * No statement waits for ever: the server ends it (`statement_timeout`, `lock_timeout`), and where
 * the server does not answer at all, the driver does. While the database is away, all callers of
 * this process together make one attempt at a time to reach it, less and less often.
 */
import { createHash } from 'node:crypto'
import { messageOf } from '../../core/errors.ts'
import type { Environment } from '../../environment/system.ts'
import { StoreUnavailable } from '../errors.ts'
import type { Value } from '../rows.ts'
import { kindOf } from './busy.ts'
import { numbers, type PgClient, type PgPool, type PgPoolClient } from './driver.ts'

/** A text that names the tables of a schema, made and named once for each schema. */
export type Statement = (schema: string) => { readonly text: string; readonly name: string }

/** Declares a statement by its text for a schema whose name is quoted already. */
export function statement(make: (schema: string) => string): Statement {
  const made = new Map<string, ReturnType<Statement>>()
  return (schema) => {
    const known = made.get(schema)
    if (known !== undefined) return known
    const text = make(schema)
    const name = `pawl_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
    made.set(schema, { text, name })
    return { text, name }
  }
}

/** By what a transaction can be known later: its number and, if it wrote facts, one of them. */
export interface Trail {
  readonly tx: number
  readonly fact?: { readonly job: string; readonly seq: number; readonly place: number }
}

/** Where statements run: a connection of ours, or a transaction of the user's. */
export interface Session {
  /** What the transaction has written, to find out later if it committed. */
  wrote?: Trail | undefined
  query<Row>(statement: Statement, values?: readonly Value[]): Promise<Row[]>
}

/** What survives a crash of the server: every acknowledged write, or all but the last moments. */
export type Durability = 'full' | 'relaxed'

/** How connections behave. */
export interface DatabaseOptions {
  readonly schema: string
  readonly durability: Durability
  /** The pool is the user's. */
  readonly borrowed: boolean
  /** How long a statement may take, and half of that to wait for a lock. */
  readonly statementTimeoutMs: number
}

const ANSWER_EXTRA_MS = 5000
const RECONNECT_MIN_MS = 50
const RECONNECT_MAX_MS = 500
/** An outage that lasts is met as seldom as a worker does: after some ten seconds of trying. */
const RECONNECT_EAGER = 20
const RECONNECT_LATER_MS = 5000

interface Traits {
  readonly named: boolean
  /** Sent before a transaction's first statement; empty where the session is set already. */
  readonly local: string
}

/** An error that somebody else is told of. */
function ignore(): void {}

/** The connections of one store. */
export class Database {
  readonly schema: string
  /** Whether a pooler was seen between this process and the server. */
  pooled = false
  readonly #pool: PgPool
  readonly #options: DatabaseOptions
  readonly #environment: Environment
  readonly #traits = new WeakMap<PgClient, Traits>()
  #failures = 0
  #probing: Promise<void> | undefined

  constructor(pool: PgPool, options: DatabaseOptions, environment: Environment) {
    this.schema = options.schema
    this.#pool = pool
    this.#options = options
    this.#environment = environment
    // An idle connection that breaks is replaced by the pool; without a listener it would throw.
    pool.on('error', ignore)
  }

  /** How many connections there can be. */
  get size(): number {
    return this.#pool.options?.max ?? 10
  }

  /** One statement in a transaction of its own. */
  atOnce<T>(work: (session: OwnSession) => Promise<T>): Promise<T> {
    return this.#with((session, { local }) =>
      local === '' ? work(session) : session.transaction(work),
    )
  }

  /** Several statements in one transaction, with settings of its own. */
  transaction<T>(work: (session: OwnSession) => Promise<T>, settings = ''): Promise<T> {
    return this.#with((session) => session.transaction(work, settings))
  }

  async close(): Promise<void> {
    // Our own keeps the listener: its last connections may still break while they end.
    if (this.#options.borrowed) this.#pool.removeListener('error', ignore)
    else await this.#pool.end()
  }

  /** A connection that its caller keeps, and must release. */
  async keep(): Promise<PgPoolClient> {
    const client = await this.#acquire()
    try {
      await this.#meet(client)
      return client
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  async #with<T>(work: (session: OwnSession, traits: Traits) => Promise<T>): Promise<T> {
    const client = await this.#acquire()
    let broken = false
    const noteEnd = () => {
      broken = true
    }
    client.on('error', noteEnd)
    try {
      const traits = await this.#meet(client)
      return await work(new OwnSession(client, this.schema, traits, this.#answerMs), traits)
    } catch (error) {
      broken ||= kindOf(error) === 'lost' || error instanceof RollbackFailed
      throw error instanceof RollbackFailed ? error.cause : error
    } finally {
      client.removeListener('error', noteEnd)
      client.removeListener('error', ignore)
      client.release(broken)
    }
  }

  get #answerMs(): number {
    return this.#options.statementTimeoutMs + ANSWER_EXTRA_MS
  }

  async #acquire(): Promise<PgPoolClient> {
    if (this.#failures > 0) {
      this.#probing ??= this.#probe()
      await this.#probing
    }
    return this.#connect()
  }

  /** While the database is away, all wait for one attempt at a time, and share its failure. */
  async #probe(): Promise<void> {
    try {
      await new Promise<void>((done) => this.#environment.timers.after(this.#reconnectMs(), done))
      const client = await this.#connect(true)
      client.removeListener('error', ignore)
      client.release()
    } finally {
      this.#probing = undefined
    }
  }

  async #connect(isProbe = false): Promise<PgPoolClient> {
    try {
      const client = await new Promise<PgPoolClient>((resolve, reject) => {
        this.#pool.connect((error, lent) => {
          if (lent === undefined) return reject(error)
          // It may end in the same moment, before anybody has heard of it.
          lent.on('error', ignore)
          resolve(lent)
        })
      })
      this.#failures = 0
      return client
    } catch (error) {
      // A pool that is all in use is no sign that the database is away.
      const isAway = !/timeout exceeded/.test(messageOf(error))
      if (isAway && (isProbe || this.#failures === 0)) this.#failures++
      throw kindOf(error) === 'failed' ? error : new StoreUnavailable(0, error)
    }
  }

  #reconnectMs(): number {
    if (this.#failures > RECONNECT_EAGER) return RECONNECT_LATER_MS
    return Math.min(RECONNECT_MIN_MS * 2 ** (this.#failures - 1), RECONNECT_MAX_MS)
  }

  /** What a connection is, found out once, and the settings that it keeps. */
  async #meet(client: PgClient): Promise<Traits> {
    const known = this.#traits.get(client)
    if (known !== undefined) return known
    const { rows } = await client.query({
      text: `SELECT pg_backend_pid() AS pid, current_setting('synchronous_commit') AS durable`,
      types: numbers,
      query_timeout: this.#answerMs,
    })
    const { pid, durable } = rows[0] as { pid: number; durable: string }
    const greetedBy = (client as { processID?: number }).processID
    const direct = greetedBy === pid
    if (!direct) this.pooled = true
    const settings = this.#settings(durable)
    const lasting = direct && !this.#options.borrowed
    if (lasting) {
      const text = settings.map((setting) => `SET ${setting}`).join('; ')
      await client.query({ text, query_timeout: this.#answerMs })
    }
    const local = lasting ? '' : settings.map((setting) => `SET LOCAL ${setting}`).join('; ')
    const traits = { named: direct, local }
    this.#traits.set(client, traits)
    return traits
  }

  #settings(durable: string): string[] {
    const { statementTimeoutMs, durability } = this.#options
    const settings = [
      `statement_timeout = ${statementTimeoutMs}`,
      `lock_timeout = ${Math.ceil(statementTimeoutMs / 2)}`,
      `idle_in_transaction_session_timeout = ${statementTimeoutMs + ANSWER_EXTRA_MS}`,
      "default_transaction_isolation = 'read committed'",
      // Every statement of ours is as fast with the plan that serves all values; see the tests.
      'plan_cache_mode = force_generic_plan',
      // That plan is kept while tables grow, so it must not be one for tables that are small.
      'enable_seqscan = off',
      // What a queue works on is in memory. And rows that are found one by one are locked in the
      // order of their ids; collected by pages, which is for slow disks, they would not be.
      'random_page_cost = 1',
      // Tables without an index then seem so dear that their statements would be compiled first.
      'jit = off',
    ]
    if (durability === 'relaxed') return [...settings, 'synchronous_commit = off']
    return durable === 'off' ? [...settings, 'synchronous_commit = on'] : settings
  }
}

/** The transaction could not be ended, so its connection must be. */
class RollbackFailed extends Error {}

/** A connection of ours while a verb has it. */
export class OwnSession implements Session {
  wrote: Trail | undefined
  readonly client: PgClient
  readonly #schema: string
  readonly #traits: Traits
  #answerMs: number

  constructor(client: PgClient, schema: string, traits: Traits, answerMs: number) {
    this.client = client
    this.#schema = schema
    this.#traits = traits
    this.#answerMs = answerMs
  }

  async query<Row>(made: Statement, values: readonly Value[] = []): Promise<Row[]> {
    const { text, name } = made(this.#schema)
    const { rows } = await this.client.query({
      text,
      values: [...values],
      types: numbers,
      query_timeout: this.#answerMs,
      ...(this.#traits.named && { name }),
    })
    return rows as Row[]
  }

  /** A statement of the user's own, with the driver's own types. */
  async raw(text: string, values: readonly unknown[]): Promise<unknown[]> {
    const { rows } = await this.client.query({
      text,
      values: [...values],
      query_timeout: this.#answerMs,
    })
    return rows
  }

  /** Statements without values, which may be several. */
  async run(text: string): Promise<void> {
    await this.client.query({ text, query_timeout: this.#answerMs })
  }

  /** Lets every further statement of the present transaction take so long. */
  async takeTime(ms: number): Promise<void> {
    await this.run(`SET LOCAL statement_timeout = ${ms}`)
    this.#answerMs = ms + ANSWER_EXTRA_MS
  }

  /** Does the work in a transaction. */
  async transaction<T>(work: (session: OwnSession) => Promise<T>, settings = ''): Promise<T> {
    const begin = ['BEGIN ISOLATION LEVEL READ COMMITTED', this.#traits.local, settings]
    await this.run(begin.filter((text) => text !== '').join('; '))
    let result: T
    try {
      result = await work(this)
    } catch (error) {
      await this.#rollBack(error)
      throw error
    }
    await this.run('COMMIT')
    return result
  }

  async #rollBack(cause: unknown): Promise<void> {
    if (kindOf(cause) === 'lost') return
    try {
      await this.run('ROLLBACK')
    } catch {
      throw new RollbackFailed('ROLLBACK failed', { cause })
    }
  }
}
