/**
 * Connections. Each is classified once:
 *
 *   direct   the server process that answers is the one that the connection was made to: statements
 *            are prepared under names, and settings last as long as the connection
 *   pooled   a pooler is in between, and each transaction may go to another server process: nothing
 *            may be kept in the session, so statements have no names and settings are local to
 *            transactions
 *
 * A pool of the user never gets lasting settings, because others use it, too.
 *
 * Every statement is bounded. The server ends it after two fifths of a verb's time
 * (`statement_timeout`, `lock_timeout`). If the server does not answer at all, the store stops
 * waiting a little later, and connections that were silent since are not used again. So half of the
 * time is left for a try on a new connection. The caller's `Patience` bounds all of it.
 *
 * While the database is away, all callers of this process together make one attempt at a time to
 * reach it, less and less often.
 */
import { createHash } from 'node:crypto'
import { messageOf } from '../../core/errors.ts'
import type { Environment } from '../../environment/system.ts'
import { StoreUnavailable } from '../errors.ts'
import { noteAddress } from '../outage.ts'
import type { Value } from '../rows.ts'
import { ask, isSilence, NO_CONNECTION } from './answer.ts'
import { endsConnection, kindOf, LOCK_SHARE, type Patience } from './busy.ts'
import {
  addressOf,
  hostOf,
  numbers,
  type PgClient,
  type PgPool,
  type PgPoolClient,
  type PgQuery,
} from './driver.ts'
import type { Hosts } from './hosts.ts'
import { Troubles } from './troubles.ts'

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

/** Identifies a transaction later: its number and, if it wrote facts, one of them. */
export interface Trail {
  readonly tx: number
  readonly fact?: { readonly job: string; readonly seq: number; readonly position: number }
}

/** Where statements run: a connection of ours, or a transaction of the user's. */
export interface Session {
  /** What the transaction has written, to find out later if it committed. */
  wrote?: Trail | undefined
  /** Whether the transaction belongs to the user, who may end it at any moment. */
  readonly isJoined?: boolean
  query<Row>(statement: Statement, values?: readonly Value[]): Promise<Row[]>
}

/** What survives a crash of the server: every acknowledged write, or all but the last moments. */
export type Durability = 'full' | 'relaxed'

/** How connections behave. */
export interface DatabaseOptions {
  readonly schema: string
  readonly durability: Durability
  /** The pool belongs to the user. */
  readonly borrowed: boolean
  /** How long a verb may take, with all of its tries. */
  readonly timeoutMs: number
  /** Where the connections of our own pool go; absent for a pool of the user's. */
  readonly hosts?: Hosts | undefined
}

/** Two tries without an answer must fit into the time of a verb. */
const STATEMENT_SHARE = 0.4
const ANSWER_SHARE = 0.45
/** The least time of a statement if a verb has little time; the server still ends it first. */
const STATEMENT_MIN_MS = 1000
const ANSWER_MIN_MS = 1250
/** How much longer the driver waits than the server does, for statements that may take long. */
const ANSWER_EXTRA_MS = 5000

/** How long a new connection may take, so that each host can be tried within a verb's time. */
export function connectMsOf(timeoutMs: number, hosts: number): number {
  return Math.min(CONNECT_MAX_MS, Math.max(100, Math.floor(timeoutMs / (hosts + 1))))
}

const CONNECT_MAX_MS = 5000
const RECONNECT_MIN_MS = 50
const RECONNECT_MAX_MS = 500
/** The longest pause between two attempts, reached after some ten seconds. */
const RECONNECT_EAGER = 20
const RECONNECT_LATER_MS = 5000

interface Traits {
  readonly named: boolean
  /** Sent before a transaction's first statement; empty where the session is set already. */
  readonly local: string
}

/** An error that another caller reports. */
function ignore(): void {}

