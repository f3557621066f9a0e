/**
 * Finds and reads the configuration file: the one of --config or PAWL_CONFIG, or the first folder
 * from the current one upwards that has a `pawl.config.*`. The search ends at the root of a
 * repository (a folder with `.git`), at the home folder, and at the root of the file system.
 *
 * A file in TypeScript or JavaScript is run. A file of a parent folder is run only if it belongs to
 * the user or to root: every user can write to a folder such as /tmp.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, extname, join, resolve } from 'node:path'
import { checkConfig, type PawlConfig } from '../engine/config.ts'
import { ConfigInvalid } from './errors.ts'
import { evaluate } from './job-files.ts'
import { visible } from './visible.ts'

/** A configuration and the file that it is from; no path if there is no file. */
export interface FoundConfig {
  readonly config: PawlConfig
  readonly path?: string
}

export interface ConfigSources {
  readonly options: Readonly<Record<string, unknown>>
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

const ENDINGS = ['ts', 'mts', 'js', 'mjs', 'json'] as const

export const CONFIG_NAMES: readonly string[] = ENDINGS.map((ending) => `pawl.config.${ending}`)

/** The entries that a configuration may import; all others are resolved as usual. */
const ENTRIES = ['pawl/config'] as const

/** Reads the configuration; throws `ConfigInvalid`. */
export async function readConfig({ options, env, cwd }: ConfigSources): Promise<FoundConfig> {
  const named = (options.config as string | undefined) ?? (env.PAWL_CONFIG || undefined)
  const path = named === undefined ? findConfig(cwd) : resolve(cwd, named)
  if (path === undefined) return { config: {} }
  if (named === undefined && dirname(path) !== resolve(cwd)) assertTrusted(path)
  const value = extname(path) === '.json' ? parse(path) : await load(path)
  const refuse = (why: string, hint?: string) =>
    new ConfigInvalid(path, `is invalid: ${visible(why)}`, hint)
  checkConfig(value, refuse)
  return { config: value, path }
}

/** Returns the nearest configuration file; throws `ConfigInvalid` if a folder has two. */
export function findConfig(cwd: string): string | undefined {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const [first, second] = CONFIG_NAMES.map((name) => join(folder, name)).filter(existsSync)
    if (first !== undefined && second !== undefined) {
      throw new ConfigInvalid(first, `is not the only one: there is ${second}`, 'Keep one of them.')
    }
    if (first !== undefined) return first
    const isEnd = existsSync(join(folder, '.git')) || folder === homedir()
    if (isEnd || dirname(folder) === folder) return undefined
  }
}

function assertTrusted(path: string): void {
  const owner = statSync(path).uid
  if (extname(path) === '.json' || owner === 0 || owner === process.getuid?.()) return
  if (process.getuid === undefined) return
  throw new ConfigInvalid(
    path,
    'belongs to another user and is in a parent folder, so it was not run',
    `Name it if you trust it: --config ${visible(path)}`,
  )
}

function parse(path: string): unknown {
  const text = readText(path)
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new ConfigInvalid(path, `is not JSON: ${visible((error as Error).message)}`)
  }
}

async function load(path: string): Promise<unknown> {
  readText(path)
  const exported = (await evaluate(path, ConfigInvalid, ENTRIES)) as { readonly default?: unknown }
  // jiti returns the module itself as the default export if there is none.
  if (Object.hasOwn(exported, 'default')) return exported.default
  const hint = "Write export default defineConfig({ … }), with defineConfig from 'pawl/config'."
  throw new ConfigInvalid(path, 'has no default export', hint)
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigInvalid(path, `cannot be read (${code})`)
  }
}
