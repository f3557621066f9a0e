/** What `pawl init` finds out about a project. It reads files and runs nothing. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { UsageInvalid } from '../errors.ts'
import { visible } from '../visible.ts'

export type Language = 'typescript' | 'javascript'
export type PackageManager = 'npm' | 'pnpm' | 'yarn' | 'bun'
export type Framework = 'next' | 'nest' | 'fastify' | 'express' | 'hono'

/** The fields of `package.json` that are used here. Their types are not checked. */
interface Package {
  readonly type?: unknown
  readonly packageManager?: unknown
  readonly scripts?: unknown
  readonly dependencies?: unknown
  readonly devDependencies?: unknown
}

export interface Project {
  readonly folder: string
  /** Undefined if there is no `package.json`. */
  readonly package: { readonly value: Package; readonly text: string } | undefined
  readonly language: Language
  readonly isModule: boolean
  /** Whether TypeScript files import others by their `.ts` names. */
  readonly importsByTs: boolean
  readonly packageManager: PackageManager
  readonly framework: Framework | undefined
  /** Packages that are needed and cannot be resolved from the folder. */
  readonly missing: readonly string[]
}

const SIZE_MAX = 1024 * 1024

const LOCKS: readonly (readonly [file: string, manager: PackageManager])[] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
  ['package-lock.json', 'npm'],
]

/** A project with several is shown the recipe of the first. */
const FRAMEWORKS: readonly (readonly [dependency: string, framework: Framework])[] = [
  ['next', 'next'],
  ['@nestjs/core', 'nest'],
  ['fastify', 'fastify'],
  ['express', 'express'],
  ['hono', 'hono'],
]

/** Throws `UsageInvalid` if `package.json` cannot be read. */
export function detect(folder: string, env: NodeJS.ProcessEnv, language?: Language): Project {
  const found = readPackage(folder)
  const own = found?.value ?? {}
  const dependencies = new Set([own.dependencies, own.devDependencies].flatMap(keysOf))
  const config = join(folder, 'tsconfig.json')
  const isTyped = existsSync(config) || dependencies.has('typescript')
  return {
    folder,
    package: found,
    language: language ?? (isTyped ? 'typescript' : 'javascript'),
    isModule: found === undefined || own.type === 'module',
    importsByTs: existsSync(config) && importsByTs(readText(config)),
    packageManager: managerOf(folder, own, env),
    framework: FRAMEWORKS.find(([name]) => dependencies.has(name))?.[1],
    missing: missingIn(folder),
  }
}

function keysOf(value: unknown): string[] {
  return typeof value === 'object' && value !== null ? Object.keys(value) : []
}

function readPackage(folder: string): Project['package'] {
  const path = join(folder, 'package.json')
  if (!existsSync(path)) return undefined
  const text = readText(path)
  try {
    const value = JSON.parse(text) as unknown
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value, text }
  } catch {
    // The error below says what to do.
  }
  throw new UsageInvalid(`${visible(path)} is not a JSON object`, 'Correct it, then run it again.')
}

function readText(path: string): string {
  try {
    const text = readFileSync(path, 'utf8')
    if (text.length <= SIZE_MAX) return text
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageInvalid(`${visible(path)} cannot be read (${code})`, 'Check the file.')
  }
  throw new UsageInvalid(`${visible(path)} has more than ${SIZE_MAX} characters`, 'Check the file.')
}

/** `tsconfig.json` may have comments, so it is searched instead of parsed. */
function importsByTs(text: string): boolean {
  return /"(allowImportingTsExtensions|rewriteRelativeImportExtensions)"\s*:\s*true/.test(text)
}

/** By the field `packageManager`, lock files here or above, or the program that runs this. */
function managerOf(folder: string, own: Package, env: NodeJS.ProcessEnv): PackageManager {
  const field = /^(npm|pnpm|yarn|bun)@/.exec(String(own.packageManager ?? ''))?.[1]
  if (field !== undefined) return field as PackageManager
  for (let at = folder; ; at = dirname(at)) {
    const lock = LOCKS.find(([file]) => existsSync(join(at, file)))
    if (lock !== undefined) return lock[1]
    if (existsSync(join(at, '.git')) || dirname(at) === at) break
  }
  const agent = /^(npm|pnpm|yarn|bun)\//.exec(env.npm_config_user_agent ?? '')?.[1]
  return (agent as PackageManager | undefined) ?? 'npm'
}

const SQLITE_DRIVER = '@photostructure/sqlite'

function missingIn(folder: string): string[] {
  const needed = hasSqlite(process.versions.node) ? ['pawl'] : ['pawl', SQLITE_DRIVER]
  return needed.filter((name) => !isThere(folder, name))
}

/** Node has a SQLite driver of its own from 22.13 on. */
export function hasSqlite(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 22 || (major === 22 && minor >= 13)
}

function isThere(folder: string, name: string): boolean {
  const paths = createRequire(join(folder, 'package.json')).resolve.paths(name) ?? []
  return paths.some((path) => existsSync(join(path, name, 'package.json')))
}