/** The connections of one store. */
export class Database {
  readonly schema: string
  /** Whether a pooler was seen between this process and the server. */
  pooled = false
  /** Reports an outage that lasts to its listeners. */
  readonly troubles: Troubles
  readonly #pool: PgPool
  readonly #options: DatabaseOptions
  readonly #environment: Environment
  readonly #traits = new WeakMap<PgClient, Traits>()
  /** When each connection last answered. */
  readonly #heardAt = new WeakMap<PgClient, number>()
  /** Connections that have not answered since then may be broken, too. */
  #suspectUntil = Number.NEGATIVE_INFINITY
  #failures = 0
  /** Why the last attempt to connect failed, until one succeeds. */
  #lastFailure: unknown
  #probing: Promise<void> | undefined

  constructor(pool: PgPool, options: DatabaseOptions, environment: Environment) {
    this.schema = options.schema
    this.#pool = pool
    this.#options = options
    this.#environment = environment
    this.troubles = new Troubles()
    // An idle connection that breaks is replaced by the pool; without a listener it would throw.
    pool.on('error', ignore)
  }

  /** How many connections there can be. */
  get size(): number {
    return this.#pool.options?.max ?? 10
  }

  /** One statement in a transaction of its own. */
  atOnce<T>(work: (session: OwnSession) => Promise<T>, patience?: Patience): Promise<T> {
    return this.#with(
      (session, { local }) => (local === '' ? work(session) : session.transaction(work)),
      patience,
    )
  }

  /** Several statements in one transaction, with settings of its own. */
  transaction<T>(
    work: (session: OwnSession) => Promise<T>,
    patience?: Patience,
    settings = '',
  ): Promise<T> {
    return this.#with((session) => session.transaction(work, settings), patience)
  }

  async close(): Promise<void> {
    // Our own keeps the listener: its last connections may still break while they end.
    if (this.#options.borrowed) this.#pool.removeListener('error', ignore)
    else await this.#pool.end()
  }

  /** A connection that its caller keeps, and must release. */
  async keep(): Promise<PgPoolClient> {
    const client = await this.#acquire(undefined)
    try {
      await this.#meet(client, this.#answerMs)
      return client
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  async #with<T>(
    work: (session: OwnSession, traits: Traits) => Promise<T>,
    patience: Patience | undefined,
  ): Promise<T> {
    const start = performance.now()
    const client = await this.#acquire(patience)
    let session: OwnSession | undefined
    let broken = false
    const noteEnd = () => {
      broken = true
      if (session !== undefined) session.isBroken = true
    }
    client.on('error', noteEnd)
    try {
      const answerMs = Math.max(1, Math.min(this.#answerMs, patience?.leftMs ?? this.#answerMs))
      const traits = await this.#meet(client, answerMs)
      session = new OwnSession(client, this.schema, traits, this.#answerMs, patience)
      const result = await work(session, traits)
      this.#heardAt.set(client, performance.now())
      this.troubles.over()
      return result
    } catch (thrown) {
      const error = thrown instanceof RollbackFailed ? thrown.cause : thrown
      broken ||= endsConnection(error) || thrown instanceof RollbackFailed
      if (broken) noteAddress(error, addressOf(client))
      if (endsConnection(error)) this.troubles.note(error, start)
      if (isSilence(messageOf(error))) this.#suspectUntil = performance.now()
      throw error
    } finally {
      client.removeListener('error', noteEnd)
      client.removeListener('error', ignore)
      client.release(broken)
    }
  }

  /** How long the server may take for a statement. */
  get #statementMs(): number {
    const { timeoutMs } = this.#options
    const least = Math.min(timeoutMs * 0.8, STATEMENT_MIN_MS)
    return Math.ceil(Math.max(timeoutMs * STATEMENT_SHARE, least))
  }

  /** How long the store waits for an answer. */
  get #answerMs(): number {
    return answerMsOf(this.#options.timeoutMs)
  }

  /** A connection within the time that is left; one that comes too late goes back to the pool. */
  async #acquire(patience: Patience | undefined): Promise<PgPoolClient> {
    const start = performance.now()
    const connecting = this.#fresh()
    try {
      if (patience === undefined) return await connecting
      return await this.#within(Math.max(0, patience.leftMs), connecting)
    } catch (error) {
      if (endsConnection(error)) this.troubles.note(error, start)
      throw error
    }
  }

  async #within(ms: number, connecting: Promise<PgPoolClient>): Promise<PgPoolClient> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const why = this.#lastFailure ?? `${NO_CONNECTION} within ${ms} ms`
        reject(new StoreUnavailable(0, why, 'none'))
      }, ms)
    })
    let isTaken = false
    try {
      const client = await Promise.race([connecting, late])
      isTaken = true
      return client
    } finally {
      clearTimeout(timer)
      if (!isTaken) connecting.then((client) => this.#putBack(client), ignore)
    }
  }

  #putBack(client: PgPoolClient, destroy = false): void {
    client.removeListener('error', ignore)
    client.release(destroy)
  }

  /** A connection that is not one of those that may have fallen silent. */
  async #fresh(): Promise<PgPoolClient> {
    for (;;) {
      if (this.#failures > 0) {
        this.#probing ??= this.#probe()
        await this.#probing
      }
      const client = await this.#connect()
      const heardAt = this.#heardAt.get(client) ?? Number.POSITIVE_INFINITY
      if (heardAt > this.#suspectUntil) return client
      this.#putBack(client, true)
    }
  }

  /** While the database is away, all wait for one attempt at a time, and share its failure. */
  async #probe(): Promise<void> {
    try {
      await new Promise<void>((done) => this.#environment.timers.after(this.#reconnectMs(), done))
      this.#putBack(await this.#connect(true))
    } finally {
      this.#probing = undefined
    }
  }

  /** A connection to the first of the hosts that lets us in. */
  async #connect(isProbe = false): Promise<PgPoolClient> {
    const hosts = this.#options.hosts?.urls.length ?? 1
    for (let tries = 1; ; tries++) {
      try {
        const client = await this.#connectOnce()
        this.#failures = 0
        this.#lastFailure = undefined
        return client
      } catch (error) {
        this.#lastFailure = error
        // A pool that is all in use is no sign that the database is away.
        const isAway = !/timeout exceeded/.test(messageOf(error))
        const isFinal = kindOf(error) === 'failed'
        if (isAway && !isFinal && tries < hosts) continue
        if (isAway && (isProbe || this.#failures === 0)) this.#failures++
        throw isFinal ? error : new StoreUnavailable(0, error, 'none')
      }
    }
  }

  #connectOnce(): Promise<PgPoolClient> {
    return new Promise<PgPoolClient>((resolve, reject) => {
      this.#pool.connect((error, lent) => {
        if (lent === undefined) return reject(error)
        // It may end in the same moment, before a listener is attached.
        lent.on('error', ignore)
        resolve(lent)
      })
    })
  }

  #reconnectMs(): number {
    if (this.#failures > RECONNECT_EAGER) return RECONNECT_LATER_MS
    return Math.min(RECONNECT_MIN_MS * 2 ** (this.#failures - 1), RECONNECT_MAX_MS)
  }

  /** What a connection is, found out once, and the settings that it keeps. */
  async #meet(client: PgClient, answerMs: number): Promise<Traits> {
    const known = this.#traits.get(client)
    if (known !== undefined) return known
    const { rows } = await ask(client, { text: MEET, types: numbers }, answerMs)
    const { pid, durable, readonly } = rows[0] as { pid: number; durable: string; readonly: string }
    if (readonly === 'on' && this.#options.hosts?.mustWrite) {
      this.#options.hosts.passOver(hostOf(client))
      throw Object.assign(new Error('the server is read-only'), { code: '25006' })
    }
    const greetedBy = (client as { processID?: number }).processID
    const direct = greetedBy === pid
    if (!direct) this.pooled = true
    const settings = this.#settings(durable)
    const lasting = direct && !this.#options.borrowed
    if (lasting) {
      const text = settings.map((setting) => `SET ${setting}`).join('; ')
      await ask(client, { text }, answerMs)
    }
    const local = lasting ? '' : settings.map((setting) => `SET LOCAL ${setting}`).join('; ')
    const traits = { named: direct, local }
    this.#traits.set(client, traits)
    return traits
  }

  #settings(durable: string): string[] {
    const { timeoutMs, durability } = this.#options
    const settings = [
      `statement_timeout = ${this.#statementMs}`,
      `lock_timeout = ${Math.ceil(timeoutMs * LOCK_SHARE)}`,
      `idle_in_transaction_session_timeout = ${timeoutMs + ANSWER_EXTRA_MS}`,
      "default_transaction_isolation = 'read committed'",
      // The generic plan is as fast for every statement of the store; tests check it.
      'plan_cache_mode = force_generic_plan',
      // That plan is kept while tables grow, so it must not be one for small tables.
      'enable_seqscan = off',
      // Queues work on rows in memory. Rows that an index scan finds are locked in the order of
      // their ids; a bitmap scan, which is for slow disks, would lock them in the order of pages.
      'random_page_cost = 1',
      // Otherwise the planner estimates such a high cost for tables without an index that it
      // compiles their statements first (JIT).
      'jit = off',
    ]
    if (durability === 'relaxed') return [...settings, 'synchronous_commit = off']
    return durable === 'off' ? [...settings, 'synchronous_commit = on'] : settings
  }
}

