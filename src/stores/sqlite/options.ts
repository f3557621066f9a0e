/** The options of the SQLite store, and their checks. An option that is not known is refused. */
import { callable, count, flag, oneOf, text } from '../../core/checks.ts'
import { CommandInvalid } from '../../core/errors.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Logger } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import type { PayloadOptions } from '../contract/requests.ts'
import { OPENING_CHECKS } from '../opening-options.ts'
import type { SoundnessOptions } from '../soundness.ts'
import type { TimeChange } from '../store-time.ts'
import type { Durability } from './connect.ts'
import type { SqliteDriver } from './driver.ts'

/** How to open a SQLite store. */
export interface SqliteOptions extends PayloadOptions, SoundnessOptions {
  /**
   * The path of the file; ':memory:' for a database that ends with the store,
   * 'file:/name?vfs=memdb' for one in memory that several stores of this process share.
   */
  readonly path: string
  /**
   * The lifecycles that this process knows.
   * @defaultValue those of the package
   */
  readonly lifecycles?: readonly Lifecycle[]
  /**
   * With 'full', an acknowledged write survives a power failure; with 'relaxed', the last writes
   * may be lost.
   * @defaultValue `'full'`
   */
  readonly durability?: Durability
  /**
   * How long a write waits for other processes before it throws `StoreBusy`.
   * @defaultValue 10,000
   */
  readonly busyTimeoutMs?: number
  /**
   * A module with the API of `node:sqlite`.
   * @defaultValue `node:sqlite`, or `@photostructure/sqlite` on Node 20
   */
  readonly driver?: SqliteDriver
  /**
   * The clock, timers, random numbers and ids; tests replace them.
   * @defaultValue those of the process
   */
  readonly environment?: Environment
  /**
   * Receives what an operator should know, such as a SQLite with a known fault.
   * @defaultValue none
   */
  readonly logger?: Logger
  /**
   * Called when the time of the file was changed by this process; see the guide.
   * @defaultValue none
   */
  readonly onTimeChange?: (change: TimeChange) => void
  /**
   * False: this store uses the time of the file and leaves its changes to other processes.
   * @defaultValue `true`
   */
  readonly changesTime?: boolean
}

const PATH_MAX = 4096

const OPTIONS: FieldChecks<SqliteOptions> = {
  ...OPENING_CHECKS,
  path: (value) => text(value, PATH_MAX),
  durability: (value) => oneOf(value, ['full', 'relaxed']),
  busyTimeoutMs: (value) => count(value, 0, Number.MAX_SAFE_INTEGER),
  driver: unchecked,
  onTimeChange: callable,
  changesTime: flag,
}

/** Throws `CommandInvalid` for an unknown option or an invalid value. */
export function checkSqliteOptions(options: SqliteOptions): void {
  checkFields(options, OPTIONS, { what: 'options' })
  if (options.path === undefined) throw new CommandInvalid('path', 'must be given')
}
