/** The errors of the command line. Each has its own class and a stable code. */
import { messageOf, PawlError } from '../core/errors.ts'

/** The command, an argument or an option is wrong. */
export class UsageInvalid extends PawlError {
  readonly code = 'E_USAGE'
  constructor(
    why: string,
    hint = 'Add --help to the command to see its arguments, options and examples.',
  ) {
    super(why, hint)
  }
}

/** The configuration file cannot be read, or has an unknown field or value. */
export class ConfigInvalid extends PawlError {
  readonly code = 'E_CONFIG_INVALID'
  constructor(path: string, why: string, hint?: unknown) {
    const own =
      typeof hint === 'string' ? hint : 'Its fields are listed in docs/reference/options.md.'
    super(`The configuration file ${path} ${why}`, own, { path, why })
    if (typeof hint !== 'string') this.cause = hint
  }
}

/** No store exists at this address. */
export class StoreMissing extends PawlError {
  readonly code = 'E_STORE_MISSING'
  constructor(store: string) {
    super(
      `There is no store at ${store}`,
      'Use another one (--store or PAWL_STORE), or create this one: pawl db migrate.',
      { store },
    )
  }
}

/** The schema of the store is older than this release. */
export class StoreOutdated extends PawlError {
  readonly code = 'E_STORE_OUTDATED'
  constructor(store: string, pending: readonly number[]) {
    super(
      `The store at ${store} needs migrations of this release: ${pending.join(', ')}`,
      'Apply them: pawl db migrate.',
      { store, pending },
    )
  }
}

/** A job file cannot be loaded, or exports no job types. */
export class JobFileInvalid extends PawlError {
  readonly code = 'E_JOB_FILE_INVALID'
  constructor(path: string, why: string, cause?: unknown) {
    super(
      `The job file ${path} ${why}`,
      'It must be a TypeScript or JavaScript module that exports job types (defineJob).',
      { path, why },
    )
    this.cause = cause
  }
}

/** A run file cannot be loaded, or exports no definitions of runs. */
export class RunFileInvalid extends PawlError {
  readonly code = 'E_RUN_FILE_INVALID'
  constructor(path: string, why: string, cause?: unknown) {
    super(
      `The run file ${path} ${why}`,
      'It must be a TypeScript or JavaScript module that exports definitions (defineRun).',
      { path, why },
    )
    this.cause = cause
  }
}

/** A bundle of jobs is damaged, not of this format, or of a later version. */
export class JobBundleInvalid extends PawlError {
  readonly code = 'E_JOB_BUNDLE_INVALID'
  constructor(file: string, line: number, why: string) {
    super(
      `Line ${line} of the bundle ${file} ${why}`,
      'Export the jobs again: pawl job export ID --out FILE.',
      { file, line, why },
    )
  }
}

/** A commit of a replay used SQL. */
export class ReplayQueryRefused extends PawlError {
  readonly code = 'E_REPLAY_QUERY_REFUSED'
  constructor() {
    super(
      'The commit runs SQL, which a replay does not do',
      'The statement is printed. Everything before the commit was replayed; test the commit with ' +
        'createTestPawl.',
    )
  }
}

/** A change of many jobs was not confirmed. */
export class NotConfirmed extends PawlError {
  readonly code = 'E_NOT_CONFIRMED'
  constructor(verb: string, matched: number) {
    super(
      `${verb} would change ${matched} jobs and was not confirmed: nothing was changed`,
      'Add --yes to confirm, or --dry-run to see what would change.',
      { verb, matched },
    )
  }
}

/** An unexpected error: a defect of Pawl, of your code or of the system. */
export class Unexpected extends PawlError {
  readonly code = 'E_UNEXPECTED'
  constructor(cause: unknown) {
    super(messageOf(cause), 'Run the command again with --verbose, and report its output.')
    this.cause = cause
  }
}
