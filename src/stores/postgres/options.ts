/** The options of the PostgreSQL store, and their checks. An unknown option is refused. */
import { callable, count, oneOf, record } from '../../core/checks.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Logger } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import { OPENING_CHECKS } from '../opening-options.ts'
import type { Trouble } from '../outage.ts'
import type { PayloadOptions } from '../requests.ts'
import type { SoundnessOptions } from '../soundness.ts'
import type { Durability } from './connect.ts'
import type { PgConfig, PgPool } from './driver.ts'

/** How to open a PostgreSQL store. */
export interface PostgresOptions extends PayloadOptions, SoundnessOptions {
  /**
   * `postgres://…`, with several hosts if there are replicas: `postgres://a,b:5433/db`; or give
   * `config`, or a `pool` of your own.
   */
  readonly connectionString?: string
  /** Whatever `pg` takes: host, user, password, ssl and so on. */
  readonly config?: PgConfig
  /** A pool of `pg` that you made and that you end; the store adds nothing lasting to it. */
  readonly pool?: PgPool
  /** How many connections the store's own pool may have; 10 if absent. */
  readonly connections?: number
  /** The schema of the tables; `pawl` if absent. */
  readonly schema?: string
  /** The lifecycles that this process knows; those that ship if absent. */
  readonly lifecycles?: readonly Lifecycle[]
  /** 'full' unless said otherwise: an acknowledged write survives a crash of the server. */
  readonly durability?: Durability
  /** How long a verb tries to get past conflicts and outages; 10 seconds if absent. */
  readonly timeoutMs?: number
  readonly environment?: Environment
  /** Whose time leases and due times are judged by; the database's unless said otherwise. */
  readonly clock?: 'database' | 'environment'
  /** Told of what an operator should know, such as a pooler in between. */
  readonly logger?: Logger
  /** Called while the database is away, from the opening on; see `Store.onTrouble`. */
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
  clock: (value) => oneOf(value, ['database', 'environment']),
  onTrouble: callable,
}

/** Throws `CommandInvalid` for an option that is not known, or cannot be. */
export function checkPostgresOptions(options: PostgresOptions): void {
  checkFields(options, OPTIONS, { what: 'options' })
}