const MEET = `SELECT pg_backend_pid() AS pid, current_setting('synchronous_commit') AS durable,
  current_setting('transaction_read_only') AS readonly`

/** How long an answer is waited for, if a verb may take so long. */
export function answerMsOf(timeoutMs: number): number {
  return Math.ceil(Math.max(timeoutMs * ANSWER_SHARE, Math.min(timeoutMs, ANSWER_MIN_MS)))
}

/** The transaction could not be ended, so its connection must be closed. */
class RollbackFailed extends Error {}

/** A connection of ours while a verb has it. */
export class OwnSession implements Session {
  wrote: Trail | undefined
  /** The connection was lost while this session had it. */
  isBroken = false
  readonly client: PgClient
  readonly #schema: string
  readonly #traits: Traits
  #answerMs: number
  /** How long the whole of it may take. */
  #patience: Patience | undefined

  constructor(
    client: PgClient,
    schema: string,
    traits: Traits,
    answerMs: number,
    patience: Patience | undefined,
  ) {
    this.client = client
    this.#schema = schema
    this.#traits = traits
    this.#answerMs = answerMs
    this.#patience = patience
  }

  async query<Row>(made: Statement, values: readonly Value[] = []): Promise<Row[]> {
    const { text, name } = made(this.#schema)
    const rows = await this.#send({
      text,
      values: [...values],
      types: numbers,
      ...(this.#traits.named && { name }),
    })
    return rows as Row[]
  }

