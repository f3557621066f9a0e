/**
 * Settings come from options, then environment variables, then the configuration file, then the
 * default. The first one counts, and --verbose names it. `src/engine/config.ts` describes the
 * fields of the file. Paths in it are relative to its folder.
 */
import { userInfo } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import type { Duration } from '../core/durations.ts'
import { shown } from '../core/format.ts'
import type { PawlConfig } from '../engine/config.ts'
import type { RetentionOptions } from '../engine/retention/options.ts'
import { type ConfigSources, readConfig } from './config-file.ts'
import { UsageInvalid } from './errors.ts'

/** A setting and its source. */
export interface Setting<T> {
  readonly value: T
  readonly from: string
}

export interface Settings {
  /** The configuration file; undefined if there is none. */
  readonly configFile: string | undefined
  readonly store: Setting<string>
  /** Paths of job files. */
  readonly jobs: Setting<readonly string[]>
  /** Paths of run files. */
  readonly runs: Setting<readonly string[]>
  /** The folder of runs. */
  readonly runFolder: Setting<string>
  /** Whether runs are stored in that folder or in the store. */
  readonly runsIn: Setting<RunsIn>
  /** Undefined if it is not set and the system has no user name. */
  readonly operator: Setting<string | undefined>
  /** Signs notices. Only from the environment: other users can read a command line. */
  readonly notifySecret: Setting<string | undefined>
  /** Signs tokens of signals; several are separated by commas. Only from the environment. */
  readonly signalSecret: Setting<string | undefined>
  /** The address of the HTTP API in tokens of signals. */
  readonly signalUrl: Setting<string | undefined>
  /** Only from the file: it may have a function. */
  readonly retention: Setting<RetentionOptions | undefined>
  /** Only for `work`, `serve` and `dev`: in other commands, options of these names mean others. */
  readonly ofProcesses: () => ProcessSettings
}

/** How the processes of `work`, `serve` and `dev` run. */
interface ProcessSettings {
  readonly queues: Setting<readonly string[]>
  readonly concurrency: Setting<number>
  readonly lease: Setting<Duration | undefined>
  readonly drain: Setting<Duration | undefined>
  readonly port: Setting<number>
  readonly host: Setting<string>
  readonly basePath: Setting<string | undefined>
  readonly hosts: Setting<readonly string[]>
  readonly redactKeys: Setting<readonly string[]>
}

type RunsIn = 'folder' | 'store'

const STORE_PATH = '.pawl/jobs.db'
const DEFAULT_STORE = `sqlite:${STORE_PATH}`
const DEFAULT_RUN_FOLDER = '.pawl/runs'
const DEFAULT_PORT = 7070
const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_CONCURRENCY = 10
const CONCURRENCY_MAX = 10_000
const PORT_MAX = 65_535

/** Resolves every setting; throws `ConfigInvalid` and `UsageInvalid`. */
export async function resolveSettings(sources: ConfigSources): Promise<Settings> {
  const { config, path } = await readConfig(sources)
  const file: ConfigFile = {
    config,
    path,
    folder: path === undefined ? sources.cwd : dirname(path),
  }
  return settingsOf(sources, file)
}

/** Settings of a command that does not read the configuration file. */
export function settingsWithoutFile(sources: ConfigSources): Settings {
  const file: ConfigFile = { config: {}, path: undefined, folder: sources.cwd }
  return settingsOf(sources, file)
}

function settingsOf(sources: ConfigSources, file: ConfigFile): Settings {
  const { config, path } = file
  return {
    configFile: path,
    ...placesOf(sources, file),
    retention: first<RetentionOptions | undefined>(undefined, [[path ?? '', config.retention]]),
    ofProcesses: () => processesOf(sources, file),
  }
}

interface ConfigFile {
  readonly config: PawlConfig
  readonly path: string | undefined
  /** Paths of the file are relative to it. */
  readonly folder: string
}

