/**
 * Where settings come from: flags, then the environment, then a file, then the default. The first
 * that says something wins, and --verbose names it.
 *
 * The file is `pawl.config.json` in the present folder, or what --config or PAWL_CONFIG names:
 *
 *   { "store": "sqlite:./jobs.db", "jobs": ["./jobs.ts"], "operator": "ada",
 *     "runs": ["./runs.ts"], "runFolder": "./runs", "runsIn": "folder" }
 *
 * Paths in it start from its own folder. Runs are kept in a folder, or with "runsIn": "store" in
 * the store.
 */
import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { ConfigInvalid, UsageInvalid } from './errors.ts'

/** A setting, and who said so. */
interface Setting<T> {
  readonly value: T
  readonly from: string
}

/** Everything that is set. */
export interface Settings {
  readonly store: Setting<string>
  /** Paths of job files. */
  readonly jobs: Setting<readonly string[]>
  /** Paths of files with definitions of runs. */
  readonly runs: Setting<readonly string[]>
  /** The folder in which runs are kept. */
  readonly runFolder: Setting<string>
  /** Whether runs are kept in that folder, or in the store. */
  readonly runsIn: Setting<RunsIn>
  /** Nothing where nobody said it and the system has no name for its user. */
  readonly operator: Setting<string | undefined>
  /** What notices are signed with. Only from the environment: a command line can be read by all. */
  readonly notifySecret: Setting<string | undefined>
}

/** Where runs can be kept. */
type RunsIn = 'folder' | 'store'

/** What settings are read from. */
export interface SettingSources {
  readonly options: Readonly<Record<string, unknown>>
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

/** The store where nobody names one. */
export const DEFAULT_STORE = 'sqlite:.pawl/jobs.db'
const DEFAULT_RUN_FOLDER = '.pawl/runs'
const CONFIG_FILE = 'pawl.config.json'

/** Finds every setting; throws `ConfigInvalid`. */
export function resolveSettings({ options, env, cwd }: SettingSources): Settings {
  const file = readConfig({ options, env, cwd })
  const { config, path } = file
  return {
    notifySecret: first<string | undefined>(undefined, [
      ['PAWL_NOTIFY_SECRET', env.PAWL_NOTIFY_SECRET],
    ]),
    store: first(DEFAULT_STORE, [
      ['--store', options.store as string | undefined],
      ['PAWL_STORE', env.PAWL_STORE],
      [path, config.store === undefined ? undefined : fromFolder(config.store, dirname(path))],
    ]),
    jobs: first<readonly string[]>(
      [],
      [
        ['--jobs', (options.jobs as string[] | undefined)?.map((name) => resolve(cwd, name))],
        [path, config.jobs?.map((name) => resolve(dirname(path), name))],
      ],
    ),
    runs: first<readonly string[]>(
      [],
      [
        ['--runs', (options.runs as string[] | undefined)?.map((name) => resolve(cwd, name))],
        [path, config.runs?.map((name) => resolve(dirname(path), name))],
      ],
    ),
    runFolder: first(resolve(cwd, DEFAULT_RUN_FOLDER), [
      ['--dir', options.dir === undefined ? undefined : resolve(cwd, options.dir as string)],
      ['PAWL_RUNS', env.PAWL_RUNS ? resolve(cwd, env.PAWL_RUNS) : undefined],
      [path, config.runFolder === undefined ? undefined : resolve(dirname(path), config.runFolder)],
    ]),
    runsIn: first<RunsIn>('folder', [
      ['--in-store', options.inStore === true ? 'store' : undefined],
      ['--dir', options.dir === undefined ? undefined : 'folder'],
      ['PAWL_RUNS_IN', runsInOf(env.PAWL_RUNS_IN)],
      [path, config.runsIn],
    ]),
    operator: first<string | undefined>(undefined, [
      ['--operator', options.operator as string | undefined],
      ['PAWL_OPERATOR', env.PAWL_OPERATOR],
      [path, config.operator],
      ['the user of the system', systemUser()],
    ]),
  }
}

function first<T>(fallback: T, sources: readonly (readonly [string, T | undefined])[]): Setting<T> {
  for (const [from, value] of sources) {
    if (value !== undefined && value !== '') return { value, from }
  }
  return { value: fallback, from: 'the default' }
}

interface Config {
  readonly store?: string
  readonly jobs?: readonly string[]
  readonly runs?: readonly string[]
  readonly runFolder?: string
  readonly runsIn?: RunsIn
  readonly operator?: string
}

function readConfig({ options, env, cwd }: SettingSources): { config: Config; path: string } {
  const named = (options.config as string | undefined) ?? (env.PAWL_CONFIG || undefined)
  const path = resolve(cwd, named ?? CONFIG_FILE)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (named === undefined && code === 'ENOENT') return { config: {}, path }
    throw new ConfigInvalid(path, `cannot be read (${code})`)
  }
  return { config: parse(path, text), path }
}

function parse(path: string, text: string): Config {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ConfigInvalid(path, `is no JSON: ${(error as Error).message}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ConfigInvalid(path, 'is no JSON object')
  }
  const known = value as Record<string, unknown>
  const { store, jobs, runs, runFolder, runsIn, operator, ...others } = known
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new ConfigInvalid(path, `has an unknown field "${unknown}"`)
  for (const [field, own] of Object.entries({ store, operator, runFolder })) {
    if (own !== undefined && (typeof own !== 'string' || own.trim() === '')) {
      throw new ConfigInvalid(path, `must have a text as "${field}", and not an empty one`)
    }
  }
  if (runsIn !== undefined && !isRunsIn(runsIn)) {
    throw new ConfigInvalid(path, 'must have "folder" or "store" as "runsIn"')
  }
  const lists: Record<string, string[]> = {}
  for (const [field, own] of Object.entries({ jobs, runs })) {
    const list = typeof own === 'string' ? [own] : (own ?? undefined)
    if (list === undefined) continue
    if (!isTexts(list)) {
      throw new ConfigInvalid(path, `must have a path or a list of paths as "${field}"`)
    }
    lists[field] = list
  }
  return { ...(value as Config), ...lists }
}

function runsInOf(said: string | undefined): RunsIn | undefined {
  if (said === undefined || said === '') return undefined
  if (isRunsIn(said)) return said
  throw new UsageInvalid('PAWL_RUNS_IN must be folder or store')
}

function isRunsIn(value: unknown): value is RunsIn {
  return value === 'folder' || value === 'store'
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
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