  /** A statement of the user, with the driver's own types. */
  raw(text: string, values: readonly unknown[]): Promise<unknown[]> {
    return this.#send({ text, values: [...values] })
  }

  /** Statements without values, which may be several. */
  async run(text: string): Promise<void> {
    await this.#send({ text })
  }

  /** Lets every further statement of the present transaction take so long. */
  async takeTime(ms: number): Promise<void> {
    await this.run(`SET LOCAL statement_timeout = ${ms}`)
    this.allow(ms + ANSWER_EXTRA_MS)
  }

  /** From now on each answer is waited for so long, however long the verb has taken. */
  allow(answerMs: number): void {
    this.#answerMs = answerMs
    this.#patience = undefined
  }

  async #send(query: PgQuery): Promise<unknown[]> {
    const left = this.#patience?.leftMs ?? this.#answerMs
    const answerMs = Math.max(1, Math.min(this.#answerMs, left))
    try {
      const { rows } = await ask(this.client, query, answerMs)
      return rows
    } catch (error) {
      this.isBroken ||= endsConnection(error)
      throw error
    }
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
    if (endsConnection(cause)) return
    try {
      await this.run('ROLLBACK')
    } catch {
      throw new RollbackFailed('ROLLBACK failed', { cause })
    }
  }
}
