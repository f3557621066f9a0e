/** The options of the SQLite store, and their checks. An option that is not known is refused. */
import { callable, count, flag, oneOf, text } from '../../core/checks.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import type { Logger } from '../../core/ports.ts'
import type { Environment } from '../../environment/system.ts'
import { OPENING_CHECKS } from '../opening-options.ts'
import type { PayloadOptions } from '../requests.ts'
import type { SoundnessOptions } from '../soundness.ts'
import type { TimeChange } from '../store-time.ts'
import type { Durability } from './connect.ts'
import type { SqliteDriver } from './driver.ts'

/** How to open a SQLite store. */
export interface SqliteOptions extends PayloadOptions, SoundnessOptions {
  /**
   * A path; ':memory:' for a database that dies with the store, 'file:/name?vfs=memdb' for one in
   * memory that several stores of this process share.
   */
  readonly path: string
  /** The lifecycles that this process knows; those that ship if absent. */
  readonly lifecycles?: readonly Lifecycle[]
  /** 'full' unless said otherwise: an acknowledged write survives a power failure. */
  readonly durability?: Durability
  /** How long a write waits for other processes before it gives up with `StoreBusy`. */
  readonly busyTimeoutMs?: number
  /** A module with the API of `node:sqlite`; the one that this Node has if absent. */
  readonly driver?: SqliteDriver
  readonly environment?: Environment
  /** Told of what an operator should know, such as a SQLite with a known fault. */
  readonly logger?: Logger
  /** Called when the time of the file was changed by this process; see the guide. */
  readonly onTimeChange?: (change: TimeChange) => void
  /** False: this store uses the time of the file and leaves its changes to other processes. */
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

/** Throws `CommandInvalid` for an option that is not known, or cannot be. */
export function checkSqliteOptions(options: SqliteOptions): void {
  checkFields(options, OPTIONS, { what: 'options' })
}
