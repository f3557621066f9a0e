/** What the command line itself can refuse. One class, one stable code each. */
import { messageOf, PawlError } from '../core/errors.ts'

/** The command was called in a way that it does not have. */
export class UsageInvalid extends PawlError {
  readonly code = 'E_USAGE'
  constructor(why: string, hint = 'See the help of the command: add --help.') {
    super(why, hint)
  }
}

/** The configuration file cannot be read, or says something that is not known. */
export class ConfigInvalid extends PawlError {
  readonly code = 'E_CONFIG_INVALID'
  constructor(path: string, why: string) {
    super(
      `The configuration ${path} ${why}`,
      'It is a JSON object of store, jobs, runs, runFolder, runsIn and operator; all are optional.',
      { path, why },
    )
  }
}

/** There is no store in this place yet. */
export class StoreMissing extends PawlError {
  readonly code = 'E_STORE_MISSING'
  constructor(store: string) {
    super(
      `There is no store at ${store}`,
      'Name another with --store or PAWL_STORE, or make this one: pawl db migrate.',
      { store },
    )
  }
}

/** The schema of the store is older than this release. */
export class StoreOutdated extends PawlError {
  readonly code = 'E_STORE_OUTDATED'
  constructor(store: string, pending: readonly number[]) {
    super(
      `The store at ${store} lacks migrations that this release needs: ${pending.join(', ')}`,
      'Apply them: pawl db migrate.',
      { store, pending },
    )
  }
}

/** A file of jobs cannot be used. */
export class JobFileInvalid extends PawlError {
  readonly code = 'E_JOB_FILE_INVALID'
  constructor(path: string, why: string, cause?: unknown) {
    super(
      `The job file ${path} ${why}`,
      'It is a TypeScript or JavaScript module that exports what defineJob returns.',
      { path, why },
    )
    this.cause = cause
  }
}

/** A file of runs cannot be used. */
export class RunFileInvalid extends PawlError {
  readonly code = 'E_RUN_FILE_INVALID'
  constructor(path: string, why: string, cause?: unknown) {
    super(
      `The file of runs ${path} ${why}`,
      'It is a TypeScript or JavaScript module that exports what defineRun returns.',
      { path, why },
    )
    this.cause = cause
  }
}

/** There is nothing of this name. */
export class NameUnknown extends PawlError {
  readonly code = 'E_NAME_UNKNOWN'
  constructor(what: string, name: string, known: readonly string[]) {
    const list = known.length > 0 ? known.join(', ') : 'none'
    super(`There is no ${what} "${name}"`, `Known: ${list}.`, { what, name, known })
  }
}

/** Many jobs would be changed, and nobody has confirmed it. */
export class NotConfirmed extends PawlError {
  readonly code = 'E_NOT_CONFIRMED'
  constructor(verb: string, matched: number) {
    super(
      `${verb} would go to ${matched} jobs, and nobody confirmed it: nothing was changed`,
      'Add --yes, or --dry-run to see what would happen.',
      { verb, matched },
    )
  }
}

/** Something failed that nobody foresaw: a mistake in Pawl, or in what it runs on. */
export class Unexpected extends PawlError {
  readonly code = 'E_UNEXPECTED'
  constructor(cause: unknown) {
    super(messageOf(cause), 'Run it again with --verbose, and report what it says.')
    this.cause = cause
  }
}
