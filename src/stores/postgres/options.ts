/** The options of the PostgreSQL store, and their checks. An unknown option is refused. */
import { callable, count, oneOf, record } from '../../core/checks.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Logger } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import type { PayloadOptions } from '../contract/requests.ts'
import { OPENING_CHECKS } from '../opening-options.ts'
import type { Trouble } from '../outage.ts'
import type { SoundnessOptions } from '../soundness.ts'
import type { Durability } from './connect.ts'
import type { PgConfig, PgPool } from './driver.ts'

/** How to open a PostgreSQL store. */
export interface PostgresOptions extends PayloadOptions, SoundnessOptions {
  /**
   * `postgres://…`, with several hosts if there are replicas: `postgres://a,b:5433/db`.
   * Alternatives are `config` and `pool`.
   * @defaultValue none
   */
  readonly connectionString?: string
  /**
   * Options of `pg`: host, user, password, ssl and so on.
   * @defaultValue none
   */
  readonly config?: PgConfig
  /**
   * A pool of `pg` that you made and that you end; the store adds nothing lasting to it.
   * @defaultValue a pool of its own
   */
  readonly pool?: PgPool
  /**
   * How many connections the store's own pool may have.
   * @defaultValue 10
   */
  readonly connections?: number
  /**
   * The schema of the tables.
   * @defaultValue `'pawl'`
   */
  readonly schema?: string
  /**
   * The lifecycles that this process knows.
   * @defaultValue those of the package
   */
  readonly lifecycles?: readonly Lifecycle[]
  /**
   * With 'full', an acknowledged write survives a crash of the server; with 'relaxed', the last
   * writes may be lost.
   * @defaultValue `'full'`
   */
  readonly durability?: Durability
  /**
   * How long a verb retries after conflicts and outages, in milliseconds.
   * @defaultValue 10,000
   */
  readonly timeoutMs?: number
  /**
   * How long the opening tries if nothing listens at the address or the host is unknown, in
   * milliseconds.
   * @defaultValue `timeoutMs`
   */
  readonly refusedMs?: number
  /**
   * The clock, timers, random numbers and ids; tests replace them.
   * @defaultValue those of the process
   */
  readonly environment?: Environment
  /**
   * Whose time decides about leases and due times.
   * @defaultValue `'database'`
   */
  readonly clock?: 'database' | 'environment'
  /**
   * Receives what an operator should know, such as a pooler in between.
   * @defaultValue none
   */
  readonly logger?: Logger
  /**
   * Called while the database is away, from the opening on; see `Store.onTrouble`.
   * @defaultValue none
   */
  readonly onTrouble?: (trouble: Trouble) => void
}

const OPTIONS: FieldChecks<PostgresOptions> = {
  ...OPENING_CHECKS,
  connectionString: unchecked,
  config: record,
  pool: record,
  connections: (value) => count(value, 1, Number.MAX_SAFE_INTEGER),
  schema: unchecked,
  durability: (value) => oneOf(value, ['full', 'relaxed']),
  timeoutMs: (value) => count(value, 0, Number.MAX_SAFE_INTEGER),
  refusedMs: (value) => count(value, 0, Number.MAX_SAFE_INTEGER),
  clock: (value) => oneOf(value, ['database', 'environment']),
  onTrouble: callable,
}

/** Throws `CommandInvalid` for an unknown option or an invalid value. */
export function checkPostgresOptions(options: PostgresOptions): void {
  checkFields(options, OPTIONS, { what: 'options' })
}
