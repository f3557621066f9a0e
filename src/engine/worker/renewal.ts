/**
 * How a worker renews its leases: in a separate thread if it can open the same store there, and if
 * the file of the thread's code is found. A program that was bundled into one file does not have
 * that file: starting the bundle itself would run the whole program a second time. So the file is
 * looked for, in this order:
 *
 *   1. the module in the package, if the program is not bundled
 *   2. `heartbeat-thread.js` beside the bundle: `pawl/heartbeat-thread`, bundled as a second entry
 *   3. the package in `node_modules`, seen from the bundle or from the current folder, if it has
 *      the same version
 */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ownUrl } from '../../environment/own-url.ts'
import { VERSION } from '../../environment/version.ts'
import type { PgConfig, PgPool } from '../../stores/postgres/driver.ts'
import type { Place, PostgresStoreOptions } from '../store-options.ts'
import { threadFileBy } from './heartbeat-thread.ts'

/** How a worker renews its leases. */
export type Renewal =
  | { readonly kind: 'thread'; readonly file: URL; readonly place: Place }
  | {
      readonly kind: 'timer'
      /** A stable word. */
      readonly why: 'time' | 'store' | 'memory' | 'sources' | 'options' | 'bundle'
      /** What to do; absent if there is nothing to do about it. */
      readonly advice?: string
    }

const FILE = 'heartbeat-thread.js'
const IN_PACKAGE = `dist/entries/${FILE}`

const OPEN_BY_OPTIONS = 'Pass the options of the store to createPawl, not an open store'
const PASSABLE =
  'Use options that can be passed to a thread: no functions and no objects of classes'
const BUNDLE = `Keep the package pawl beside the bundle, or bundle pawl/heartbeat-thread as ${FILE}`

/** Decides for a process; `place` is undefined if the program opened the store itself. */
export function findRenewal(place: Place | undefined, url = import.meta.url): Renewal {
  if (place === undefined) return { kind: 'timer', why: 'store', advice: OPEN_BY_OPTIONS }
  if (place.kind === 'sqlite' && place.options.path === ':memory:') {
    return { kind: 'timer', why: 'memory' }
  }
  const own = ownUrl(url)
  // A thread of Node 20 cannot load TypeScript sources.
  if (own.endsWith('.ts')) return { kind: 'timer', why: 'sources' }
  const passable = passableOf(place)
  if (passable === undefined) return { kind: 'timer', why: 'options', advice: PASSABLE }
  const file = findFile(own)
  if (file === undefined) return { kind: 'timer', why: 'bundle', advice: BUNDLE }
  return { kind: 'thread', file, place: passable }
}

/** The place as a value that a thread can receive; undefined if there is none. */
function passableOf(place: Place): Place | undefined {
  const other: Place =
    place.kind === 'sqlite' ? place : { kind: 'postgres', options: ofThread(place.options) }
  try {
    return structuredClone(other)
  } catch {
    return undefined
  }
}

/** The thread has one connection of its own, made as the connections of the pool are. */
function ofThread({ pool, ...options }: PostgresStoreOptions): PostgresStoreOptions {
  const { connections: _, config, ...own } = options
  const given = pool === undefined ? config : configOf(pool)
  if (given === undefined) return own
  const { max: __, min: ___, ...rest } = given
  return { ...own, config: rest }
}

/** The options of a pool of `pg`, with the password, which the pool does not enumerate. */
function configOf(pool: PgPool): PgConfig {
  const { options } = pool as { readonly options?: PgConfig }
  // Functions cannot be passed; the value of a pool without options cannot be used either.
  if (options === undefined) return { pool: () => {} }
  const { password } = options
  const { Promise: _, Client: __, log: ___, ...rest } = options
  return { ...rest, ...(password !== undefined && { password }) }
}

function findFile(own: string): URL | undefined {
  const module = own.endsWith('/engine/worker/renewal.js') ? threadFileBy(own) : undefined
  if (module !== undefined && exists(module)) return module
  const beside = new URL(FILE, own)
  if (exists(beside)) return beside
  for (const from of [own, pathToFileURL(join(process.cwd(), 'index.js')).href]) {
    const file = inPackage(from)
    if (file !== undefined) return file
  }
  return undefined
}

/** A bundler may have put a URL of another machine, or of another scheme, in the place of ours. */
function exists(file: URL): boolean {
  return file.protocol === 'file:' && existsSync(fileURLToPath(file))
}

function inPackage(from: string): URL | undefined {
  try {
    const path = createRequire(from).resolve('pawl/package.json')
    const { version } = JSON.parse(readFileSync(path, 'utf8')) as { version?: unknown }
    const file = new URL(IN_PACKAGE, pathToFileURL(path))
    return version === VERSION && exists(file) ? file : undefined
  } catch {
    return undefined
  }
}
