/**
 * The configuration file of the program `pawl`: its fields and their checks. `defineConfig` is part
 * of the library so that a file in TypeScript is checked by the compiler; `src/cli/config-file.ts`
 * finds and reads the file.
 */
import { count, listOf, name, text } from '../core/checks.ts'
import { type Duration, toMs } from '../core/durations.ts'
import { PawlError } from '../core/errors.ts'
import { checkFields, type FieldChecks } from '../core/fields.ts'
import { shown, typeName } from '../core/format.ts'
import { checkRetention, type RetentionOptions } from './retention/options.ts'

/** The options of the worker of `pawl work` and `pawl dev`. */
export interface WorkConfig {
  /**
   * The queues that the worker serves; earlier ones first.
   * @defaultValue all queues
   */
  readonly queues?: readonly string[]
  /**
   * How many jobs run at a time.
   * @defaultValue 10
   */
  readonly concurrency?: number
  /**
   * How long a lease lasts without renewal.
   * @defaultValue `'30s'`
   */
  readonly lease?: Duration
  /**
   * How long the worker waits for running jobs when it stops.
   * @defaultValue `'25s'`
   */
  readonly drain?: Duration
}

/** The options of the HTTP API of `pawl serve`; `pawl dev` uses the port and the redacted keys. */
export interface ServeConfig {
  /**
   * The port; 0 chooses a free one.
   * @defaultValue 7070
   */
  readonly port?: number
  /**
   * The address. On another one than a loopback address, every request needs a token.
   * @defaultValue `'127.0.0.1'`
   */
  readonly host?: string
  /**
   * The path at which a proxy mounts the API, such as `/pawl`.
   * @defaultValue none
   */
  readonly basePath?: string
  /**
   * Host names that clients may use, such as that of a proxy.
   * @defaultValue none
   */
  readonly hosts?: readonly string[]
  /**
   * Members of payloads whose values are not shown, instead of the default list.
   * @defaultValue the default list of the API
   */
  readonly redactKeys?: readonly string[]
}

/** The configuration of the program `pawl`. Paths are relative to the folder of the file. */
export interface PawlConfig {
  /**
   * The store: `sqlite:PATH` or `postgres://…`. Keep passwords out of the file: use `PAWL_STORE`,
   * or read another environment variable.
   * @defaultValue `'sqlite:.pawl/jobs.db'`
   */
  readonly store?: string
  /**
   * Paths of job files. Each exports job types made by `defineJob`.
   * @defaultValue none
   */
  readonly jobs?: string | readonly string[]
  /**
   * Paths of run files. Each exports definitions made by `defineRun`.
   * @defaultValue none
   */
  readonly runs?: string | readonly string[]
  /**
   * The folder of runs.
   * @defaultValue `'.pawl/runs'`
   */
  readonly runFolder?: string
  /**
   * Whether runs are kept in that folder or in the store.
   * @defaultValue `'folder'`
   */
  readonly runsIn?: 'folder' | 'store'
  /**
   * The name under which the ledger records changes by a person.
   * @defaultValue the user of the system
   */
  readonly operator?: string
  /**
   * How long ended jobs are kept. The workers of `pawl work` and `pawl dev` remove older ones.
   * @defaultValue without limit
   */
  readonly retention?: RetentionOptions
  /**
   * The worker of `pawl work` and `pawl dev`.
   * @defaultValue the default of each option
   */
  readonly work?: WorkConfig
  /**
   * The HTTP API of `pawl serve` and `pawl dev`.
   * @defaultValue the default of each option
   */
  readonly serve?: ServeConfig
}

/**
 * Returns the configuration as it is; TypeScript checks its fields. Use it as the default export of
 * `pawl.config.ts`, `.mts`, `.js` or `.mjs`.
 */
export function defineConfig(config: PawlConfig): PawlConfig {
  return config
}

/** Returns the error for a field that is not known or breaks its rule. */
type Refuse = (why: string, hint?: string) => Error

const TEXT_MAX = 10_000
const LIST_MAX = 1000
const CONCURRENCY_MAX = 10_000
const PORT_MAX = 65_535

const ownText = (value: string) => text(value, TEXT_MAX)
const texts = (values: readonly string[]) => listOf(values, LIST_MAX, ownText)
const paths = (value: string | readonly string[]) => {
  const why = typeof value === 'string' ? ownText(value) : texts(value)
  return why === undefined ? undefined : `must be a path or a list of paths: one ${why}`
}

function runsIn(value: unknown): string | undefined {
  const isKnown = value === 'folder' || value === 'store'
  return isKnown ? undefined : `must be 'folder' or 'store', not ${shown(value)}`
}

function duration(value: Duration): string | undefined {
  try {
    toMs(value, '')
    return undefined
  } catch {
    return `must be milliseconds or a text such as '30s', '5m' or '1h', not ${shown(value)}`
  }
}

const WORK: FieldChecks<WorkConfig> = {
  queues: (values: readonly string[]) => listOf(values, LIST_MAX, name),
  concurrency: (value) => count(value, 1, CONCURRENCY_MAX),
  lease: duration,
  drain: duration,
}

const SERVE: FieldChecks<ServeConfig> = {
  port: (value) => count(value, 0, PORT_MAX),
  host: name,
  basePath: (value: string) =>
    typeof value === 'string' && value.startsWith('/') ? undefined : 'must begin with /',
  hosts: texts,
  redactKeys: texts,
}

function checksOf(refuse: Refuse): FieldChecks<PawlConfig> {
  const within =
    <T extends object>(what: string, checks: FieldChecks<T>) =>
    (value: T) =>
      checkPart(value, checks, { what, refuse })
  return {
    store: ownText,
    jobs: paths,
    runs: paths,
    runFolder: ownText,
    runsIn,
    operator: name,
    retention: (value: RetentionOptions) => checkOfRetention(value, refuse),
    work: within('work', WORK),
    serve: within('serve', SERVE),
  }
}

function checkPart<T extends object>(
  value: T,
  checks: FieldChecks<T>,
  { what, refuse }: { readonly what: string; readonly refuse: Refuse },
): undefined {
  checkFields(value, checks, {
    what,
    prefix: what === '' ? '' : `${what}.`,
    refuse: (field, why, hint) => refuse(`"${field}" ${why}`, hint),
  })
  return undefined
}

/** Texts of `checkRetention` name the field, so they are reported as they are. */
function checkOfRetention(value: RetentionOptions, refuse: Refuse): undefined {
  try {
    return checkRetention(value)
  } catch (error) {
    if (error instanceof PawlError) throw refuse(error.message, error.hint)
    throw error
  }
}

/** Throws what `refuse` returns for the first field that is not known or breaks its rule. */
export function checkConfig(value: unknown, refuse: Refuse): asserts value is PawlConfig {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refuse(`must be an object, not ${typeName(value)}`)
  }
  checkPart(value as PawlConfig, checksOf(refuse), { what: '', refuse })
}