/** Where things are, and who acts. */
function placesOf({ options, env, cwd }: ConfigSources, { config, path, folder }: ConfigFile) {
  const file = path ?? ''
  const given = (name: string) => options[name] as string | undefined
  const inFolder = (name: string) => resolve(folder, name)
  const listed = (name: 'jobs' | 'runs') =>
    first<readonly string[]>(
      [],
      [
        [`--${name}`, (options[name] as string[] | undefined)?.map((one) => resolve(cwd, one))],
        [file, config[name] === undefined ? undefined : [config[name]].flat().map(inFolder)],
      ],
    )
  return {
    notifySecret: first<string | undefined>(undefined, [
      ['PAWL_NOTIFY_SECRET', env.PAWL_NOTIFY_SECRET],
    ]),
    signalSecret: first<string | undefined>(undefined, [
      ['PAWL_SIGNAL_SECRET', env.PAWL_SIGNAL_SECRET],
    ]),
    signalUrl: first<string | undefined>(undefined, [['PAWL_SIGNAL_URL', env.PAWL_SIGNAL_URL]]),
    store: first(path === undefined ? DEFAULT_STORE : `sqlite:${inFolder(STORE_PATH)}`, [
      ['--store', given('store')],
      ['PAWL_STORE', env.PAWL_STORE],
      [file, config.store === undefined ? undefined : fromFolder(config.store, folder)],
    ]),
    jobs: listed('jobs'),
    runs: listed('runs'),
    runFolder: first(inFolder(DEFAULT_RUN_FOLDER), [
      ['--dir', options.dir === undefined ? undefined : resolve(cwd, options.dir as string)],
      ['PAWL_RUNS', env.PAWL_RUNS ? resolve(cwd, env.PAWL_RUNS) : undefined],
      [file, config.runFolder === undefined ? undefined : inFolder(config.runFolder)],
    ]),
    runsIn: first<RunsIn>('folder', [
      ['--in-store', options.inStore === true ? 'store' : undefined],
      ['--dir', options.dir === undefined ? undefined : 'folder'],
      ['PAWL_RUNS_IN', runsInOf(env.PAWL_RUNS_IN)],
      [file, config.runsIn],
    ]),
    operator: first<string | undefined>(undefined, [
      ['--operator', given('operator')],
      ['PAWL_OPERATOR', env.PAWL_OPERATOR],
      [file, config.operator],
      ['the user of the system', systemUser()],
    ]),
  }
}

function processesOf(
  { options, env }: ConfigSources,
  { config, path }: ConfigFile,
): ProcessSettings {
  const file = path ?? ''
  const { work = {}, serve = {} } = config
  const given = (name: string) => options[name] as string | undefined
  const several = (name: string) => options[name] as readonly string[] | undefined
  const whole = (name: string, min: number, max: number, own: number | undefined) => {
    const variable = `PAWL_${name.toUpperCase()}`
    return [
      [`--${name}`, wholeIn(`--${name}`, given(name), min, max)],
      [variable, wholeIn(variable, env[variable] || undefined, min, max)],
      [file, own],
    ] as const
  }
  return {
    queues: first<readonly string[]>(
      [],
      [
        ['--queue', several('queue')],
        [file, work.queues],
      ],
    ),
    concurrency: first(
      DEFAULT_CONCURRENCY,
      whole('concurrency', 1, CONCURRENCY_MAX, work.concurrency),
    ),
    lease: first<Duration | undefined>(undefined, [
      ['--lease', given('lease') as Duration],
      [file, work.lease],
    ]),
    drain: first<Duration | undefined>(undefined, [
      ['--drain', given('drain') as Duration],
      [file, work.drain],
    ]),
    port: first(DEFAULT_PORT, whole('port', 0, PORT_MAX, serve.port)),
    host: first(DEFAULT_HOST, [
      ['--host', given('host')],
      ['PAWL_HOST', env.PAWL_HOST],
      [file, serve.host],
    ]),
    basePath: first<string | undefined>(undefined, [
      ['--base-path', given('basePath')],
      [file, serve.basePath],
    ]),
    hosts: first<readonly string[]>(
      [],
      [
        ['--allow-host', several('allowHost')],
        [file, serve.hosts],
      ],
    ),
    redactKeys: first<readonly string[]>(
      [],
      [
        ['--redact', several('redact')],
        [file, serve.redactKeys],
      ],
    ),
  }
}

function wholeIn(
  from: string,
  text: string | undefined,
  min: number,
  max: number,
): number | undefined {
  if (text === undefined) return undefined
  const value = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new UsageInvalid(`${from} must be a whole number from ${min} to ${max}, not ${shown(text)}`)
}

function first<T>(fallback: T, sources: readonly (readonly [string, T | undefined])[]): Setting<T> {
  for (const [from, value] of sources) {
    if (value !== undefined && value !== '') return { value, from }
  }
  return { value: fallback, from: 'the default' }
}

function runsInOf(text: string | undefined): RunsIn | undefined {
  if (text === undefined || text === '') return undefined
  if (text === 'folder' || text === 'store') return text
  throw new UsageInvalid(`PAWL_RUNS_IN must be folder or store, not "${text}"`)
}

function fromFolder(store: string, folder: string): string {
  const path = /^sqlite:(.+)$/s.exec(store)?.[1]
  const isRelative = path !== undefined && path !== ':memory:' && !isAbsolute(path)
  return isRelative ? `sqlite:${join(folder, path)}` : store
}

function systemUser(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
